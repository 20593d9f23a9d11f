"""`python -m bench.guard --base COMMIT`: exit 1 if something is 15 % slower than that commit."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from bench.guard.source import NoBase, older_commit, unpack
from bench.guard.verdict import SLOWER_MAX, Verdict
from bench.guard.works import WORKS, Cost, Side, environment
from bench.servers import Ours

ROUNDS, MORE_ROUNDS = 5, 6
"""The second number: of a load that looks slower, before it is called so."""

Costs = dict[str, tuple[list[Cost], list[Cost]]]


def measure(before: Side, now: Side, works: list[str], rounds: int, costs: Costs) -> None:
    """Measure in turns; who begins changes from round to round."""
    for number in range(rounds):
        sides = (before, now) if number % 2 else (now, before)
        for work in works:
            for side in sides:
                cost = WORKS[work](side)
                costs[work][side is now].append(cost)


def compare(source: Path) -> bool:
    """Whether this tree is as fast as the one in `source`."""
    with (
        Ours(source=source) as old,
        Ours() as new,
    ):
        before = Side("before", old, environment(source))
        now = Side("now", new, environment(None))
        for side in (before, now):
            for work in WORKS.values():
                work(side)  # what is done for the first time does not count
        costs: Costs = {work: ([], []) for work in WORKS}
        measure(before, now, list(WORKS), ROUNDS, costs)
        slow = [work for work in WORKS if not Verdict(work, *costs[work]).holds]
        measure(before, now, slow, MORE_ROUNDS, costs)
    verdicts = [Verdict(work, *costs[work]) for work in WORKS]
    print("processor time of a message: median (range), and messages a second")
    for verdict in verdicts:
        print(verdict.line())
    return all(verdict.holds for verdict in verdicts)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.guard", description=__doc__)
    parser.add_argument("--base", help="a commit; by default one that is half a day older")
    given = parser.parse_args()
    began = time.monotonic()
    try:
        commit = given.base or older_commit()
        with tempfile.TemporaryDirectory(prefix="gantrymq-guard-") as folder:
            print(f"comparing with {commit}", flush=True)
            holds = compare(unpack(commit, Path(folder)))
    except NoBase as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{time.monotonic() - began:.0f} s; {SLOWER_MAX:.2f}x is the most that is allowed")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
