"""Assignments that the broker computes for a topic. Pure."""

from collections.abc import Sequence

from gantrymq.model import Queue
from gantrymq.protocol.assignment import Strategy, averagely, by_circle, in_java_order

STRATEGIES: dict[str, Strategy] = {"AVG": averagely, "AVG_BY_CIRCLE": by_circle}
"""The strategies that a broker offers, by their names on the wire."""
ANY_QUEUE = -1


def assign_for_pull(
    strategy: Strategy, me: str, queues: Sequence[Queue], clients: Sequence[str]
) -> list[Queue]:
    """The assignment of a pulling group: one member for each queue."""
    return strategy(me, sorted(queues), in_java_order(clients))


def assign_for_pop(
    strategy: Strategy, me: str, queues: Sequence[Queue], clients: Sequence[str], with_next: int
) -> list[Queue]:
    """The queues of a popping member: all, or its own and those of the next `with_next` members."""
    ordered, members = sorted(queues), in_java_order(clients)
    if with_next <= 0 or with_next >= len(members) - 1:
        return list(dict.fromkeys(Queue(q.topic, q.broker_name, ANY_QUEUE) for q in ordered))
    if me not in members or not ordered:
        return []
    index = members.index(me)
    if len(members) > len(ordered):
        return [ordered[index % len(ordered)]]
    near = [members[(index + step) % len(members)] for step in range(with_next + 1)]
    mine = (queue for member in near for queue in strategy(member, ordered, members))
    return list(dict.fromkeys(mine))
