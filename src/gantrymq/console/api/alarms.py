"""The alarms of a cluster: what `gantry monitor` would tell."""

from gantrymq.client.admin.monitoring.monitor_round import OffsetMovedEvent
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, EndpointTable, OfCluster
from gantrymq.console.sampling.alarms import KeptAlarm

TABLE = EndpointTable("alarms")


class ShownAlarm(Answer, frozen=True, kw_only=True):
    """Something that is over its threshold, or wrong in itself."""

    kind: str
    """waiting, oldest, retries, dead, stuck, differing, deleted or unknown."""
    group: str | None
    text: str
    value: float | None
    limit: float | None
    since_ms: int
    until_ms: int | None
    """Null while it lasts."""


class AlarmLimits(Answer, frozen=True, kw_only=True):
    """More than these is an alarm."""

    waiting: int
    """Unread messages of a group."""
    oldest_seconds: float
    """The age of the oldest of them."""
    retries: int
    dead: int
    """Dead letters since the last look."""


class Alarms(Answer, frozen=True, kw_only=True):
    """What is wrong now, and what was."""

    at_ms: int | None
    """When all groups were looked at last; null before the first look."""
    groups: int
    """How many groups that were."""
    alarms: list[ShownAlarm]
    """The newest first."""
    deleted_unread: list[ShownAlarm]
    """Messages that were deleted before a group read them, the newest first."""
    ended: list[ShownAlarm]
    """Alarms that are over, the last one first."""
    limits: AlarmLimits
    trouble: str
    """Why nothing could be looked at; empty if it could."""


@TABLE.get("/clusters/{cluster}/alarms")
async def list_alarms(ask: Ask, wanted: OfCluster) -> Alarms:
    """The alarms of now, those that are over, and messages deleted before they were read."""
    watch = ask.parts.watch.of(wanted.cluster).alarms
    return Alarms(
        at_ms=watch.at_ms,
        groups=watch.groups,
        alarms=[_shown(each) for each in watch.alarms],
        deleted_unread=[_event(each) for each in reversed(watch.events)],
        ended=[_shown(each) for each in reversed(watch.ended)],
        limits=AlarmLimits(
            waiting=watch.limits.waiting,
            oldest_seconds=watch.limits.oldest_seconds,
            retries=watch.limits.retries,
            dead=watch.limits.dead,
        ),
        trouble=watch.trouble,
    )


def _shown(alarm: KeptAlarm) -> ShownAlarm:
    problem = alarm.problem
    return ShownAlarm(
        kind=problem.kind, group=problem.group or None, text=problem.text, value=problem.value,
        limit=problem.limit, since_ms=alarm.since_ms, until_ms=alarm.until_ms,
    )  # fmt: skip


def _event(event: OffsetMovedEvent) -> ShownAlarm:
    return _shown(KeptAlarm(event.problem, event.at_ms, event.at_ms))
