"""What holds for every test."""

import gc
import os
import resource
import signal

from hypothesis import settings

# Hypothesis may not judge how long an example takes: two cores are shared by many processes.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# Profiles of whoever runs the tests do not count.
os.environ["GANTRY_CONFIG"] = os.devnull
os.environ.pop("GANTRY_PROFILE", None)

# A shell lets what it starts behind its back ignore Ctrl-C, and commands would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS_PER_SWEEP = 8
PEAK_STEP_KIB = 16_384
_done = 0
_peak = 0


def pytest_collection_finish() -> None:
    """What is loaded by now stays: looking through it again would make every sweep slow."""
    gc.collect()
    gc.freeze()


def pytest_runtest_logfinish() -> None:
    """Disks in memory hang in cycles, and left alone they fill a gigabyte before they go.

    A test that raised the peak of memory is swept up after at once, so that the next one uses the
    same memory again.
    """
    global _done, _peak
    _done += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if _done % TESTS_PER_SWEEP == 0 or peak > _peak + PEAK_STEP_KIB:
        gc.collect()
        _peak = peak
