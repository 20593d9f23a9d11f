"""One pull: asks a broker for the messages of a queue from an offset on."""

from enum import Enum
from typing import NamedTuple

from gantrymq.client.core.instance import Instance
from gantrymq.model import Queue, Subscription
from gantrymq.protocol import calls
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.headers.messages import (
    PULL_SUBSCRIBES,
    PULL_SUSPENDS,
    PullRequest,
)

PULL_TIMEOUT_SECONDS = 10.0
SUSPEND_MARGIN_SECONDS = 15.0
"""How much longer than the broker may hold a pull the client waits for its answer."""


class PullStatus(Enum):
    """What a pull found."""

    FOUND = ResponseCode.SUCCESS
    NO_NEW = ResponseCode.PULL_NOT_FOUND
    NO_MATCH = ResponseCode.PULL_RETRY_IMMEDIATELY
    OFFSET_MOVED = ResponseCode.PULL_OFFSET_MOVED


_EXPECTED = tuple(status.value for status in PullStatus)


class PullAnswer(NamedTuple):
    """The answer to a pull; the body holds stored records back to back."""

    status: PullStatus
    next_offset: int
    min_offset: int
    max_offset: int
    body: bytes
    broker_id: int
    """Which member of the broker to ask next time; 0 is the master."""


async def pull_raw(
    instance: Instance,
    group: str,
    queue: Queue,
    offset: int,
    *,
    max_count: int = 32,
    max_bytes: int | None = None,
    suspend: float = 0.0,
    timeout: float | None = None,
    subscription: Subscription | None = None,
    broker_id: int = 0,
    registered: bool = False,
) -> PullAnswer:
    """Pull once. Without a message the broker may hold the request for `suspend` seconds.

    `registered` means that the broker has the subscription from a heartbeat and need not compile
    the expression again, which matters for SQL. A pull never commits progress, although the
    request has a field for it: brokers store that last and on another thread than commits, so that
    an earlier pull could undo a later commit.
    """
    await instance.routes.get(queue.topic)
    address = instance.routes.address_of(queue.broker_name, broker_id, any_id=True)
    flags = PULL_SUSPENDS if suspend > 0 else 0
    expression, kind, version = "*", "TAG", 0
    if subscription is not None:
        expression, kind = subscription.sub_string, subscription.expression_type
        version = subscription.sub_version
    if not registered:
        flags |= PULL_SUBSCRIBES
    header = PullRequest(
        consumer_group=group,
        topic=queue.topic,
        queue_id=queue.queue_id,
        queue_offset=offset,
        max_msg_nums=max_count,
        sys_flag=flags,
        suspend_timeout_millis=int(suspend * 1000),
        subscription=expression,
        sub_version=version,
        expression_type=kind,
        max_msg_bytes=max_bytes,
    )
    wait = timeout or (suspend + SUSPEND_MARGIN_SECONDS if suspend else PULL_TIMEOUT_SECONDS)
    found, answer = await instance.call(
        address, calls.PULL_MESSAGE, header, timeout=wait, expect=_EXPECTED
    )
    return PullAnswer(
        PullStatus(ResponseCode(answer.code)),
        found.next_begin_offset,
        found.min_offset,
        found.max_offset,
        answer.body,
        found.suggest_which_broker_id,
    )
