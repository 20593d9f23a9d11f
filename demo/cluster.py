"""`gantry up` as a child process that can be crashed and brought back."""

import asyncio
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from demo.claims import Claim
from gantrymq.base.network import free_port
from gantrymq.broker.settings.config import OTHER_PORTS

HOST = "127.0.0.1"
READY = "gantrymq ready "
CONFIG = "broker.properties"
READY_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 30.0


class ClusterFailed(Exception):
    """The processes did not do what they should."""


class Cluster:
    """A name server and a broker on ports that stay the same over a restart."""

    def __init__(self, data: Path, settings: str = "") -> None:
        self._data, self._settings = data, settings
        self._namesrv_port, self._broker_port = free_port(HOST), free_port(HOST, OTHER_PORTS)
        self.namesrv = f"{HOST}:{self._namesrv_port}"
        self._child: asyncio.subprocess.Process | None = None
        self._crashed: float | None = None
        self.away = 0.0
        """Seconds from a crash until the broker served again."""

    async def __aenter__(self) -> Self:
        self._data.mkdir(parents=True, exist_ok=True)
        (self._data / CONFIG).write_text(self._settings)
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> float:
        """Start everything; returns after how many seconds it serves."""
        began = time.monotonic()
        with (self._data / "gantry.log").open("ab") as log:
            self._child = await asyncio.create_subprocess_exec(
                str(Path(sys.executable).with_name("gantry")),
                "up",
                "--data",
                str(self._data),
                "--no-console",
                "--namesrv-port",
                str(self._namesrv_port),
                "--broker-port",
                str(self._broker_port),
                "--config",
                str(self._data / CONFIG),
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )
        async with asyncio.timeout(READY_SECONDS_MAX):
            await self._until_ready(self._child)
        if self._crashed is not None:
            self.away, self._crashed = time.monotonic() - self._crashed, None
        return time.monotonic() - began

    async def _until_ready(self, child: asyncio.subprocess.Process) -> None:
        assert child.stdout is not None
        while line := await child.stdout.readline():
            if line.decode().startswith(READY):
                return
        log = self._data / "gantry.log"
        raise ClusterFailed(f"gantry up ended with {await child.wait()}:\n{log.read_text()}")

    async def crash_broker(self) -> int:
        """Kill -9 the broker's own process; its supervisor then gives up. Returns its id."""
        child = self._child
        assert child is not None, "the cluster is not running"
        pid = next(each for each in _children(child.pid) if "mqbroker" in _command(each))
        os.kill(pid, signal.SIGKILL)
        self._crashed = time.monotonic()
        async with asyncio.timeout(STOP_SECONDS_MAX):
            await child.wait()
        self._child = None
        return pid

    async def stop(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        with suppress(ProcessLookupError):
            child.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await child.wait()
        except TimeoutError:
            child.kill()
            await child.wait()

    def claims(self) -> list[Claim]:
        figure = f"{self.away:.1f} s away"
        return [Claim("the broker was killed and came back", figure, self.away > 0)]


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
