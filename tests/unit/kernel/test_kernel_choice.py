"""Which of the two kernels is in use, and how that is said."""

import os
import subprocess
import sys


def grade(**environment: str) -> str:
    inherited = {k: v for k, v in os.environ.items() if k != "GANTRY_PURE"}
    program = (
        "from gantrymq import kernel; print(kernel.GRADE, kernel.cut_commands.__module__, sep='|')"
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        env=inherited | environment, check=True, capture_output=True, text=True, timeout=60,
    ).stdout.strip()  # fmt: skip


def test_the_environment_forces_the_pure_kernel() -> None:
    """
    GANTRY_PURE=1 selects the Python kernel, and the grade says so.
    """
    assert grade(GANTRY_PURE="1") == "pure (GANTRY_PURE=1)|gantrymq.kernel.frames"


def test_the_grade_tells_the_truth() -> None:
    """
    The grade says "compiled" exactly when the compiled module is in use.
    """
    said, _, module = grade().partition("|")
    assert (said == "compiled") == (module == "gantrymq.kernel._fast")
    assert said == "compiled" or said.startswith("pure (")


def test_importing_the_kernel_loads_no_numpy() -> None:
    """
    Importing the kernel does not import numpy.
    """
    program = "import sys, gantrymq.kernel; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 0
