"""The limit program as a server beside ours."""

import contextlib
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Self

from bench.servers import NotReady, cpu_seconds
from bench.tools import compiled

SOURCE = Path(__file__).parent / "limit.c"
READY = re.compile(r"^limit ready (\S+)$")
STOP_SECONDS_MAX = 10.0


class Limit:
    """Takes sends at `broker`, and keeps their bodies in a file of a temporary folder."""

    def __init__(self) -> None:
        self._program = compiled(SOURCE)
        self._directory = Path(tempfile.mkdtemp(prefix="gantrymq-limit-"))
        self.file = self._directory / "bodies"
        self.broker = ""

    def __enter__(self) -> Self:
        self._child = subprocess.Popen(
            [str(self._program), str(self.file)], stdout=subprocess.PIPE, text=True
        )
        assert self._child.stdout is not None
        found = READY.match(self._child.stdout.readline())
        if found is None:
            self.__exit__()
            raise NotReady(f"{self._program} ended before it served")
        self.broker = found[1]
        return self

    def __exit__(self, *_: object) -> None:
        self._child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(STOP_SECONDS_MAX)
        assert self._child.stdout is not None
        self._child.stdout.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def cpu_seconds(self) -> float:
        """Processor time so far."""
        return cpu_seconds(self._child.pid)
