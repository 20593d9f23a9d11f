"""What a member of a group says of itself: what it holds, how it is set, what its threads do."""

from collections.abc import Mapping
from typing import Any

from gantrymq.base.errors import ProtocolError
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, EndpointTable
from gantrymq.console.api.groups import NamedGroup, known_group
from gantrymq.protocol import fastjson

TABLE = EndpointTable("groups")


class WantedMember(NamedGroup, frozen=True, kw_only=True):
    """Which member to ask."""

    client_id: str
    stacks: bool = False
    """Also where its threads are; clients in Java say that."""


class HeldByMember(Answer, frozen=True, kw_only=True):
    """A queue that the member holds."""

    topic: str
    broker: str
    queue_id: int
    committed: int | None
    cached: int | None
    """Messages that it has fetched and not finished."""
    last_pull_ms: int | None
    last_consume_ms: int | None


class ConsumeRates(Answer, frozen=True, kw_only=True):
    """How the member gets on with one topic, as far as it says."""

    topic: str
    pull_per_second: float
    ok_per_second: float
    failed_per_second: float
    consume_ms: float
    """Milliseconds for a message."""
    failed_last_hour: int


class MemberInfo(Answer, frozen=True, kw_only=True):
    """What one member says of itself."""

    client_id: str
    properties: dict[str, str]
    subscriptions: dict[str, str]
    """Topic to expression."""
    queues: list[HeldByMember]
    rates: list[ConsumeRates]
    stacks: str | None
    """Its threads; null if it does not say."""


@TABLE.get("/clusters/{cluster}/groups/{group}/member")
async def show_member(ask: Ask, wanted: WantedMember) -> MemberInfo:
    """The running info of a connected member, with its stacks if asked for."""
    admin = await ask.admin(wanted.cluster)
    await known_group(ask, admin, wanted.group)
    info = await admin.running_info(wanted.group, wanted.client_id, stacks=wanted.stacks)
    return member_info(wanted.client_id, info)


def member_info(client_id: str, info: Mapping[str, Any]) -> MemberInfo:
    """RocketMQ's ConsumerRunningInfo in our words; what is missing or odd is left out. Pure."""
    properties = info.get("properties")
    stacks = info.get("jstack")
    return MemberInfo(
        client_id=client_id,
        properties={str(key): str(value) for key, value in sorted(_map(properties).items())},
        subscriptions={
            str(row.get("topic")): str(row.get("subString"))
            for row in _rows(info.get("subscriptionSet"))
        },
        queues=[
            _held(key, value)
            for name in ("mqTable", "mqPopTable")
            for key, value in _map(info.get(name)).items()
            if isinstance(value, Mapping)
        ],
        rates=[
            _rates(str(topic), row)
            for topic, row in sorted(_map(info.get("statusTable")).items())
            if isinstance(row, Mapping)
        ],
        stacks=stacks if isinstance(stacks, str) and stacks else None,
    )


def _held(key: object, row: Mapping[str, Any]) -> HeldByMember:
    queue = _queue_fields(key)
    return HeldByMember(
        topic=str(queue.get("topic", "")),
        broker=str(queue.get("brokerName", "")),
        queue_id=_whole(queue.get("queueId")) or 0,
        committed=_whole(row.get("commitOffset")),
        cached=_whole(row.get("cachedMsgCount", row.get("waitAckCount"))),
        last_pull_ms=_whole(row.get("lastPullTimestamp", row.get("lastPopTimestamp"))),
        last_consume_ms=_whole(row.get("lastConsumeTimestamp")),
    )


def _queue_fields(key: object) -> Mapping[str, Any]:
    """A queue as the key of a map: an object, or its JSON."""
    if isinstance(key, str):
        try:
            key = fastjson.loads(key)
        except ProtocolError:
            return {}
    return key if isinstance(key, Mapping) else {}


def _rates(topic: str, row: Mapping[str, Any]) -> ConsumeRates:
    return ConsumeRates(
        topic=topic,
        pull_per_second=_rate(row.get("pullTPS")),
        ok_per_second=_rate(row.get("consumeOKTPS")),
        failed_per_second=_rate(row.get("consumeFailedTPS")),
        consume_ms=_rate(row.get("consumeRT")),
        failed_last_hour=_whole(row.get("consumeFailedMsgs")) or 0,
    )


def _map(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _rows(value: object) -> list[Mapping[str, Any]]:
    rows = value if isinstance(value, list) else []
    return [row for row in rows if isinstance(row, Mapping)]


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _rate(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
