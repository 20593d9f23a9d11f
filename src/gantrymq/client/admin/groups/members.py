"""Connected clients: members of groups, the queues that each reports, and producers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec

from gantrymq.base.errors import GantryError
from gantrymq.client.admin.tables import load_keyed, queue_table
from gantrymq.client.core.errors import ClientError
from gantrymq.client.core.instance import Instance
from gantrymq.model import RETRY_PREFIX, Queue
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.bodies import (
    ConsumerConnections,
    ProducerConnections,
    SubscriptionConflict,
)
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.headers.clients import GroupRequest, ProducerGroupRequest
from gantrymq.protocol.headers.relays import RunningInfoRequest

ANSWER_SECONDS_MAX: Final = 5.0
"""How long a member may take to tell about itself: a process that hangs must not hide the rest."""
ASKED_AT_ONCE_MAX: Final = 16

T = TypeVar("T")


class HeldQueue(msgspec.Struct, kw_only=True, rename="camel"):
    """A process queue as the member that holds it reports it (RocketMQ's ProcessQueueInfo)."""

    cached_msg_count: int = 0
    cached_msg_max_offset: int = 0
    cached_msg_min_offset: int = 0
    commit_offset: int = 0
    droped: bool = False
    last_consume_timestamp: int = 0
    last_pull_timestamp: int = 0


@dataclass(frozen=True)
class Member:
    """One running consumer of a group."""

    client_id: str
    answers: bool = True
    """False: it is connected, but does not tell about itself."""
    workers: int = 0
    """Handlers it runs at once; 0: it did not say."""
    ordered: bool = False
    started_ms: int = 0
    subscriptions: frozenset[tuple[str, str]] = frozenset()
    """Topic and expression of each, without retry topics."""
    queues: Mapping[Queue, HeldQueue] = field(default_factory=dict)


@dataclass(frozen=True)
class Members:
    """All connected members of a group."""

    members: tuple[Member, ...] = ()
    topics: tuple[str, ...] = ()
    """What they are subscribed to, all together."""
    broadcast: bool = False
    pops: bool = False
    """Whether they consume by POP: then no member holds a queue."""

    @property
    def differ(self) -> bool:
        """Whether members that tell about themselves have different subscriptions."""
        return len({each.subscriptions for each in self.members if each.answers}) > 1

    def holders(self, queue: Queue) -> list[Member]:
        return [
            member
            for member in self.members
            if queue in member.queues and not member.queues[queue].droped
        ]


async def members_of(instance: Instance, addresses: Iterable[str], group: str) -> Members:
    """Ask these brokers for the members of a group, and each member for its running info."""
    at: dict[str, str] = {}
    whole = ConsumerConnections()
    async for address, part in _connections(instance, addresses, group):
        for connection in part.connection_set:
            at.setdefault(connection.client_id, address)
        whole.message_model, whole.consume_type = part.message_model, part.consume_type
        whole.subscription_table |= part.subscription_table
    found = await together(_ask(instance, at[name], group, name) for name in sorted(at))
    return Members(
        members=tuple(found),
        topics=tuple(sorted(whole.subscription_table)),
        broadcast=whole.message_model == "BROADCASTING",
        pops=whole.consume_type == "CONSUME_POP",
    )


async def running_info(
    instance: Instance, addresses: Iterable[str], group: str, client_id: str, stacks: bool
) -> dict[str, Any]:
    """The running info of one member, from the broker that it is connected to."""
    async for address, part in _connections(instance, addresses, group):
        if any(member.client_id == client_id for member in part.connection_set):
            body = await _running_info(instance, address, group, client_id, stacks)
            return dict(fastjson.loads(body))
    raise ClientError(f"no member {client_id!r} of group {group!r} is connected")


async def _running_info(
    instance: Instance, address: str, group: str, client_id: str, stacks: bool
) -> bytes:
    header = RunningInfoRequest(consumer_group=group, client_id=client_id, jstack_enable=stacks)
    _, answer = await instance.call(
        address, calls.GET_CONSUMER_RUNNING_INFO, header, timeout=ANSWER_SECONDS_MAX
    )
    return answer.body


async def _ask(instance: Instance, address: str, group: str, client_id: str) -> Member:
    try:
        body = await _running_info(instance, address, group, client_id, stacks=False)
        queues = queue_table(body, HeldQueue, "mqTable")
        info = load_keyed(body)
        said = info.get("properties") or {}
    except GantryError:
        return Member(client_id, answers=False)
    return Member(
        client_id,
        workers=_number(said.get("PROP_THREADPOOL_CORE_SIZE")),
        ordered=said.get("PROP_CONSUMEORDERLY") == "true",
        started_ms=_number(said.get("PROP_CONSUMER_START_TIMESTAMP")),
        subscriptions=frozenset(_subscriptions(info.get("subscriptionSet"))),
        queues=queues,
    )


def _subscriptions(rows: object) -> Iterator[tuple[str, str]]:
    for row in rows if isinstance(rows, list) else ():
        topic = str(row.get("topic"))
        if not topic.startswith(RETRY_PREFIX):
            yield topic, str(row.get("subString"))


def _number(text: object) -> int:
    """A number of a member's running info; 0 for any other text, which foreign clients may send."""
    return int(text) if isinstance(text, str) and text.isdecimal() else 0


async def _connections(
    instance: Instance, addresses: Iterable[str], group: str
) -> AsyncIterator[tuple[str, ConsumerConnections]]:
    """What each broker knows of a group's members; brokers that have none are left out."""
    for address in addresses:
        _, answer = await instance.call(
            address,
            calls.GET_CONSUMER_CONNECTION_LIST,
            GroupRequest(consumer_group=group),
            expect=(ResponseCode.SUCCESS, ResponseCode.CONSUMER_NOT_ONLINE),
        )
        if answer.code == ResponseCode.SUCCESS:
            yield address, fastjson.load_as(answer.body, ConsumerConnections)


async def consumers(
    instance: Instance, addresses: Iterable[str], group: str
) -> ConsumerConnections:
    """The members of a group that are connected to these brokers, each once."""
    whole = ConsumerConnections()
    async for _, part in _connections(instance, addresses, group):
        known = {connection.client_id for connection in whole.connection_set}
        part.connection_set = whole.connection_set + [
            member for member in part.connection_set if member.client_id not in known
        ]
        whole = part
    return whole


async def subscription_conflicts(
    instance: Instance, addresses: Iterable[str], group: str
) -> list[SubscriptionConflict]:
    """The subscription conflicts that these brokers report, without repetitions."""
    found: dict[SubscriptionConflict, None] = {}
    async for _, part in _connections(instance, addresses, group):
        found |= dict.fromkeys(part.subscription_conflicts or ())
    return list(found)


async def producers(
    instance: Instance, addresses: Iterable[str], group: str
) -> ProducerConnections:
    """The producers of a group that are connected to these brokers."""
    whole = ProducerConnections()
    for address in addresses:
        _, answer = await instance.call(
            address,
            calls.GET_PRODUCER_CONNECTION_LIST,
            ProducerGroupRequest(producer_group=group),
            expect=(ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR),
        )
        if answer.code == ResponseCode.SUCCESS:
            part = fastjson.load_as(answer.body, ProducerConnections)
            whole.connection_set = [*whole.connection_set, *part.connection_set]
    return whole


async def together(works: Iterable[Awaitable[T]]) -> list[T]:
    """All results in order; at most ASKED_AT_ONCE_MAX run at once."""
    room = asyncio.Semaphore(ASKED_AT_ONCE_MAX)

    async def one(work: Awaitable[T]) -> T:
        async with room:
            return await work

    return await asyncio.gather(*(one(work) for work in works))
