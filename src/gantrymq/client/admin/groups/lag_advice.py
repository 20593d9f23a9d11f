"""Advice against a backlog, from the measured lag. Pure."""

from gantrymq.base.plurals import counted
from gantrymq.client.admin.groups.lag import GroupLag, QueueLag, TopicLag

HOT_SHARE = 0.8
HOT_LAG_MIN = 100
"""A queue is hot that has most of a backlog worth speaking of."""


def advice(found: GroupLag) -> list[str]:
    """What to do, the most urgent first; empty without a backlog."""
    behind = [topic for topic in found.topics if topic.lag]
    if not behind:
        return []
    if not found.may_consume:
        return [
            f"{found.group} is not allowed to consume: gantry group set {found.group} --consume"
        ]
    said = [_stuck(row) for topic in behind for row in topic.queues if row.holders and row.trouble]
    members = len(found.members.members)
    for topic in behind:
        if not members:
            said.append(
                f"{topic.topic}: no member of {found.group} runs: start consumers, up to "
                f"{topic.queue_count} (one a queue)"
            )
        elif not topic.is_retry and not found.members.broadcast:
            said += _shares(found, topic, members)
    said += _workers(found)
    return said


def _stuck(row: QueueLag) -> str:
    return f"{row.queue} is held by {', '.join(row.holders)}, {row.trouble}: look at that process"


def _shares(found: GroupLag, topic: TopicLag, members: int) -> list[str]:
    """More consumers help while there are queues without one; then a topic with more queues."""
    queues = topic.queue_count
    hot = max(topic.queues, key=lambda row: row.lag)
    if queues > 1 and topic.lag >= HOT_LAG_MIN and hot.lag >= HOT_SHARE * topic.lag:
        return [
            f"{hot.queue} has {hot.lag} of {topic.lag} unread messages: more consumers do not "
            f"help; {_spread(found, topic)} spreads its keys"
        ]
    if found.members.pops:
        return [f"{topic.topic}: more consumers: {members} pop now"]
    if members < queues:
        return [
            f"{topic.topic}: more consumers: {members} for {counted(queues, 'queue')}, up to "
            f"{queues - members} more would help"
        ]
    return [
        f"{topic.topic}: spread: {counted(queues, 'queue')}, each with a consumer already; "
        f"{_spread(found, topic)}"
    ]


def _spread(found: GroupLag, topic: TopicLag) -> str:
    a_broker = 1 + max(row.queue.queue_id for row in topic.queues)
    return (
        f"gantry topic spread {topic.topic} --to {topic.topic}-wide --queues {2 * a_broker} "
        f"--group {found.group}"
    )


def _workers(found: GroupLag) -> list[str]:
    """Messages wait inside a member when it has fetched more than its workers can do at once."""
    said = []
    for member in found.members.members:
        in_hand = sum(held.cached_msg_count for held in member.queues.values())
        if not member.ordered and 0 < member.workers < in_hand:
            said.append(
                f"more workers: {member.client_id} has {counted(in_hand, 'message')} in hand and "
                f"{counted(member.workers, 'worker')} (consume_thread_max)"
            )
    return said
