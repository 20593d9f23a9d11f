"""A report as files: tables, pictures, the page, and an index that a console can read."""

import csv
import io
import json
import os
import shutil
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from gantrymq.base.errors import ConfigError
from gantrymq.base.spreadsheet import plain_cell
from gantrymq.pipelines.marts.mart import MartTable
from gantrymq.pipelines.report.page import page
from gantrymq.pipelines.report.pictures import WIDE, Picture
from gantrymq.pipelines.report.report import Report
from gantrymq.pipelines.report.sections import MARTS, draw_pictures
from gantrymq.pipelines.report.summary import figures, summary

INDEX: Final = "report.json"
PAGE: Final = "report.html"
TABLES, PICTURES = "tables", "pictures"
MAKING: Final = ".making"
VERSION: Final = 1
"""Of the index; it changes when something a reader relies on does."""


def write(report: Report, folder: Path) -> Path:
    """Write everything and return the page's path.

    The old index is deleted first and the new one comes last, so the files that an index lists
    exist. All files are written in a folder beside before any of them is replaced.
    """
    making = folder / MAKING
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(making, ignore_errors=True)
        files = _make(report, making)
        old = set(_listed(folder))
        (folder / INDEX).unlink(missing_ok=True)
        for file in files:
            target = folder / file
            target.parent.mkdir(exist_ok=True)
            (making / file).replace(target)
        for file in old - set(files):
            (folder / file).unlink(missing_ok=True)
        shutil.rmtree(making, ignore_errors=True)
    except OSError as error:
        raise ConfigError(
            f"the report cannot be written to {folder}: {error.strerror or error}"
        ) from error
    return folder / PAGE


def index(report: Report, drawn: Iterable[Picture]) -> dict[str, Any]:
    """The index: all tables and pictures, with titles and units."""
    request = report.request
    return {
        "version": VERSION,
        "madeMs": report.made_ms,
        "page": PAGE,
        "period": {
            "sinceMs": request.period.since_ms,
            "untilMs": request.period.until_ms,
            "zone": request.zone,
            "text": request.words(),
        },
        "source": request.kind,
        "stepMs": report.step_ms,
        "figures": [
            {"name": each.name, "title": each.title, "value": each.value, "unit": each.unit}
            for each in figures(report)
        ],
        "tables": [_table_entry(report.table(mart)) for mart in MARTS],
        "pictures": [
            {
                "name": each.name,
                "title": each.title,
                "text": each.alt,
                "unit": each.unit,
                "table": each.mart.name,
                "file": f"{PICTURES}/{each.name}.svg",
            }
            for each in drawn
        ],
        **{key: summary(report)[key] for key in ("verdict", "unexplained", "notes")},
    }


def _table_entry(table: MartTable) -> dict[str, Any]:
    mart = table.mart
    return {
        "name": mart.name,
        "title": mart.title,
        "text": mart.about,
        "rows": len(table.rows),
        "key": list(mart.key),
        "columns": [
            {"name": each.name, "type": each.kind, "title": each.title, "unit": each.unit}
            for each in mart.fields
        ],
        "files": {kind: f"{TABLES}/{mart.name}.{kind}" for kind in ("parquet", "csv", "json")},
    }


def _make(report: Report, making: Path) -> list[str]:
    """Write all files into a folder of their own; returns their names, the index last."""
    (making / TABLES).mkdir(parents=True)
    (making / PICTURES).mkdir()
    files = []
    for mart in MARTS:
        table = report.table(mart)
        pq.write_table(table.arrow, making / TABLES / f"{mart.name}.parquet")
        _save(making / TABLES / f"{mart.name}.csv", as_csv(table))
        _save(making / TABLES / f"{mart.name}.json", as_json(table.rows))
        files += [f"{TABLES}/{mart.name}.{kind}" for kind in ("parquet", "csv", "json")]
    drawn = draw_pictures(report)
    for picture in drawn:
        _save(making / PICTURES / f"{picture.name}.svg", picture.draw(WIDE, True))
        files.append(f"{PICTURES}/{picture.name}.svg")
    _save(making / PAGE, page(report, drawn))
    _save(making / INDEX, as_json(index(report, drawn)))
    return [*files, PAGE, INDEX]


def _save(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _listed(folder: Path) -> list[str]:
    """The files of an earlier report in the folder; only those below the folder."""
    try:
        old = json.loads((folder / INDEX).read_text())
        pictures = [each["file"] for each in old["pictures"]]
        tables = [file for each in old["tables"] for file in each["files"].values()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    places = (f"{TABLES}/", f"{PICTURES}/")
    return [
        file
        for file in (*tables, *pictures)
        if isinstance(file, str) and file.startswith(places) and ".." not in file
    ]


def as_csv(table: MartTable) -> str:
    """A table as CSV; text that spreadsheets take for a formula gets an apostrophe in front."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [each.name for each in table.mart.fields]
    writer.writerow(names)
    for row in table.rows:
        writer.writerow([csv_value(row[name]) for name in names])
    return out.getvalue()


def csv_value(value: Any) -> Any:
    """A value as a cell."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    if isinstance(value, bool):
        return str(value).lower()
    return plain_cell(value) if isinstance(value, str) else value


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1, default=_json_value) + "\n"


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    raise TypeError(type(value).__name__)
