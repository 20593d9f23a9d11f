"""Servers of ours: one name server and one broker, as `gantry up` starts them."""

import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

GANTRY = Path(__file__).resolve().parents[2] / ".venv" / "bin" / "gantry"
BOOT_SECONDS_MAX = 60
STOP_SECONDS_MAX = 30
READY = re.compile(r"^gantrymq ready namesrv=(\S+) broker=(\S+) console=\S+$")


@contextmanager
def running(data: Path, more: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """The addresses of the name server and of the broker; both end with the block."""
    command = [str(GANTRY), "up", "--data", str(data), "--no-console"]
    command += ["--namesrv-port", "0", "--broker-port", "0", *more]
    data.mkdir(exist_ok=True)
    with (data / "stderr").open("wb") as stderr:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)
    # A start that hangs is ended, which ends the reading below.
    watchdog = threading.Timer(BOOT_SECONDS_MAX, child.kill)
    watchdog.start()
    try:
        assert child.stdout is not None
        found = next(filter(None, map(READY.match, child.stdout)), None)
        watchdog.cancel()
        assert found is not None, (data / "stderr").read_text()
        yield found[1], found[2]
    finally:
        watchdog.cancel()
        child.send_signal(signal.SIGTERM)
        child.wait(STOP_SECONDS_MAX)
