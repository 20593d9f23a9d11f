"""What benches read about processes."""

import os
import subprocess
import sys
import time

from bench.servers import cpu_seconds, descendants, rss_anon_kib


def test_processor_time_is_that_of_all_threads() -> None:
    """
    Finer than the ticks of /proc, as the process itself sees it; one that has ended took none.
    """
    busy = "import threading; t = threading.Thread(target=lambda: sum(range(300_000)))"
    code = (
        f"{busy}; t.start(); t.join(); import time; print(time.process_time(), flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        own = float(child.stdout.readline())
        seen = cpu_seconds(child.pid)
        memory = rss_anon_kib(child.pid)
        assert child.pid in descendants(os.getpid())
        child.communicate("\n")

    assert own <= seen < own + 0.1
    assert memory > 1000
    assert cpu_seconds(child.pid) == 0.0


def test_processor_time_does_not_grow_while_a_process_sleeps() -> None:
    """
    A wait costs nothing that a bench could count.
    """
    before = cpu_seconds(os.getpid())
    time.sleep(0.05)

    assert cpu_seconds(os.getpid()) - before < 0.04
