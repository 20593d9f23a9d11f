"""Applies classic faults to a copy of the product, and looks which story finds each.

    python tests/mutants/try_mutants.py               # all, until found or out of seeds
    python tests/mutants/try_mutants.py votes_twice   # one
    python tests/mutants/try_mutants.py --seeds 500

Each patch in this folder is one fault, named after what it does wrong. Its head says that in a
sentence, and the stories that are to find it: `sim_group.py` or another one. Prints a table of how
many seeds each took; the exit code is 1 when one was not found. `--page` prints it for
docs/reliability.md.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STORIES = ROOT / "tests" / "simulation"
FIND = """
import importlib, logging, sys, textwrap
logging.getLogger("gantrymq").addHandler(logging.NullHandler())
run = importlib.import_module(sys.argv[1]).run
for seed in range(int(sys.argv[2])):
    try:
        faults = run(seed).faults
    except BaseException as error:
        faults = [f"a story comes to its end: {type(error).__name__} {error}"]
    if faults:
        print(seed + 1, textwrap.shorten(faults[0], 100, placeholder=' ...'))
        break
"""


class Mutant(NamedTuple):
    """A fault."""

    name: str
    says: str
    """What is wrong, in a sentence."""
    stories: str
    """The module of the stories that are to find it."""
    file: str
    hunk: list[str]


class Found(NamedTuple):
    """What it took."""

    seeds: int
    what: str


def read(patch: Path) -> Mutant:
    """The text of a patch; it has one hunk."""
    lines = patch.read_text().splitlines()
    head = lines.index(next(line for line in lines if line.startswith("--- ")))
    stories = next(line for line in lines[:head] if line.startswith("Stories: "))
    says = " ".join(line for line in lines[:head] if line and line != stories)
    name = lines[head + 1].removeprefix("+++ b/")
    story = f"sim_{stories.removeprefix('Stories: ')}"
    return Mutant(patch.stem, says, story, name, lines[head + 3 :])


def copy_with(mutant: Mutant, folder: Path) -> Path:
    """The product with a fault."""
    source = folder / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__", "*.c"))
    (folder / mutant.file).write_text(applied(mutant, ROOT))
    return source


def applied(mutant: Mutant, root: Path) -> str:
    """The text of the file with the fault.

    The hunk is found by its text, wherever that has moved to; ValueError if the file does not have
    it exactly once.
    """
    before = "\n".join(line[1:] for line in mutant.hunk if line[:1] != "+")
    after = "\n".join(line[1:] for line in mutant.hunk if line[:1] != "-")
    text = (root / mutant.file).read_text()
    if text.count(before) != 1:
        raise ValueError(
            f"{mutant.name} does not fit {mutant.file}: change the patch with the product"
        )
    return text.replace(before, after)


def find(mutant: Mutant, seeds: int) -> Found | None:
    """How many stories it took, and what was wrong; None if no story found it."""
    with tempfile.TemporaryDirectory() as folder:
        source = copy_with(mutant, Path(folder))
        found = subprocess.run(
            [sys.executable, "-c", FIND, mutant.stories, str(seeds)],
            env=os.environ | {"PYTHONPATH": f"{source}:{STORIES}"},
            capture_output=True,
            text=True,
            check=False,
        )
    if found.returncode:
        raise RuntimeError(f"{mutant.name}: {found.stderr[-500:]}")
    count, _, what = found.stdout.strip().partition(" ")
    return Found(int(count), what) if count else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="patches; all without one")
    parser.add_argument("--seeds", type=int, default=300, help="the most stories for each")
    parser.add_argument("--page", action="store_true", help="print the table of the page")
    options = parser.parse_args()
    patches = [HERE / f"{name}.patch" for name in options.names] or sorted(HERE.glob("*.patch"))
    line = (
        "| {says} | {seeds} | {what} |\n"
        if options.page
        else "{name:36} {seeds:>5} {seconds:>5.0f} s  {what}\n"
    )
    if options.page:
        sys.stdout.write("| fault | stories | what the story said |\n|---|---|---|\n")
    missed = 0
    for mutant in map(read, patches):
        began = time.monotonic()
        found = find(mutant, options.seeds)
        missed += found is None
        seeds, what = found or ("-", f"not found in {options.seeds}")
        seconds = time.monotonic() - began
        sys.stdout.write(
            line.format(name=mutant.name, says=mutant.says, seeds=seeds, what=what, seconds=seconds)
        )
        sys.stdout.flush()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
