"""What becomes of large blocks that are freed."""

import subprocess
import sys

PROGRAM = """
import resource
from gantrymq.base.memory import keep_freed_memory
if {keep}:
    keep_freed_memory()
kept = [bytes(64) for _ in range(1000)]
def answers():
    for _ in range(100):
        first, second = b"x" * 3_000_000, b"y" * 3_000_000
answers()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
answers()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(*, keep: bool) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(keep=keep)],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return int(done.stdout)


def test_memory_that_is_kept_costs_no_page_faults_when_it_is_used_again() -> None:
    """As the broker uses it: megabytes that live for a moment."""
    assert faults(keep=True) < faults(keep=False) / 10
