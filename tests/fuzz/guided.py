"""Fuzzing by coverage, with atheris: `make fuzz`, `python tests/fuzz/guided.py sql --seconds 600`.

Without names all targets are tried, each in a process of its own that learns which inputs reach new
code. The Python twin of the kernel is the one that is watched; the compiled one has to agree. An
input that crashes, hangs or eats memory is kept in a folder of the run; the exit code is 1 then.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).parent
MEMORY_MIB_MAX = 1_024
"""Of the process, its instrumentation and its corpus among it."""
HANG_SECONDS_MAX = 10
INPUT_BYTES_MAX = 4_096
STATUS = re.compile(r"#(\d+)\s+\w+\s+cov: (\d+) ft: (\d+) corp: (\d+)/\S+ .*?rss: (\d+)Mb")


def fuzz(name: str, arguments: list[str]) -> None:
    """One target, in this process, until libFuzzer ends it."""
    import atheris

    with atheris.instrument_imports(include=["gantrymq", "targets"]):
        from targets import ON_PURPOSE, TARGETS

    read = TARGETS[name].read

    def one_input(data: bytes) -> None:
        with suppress(ON_PURPOSE):
            read(data)

    atheris.Setup([sys.argv[0], *arguments], one_input)
    atheris.Fuzz()


def run(name: str, seconds: int, folder: Path) -> tuple[bool, str]:
    """Fuzz one target in a process of its own; whether nothing was found, and a line about it."""
    from targets import TARGETS

    corpus = folder / name
    corpus.mkdir(parents=True)
    known = [*TARGETS[name].specimens, *(p.read_bytes() for p in (HERE / "found" / name).glob("*"))]
    for number, specimen in enumerate(known):
        (corpus / f"specimen-{number}").write_bytes(specimen)
    command = [
        sys.executable, __file__, "--inside", name, str(corpus), f"-max_total_time={seconds}",
        f"-timeout={HANG_SECONDS_MAX}", f"-rss_limit_mb={MEMORY_MIB_MAX}",
        f"-max_len={INPUT_BYTES_MAX}", f"-artifact_prefix={folder}/{name}-",
    ]  # fmt: skip
    env = os.environ | {"GANTRY_PURE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=env,
                          check=False)  # fmt: skip
    rows = STATUS.findall(done.stderr)
    if done.returncode != 0:
        print(done.stderr[-4_000:], file=sys.stderr)
    if not rows:
        return False, f"{name}: it did not run"
    count, covered, _, kept, memory = rows[-1]
    early = rows[len(rows) // 2][4]
    said = f"{name}: {count} inputs, {covered} branches, {kept} kept, {early} -> {memory} MiB"
    return done.returncode == 0, said


def main() -> int:
    sys.path.insert(0, str(HERE))
    if sys.argv[1:2] == ["--inside"]:
        fuzz(sys.argv[2], sys.argv[3:])
        return 0
    from targets import TARGETS

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", nargs="*", metavar="TARGET", help="All without one.")
    parser.add_argument("--seconds", type=int, default=60, help="For each target.")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gantrymq-fuzz-"))
    failed = []
    for name in given.target or TARGETS:
        fine, said = run(name, given.seconds, folder)
        print(said if fine else f"{said}: FAILED, see {folder}", flush=True)
        if not fine:
            failed.append(name)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
