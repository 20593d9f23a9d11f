"""Checks of groups: their members, queues and progress. Pure."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from gantrymq.base.plurals import counted
from gantrymq.client.admin.doctor.findings import DoctorFinding, Severity
from gantrymq.client.admin.doctor.server_checks import some
from gantrymq.client.admin.doctor.snapshot import ClusterSnapshot, GroupView, behind
from gantrymq.client.admin.groups.lag import QueueLag, with_holders
from gantrymq.client.admin.groups.lag_advice import HOT_LAG_MIN, HOT_SHARE
from gantrymq.model import RETRY_PREFIX, Queue, is_system_topic
from gantrymq.protocol.bodies import OffsetWrapper
from gantrymq.protocol.versions import version_name

OLDEST_VERSION: Final = 213
"""V4_0_0: clients of 3.x miss codes that brokers send today; all of 4.x and 5.x mix freely."""
RETENTION_SHARE: Final = 0.75
"""A backlog that is older than this share of fileReservedTime is in danger."""
HOUR_MS: Final = 3_600_000
FILE_RESERVED_HOURS: Final = 72


def subscriptions(found: ClusterSnapshot) -> Iterator[DoctorFinding]:
    """Groups whose members want different things: each gets a part only, and the rest is lost."""
    for group in found.groups.values():
        told = ""
        if group.conflicts:
            one = group.conflicts[0]
            told = (
                f": {one.older_client_id} wants {one.older_expression!r} of {one.topic}, "
                f"{one.newer_client_id} wants {one.newer_expression!r}"
            )
        elif group.members is None or not group.members.differ:
            continue
        yield DoctorFinding(
            "subscriptions",
            Severity.ERROR,
            group.name,
            f"its members have different subscriptions{told}; messages are lost",
            "strictSubscriptions",
            f"gantry group members {group.name}; give all members the same subscriptions, or "
            "each kind a group of its own",
        )


def stuck_queues(found: ClusterSnapshot) -> Iterator[DoctorFinding]:
    """Queues with unread messages that nobody reads, or whose holder does not get on."""
    for group in found.groups.values():
        if not group.lag:
            continue
        if not group.may_consume:
            text = f"is not allowed to consume, and has {_unread(group)}"
            mend = f"gantry group set {group.name} --consume"
            yield DoctorFinding(
                "stuck-queues", Severity.WARNING, group.name, text, "consumeEnable", mend
            )
        elif not group.clients:
            text = f"no member runs, and there {_are(group.lag)} {_unread(group)}"
            mend = (
                f"start its consumers; if the group is not needed: gantry group delete {group.name}"
            )
            yield DoctorFinding("stuck-queues", Severity.WARNING, group.name, text, "", mend)
        elif group.members is not None and not group.broadcast:
            yield from _held_up(found, group)


def _held_up(found: ClusterSnapshot, group: GroupView) -> Iterator[DoctorFinding]:
    assert group.members is not None
    by_trouble: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for queue, row in _rows(group):
        if behind(row):
            lag = QueueLag(
                queue, row.broker_offset, row.consumer_offset, oldest_ms=row.last_timestamp or None
            )
            held = with_holders(lag, group.members, found.now_ms)
            if held.trouble:
                by_trouble[held.trouble, held.holders].append(str(queue))
    for (trouble, holders), queues in by_trouble.items():
        yield DoctorFinding(
            "stuck-queues",
            Severity.ERROR if holders else Severity.WARNING,
            group.name,
            f"{some(queues)}: {trouble}" + (f" (held by {', '.join(holders)})" if holders else ""),
            "consumeTimeout" if holders else "",
            f"mqadmin consumerStatus -g {group.name} -i {holders[0]} -s"
            if holders
            else f"gantry lag {group.name}",
        )


def more_members_than_queues(found: ClusterSnapshot) -> Iterator[DoctorFinding]:
    """Members that get no queue, because each queue has one reader."""
    for group in found.groups.values():
        if group.broadcast or group.pops or not group.clients:
            continue
        counts = {
            topic: found.queues_of(topic)
            for topic in group.topics
            if not topic.startswith(RETRY_PREFIX)
        }
        known = {topic: count for topic, count in counts.items() if count}
        if not known:
            continue
        topic, queues = max(known.items(), key=lambda pair: pair[1])
        idle = len(group.clients) - queues
        if idle > 0:
            yield DoctorFinding(
                "more-members-than-queues",
                Severity.WARNING,
                group.name,
                f"{counted(len(group.clients), 'member')} for {counted(queues, 'queue')} of "
                f"{topic}: {counted(idle, 'member')} {'has' if idle == 1 else 'have'} nothing to "
                "read",
                "readQueueNums, writeQueueNums",
                f"gantry topic update {topic} --queues {len(group.clients)} (on all brokers "
                "together), or stop the members that are idle",
            )


def retention(found: ClusterSnapshot) -> Iterator[DoctorFinding]:
    """Backlogs that are deleted before they are read, or soon will be."""
    hours = {
        broker.name: broker.number("fileReservedTime", FILE_RESERVED_HOURS)
        for broker in found.masters()
    }
    places = {broker.name: broker.address for broker in found.masters()}
    for group in found.groups.values():
        worst: dict[str, int] = {}
        for queue, row in _rows(group):
            gone = found.first_offsets.get(queue, 0) - row.consumer_offset
            if gone > 0 and row.consumer_offset > 0 and behind(row):
                yield DoctorFinding(
                    "retention",
                    Severity.ERROR,
                    f"{group.name} in {queue}",
                    f"{counted(gone, 'message')} {'was' if gone == 1 else 'were'} deleted before "
                    "the group read them",
                    "fileReservedTime",
                    _longer(places.get(queue.broker_name, "BROKER")),
                )
            elif behind(row) and row.last_timestamp > 0:
                age = found.now_ms - row.last_timestamp
                worst[queue.broker_name] = max(age, worst.get(queue.broker_name, 0))
        for name, age in worst.items():
            kept = hours.get(name, FILE_RESERVED_HOURS) * HOUR_MS
            if kept and age > RETENTION_SHARE * kept:
                yield DoctorFinding(
                    "retention",
                    Severity.WARNING,
                    f"{group.name} on {name}",
                    f"its progress is {timedelta(seconds=age // 1000)} old, and messages are kept "
                    f"for {kept / HOUR_MS:g} h: they are deleted before the group reads them",
                    "fileReservedTime",
                    _longer(places.get(name, "BROKER")),
                )


def _longer(address: str) -> str:
    return (
        f"mqadmin updateBrokerConfig -b {address} -k fileReservedTime -v HOURS, or keep the "
        "messages elsewhere: gantry pipeline archive"
    )


def unbalanced_queues(found: ClusterSnapshot) -> Iterator[DoctorFinding]:
    """Topics most of whose unread messages are in one queue: more consumers do not help."""
    for group in found.groups.values():
        by_topic: dict[str, list[tuple[int, Queue]]] = defaultdict(list)
        for queue, row in _rows(group):
            by_topic[queue.topic].append((behind(row), queue))
        for topic, rows in by_topic.items():
            lag, (worst, queue) = sum(row[0] for row in rows), max(rows)
            if len(rows) < 2 or lag < HOT_LAG_MIN or worst < HOT_SHARE * lag:
                continue
            width = 2 * (1 + max(each.queue_id for _, each in rows))
            yield DoctorFinding(
                "unbalanced-queues",
                Severity.WARNING,
                f"{group.name} in {topic}",
                f"{queue} has {worst} of {lag} unread messages: more consumers do not help",
                "",
                f"gantry topic spread {topic} --to {topic}-wide --queues {width} --group "
                f"{group.name}, or send with keys that differ more",
            )


def old_clients(found: ClusterSnapshot) -> Iterator[DoctorFinding]:
    """Clients that are older than RocketMQ 4.0."""
    seen = set()
    members = [(f"group {g.name}", client) for g in found.groups.values() for client in g.clients]
    members += [("producers", each) for broker in found.masters() for each in broker.producers]
    for where, client in members:
        if client.version >= OLDEST_VERSION or client.client_id in seen:
            continue
        seen.add(client.client_id)
        yield DoctorFinding(
            "old-clients",
            Severity.WARNING,
            f"{client.client_id} ({where})",
            f"is {version_name(client.version)} in {client.language}: clients before V4_0_0 miss "
            "what brokers ask of them",
            "",
            "give that program a client of RocketMQ 4 or 5, or gantrymq",
        )


def not_asked(found: ClusterSnapshot) -> Iterator[DoctorFinding]:
    """What the snapshot leaves out."""
    for text in found.left_out:
        yield DoctorFinding("not-asked", Severity.NOTE, "the cluster", text)


def _rows(group: GroupView) -> Iterator[tuple[Queue, OffsetWrapper]]:
    return ((q, row) for q, row in sorted(group.progress.items()) if not is_system_topic(q.topic))


def _unread(group: GroupView) -> str:
    return counted(group.lag, "unread message")


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
