"""Applies classic faults to a copy of the product, and looks which story finds each.

    python tests/mutants/run.py                 # all, until each is found or the seeds are over
    python tests/mutants/run.py votes_twice     # one
    python tests/mutants/run.py --seeds 500

Each patch in this folder is one fault, named after what it does wrong. Prints a table of how many
seeds each took; the exit code is 1 when one was not found.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STORIES = ROOT / "tests" / "simulation"
FIND = """
import logging, sys
from sim_group import run
logging.disable(logging.CRITICAL)
for seed in range(int(sys.argv[1])):
    try:
        faults = run(seed).faults
    except BaseException as error:
        faults = [f"{type(error).__name__}: {error}"]
    if faults:
        print(seed + 1, faults[0].splitlines()[0][:100])
        break
"""


def copy_with(patch: Path, folder: Path) -> Path:
    """The product with a fault; raises CalledProcessError if the patch does not fit."""
    source = folder / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__", "*.c"))
    command = ["patch", "--quiet", "--fuzz=0", "-p1", "-i", str(patch)]
    subprocess.run(command, cwd=folder, check=True, stdout=sys.stderr)
    return source


def seeds_until_found(patch: Path, seeds: int) -> tuple[int, str] | None:
    """How many stories it took, and what was wrong; None if no story found it."""
    with tempfile.TemporaryDirectory() as folder:
        source = copy_with(patch, Path(folder))
        found = subprocess.run(
            [sys.executable, "-c", FIND, str(seeds)],
            env=os.environ | {"PYTHONPATH": f"{source}:{STORIES}"},
            capture_output=True,
            text=True,
            check=False,
        )
    if found.returncode:
        raise RuntimeError(f"{patch.stem}: {found.stderr[-500:]}")
    count, _, what = found.stdout.strip().partition(" ")
    return (int(count), what) if count else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="patches; all without one")
    parser.add_argument("--seeds", type=int, default=200, help="the most stories for each")
    options = parser.parse_args()
    patches = [HERE / f"{name}.patch" for name in options.names] or sorted(HERE.glob("*.patch"))
    missed = 0
    sys.stdout.write(f"{'fault':40} {'seeds':>5} {'seconds':>7}  what the story said\n")
    for patch in patches:
        began = time.monotonic()
        found = seeds_until_found(patch, options.seeds)
        seconds = time.monotonic() - began
        count, what = found or ("-", f"not found in {options.seeds}")
        missed += found is None
        sys.stdout.write(f"{patch.stem:40} {count:>5} {seconds:7.0f}  {what}\n")
        sys.stdout.flush()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
