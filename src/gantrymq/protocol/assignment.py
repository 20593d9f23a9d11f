"""The assignment of queues to members: six strategies over the same sorted inputs.

Every member of a group computes alone. All of them see the same queues and the same client ids in
the same order, so together their results cover each queue exactly once.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from gantrymq.model import Queue

Strategy = Callable[[str, Sequence[Queue], Sequence[str]], list[Queue]]
"""(my client id, sorted queues, sorted client ids) to my queues. Unknown ids get nothing."""

VIRTUAL_NODES = 10
ROOM_MARK = "@"


def in_java_order(clients: Iterable[str]) -> list[str]:
    """Client ids without doubles, sorted as Java compares strings: by UTF-16 unit."""
    return sorted(dict.fromkeys(clients), key=lambda client: client.encode("utf-16-be"))


def averagely(me: str, queues: Sequence[Queue], clients: Sequence[str]) -> list[Queue]:
    """Each member gets neighbouring queues; the first members get one more (AVG)."""
    if me not in clients:
        return []
    size, extra = divmod(len(queues), len(clients))
    index = clients.index(me)
    start = index * size + min(index, extra)
    return list(queues[start : start + size + (index < extra)])


def by_circle(me: str, queues: Sequence[Queue], clients: Sequence[str]) -> list[Queue]:
    """Members get queues one by one in turn (AVG_BY_CIRCLE)."""
    return list(queues[clients.index(me) :: len(clients)]) if me in clients else []


def by_config(mine: Iterable[Queue]) -> Strategy:
    """A fixed list of queues, independent of the other members (CONFIG)."""
    fixed = list(mine)

    def strategy(me: str, queues: Sequence[Queue], clients: Sequence[str]) -> list[Queue]:
        topics = dict.fromkeys(queue.topic for queue in queues)
        return [queue for queue in fixed if queue.topic in topics]

    return strategy


def by_machine_room(rooms: Iterable[str]) -> Strategy:
    """Only queues of brokers named `room@broker` with one of these rooms (MACHINE_ROOM)."""
    wanted = frozenset(rooms)

    def strategy(me: str, queues: Sequence[Queue], clients: Sequence[str]) -> list[Queue]:
        if me not in clients:
            return []
        near = [queue for queue in queues if _room_of(queue) in wanted]
        size, extra = divmod(len(near), len(clients))
        index = clients.index(me)
        mine = near[index * size : (index + 1) * size]
        if index < extra:
            mine.append(near[index + size * len(clients)])
        return mine

    return strategy


def _room_of(queue: Queue) -> str | None:
    room, mark, broker = queue.broker_name.partition(ROOM_MARK)
    return room if mark and ROOM_MARK not in broker else None


def machine_room_nearby(
    inner: Strategy, room_of_queue: Callable[[Queue], str], room_of_client: Callable[[str], str]
) -> Strategy:
    """Members share the queues of their room; all members share those of empty rooms."""

    def strategy(me: str, queues: Sequence[Queue], clients: Sequence[str]) -> list[Queue]:
        if me not in clients:
            return []
        rooms = {client: room_of_client(client) for client in clients}
        by_room: dict[str, list[Queue]] = {}
        for queue in queues:
            by_room.setdefault(room_of_queue(queue), []).append(queue)
        neighbours = [client for client in clients if rooms[client] == rooms[me]]
        mine = inner(me, by_room.pop(rooms[me], []), neighbours)
        peopled = frozenset(rooms.values())
        for room in sorted(by_room):
            if room not in peopled:
                mine += inner(me, by_room[room], clients)
        return mine

    return strategy


def consistent_hash(virtual_nodes: int = VIRTUAL_NODES) -> Strategy:
    """A ring of virtual nodes; few queues move when members join or leave (CONSISTENT_HASH)."""

    def strategy(me: str, queues: Sequence[Queue], clients: Sequence[str]) -> list[Queue]:
        ring = {
            ring_position(f"{client}-{node}"): client
            for client in clients
            for node in range(virtual_nodes)
        }
        places = sorted(ring)
        if me not in clients or not places:
            return []

        def owner(queue: Queue) -> str:
            at = bisect_left(places, ring_position(_java_name(queue)))
            return ring[places[at % len(places)]]

        return [queue for queue in queues if owner(queue) == me]

    return strategy


def ring_position(key: str) -> int:
    """The first four bytes of the key's MD5 as an unsigned number."""
    digest = hashlib.md5(key.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big")


def _java_name(queue: Queue) -> str:
    """How Java prints a queue; the ring's keys are made of it."""
    return (
        f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, "
        f"queueId={queue.queue_id}]"
    )
