"""Windows as text: lines for who runs it, tables for the page. Pure."""

from collections.abc import Mapping, Sequence

from chaos.faults import FAULTS
from chaos.modes import MODES
from chaos.promises import Window

BEGIN, END = "<!-- chaos: begin -->", "<!-- chaos: end -->"
LINE = "{:<24} {:<17} {:>6} {:>7} {:>7} {:>5} {:>5} {:>6} {:>8} {:>11} {:>8} {:>8}  {}"
HEADINGS = (
    "mode", "fault", "acked", "refused", "unknown", "lost", "twice", "disord", "phantom",
    "with-master", "longest", "total", "hit",
)  # fmt: skip


def heading() -> str:
    return LINE.format(*HEADINGS)


def line(window: Window) -> str:
    """One window on one line."""
    verdict = window.verdict
    return LINE.format(
        window.mode,
        window.fault,
        verdict.acknowledged,
        verdict.failed,
        f"{verdict.unknown_stored}/{verdict.unknown}",
        len(verdict.lost),
        len(verdict.duplicated),
        len(verdict.out_of_order),
        len(verdict.phantom) + len(verdict.unexpected),
        len(verdict.lost_with_master),
        f"{verdict.downtime.longest:.1f} s",
        f"{verdict.downtime.total:.1f} s",
        window.hit,
    )


def page_tables(windows: Sequence[Window]) -> str:
    """The tables of docs/reliability.md."""
    modes = [name for name in MODES if any(window.mode == name for window in windows)]
    return "\n".join([*_faults_table(windows, modes), "", *_modes_table(windows, modes)])


def _rows(cells: Sequence[Sequence[str]]) -> list[str]:
    first, *others = ("| " + " | ".join(row) + " |" for row in cells)
    return [first, "|" + "---|" * len(cells[0]), *others]


def _faults_table(windows: Sequence[Window], modes: Sequence[str]) -> list[str]:
    heads = ["fault", "what happens", "lost", "twice", "out of order", "phantom"]
    rows = [[*heads, *(f"no answer, {mode}" for mode in modes)]]
    for name, fault in FAULTS.items():
        hit = {window.mode: window for window in windows if window.fault == name}
        if not hit:
            continue
        counts = [
            sum(len(window.verdict.lost) for window in hit.values()),
            sum(len(window.verdict.duplicated) for window in hit.values()),
            sum(len(window.verdict.out_of_order) for window in hit.values()),
            sum(len(w.verdict.phantom) + len(w.verdict.unexpected) for w in hit.values()),
        ]
        rows.append([name, fault.meaning, *map(str, counts), *_downtimes(hit, modes)])
    return _rows(rows)


def _downtimes(hit: Mapping[str, Window], modes: Sequence[str]) -> list[str]:
    return [f"{hit[mode].verdict.downtime.longest:.1f} s" if mode in hit else "-" for mode in modes]


def _modes_table(windows: Sequence[Window], modes: Sequence[str]) -> list[str]:
    heads = ["mode", "what it is", "faults", "acknowledged", "lost", "lost with the master"]
    rows = [heads]
    for mode in modes:
        own = [window.verdict for window in windows if window.mode == mode]
        rows.append(
            [
                mode,
                MODES[mode].meaning,
                str(len(own)),
                str(sum(verdict.acknowledged for verdict in own)),
                str(sum(len(verdict.lost) for verdict in own)),
                str(sum(len(verdict.lost_with_master) for verdict in own)),
            ]
        )
    return _rows(rows)


def with_tables(page: str, tables: str) -> str:
    """The page with new tables between its marks."""
    before, found, rest = page.partition(BEGIN)
    _old, ended, after = rest.partition(END)
    if not found or not ended:
        raise ValueError(f"the page lacks the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{tables}\n{END}{after}"
