"""Requests of one client id that wait for their reply.

A reply does not travel through a topic that the asker reads. Whoever answers sends it to a broker,
and the broker pushes it (PUSH_REPLY_MESSAGE_TO_CLIENT, 326) over the connection on which it last
heard from the asker.
"""

import asyncio
import logging
import random
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.base.clock import WallClock
from gantrymq.client.core.errors import NoRoute, WindowFull
from gantrymq.model import reply_topic
from gantrymq.protocol import calls
from gantrymq.protocol import properties as p
from gantrymq.protocol.command import Command
from gantrymq.protocol.compression import decompress
from gantrymq.protocol.headers.messages import PushReplyRequest

if TYPE_CHECKING:
    from gantrymq.client.core.instance import Instance
    from gantrymq.remoting.connection import Connection

log = logging.getLogger(__name__)

OPEN_MAX: Final = 16_384
"""Requests of one client that wait for their reply at once."""
INTRODUCE_SECONDS_MAX: Final = 1.0
"""How long a first request waits for brokers to hear of this client; one that is down must not
take the whole time."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The reply to a request."""

    topic: str
    body: bytes
    properties: dict[str, str]
    flag: int
    born_ms: int
    store_ms: int
    born_host: str
    """Where the reply was sent from, as `address:port`."""
    store_host: str
    arrived_ms: int

    @property
    def msg_id(self) -> str:
        return self.properties.get(p.UNIQ_KEY, "")

    @property
    def tags(self) -> str | None:
        return self.properties.get(p.TAGS)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.properties.get(p.KEYS, "").split())


class Requests:
    """The requests of one client id that wait for a reply; its producers share them."""

    def __init__(self, clock: WallClock, rng: random.Random) -> None:
        self._clock, self._rng = clock, rng
        self._open: dict[str, asyncio.Future[Reply]] = {}
        self._introduced: dict[str, int] = {}
        self.asked = 0
        self.late = 0
        """Replies that came when nobody waited for them any more, or never did."""

    def open(self) -> tuple[str, asyncio.Future[Reply]]:
        """A new correlation id, and the future of its reply."""
        if len(self._open) >= OPEN_MAX:
            raise WindowFull(f"{OPEN_MAX} requests of this client wait for their reply")
        correlation_id = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._open[correlation_id] = future
        self.asked += 1
        return correlation_id, future

    def close(self, correlation_id: str) -> None:
        """The caller no longer waits for this reply."""
        self._open.pop(correlation_id, None)

    async def arrived(self, connection: "Connection", command: Command) -> Command:
        """Take a reply that a broker pushes; accept a late one too, as a resend would not help."""
        header = calls.PUSH_REPLY_MESSAGE_TO_CLIENT.request.parse(command.ext)
        reply = self._read(header, command.body)
        correlation_id = reply.properties.get(p.CORRELATION_ID, "")
        future = self._open.pop(correlation_id, None)
        if future is None or future.done():
            self.late += 1
            log.info("reply %r from %s: nobody waits for it", correlation_id, reply.born_host)
        else:
            future.set_result(reply)
        return Command(code=0)

    def _read(self, header: PushReplyRequest, body: bytes) -> Reply:
        now_ms = self._clock.now_ms()
        found = p.decode(header.properties or "")
        found[p.ARRIVE_TIME] = str(now_ms)
        return Reply(
            topic=header.topic,
            body=decompress(body, header.sys_flag),
            properties=found,
            flag=header.flag,
            born_ms=header.born_timestamp,
            store_ms=header.store_timestamp,
            born_host=header.born_host,
            store_host=header.store_host,
            arrived_ms=now_ms,
        )

    async def introduce(self, instance: "Instance", topic: str) -> None:
        """Send a heartbeat first to every broker that may push the reply.

        A reply may go to any broker of the cluster, not only to those of the topic.
        """
        route = instance.routes.cached(topic)
        if route is None or self._introduced.get(topic) == instance.routes.version:
            return
        for cluster in dict.fromkeys(data.cluster for data in route.broker_datas if data.cluster):
            with suppress(NoRoute):
                await instance.routes.get(reply_topic(cluster))
        with suppress(TimeoutError):
            async with asyncio.timeout(INTRODUCE_SECONDS_MAX):
                await instance.heartbeats.send_new()
        self._introduced[topic] = instance.routes.version
