"""Servers of other messaging systems, each a process on free ports of 127.0.0.1.

All of them, and ours as `gantry up` starts it, confirm a message before it is flushed to the disk:
no fsync per message. `durability` says of each when that is.
"""

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import ClassVar, Protocol, Self

from bench.servers import NotReady, Ours, cpu_seconds, descendants, rss_anon_kib
from bench.tools import class_path, nats_server
from gantrymq.base.network import free_port

READY_SECONDS_MAX, STOP_SECONDS_MAX = 60.0, 60.0
KAFKA_POM = Path(__file__).parent / "kafka" / "pom.xml"
PARTITIONS = 4
"""Of a Kafka topic; a topic that the first send makes has as many queues with us."""

KAFKA_HEAP = ("-Xms1g", "-Xmx1g")
KAFKA_JVM = (
    *KAFKA_HEAP, "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)  # fmt: skip
"""As Kafka's own scripts start it."""
KAFKA_CLUSTER_ID = "R2FudHJ5TVFCZW5jaDAwMQ"
LOG4J = """\
status = error
appender.stderr.type = Console
appender.stderr.name = STDERR
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d %p %m (%c)%n
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = STDERR
"""


class Server(Protocol):
    """A running server as the workloads see it."""

    durability: ClassVar[str]

    @property
    def address(self) -> str: ...

    def cpu_seconds(self) -> float: ...

    def memory_mib(self) -> float: ...


class OurServer(Ours):
    """`gantry up` with its defaults; clients are given the name server."""

    durability: ClassVar[str] = "ASYNC_FLUSH: flushed every 500 ms"

    @property
    def address(self) -> str:
        return self.namesrv

    def __enter__(self) -> Self:
        super().__enter__()
        return self


class ForeignServer:
    """A child process with a folder for its data, ended and removed with the block."""

    durability: ClassVar[str]

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="gantrymq-bench-"))
        self.port = free_port("127.0.0.1")
        self.address = f"127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        """How it is started; files that it needs are written first."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        try:
            command = self.command()
            with (self.directory / "output").open("wb") as output:
                self._child = subprocess.Popen(
                    command, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=output,
                    stderr=subprocess.STDOUT,
                )  # fmt: skip
        except BaseException:
            shutil.rmtree(self.directory, ignore_errors=True)
            raise
        try:
            self._await_port()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _await_port(self) -> None:
        end = time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < end and self._child.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.05)
        said = (self.directory / "output").read_text(errors="replace")
        raise NotReady(f"{type(self).__name__} did not serve: {said[-2000:]}")

    def __exit__(self, *_: object) -> None:
        self._child.terminate()
        try:
            self._child.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def pids(self) -> list[int]:
        """Redis forks to write its log anew."""
        return [self._child.pid, *descendants(self._child.pid)]

    def memory_mib(self) -> float:
        """RssAnon, as of ours."""
        return sum(map(rss_anon_kib, self.pids())) / 1024

    def cpu_seconds(self) -> float:
        """Processor time so far."""
        return sum(map(cpu_seconds, self.pids()))


class Kafka(ForeignServer):
    """One node that is broker and controller (KRaft), with Kafka's defaults and a heap of 1 GiB."""

    durability = "flushed by the system"

    def command(self) -> list[str]:
        logging = self.directory / "log4j2.properties"
        logging.write_text(LOG4J)
        java = ["java", *KAFKA_JVM, f"-Dlog4j2.configurationFile={logging}", "-cp",
                class_path("kafka", KAFKA_POM)]  # fmt: skip
        settings = self.directory / "server.properties"
        settings.write_text("".join(f"{k}={v}\n" for k, v in self._settings().items()))
        formatted = subprocess.run(
            [*java, "kafka.tools.StorageTool", "format", "-t", KAFKA_CLUSTER_ID,
             "-c", str(settings)],
            capture_output=True, text=True, timeout=READY_SECONDS_MAX, check=False,
        )  # fmt: skip
        if formatted.returncode:
            raise NotReady(f"Kafka's storage was not formatted: {formatted.stderr[-2000:]}")
        return [*java, "kafka.Kafka", str(settings)]

    def _settings(self) -> dict[str, str]:
        controller = f"127.0.0.1:{free_port('127.0.0.1')}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.directory / "data"),
            "num.partitions": str(PARTITIONS),
            # There is one node, and nobody waits for other members of a group.
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        }


class Nats(ForeignServer):
    """One node with JetStream and its defaults; the driver makes streams that lie in files."""

    durability = "file storage, flushed every 2 min"

    def command(self) -> list[str]:
        return [str(nats_server()), "-a", "127.0.0.1", "-p", str(self.port), "-js",
                "-sd", str(self.directory / "data")]  # fmt: skip


class Redis(ForeignServer):
    """With an append-only file, and without snapshots beside it."""

    durability = "appendfsync everysec"

    def command(self) -> list[str]:
        return ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port),
                "--dir", str(self.directory), "--appendonly", "yes",
                "--appendfsync", "everysec", "--save", ""]  # fmt: skip
