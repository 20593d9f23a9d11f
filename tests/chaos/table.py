"""Results as text: lines for who runs it, tables for the page. Pure."""

from collections.abc import Sequence

from chaos.faults import FAULTS
from chaos.modes import MODES
from chaos.promises import TrialResult

BEGIN, END = "<!-- chaos: begin -->", "<!-- chaos: end -->"
LINE = "{:<24} {:<17} {:>6} {:>7} {:>7} {:>5} {:>5} {:>6} {:>8} {:>11} {:>8} {:>8}  {}"
HEADINGS = (
    "mode", "fault", "acked", "refused", "unknown", "lost", "twice", "disord", "phantom",
    "with-master", "longest", "total", "hit",
)  # fmt: skip


def heading() -> str:
    return LINE.format(*HEADINGS)


def line(result: TrialResult) -> str:
    """One trial on one line."""
    verdict = result.verdict
    return LINE.format(
        result.mode,
        result.fault,
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
        result.hit,
    )


def page_tables(results: Sequence[TrialResult]) -> str:
    """The tables of docs/reliability.md."""
    modes = [name for name in MODES if any(result.mode == name for result in results)]
    return "\n".join([*_faults_table(results, modes), "", *_modes_table(results, modes)])


def _rows(cells: Sequence[Sequence[str]]) -> list[str]:
    first, *others = ("| " + " | ".join(row) + " |" for row in cells)
    return [first, "|" + "---|" * len(cells[0]), *others]


def _faults_table(results: Sequence[TrialResult], modes: Sequence[str]) -> list[str]:
    heads = ["fault", "what happens", "lost", "twice", "out of order", "phantom"]
    rows = [[*heads, *(f"no answer, {mode}" for mode in modes)]]
    for name, fault in FAULTS.items():
        own = [result for result in results if result.fault == name]
        if not own:
            continue
        verdicts = [result.verdict for result in own]
        counts = [
            sum(len(verdict.lost) for verdict in verdicts),
            sum(len(verdict.duplicated) for verdict in verdicts),
            sum(len(verdict.out_of_order) for verdict in verdicts),
            sum(len(verdict.phantom) + len(verdict.unexpected) for verdict in verdicts),
        ]
        rows.append([name, fault.meaning, *map(str, counts), *_downtimes(own, modes)])
    return _rows(rows)


def _downtimes(results: Sequence[TrialResult], modes: Sequence[str]) -> list[str]:
    """The longest time of each mode, of all rounds."""
    longest = dict.fromkeys(modes, 0.0)
    for result in results:
        longest[result.mode] = max(longest[result.mode], result.verdict.downtime.longest)
    return [f"{longest[mode]:.1f} s" for mode in modes]


def _modes_table(results: Sequence[TrialResult], modes: Sequence[str]) -> list[str]:
    heads = ["mode", "what it is", "faults", "acknowledged", "lost", "lost with the master"]
    rows = [heads]
    for mode in modes:
        own = [result.verdict for result in results if result.mode == mode]
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
