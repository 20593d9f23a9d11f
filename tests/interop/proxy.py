"""Apache's proxy 5.3.3 in cluster mode: clients for gRPC on one side, brokers on the other."""

import json
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

import toolchain
from process import Process

from gantrymq.base.network import free_port

BOOT_SECONDS_MAX = 90


class Proxy:
    """One proxy in front of a cluster."""

    def __init__(self, namesrv: str) -> None:
        self._namesrv = namesrv
        self._directory = Path(tempfile.mkdtemp(prefix="gantrymq-proxy-"))
        self.endpoints = ""

    def __enter__(self) -> Self:
        port = free_port("127.0.0.1", (1,))
        config = self._directory / "conf" / "rmq-proxy.json"
        config.parent.mkdir()
        config.write_text(json.dumps(self._settings(port)))
        command = [
            "java", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData",
            f"-Duser.home={self._directory}", f"-Drocketmq.home.dir={self._directory}",
            "-cp", toolchain.java_class_path(toolchain.JAVA_PROXY),
            "org.apache.rocketmq.proxy.ProxyStartup",
            "-pm", "cluster", "-pc", str(config), "-n", self._namesrv,
        ]  # fmt: skip
        self._process = Process(command, directory=self._directory, name="proxy")
        self._process.wait_for(lambda line: "startup successfully" in line, BOOT_SECONDS_MAX)
        self.endpoints = f"127.0.0.1:{port}"
        return self

    def _settings(self, port: int) -> dict[str, object]:
        return {
            "rocketMQClusterName": "DefaultCluster",
            "namesrvAddr": self._namesrv,
            "localServeAddr": "127.0.0.1",
            "grpcServerPort": port,
            "remotingListenPort": port + 1,
            "useEndpointPortFromRequest": True,
            # How often it tells brokers for whom it sends transactions: they ask it about them.
            "transactionHeartbeatPeriodSecond": 1,
        }

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # It would wait half a minute for clients that are gone.
        self._process.kill()
        if error is None:
            shutil.rmtree(self._directory, ignore_errors=True)
