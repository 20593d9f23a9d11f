"""The sending connections and their pace.

The pace is kept whatever the broker does: a message is due at its time, and its latency counts from
there. What cannot be sent because connections are down, or too much is under way, is counted.
"""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Sequence
from typing import Final

from gantrymq.base.background import Background
from gantrymq.base.errors import GantryError
from gantrymq.base.network import TcpNetwork
from gantrymq.protocol.codes import RequestCode, ResponseCode
from gantrymq.protocol.command import Command, encode
from gantrymq.protocol.headers.messages import SendRequestV2
from gantrymq.remoting.connection import Connection
from soak.acknowledged import Acknowledged, body_of

STEP_SECONDS: Final = 0.005
ANSWER_SECONDS_MAX: Final = 10.0
CONNECT_SECONDS_MAX: Final = 5.0
AGAIN_SECONDS_MAX: Final = 1.5
UNDER_WAY_MAX: Final = 64
"""Messages of one connection without an answer."""
BODY_BYTES: Final = 256


class Sent:
    """A message that waits for its answer."""

    __slots__ = ("connection", "deadline", "due", "load", "number", "topic")

    def __init__(
        self, load: "Load", connection: Connection, topic: str, number: int, due: float
    ) -> None:
        self.load, self.connection, self.topic = load, connection, topic
        self.number, self.due = number, due
        self.deadline = connection.loop.time() + ANSWER_SECONDS_MAX

    def settle(self, answer: Command | GantryError) -> None:
        self.load.settled(self, answer)


class Load:
    """Sends at a pace, over many connections, to many topics."""

    def __init__(
        self, host: str, port: int, topics: Sequence[str], count: int, rng: random.Random
    ) -> None:
        self._host, self._port, self._topics, self._rng = host, port, topics, rng
        self._count = count
        self._background = Background("senders")
        self._open: list[Connection] = []
        self._under_way: Counter[Connection] = Counter()
        self._number = 0
        self._next = 0
        self.repeats = False
        """Whether each answer is followed by the next message: that finds the peak."""
        self.latencies: list[float] = []
        self.acknowledged: dict[str, Acknowledged] = {}
        self.outcomes: Counter[str] = Counter()

    async def start(self) -> None:
        for _ in range(self._count):
            self._background.spawn(self._stay_connected())
        while len(self._open) < self._count:
            await asyncio.sleep(0.05)

    async def stop(self) -> None:
        await self._background.close()
        for connection in list(self._open):
            connection.close()

    @property
    def connected(self) -> int:
        return len(self._open)

    def take(self) -> dict[str, Acknowledged]:
        """What was acknowledged since the last call."""
        found, self.acknowledged = self.acknowledged, {}
        return found

    async def _stay_connected(self) -> None:
        network = TcpNetwork()
        while True:
            lost = asyncio.Event()
            with contextlib.suppress(GantryError, OSError):
                connection = await network.connect(
                    self._host,
                    self._port,
                    lambda lost=lost: Connection(on_lost=lambda _: lost.set()),  # type: ignore[misc]
                    CONNECT_SECONDS_MAX,
                )
                self._open.append(connection)
                await lost.wait()
                self._open.remove(connection)
                del self._under_way[connection]
            await asyncio.sleep(self._rng.uniform(0.2, AGAIN_SECONDS_MAX))

    # the ways to send

    async def fill(self, topic: str, count: int) -> None:
        """Send so many messages to one topic and wait for their answers."""
        for number in range(count):
            self._send(self._open[number % len(self._open)], 0.0, topic)
        while self.outcomes.total() < count:
            await asyncio.sleep(STEP_SECONDS)
        self.latencies.clear()

    async def peak(self, seconds: float) -> float:
        """Messages a second with one under way on each connection."""
        self.repeats = True
        for connection in self._open:
            self._send(connection, connection.loop.time())
        await asyncio.sleep(seconds / 4)  # the first ones find cold caches
        before = self.outcomes["acknowledged"]
        await asyncio.sleep(seconds)
        self.repeats = False
        return (self.outcomes["acknowledged"] - before) / seconds

    async def pace(self, rate: float) -> None:
        """Send `rate` messages a second, evenly, whatever the answers are, until cancelled."""
        loop = asyncio.get_running_loop()
        began, sent = loop.time(), 0
        while True:
            due = int((loop.time() - began) * rate)
            while sent < due:
                self._send_next(began + sent / rate)
                sent += 1
            await asyncio.sleep(STEP_SECONDS)

    def _send_next(self, due: float) -> None:
        if not self._open:
            self.outcomes["not sent, no connection"] += 1
            return
        self._next = (self._next + 1) % len(self._open)
        connection = self._open[self._next]
        if self._under_way[connection] >= UNDER_WAY_MAX:
            self.outcomes["not sent, too many under way"] += 1
            return
        self._send(connection, due)

    def _send(self, connection: Connection, due: float, topic: str = "") -> None:
        """Send one message, to any of the topics if none is given."""
        topic = topic or self._topics[self._rng.randrange(len(self._topics))]
        self._number += 1
        header = SendRequestV2(
            producer_group="soak", topic=topic, queue_id=0, born_timestamp=0,
            unit_mode=False, batch=False, reconsume_times=0,
            properties=f"UNIQ_KEY\x01{self._number:032X}\x02",
        )  # fmt: skip
        command = Command(
            code=RequestCode.SEND_MESSAGE_V2,
            ext=header.to_ext(),
            body=body_of(self._number, BODY_BYTES),
        )
        self._under_way[connection] += 1
        command.opaque = connection.expect(Sent(self, connection, topic, self._number, due))
        connection.write(encode(command))

    def settled(self, sent: Sent, answer: Command | GantryError) -> None:
        connection = sent.connection
        if connection in self._under_way:
            self._under_way[connection] -= 1
        if not isinstance(answer, Command):
            self.outcomes[type(answer).__name__] += 1
            return
        if answer.code == ResponseCode.SUCCESS:
            self.outcomes["acknowledged"] += 1
            self.latencies.append(connection.loop.time() - sent.due)
            known = self.acknowledged.setdefault(sent.topic, Acknowledged())
            known.add(int(answer.ext["queueOffset"]), sent.number)
        else:
            self.outcomes[f"code {answer.code}"] += 1
        if self.repeats and connection.open:
            self._send(connection, connection.loop.time())
