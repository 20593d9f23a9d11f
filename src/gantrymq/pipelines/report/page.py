"""The report as one self-contained page: no network, no other file, no framework."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, Final
from zoneinfo import ZoneInfo

from gantrymq.base.plurals import are, counted
from gantrymq.base.time_text import find_zone
from gantrymq.pipelines.common.page_style import CSS, SCRIPT, stacked, width_class
from gantrymq.pipelines.marts import latency, ledger
from gantrymq.pipelines.marts.mart import Field, Mart, MartTable
from gantrymq.pipelines.report import number_text
from gantrymq.pipelines.report.charts import STYLE
from gantrymq.pipelines.report.pictures import NARROW, WIDE, Picture
from gantrymq.pipelines.report.report import Report
from gantrymq.pipelines.report.section import Section
from gantrymq.pipelines.report.sections import SECTIONS
from gantrymq.pipelines.report.summary import Figure, figures, verdict

ROWS_SHOWN: Final = 100
"""Rows of a table on the page; all of them are in its files."""
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""Whatever text a stranger puts into a key, the page fetches nothing."""
_IDS: Final = ("msgId", "value", "cause", "exampleId", "firstPlace", "lastPlace")
_ALARMS: Final = ("lost", "doubled", "passedBy", "unfinished", "dropped")
_STANDS: Final = {True: "fine", False: "off", None: "unsure"}
_LONG: Final = ("detail", "text", "reason")


_FIRST: Final[Mapping[str, tuple[str, ...]]] = {
    "hot_keys": ("messages",),
    "duplicates": ("copies",),
    "causes": ("letters",),
    "queues": ("ratio",),
    "duplicate_totals": ("extra",),
    "lag": ("time",),
    "ledger_groups": ("messages",),
    "ledger_topics": ("stored",),
}
"""Columns by which a table is shown, the largest first."""


_ABOUT: Final[Mapping[str, tuple[str, ...]]] = {
    "lag": ("lag",),
    "latency": (*latency.PERCENTILES, "maxMs"),
    "totals": ("messages",),
    "ledger_groups": ("messages", "acknowledged"),
    "ledger_topics": ("stored", "messages"),
}
"""Columns that a table is there for: a zero in them is news."""
COLUMNS_BESIDE_MAX: Final = 4
"""A table with more columns does not fit beside a picture."""


def page(report: Report, pictures: Sequence[Picture]) -> str:
    """The whole page."""
    zone = find_zone(report.request.zone)
    title = _title(report)
    sections = "".join(_section(each, report, pictures, zone) for each in SECTIONS)
    links = "".join(f'<a href="#{each.name}">{escape(each.title)}</a>' for each in SECTIONS)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{CSS}{stacked()}{STYLE}</style></head><body>"
        f"<header><h1>{escape(title)}</h1>{_about(report, zone)}<nav>{links}"
        f'<a href="#notes">Notes</a></nav>{_verdict(report)}{_tiles(figures(report))}</header>'
        f"<main>{sections}{_notes(report)}</main>"
        f"<footer>All tables are in <code>tables/</code> as Parquet, CSV and JSON, all pictures in "
        "<code>pictures/</code>; <code>report.json</code> lists them.</footer>"
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def _title(report: Report) -> str:
    topics = [row["topic"] for row in report.table(ledger.TOPICS).rows]
    if len(topics) == 1:
        return f"Report on {topics[0]}"
    return f"Report on {len(topics)} topics" if topics else "Report"


def _about(report: Report, zone: ZoneInfo) -> str:
    made = number_text.moment(datetime.fromtimestamp(report.made_ms / 1000, UTC), zone)
    return (
        f'<p class="soft">From {escape(report.request.words())}. Read from {report.request.kind}, '
        f"made {made}. Times are those of {escape(report.request.zone)}.</p>"
    )


def _verdict(report: Report) -> str:
    fine, first, second = verdict(report)
    return (
        f'<div class="verdict {_STANDS[fine]}" role="status">{escape(first)}'
        f"<span>{escape(second)}</span></div>"
    )


def _tiles(found: Sequence[Figure]) -> str:
    items = "".join(
        f'<li><b data-figure="{each.name}">{escape(each.text)}</b><span>{escape(each.title)}</span>'
        "</li>"
        for each in found
    )
    return f'<ul class="tiles">{items}</ul>'


def _section(section: Section, report: Report, pictures: Sequence[Picture], zone: ZoneInfo) -> str:
    beside, tables, folded = (
        [table for mart in marts if (table := report.table(mart)).rows]
        for marts in (section.beside, section.below, section.folded)
    )
    cards = [_card(each) for each in pictures if each.mart in section.tables]
    cards += [
        f'<div class="{"card" if _is_narrow(table) else "card full"}">{_table(table, zone)}</div>'
        for table in beside
    ]
    inner = f'<div class="grid">{"".join(cards)}</div>' if cards else ""
    inner += "".join(f'<div class="card">{_table(table, zone)}</div>' for table in tables)
    inner += "".join(
        f'<details class="card"><summary>{escape(table.mart.title)}</summary>'
        f"{_table(table, zone, headed=False)}</details>"
        for table in folded
    )
    return (
        f'<section id="{section.name}"><h2>{escape(section.title)}</h2>'
        + (inner or f'<p class="soft">{escape(section.empty)}</p>')
        + "</section>"
    )


def _card(picture: Picture) -> str:
    """The picture for wide and for narrow screens; only the one that fits is shown."""
    return (
        f'<figure class="card" style="margin:0"><h3>{escape(picture.title)}</h3>'
        f'<div class="wide">{picture.draw(WIDE, False)}</div>'
        f'<div class="narrow">{picture.draw(NARROW, False)}</div></figure>'
    )


def _notes(report: Report) -> str:
    notes = "".join(f"<li>{escape(note)}</li>" for note in report.notes)
    notes = notes or "<li>Everything that was asked for could be read.</li>"
    return f'<section id="notes"><h2>Notes</h2><ul>{notes}</ul></section>'


# tables


def _shown(table: MartTable) -> list[Field]:
    return [each for each in table.mart.fields if _worth(each, table, table.mart)]


def _is_narrow(table: MartTable) -> bool:
    return len(_shown(table)) <= COLUMNS_BESIDE_MAX


def _table(table: MartTable, zone: ZoneInfo, *, headed: bool = True) -> str:
    mart = table.mart
    fields = _shown(table)
    rows = sorted(table.rows, key=lambda row: _rank(mart, row))[:ROWS_SHOWN]
    head = "".join(
        f'<th scope="col" class="{_css(each)}"><button type="button">{escape(each.title)}</button>'
        "</th>"
        for each in fields
    )
    body = "".join(
        "<tr>" + "".join(_cell(each, row[each.name], zone) for each in fields) + "</tr>"
        for row in rows
    )
    width = width_class((_css(each), each.title) for each in fields)
    more = len(table.rows) - len(rows)
    said = f"{counted(more, 'more row', form=',')} {are(more)}"
    rest = f'<p class="soft">{said} in tables/{mart.name}.csv.</p>'
    title = f"<h3>{escape(mart.title)}</h3>" if headed else ""
    return (
        f'{title}<p class="soft">{escape(mart.about)}</p><div class="scroll" tabindex="0" '
        f'role="region" aria-label="{escape(mart.title)}"><table class="{width}" '
        f'data-table="{mart.name}"><thead>'
        f"<tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{rest if more else ''}"
    )


def _worth(field: Field, table: MartTable, mart: Mart) -> bool:
    """Whether to show a column: not if it is all zeros or empty, unless it is the subject."""
    return field.name in (*mart.key, *_ABOUT.get(mart.name, ())) or any(
        value not in (None, 0) for value in table.column(field.name)
    )


def _rank(mart: Mart, row: Mapping[str, Any]) -> tuple[Any, ...]:
    if mart is ledger.DIFFERENCES or mart is ledger.KINDS:
        return ({False: 0, None: 1, True: 2}[row["explained"]],)
    return tuple(-_number(row[name]) for name in _FIRST.get(mart.name, ()))


def _number(value: Any) -> float:
    return value.timestamp() if isinstance(value, datetime) else float(value or 0)


def _cell(field: Field, value: Any, zone: ZoneInfo) -> str:
    css = _css(field)
    if isinstance(value, datetime):
        said, sort = number_text.moment(value, zone), str(value.timestamp())
    elif isinstance(value, bool):
        said, sort = ("yes" if value else "no"), str(int(value))
    elif isinstance(value, int | float):
        said, sort = _measure(field, value), str(value)
        css += " alarm" if value and field.name in _ALARMS else ""
    else:
        said, sort = (value or "–"), (value or "")
    marks = f'class="{css}" data-h="{escape(field.title)}" data-v="{escape(str(sort))}"'
    return f"<td {marks}>{escape(str(said))}</td>"


def _measure(field: Field, value: float) -> str:
    if field.unit == "share":
        return f"{value:.2%}"
    if field.unit == "bytes":
        return number_text.size(value)
    if field.unit == "ms":
        return number_text.span(value)
    if field.unit:
        return number_text.number(value)
    return str(value)


def _css(field: Field) -> str:
    if field.name in _IDS:
        return "id"
    if field.name in _LONG:
        return "long"
    if field.kind == "timestamp":
        return "time"
    return "num" if field.kind in ("bigint", "int", "double") else ""
