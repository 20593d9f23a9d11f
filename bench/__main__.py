"""`python -m bench`: run workloads, print the table, keep the figures."""

import argparse
import pstats
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from bench.names import UnknownWorkload, chosen
from bench.rows import Row, save, table
from bench.tools import MissingTool
from bench.workloads import Run, all_workloads
from gantrymq.kernel import GRADE

PROFILE_ROWS = 40
EXIT_MISSING_TOOL = 2


def main() -> int:
    workloads = all_workloads()
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME",
        help=f"{', '.join(workloads)}; or what several of them begin with",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    parser.add_argument("--profile", metavar="NAME", help="where its broker spends its time")
    given = parser.parse_args()
    try:
        names = chosen([given.profile] if given.profile else given.names or workloads, workloads)
    except UnknownWorkload as unknown:
        parser.error(str(unknown))
    try:
        if given.profile:
            profile(names[0], quick=given.quick)
        else:
            measure(names, quick=given.quick)
    except MissingTool as missing:
        print(missing, file=sys.stderr)
        return EXIT_MISSING_TOOL
    return 0


def measure(names: Iterable[str], *, quick: bool) -> None:
    """Run workloads; what was measured before one fails is shown and kept all the same."""
    workloads = all_workloads()
    rows: list[Row] = []
    try:
        for name in names:
            print(f"{name} ...", end=" ", file=sys.stderr, flush=True)
            began = time.perf_counter()
            rows += workloads[name](Run(quick=quick))
            print(f"{time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    finally:
        if rows:
            print(f"kernel: {GRADE}\n{table(rows)}")
            print(f"written to {save(rows, grade=GRADE, quick=quick)}", file=sys.stderr)


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
