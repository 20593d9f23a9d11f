"""Messages that wait, in a store that changes hands between RocketMQ 5 and us."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from real import OurServers, RealCluster
from wire import Connection

from gantrymq.base.network import free_port
from gantrymq.broker.settings.config import OTHER_PORTS
from gantrymq.protocol.record import decode_records

pytestmark = pytest.mark.timeout(400)

THEIRS, OURS = "5.3.3", "ours"
TOPIC = "WaitingTopic"
SEND, PULL, CREATE = 310, 11, 17
SECONDS_MAX = 30.0


class Peer:
    """A hand-made client of one broker."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(self) -> None:
        ext = {"topic": TOPIC, "defaultTopic": "TBW102", "readQueueNums": "1", "order": "false",
               "writeQueueNums": "1", "topicFilterType": "SINGLE_TAG", "perm": "6"}  # fmt: skip
        assert 0 == self._connection.ask(CREATE, ext).code

    def send(self, body: str, deliver_ms: int) -> None:
        text = f"UNIQ_KEY\x01{body}\x02TIMER_DELIVER_MS\x01{deliver_ms}\x02"
        ext = {"a": "p", "b": TOPIC, "c": "TBW102", "d": "1", "e": "0", "f": "0", "g": "1",
               "h": "0", "i": text, "j": "0", "k": "false", "m": "false"}  # fmt: skip
        assert 0 == self._connection.ask(SEND, ext, body.encode()).code

    def found(self) -> dict[str, int]:
        """What was delivered so far, and when each was first stored."""
        ext = {"consumerGroup": "g", "topic": TOPIC, "queueId": "0", "queueOffset": "0",
               "maxMsgNums": "32", "sysFlag": "4", "commitOffset": "0", "subscription": "*",
               "suspendTimeoutMillis": "0", "subVersion": "0"}  # fmt: skip
        answer = self._connection.ask(PULL, ext)
        first: dict[str, int] = {}
        for message in decode_records(answer.body):
            first.setdefault(message.body.decode(), message.store_ms)
        return first

    def count(self) -> int:
        ext = {"topic": TOPIC, "queueId": "0"}
        return int(self._connection.ask(30, ext).ext["offset"])

    def wait_for(self, *bodies: str) -> None:
        end = time.monotonic() + SECONDS_MAX
        while not set(bodies) <= set(self.found()):
            assert time.monotonic() < end, f"{bodies}: only {self.found()}"
            time.sleep(0.1)


class Store:
    def __init__(self, directory: Path) -> None:
        self._directory, self._port = directory, free_port("127.0.0.1", OTHER_PORTS)

    @contextlib.contextmanager
    def opened_by(self, who: str) -> Iterator[Peer]:
        servers: OurServers | RealCluster = (
            OurServers(store=self._directory, broker_port=self._port)
            if who == OURS
            else RealCluster(who, store=self._directory, broker_port=self._port)
        )
        with servers as cluster, Connection(cluster.broker_addr) as connection:
            yield Peer(connection)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_ours_takes_over_what_waits_in_rocketmqs(tmp_path: Path) -> None:
    """
    What RocketMQ delivered does not come again; the rest comes, none early, also what became due
    while nobody ran.
    """
    store = Store(tmp_path / "store")
    with store.opened_by(THEIRS) as peer:
        peer.create()
        start = now_ms()
        due = {"early": start + 2_000, "between": start + 12_000, "late": start + 25_321}
        for body, deliver_ms in due.items():
            peer.send(body, deliver_ms)
        peer.wait_for("early")
        time.sleep(2)  # RocketMQ writes its progress down every second
    with store.opened_by(OURS) as peer:
        opened = now_ms()
        peer.wait_for("early", "between", "late")
        found = peer.found()
        assert 3 == peer.count()
        assert due["late"] <= found["late"] < max(opened, due["late"]) + 3_000
        assert due["between"] <= found["between"]


def test_rocketmq_loses_nothing_that_waits_in_ours(tmp_path: Path) -> None:
    """
    It reads again from the first message that waits: what is due later comes once, what was
    delivered before that one does not come again.
    """
    store = Store(tmp_path / "store")
    with store.opened_by(OURS) as peer:
        peer.create()
        start = now_ms()
        peer.send("early", start + 1_000)
        peer.wait_for("early")
        late = now_ms() + 25_000
        peer.send("late", late)
        peer.send("later", late + 2_000)
    with store.opened_by(THEIRS) as peer:
        opened = now_ms()
        peer.wait_for("early", "late", "later")
        found = peer.found()
        assert 3 == peer.count()
        assert late <= found["late"] < max(opened, late) + 6_000
