"""`python -m bench`: run workloads, print the table, keep the figures."""

import argparse
import pstats
import sys
import tempfile
from pathlib import Path

from bench.rows import Row, save, table
from bench.workloads import Run, all_workloads
from gantrymq.kernel import GRADE

PROFILE_ROWS = 40


def main() -> int:
    workloads = all_workloads()
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(workloads))
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    parser.add_argument("--profile", metavar="NAME", help="where its broker spends its time")
    given = parser.parse_args()
    names = given.names or list(workloads)
    unknown = {*names, given.profile or names[0]} - workloads.keys()
    if unknown:
        parser.error(f"no workload {', '.join(sorted(unknown))}")
    if given.profile:
        profile(given.profile, quick=given.quick)
        return 0
    rows: list[Row] = []
    for name in names:
        print(f"{name} ...", file=sys.stderr, flush=True)
        rows += workloads[name](Run(quick=given.quick))
    print(f"kernel: {GRADE}\n{table(rows)}")
    print(f"written to {save(rows, grade=GRADE, quick=given.quick)}", file=sys.stderr)
    return 0


def profile(name: str, *, quick: bool) -> None:
    """Run one workload with its broker profiled, and print what took longest."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "broker.prof"
        rows = all_workloads()[name](Run(quick=quick, profile=path))
        print(table(rows))
        if path.exists():
            pstats.Stats(str(path)).sort_stats("tottime").print_stats(PROFILE_ROWS)
        else:
            print(f"{name} has no broker of its own to profile")


if __name__ == "__main__":
    raise SystemExit(main())
