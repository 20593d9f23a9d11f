"""A server as a process on a host: started, killed, suspended, started again."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from chaos.network import Network, environment

START_SECONDS_MAX: Final = 30.0
LOOK_SECONDS: Final = 0.02


class NodeFailed(Exception):
    """A server did not start; the text has its last lines."""


class Node:
    """A name server or a broker."""

    def __init__(
        self, name: str, network: Network, folder: Path, program: str, settings: Mapping[str, str]
    ) -> None:
        self.name, self._network, self._folder = name, network, folder
        self._program = program
        self.module = "gantrymq.cli.servers"
        """The module that has the program."""
        self.environment: dict[str, str] = {}
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "server.conf"
        self._file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self._output = folder / "output"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process; `await_ready` waits until it serves."""
        assert not self.running
        code = f"from {self.module} import {self._program}; {self._program}()"
        command = [sys.executable, "-c", code, "-c", str(self._file)]
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                self._network.command(self.name, command),
                stdin=subprocess.PIPE,  # when this program ends, however it does, so do servers
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment(**self.environment, GANTRY_SUPERVISED="1"),
                start_new_session=True,
            )

    def await_ready(self) -> None:
        assert self._process is not None
        end = time.monotonic() + START_SECONDS_MAX
        while "boot success" not in (said := self._output.read_text(errors="replace")):
            if self._process.poll() is not None or time.monotonic() > end:
                raise NodeFailed(f"{self.name} did not start: {said[-2000:]}")
            time.sleep(LOOK_SECONDS)

    def kill(self) -> None:
        """`kill -9`."""
        if self._process is not None and self._process.stdin is not None:
            self._process.kill()
            self._process.stdin.close()
            self._process.wait()

    def suspend(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        if self.running:
            os.kill(self.pid, signal.SIGCONT)
