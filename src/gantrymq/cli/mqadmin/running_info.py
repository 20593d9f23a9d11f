"""What a consumer says of itself, as RocketMQ's tools print it. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

STUCK_MS = 60_000
"""A queue with messages on which nothing was finished for so long may be blocked."""


def text_of(info: Mapping[str, Any]) -> list[str]:
    """All parts of a ConsumerRunningInfo, a heading each."""
    return [
        "#Consumer Properties#",
        *(f"{key:<40}: {value}" for key, value in sorted((info.get("properties") or {}).items())),
        "", "", "#Consumer Subscription#",
        *_subscriptions(info.get("subscriptionSet") or []),
        "", "", "#Consumer Offset#",
        f"{'#Topic':<64}  {'#Broker Name':<32}  {'#QID':<4}  #Consumer Offset",
        *(f"{place}  {row.get('commitOffset', 0)}" for place, row in _queues(info, "mqTable")),
        "", "", "#Consumer MQ Detail#",
        f"{'#Topic':<64}  {'#Broker Name':<32}  {'#QID':<4}  #ProcessQueueInfo",
        *(f"{place}  {_inner(row)}" for place, row in _queues(info, "mqTable")),
        "", "", "#Consumer Pop Detail#",
        f"{'#Topic':<64}  {'#Broker Name':<32}  {'#QID':<4}  #ProcessQueueInfo",
        *(f"{place}  {_inner(row)}" for place, row in _queues(info, "mqPopTable")),
        "", "", "#Consumer RT&TPS#",
        *_rates(info.get("statusTable") or {}),
        *_stacks(info.get("jstack")),
    ]  # fmt: skip


def _subscriptions(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"{at:03d} Topic: {row.get('topic', ''):<40} "
        f"ClassFilter: {str(row.get('classFilterMode', False)).lower():<8} "
        f"SubExpression: {row.get('subString', '')}"
        for at, row in enumerate(sorted(rows, key=lambda each: str(each.get("topic"))), 1)
    ]


def _queues(info: Mapping[str, Any], table: str) -> list[tuple[str, Mapping[str, Any]]]:
    rows = [(dict(key), row) for key, row in (info.get(table) or {}).items()]
    rows.sort(key=lambda pair: (pair[0]["topic"], pair[0]["brokerName"], int(pair[0]["queueId"])))
    return [
        (f"{queue['topic']:<64}  {queue['brokerName']:<32}  {queue['queueId']:<4}", row)
        for queue, row in rows
    ]


def _inner(row: Mapping[str, Any]) -> str:
    return "ProcessQueueInfo [" + ", ".join(f"{key}={value}" for key, value in row.items()) + "]"


RATES = ("pullRT", "pullTPS", "consumeRT", "consumeOKTPS", "consumeFailedTPS")


def _rates(table: Mapping[str, Mapping[str, Any]]) -> list[str]:
    head = (
        f"{'#Topic':<64}  {'#Pull RT':>14} {'#Pull TPS':>14} {'#Consume RT':>14} "
        f"{'#ConsumeOK TPS':>14} {'#ConsumeFailed TPS':>18} {'#ConsumeFailedMsgsInHour':>25}"
    )
    widths = (14, 14, 14, 14, 18)
    rows = [
        f"{topic:<64}  "
        + " ".join(
            f"{float(row.get(name, 0)):>{width}.2f}"
            for name, width in zip(RATES, widths, strict=True)
        )
        + f" {row.get('consumeFailedMsgs', 0):>25}"
        for topic, row in sorted(table.items())
    ]
    return [head, *rows]


def _stacks(stacks: str | None) -> list[str]:
    return ["", "", "#Consumer jstack#", *stacks.splitlines()] if stacks else []


def same_subscriptions(infos: Sequence[Mapping[str, Any]]) -> bool:
    """Whether all members want the same."""
    wanted = {
        tuple(
            sorted(
                (str(row.get("topic")), str(row.get("subString")))
                for row in info.get("subscriptionSet") or []
            )
        )
        for info in infos
    }
    return len(wanted) <= 1


def blocked_queues(client_id: str, info: Mapping[str, Any], now_ms: int) -> list[str]:
    """A sentence for each queue on which a member does not get on."""
    ordered = (info.get("properties") or {}).get("PROP_CONSUMEORDERLY") == "true"
    found = []
    for place, row in _queues(info, "mqTable"):
        where = f"{client_id} {' '.join(place.split())}"
        if ordered and not row.get("locked"):
            since = now_ms - int(row.get("lastLockTimestamp", 0))
            found.append(f"{where} can't lock for a while, {since}ms")
        idle = now_ms - int(row.get("lastConsumeTimestamp", 0))
        if not ordered and row.get("cachedMsgCount") and idle > STUCK_MS:
            found.append(f"{where} can't consume for a while, maybe blocked, {idle}ms")
    return found
