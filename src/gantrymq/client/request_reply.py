"""Asking over messages: a request goes to a topic, its reply comes back to the client that asked.

The reply does not travel through the asker's own topics. Whoever answers sends it to a broker, and
the broker hands it on over the connection on which it last heard from the asker.
"""

import asyncio
import logging
import random
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gantrymq.base.clock import WallClock
from gantrymq.base.errors import GantryError
from gantrymq.client.errors import ClientError, NoRoute, WindowFull
from gantrymq.client.received import Received
from gantrymq.model import Message, Queue, SendResult, reply_topic
from gantrymq.protocol import calls
from gantrymq.protocol import properties as p
from gantrymq.protocol.command import Command
from gantrymq.protocol.compression import decompress
from gantrymq.protocol.headers.messages import PushReplyRequest

if TYPE_CHECKING:
    from gantrymq.client.instance import Instance
    from gantrymq.client.producer import Producer
    from gantrymq.remoting.connection import Connection

log = logging.getLogger(__name__)

REPLY_TYPE: Final = "reply"
OPEN_MAX: Final = 16_384
"""Requests of one client that wait for their reply at once."""
INTRODUCE_SECONDS_MAX: Final = 1.0
"""How long a first request waits for brokers to hear of this client; one that is down must not
take the whole time."""


class RequestTimeout(ClientError):
    """Nobody replied in time. The request may still be worked on; its reply will be ignored."""


class NotARequest(ClientError):
    """A reply to a message that does not ask for one."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What came back."""

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
        """A new correlation id and what its reply will be."""
        if len(self._open) >= OPEN_MAX:
            raise WindowFull(f"{OPEN_MAX} requests of this client wait for their reply")
        correlation_id = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._open[correlation_id] = future
        self.asked += 1
        return correlation_id, future

    def close(self, correlation_id: str) -> None:
        """Nobody waits for this one any more."""
        self._open.pop(correlation_id, None)

    async def arrived(self, connection: "Connection", command: Command) -> Command:
        """A broker hands on a reply. Also a late one is taken: sending it again would not help."""
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
        """Let every broker that may hand on a reply hear of this client first.

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


async def ask(producer: "Producer", message: Message, seconds: float, **place: Any) -> Reply:
    """Send a request and wait for its reply, `seconds` over both."""
    instance = producer.instance
    requests, options = instance.requests, producer.options
    deadline = asyncio.get_running_loop().time() + seconds
    correlation_id, reply = requests.open()
    sent: SendResult | None = None
    try:
        async with asyncio.timeout_at(deadline):
            await instance.routes.get_for_sending(
                message.topic, options.create_topic_key, options.default_topic_queue_nums
            )
            await requests.introduce(instance, message.topic)
            request = _asking(message, correlation_id, instance.client_id, seconds)
            left = deadline - asyncio.get_running_loop().time()
            try:
                sent = await producer.send(request, timeout=left, **place)
            except GantryError:
                if not reply.done():  # a reply is the best proof that the request arrived
                    raise
            return await reply
    except TimeoutError:
        raise _no_reply(message.topic, sent, seconds) from None
    finally:
        requests.close(correlation_id)


def _asking(message: Message, correlation_id: str, client_id: str, seconds: float) -> Message:
    own = {
        **message.properties,
        p.CORRELATION_ID: correlation_id,
        p.REPLY_TO_CLIENT: client_id,
        p.TIME_TO_LIVE: str(max(1, int(seconds * 1000))),
    }
    return message.replace(properties=own)


def _no_reply(topic: str, sent: SendResult | None, seconds: float) -> RequestTimeout:
    if sent is None:
        return RequestTimeout(f"the request to {topic!r} could not be sent in {seconds:g} s")
    return RequestTimeout(
        f"the request to {topic!r} was sent ({sent.msg_id} in {sent.queue}), "
        f"but no reply came in {seconds:g} s"
    )


def reply_to(
    message: Received,
    body: bytes | str,
    *,
    tags: str | None = None,
    keys: Iterable[str] | str = (),
    properties: Mapping[str, str] | None = None,
) -> Message:
    """The reply to a request, to be sent by any producer."""
    found = message.properties
    names = (p.CLUSTER, p.REPLY_TO_CLIENT, p.CORRELATION_ID)
    missing = [name for name in names if not found.get(name)]
    if missing:
        raise NotARequest(f"{message!r} is no request: it has no property {missing[0]}")
    own = {
        p.MESSAGE_TYPE: REPLY_TYPE,
        p.CORRELATION_ID: found[p.CORRELATION_ID],
        p.REPLY_TO_CLIENT: found[p.REPLY_TO_CLIENT],
    }
    if found.get(p.TIME_TO_LIVE):
        own[p.TIME_TO_LIVE] = found[p.TIME_TO_LIVE]
    return Message(
        reply_topic(found[p.CLUSTER]), body, tags, keys,
        properties={**(properties or {}), **own},
    )  # fmt: skip


async def answer(producer: "Producer", message: Received, body: bytes | str) -> SendResult:
    """Reply to a request, by the broker the request came from: that one knows the asker.

    Should it not any more, the other brokers of the cluster are tried.
    """
    reply = reply_to(message, body)
    queues = {queue.broker_name: queue for queue in await producer.queues(reply.topic)}
    near = message.queue.broker_name
    order: list[Queue] = [queues.pop(near)] if near in queues else []
    order += queues.values()
    if not order:
        raise NoRoute(reply.topic, "it has brokers, but none with a queue to write to")
    for queue in order[:-1]:
        with suppress(GantryError):
            return await producer.send(reply, queue=queue)
    return await producer.send(reply, queue=order[-1])
