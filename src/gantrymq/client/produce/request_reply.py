"""Request-reply: a request goes to a topic, its reply comes back to the client that asked.

`client.core.requests` describes the way of the reply.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from gantrymq.base.errors import GantryError
from gantrymq.client.core.errors import ClientError, NoRoute
from gantrymq.client.core.requests import Reply
from gantrymq.client.messages.received import Received
from gantrymq.model import Message, Queue, SendResult, reply_topic
from gantrymq.protocol import properties as p

if TYPE_CHECKING:
    from gantrymq.client.produce.producer import Producer

REPLY_TYPE: Final = "reply"


class RequestTimeout(ClientError):
    """No reply came in time. A consumer may still handle the request; its reply is ignored."""


class NotARequest(ClientError):
    """The message to reply to is not a request."""


async def ask(producer: "Producer", message: Message, seconds: float, **place: Any) -> Reply:
    """Send a request and wait for its reply, `seconds` for both."""
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
                if not reply.done():  # a reply proves that the request arrived
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
    """The reply to a request; any producer may send it."""
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
        reply_topic(found[p.CLUSTER]),
        body,
        tags,
        keys,
        properties={**(properties or {}), **own},
    )


async def answer(producer: "Producer", message: Received, body: bytes | str) -> SendResult:
    """Reply to a request through the broker it came from, which knows the client that asked.

    If that fails, try the other brokers of the cluster.
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
