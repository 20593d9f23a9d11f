"""A master and its slave, each ours or RocketMQ's of a release, with one name server."""

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import real
from process import Process
from wire import Connection

from gantrymq.base.network import free_port
from gantrymq.broker.settings.config import OTHER_PORTS
from gantrymq.protocol.record import decode_records

OURS = "ours"
SECONDS_MAX = 60.0
SEND, PULL, CREATE, MAX_OFFSET, QUERY_OFFSET = 310, 11, 17, 30, 14
FLUSH_SLAVE_TIMEOUT, SLAVE_NOT_AVAILABLE = 12, 11


class BrokerPair:
    """The two brokers; each can be stopped, killed and started again."""

    def __init__(self, master: str, slave: str, **settings: str) -> None:
        self.kinds = {"master": master, "slave": slave}
        self.directory = Path(tempfile.mkdtemp(prefix="gantrymq-pair-"))
        self._settings = settings
        self._ports = {role: free_port("127.0.0.1", OTHER_PORTS) for role in self.kinds}
        self._running: dict[str, Process] = {}
        self._stack = contextlib.ExitStack()
        self.namesrv = f"127.0.0.1:{free_port('127.0.0.1')}"

    def __enter__(self) -> Self:
        try:
            port = self.namesrv.rpartition(":")[2]
            name_server = self._start(
                "namesrv",
                self.kinds["master"],
                {"listenPort": port, "kvConfigPath": str(self.directory / "kvConfig.json")},
            )
            self._stack.enter_context(name_server)
            self.start("master")
            self.start("slave")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for role in list(self._running):
            self.kill(role)
        self._stack.close()
        if error is None:
            shutil.rmtree(self.directory, ignore_errors=True)

    def store(self, role: str) -> Path:
        return self.directory / role / "store"

    def address(self, role: str) -> str:
        return f"127.0.0.1:{self._ports[role]}"

    def start(self, role: str, kind: str | None = None) -> None:
        """Start a broker over its store, and wait until the name server has it."""
        self.kinds[role] = kind or self.kinds[role]
        own = {
            "brokerRole": "SLAVE" if role == "slave" else "SYNC_MASTER",
            "brokerId": "1" if role == "slave" else "0",
            "brokerIP2": "127.0.0.1",
            "namesrvAddr": self.namesrv,
        }
        if self.kinds[role] != OURS:
            own = {**real.JAVA_ONLY_SETTINGS, **own}
        settings = real.broker_settings(self.store(role), self._ports[role], own)
        self._running[role] = self._start(role, self.kinds[role], {**settings, **self._settings})
        self._wait_registered(role)

    def _start(self, part: str, kind: str, settings: Mapping[str, str]) -> Process:
        directory = self.directory / part
        directory.mkdir(exist_ok=True)
        if kind != OURS:
            main = real.NAMESRV_MAIN if part == "namesrv" else real.BROKER_MAIN
            return real.start_java(kind, part, main, settings, directory)
        config = real.write_properties(
            directory / f"{part}.conf", {**settings, "bindAddress": "127.0.0.1"}
        )
        program = "mqnamesrv" if part == "namesrv" else "mqbroker"
        return real.start_ours(program, ["-c", str(config)], directory)

    def _wait_registered(self, role: str) -> None:
        address = self.address(role).encode()

        def known() -> bool:
            with Connection(self.namesrv) as connection:
                return address in connection.ask(real.CLUSTER_INFO).body

        until(known)

    def kill(self, role: str) -> None:
        """End a broker without a word."""
        self._running.pop(role).kill()

    def stop(self, role: str) -> None:
        """End a broker as an operator does."""
        process = self._running.pop(role)
        process.__exit__(None, None, None)

    # a client by hand

    def create(self, topic: str) -> None:
        ext = {"topic": topic, "defaultTopic": "TBW102", "readQueueNums": "1", "order": "false",
               "writeQueueNums": "1", "topicFilterType": "SINGLE_TAG", "perm": "6"}  # fmt: skip
        with Connection(self.address("master")) as connection:
            assert 0 == connection.ask(CREATE, ext).code

    def send(self, topic: str, bodies: list[str]) -> list[int]:
        """Send to the master; the codes of the answers."""
        codes = []
        with Connection(self.address("master")) as connection:
            for body in bodies:
                ext = {"a": "p", "b": topic, "c": "TBW102", "d": "1", "e": "0", "f": "0", "g": "1",
                       "h": "0", "i": f"UNIQ_KEY\x01{body}\x02", "j": "0", "k": "false",
                       "m": "false"}  # fmt: skip
                codes.append(connection.ask(SEND, ext, body.encode().ljust(1000)).code)
        return codes

    def found(self, role: str, topic: str) -> list[str]:
        """Every body of the topic on one of the two."""
        bodies: list[str] = []
        with Connection(self.address(role)) as connection:
            while True:
                ext = {"consumerGroup": "g", "topic": topic, "queueId": "0",
                       "queueOffset": str(len(bodies)), "maxMsgNums": "32", "sysFlag": "4",
                       "commitOffset": "0", "subscription": "*", "suspendTimeoutMillis": "0",
                       "subVersion": "0"}  # fmt: skip
                answer = connection.ask(PULL, ext)
                got = [each.body.decode().strip() for each in decode_records(answer.body)]
                if not got:
                    return bodies
                bodies += got

    def commit(self, group: str, topic: str, offset: int) -> None:
        """Commit progress to the master."""
        ext = {"consumerGroup": group, "topic": topic, "queueId": "0", "commitOffset": str(offset)}
        with Connection(self.address("master")) as connection:
            assert 0 == connection.ask(15, ext).code

    def progress(self, role: str, group: str, topic: str) -> str | None:
        """The progress of a group on one of the two."""
        ext = {"consumerGroup": group, "topic": topic, "queueId": "0",
               "setZeroIfNotFound": "false"}  # fmt: skip
        with Connection(self.address(role)) as connection:
            return connection.ask(QUERY_OFFSET, ext).ext.get("offset")

    def create_group(self, group: str) -> None:
        body = f'{{"groupName":"{group}"}}'.encode()
        with Connection(self.address("master")) as connection:
            assert 0 == connection.ask(200, {}, body).code

    def logs(self) -> tuple[bytes, bytes]:
        """The first log file of both, up to where the slave's log ends."""
        name = "commitlog/00000000000000000000"
        return tuple((self.store(role) / name).read_bytes() for role in self.kinds)  # type: ignore[return-value]


def until(holds: Callable[[], bool], seconds: float = SECONDS_MAX) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)
