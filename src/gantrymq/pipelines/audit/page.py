"""An audit as one self-contained page: no network, no other file."""

from collections import Counter
from collections.abc import Iterable
from html import escape
from typing import Any, Final

from gantrymq.base.plurals import are
from gantrymq.pipelines.common.page_style import CSS
from gantrymq.store.audit.findings import WRONG
from gantrymq.store.audit.whole import Audit

ROWS_SHOWN: Final = 1000
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
"""Whatever name a stranger gave a topic, the page fetches nothing."""


def page(audit: Audit) -> str:
    """The whole page."""
    kinds = Counter(each.kind for each in audit.findings if each.level == WRONG)
    first = "Nothing is wrong." if audit.is_good else f"Wrong: {sum(kinds.values())}."
    second = ", ".join(f"{count} x {kind}" for kind, count in sorted(kinds.items()))
    covered = "".join(
        f"<li><b>{count:,}</b><span>{escape(kind)}</span></li>"
        for kind, count in audit.covered.items()
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in audit.notes)
    shown = [each.row() for each in audit.findings[:ROWS_SHOWN]]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Audit of {escape(audit.directory)}</title><style>{CSS}</style></head><body>"
        f'<header><h1>Audit of {escape(audit.directory)}</h1><p class="soft">in '
        f"{audit.seconds:.1f} s</p>"
        f'<div class="verdict {"fine" if audit.is_good else "off"}" role="status">{escape(first)}'
        f'<span>{escape(second)}</span></div><ul class="tiles">{covered}</ul></header><main>'
        + (f"<h2>Findings</h2>{_table(shown)}" if shown else "")
        + (f"<h2>Notes</h2><ul>{notes}</ul>" if notes else "")
        + _more(len(audit.findings) - len(shown))
        + "</main></body></html>\n"
    )


def _table(rows: list[dict[str, Any]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
    lines = "".join(f"<tr>{''.join(_cells(row.items()))}</tr>" for row in rows)
    return (
        '<div class="card"><div class="scroll"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div></div>"
    )


def _cells(items: Iterable[tuple[str, Any]]) -> Iterable[str]:
    for name, value in items:
        kind = "long" if name in ("text", "file") else "num" if isinstance(value, int) else ""
        text = "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
        yield f'<td class="{kind}">{escape(text)}</td>'


def _more(count: int) -> str:
    said = f'<p class="soft">{count:,} more {are(count)} in the data of the command.</p>'
    return said if count else ""
