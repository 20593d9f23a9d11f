"""What archives, reports and replays there are, and the files of a report."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, Download, EndpointTable, OfCluster
from gantrymq.console.api.pipelines.command import ask_pipeline, has_spark
from gantrymq.console.api.pipelines.places import archives_of, check_right, existing, reports_of
from gantrymq.console.errors import NotThere
from gantrymq.console.jobs import Jobs

TABLE = EndpointTable("data")

INDEX: Final = "report.json"
PAGE: Final = "report.html"
REPORT_POLICY: Final = (
    "sandbox allow-scripts allow-popups; default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
)
"""The page of a report has its own style and script, and may reach nothing, nor the console."""
FILE_BYTES: Final = 256 * 1024


class ArchivePosition(Answer, frozen=True, kw_only=True):
    """Where an archive goes on in one queue."""

    topic: str
    broker: str
    queue_id: int
    next_offset: int


class ArchiveState(Answer, frozen=True, kw_only=True):
    """An archive: a lakehouse table of messages."""

    name: str
    format: str
    topics: list[str]
    queues: int
    rows: int
    size: int
    """Bytes."""
    files: int
    first_ms: int | None
    last_ms: int | None
    """The first and last store time of its messages."""
    positions: list[ArchivePosition]
    """The checkpoint, which lies in the table: up to where each queue is archived."""
    trouble: str | None


class ReportState(Answer, frozen=True, kw_only=True):
    """A report and its verdict."""

    name: str
    made_ms: int | None = None
    period: str = ""
    is_balanced: bool | None = None
    """Whether every message is accounted for; null if that is not known."""
    verdict: str = ""
    figures: list[dict[str, Any]] = msgspec.field(default_factory=list)
    pictures: list[dict[str, Any]] = msgspec.field(default_factory=list)
    """Each with name, title, text and file."""


class ReplayState(Answer, frozen=True, kw_only=True):
    """A line of the history of replays."""

    when: str | None
    who: str | None
    event: str | None
    id: str | None
    topic: str | None
    into: str | None
    messages: int | None
    sent: int | None
    error: str | None


class DataState(Answer, frozen=True, kw_only=True):
    """All of it."""

    folder: str
    has_spark: bool
    archives: list[ArchiveState]
    reports: list[ReportState]
    replays: list[ReplayState]
    """The newest first, at most 50."""


REPLAYS_MAX: Final = 50


class ReportFile(OfCluster, frozen=True, kw_only=True):
    """A file of a report."""

    report: str
    file: str = PAGE
    """`report.html`, or a picture or table as its index names it."""


@TABLE.get("/clusters/{cluster}/data")
async def show_data(ask: Ask, wanted: OfCluster) -> DataState:
    """The archives, reports and replays of this console."""
    check_right(ask)
    ask.parts.clusters.address(wanted.cluster)
    archives, replays = archives_of(ask), []
    tables = []
    if has_spark():
        if await asyncio.to_thread(archives.is_dir):
            tables = await _look(ask, wanted.cluster, "tables", str(archives))
        history = ("replay", "--history", "--state", str(replays_folder(ask)))
        replays = await _look(ask, wanted.cluster, *history)
    reports = await asyncio.to_thread(_reports, reports_of(ask))
    return DataState(
        folder=str(ask.parts.settings.lake_path),
        has_spark=has_spark(),
        archives=[_archive(row) for row in tables],
        reports=reports,
        replays=[_replay(row) for row in reversed(replays[-REPLAYS_MAX:])],
    )


LOOKS_AT_ONCE: Final = 2
"""Each is a process of its own."""
_turns: WeakKeyDictionary[Jobs, asyncio.Semaphore] = WeakKeyDictionary()
"""Of each console."""


async def _look(ask: Ask, *words: str) -> Any:
    """What a command prints, in its turn."""
    async with _turns.setdefault(ask.parts.jobs, asyncio.Semaphore(LOOKS_AT_ONCE)):
        return await ask_pipeline(ask, *words)


def replays_folder(ask: Ask) -> Path:
    """Where plans and progress of replays are."""
    return ask.parts.settings.lake_path / "replays"


def _archive(row: dict[str, Any]) -> ArchiveState:
    kept = ("name", "format", "topics", "queues", "rows", "size", "files", "trouble")
    times = {"first_ms": row["first"], "last_ms": row["last"]}
    names = ("topic", "broker", "queue_id", "next_offset")
    positions = [
        ArchivePosition(**dict(zip(names, each, strict=True))) for each in row["positions"]
    ]
    return ArchiveState(**{key: row[key] for key in kept}, **times, positions=positions)


def _replay(row: dict[str, Any]) -> ReplayState:
    return ReplayState(**{name: row.get(name) for name in ReplayState.__struct_fields__})


def _reports(folder: Path) -> list[ReportState]:
    if not folder.is_dir():
        return []
    found = [_report(path) for path in folder.iterdir() if (path / INDEX).is_file()]
    return sorted(found, key=lambda each: -(each.made_ms or 0))


def _report(path: Path) -> ReportState:
    try:
        index = msgspec.json.decode((path / INDEX).read_bytes())
        verdict = index["verdict"]
        return ReportState(
            name=path.name,
            made_ms=index["madeMs"],
            period=index["period"]["text"],
            is_balanced=verdict["balanced"],
            verdict=verdict["text"],
            figures=index["figures"],
            pictures=index["pictures"],
        )
    except (OSError, msgspec.DecodeError, KeyError, TypeError):
        return ReportState(name=path.name, verdict="its index cannot be read")


_TYPES: Final = {
    "html": "text/html", "svg": "image/svg+xml", "csv": "text/csv",
    "json": "application/json", "parquet": "application/vnd.apache.parquet",
}  # fmt: skip


@TABLE.get("/clusters/{cluster}/data/reports/{report}", *_TYPES.values())
async def show_report(ask: Ask, wanted: ReportFile) -> Download:
    """A file of a report: its page, or a picture or table that its index names."""
    check_right(ask)
    folder = existing(reports_of(ask), wanted.report)
    known = await asyncio.to_thread(_files, folder)
    if wanted.file not in known:
        raise NotThere(f"the report {wanted.report!r} has no file {wanted.file!r}")
    path = folder / wanted.file
    return Download(known[wanted.file], _chunks(path), policy=REPORT_POLICY)


def _files(folder: Path) -> dict[str, str]:
    """The files that the index of a report names, with their types."""
    try:
        index = msgspec.json.decode((folder / INDEX).read_bytes())
        names = [PAGE, *(each["file"] for each in index["pictures"])]
        names += [file for each in index["tables"] for file in each["files"].values()]
    except (OSError, msgspec.DecodeError, KeyError, TypeError):
        return {}
    inside = folder.resolve()
    return {
        name: _TYPES.get(name.rpartition(".")[2], "application/octet-stream")
        for name in names
        if (folder / name).resolve().is_relative_to(inside) and (folder / name).is_file()
    }


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while chunk := await asyncio.to_thread(file.read, FILE_BYTES):
            yield chunk
