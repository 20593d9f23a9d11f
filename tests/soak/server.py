"""The name server and the broker as processes; the broker is killed and started again."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from gantrymq.base.network import free_port
from gantrymq.broker.settings.config import OTHER_PORTS
from soak.figures import Sample

HOST: Final = "127.0.0.1"
START_SECONDS_MAX: Final = 60.0
STOP_SECONDS_MAX: Final = 30.0
READ_BYTES: Final = 8 * 1024 * 1024
SETTINGS: Final = {
    "brokerName": "broker-a",
    "brokerIP1": HOST,
    "bindAddress": HOST,
    "flushDiskType": "SYNC_FLUSH",
    "storeProfile": "dev",
    "autoCreateTopicEnable": "false",
}


class Servers:
    """Both processes, on free ports and a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.namesrv = f"{HOST}:{free_port(HOST)}"
        self.port = free_port(HOST, OTHER_PORTS)
        self._namesrv = self._start("mqnamesrv", {
            "listenPort": self.namesrv.partition(":")[2], "bindAddress": HOST,
            "kvConfigPath": f"{folder}/kv.json", "configStorePath": f"{folder}/namesrv.conf",
            "logDirectory": f"{folder}/logs",
        })  # fmt: skip
        self._broker: subprocess.Popen[bytes] | None = None
        self._served_at = 0.0

    def __enter__(self) -> Self:
        self.start_broker()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in (self._broker, self._namesrv):
            if process is not None and process.poll() is None:
                process.terminate()
                try:
                    process.wait(STOP_SECONDS_MAX)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    @property
    def address(self) -> str:
        """The broker's port for clients."""
        return f"{HOST}:{self.port}"

    def start_broker(self) -> float:
        """Start the broker; returns the seconds until it served."""
        began = time.monotonic()
        self._broker = self._start("mqbroker", {
            **SETTINGS, "namesrvAddr": self.namesrv, "listenPort": str(self.port),
            "storePathRootDir": f"{self._folder}/store", "logDirectory": f"{self._folder}/logs",
        })  # fmt: skip
        assert self._broker.stdout is not None
        for line in self._broker.stdout:
            if b"boot success" in line:
                break
        else:
            raise RuntimeError(f"the broker did not start; see {self._folder}/logs")
        self._served_at = time.monotonic()
        return self._served_at - began

    def read_log(self, since: float) -> None:
        """Read the files of the log that were written since then, front to back.

        A check reads topic by topic, one message here and one there; from a disk that would take
        longer than the life that it looks at.
        """
        for path in sorted((self._folder / "store" / "commitlog").iterdir()):
            if path.stat().st_mtime >= since:
                with path.open("rb", buffering=0) as file:
                    while file.read(READ_BYTES):
                        pass

    def kill_broker(self) -> None:
        """As if its machine had taken it away."""
        assert self._broker is not None
        self._broker.kill()
        self._broker.wait()

    def sample(self) -> Sample:
        """What the system says about the broker now."""
        assert self._broker is not None
        status = Path(f"/proc/{self._broker.pid}/status").read_text()
        (kib,) = [line.split()[1] for line in status.splitlines() if line.startswith("RssAnon:")]
        files = len(os.listdir(f"/proc/{self._broker.pid}/fd"))
        return Sample(time.monotonic() - self._served_at, int(kib) / 1024, files)

    def _start(self, program: str, settings: dict[str, str]) -> subprocess.Popen[bytes]:
        file = self._folder / f"{program}.conf"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        code = f"from gantrymq.cli.servers import {program}; {program}()"
        return subprocess.Popen(
            [sys.executable, "-c", code, "-c", str(file)],
            stdin=subprocess.PIPE,  # when this program ends, however it does, so do the servers
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | {"GANTRY_SUPERVISED": "1"},
            start_new_session=True,
        )
