"""Assignment: RocketMQ's own vectors, and the laws that make a group work."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.model import Queue
from gantrymq.protocol.assignment import (
    Strategy,
    averagely,
    by_circle,
    by_config,
    by_machine_room,
    consistent_hash,
    in_java_order,
    machine_room_nearby,
    ring_position,
)


def queues_of(count: int, broker: str = "b") -> list[Queue]:
    return [Queue("T", broker, queue_id) for queue_id in range(count)]


def ids(queues: list[Queue]) -> list[int]:
    return [queue.queue_id for queue in queues]


def first_letter(name: str) -> str:
    return name[0]


SHARED = {
    "averagely": averagely,
    "by_circle": by_circle,
    "consistent_hash": consistent_hash(),
    "nearby": machine_room_nearby(
        averagely, lambda queue: first_letter(queue.broker_name), first_letter
    ),
}


@pytest.mark.parametrize("strategy", SHARED.values(), ids=SHARED)
@given(
    brokers=st.lists(st.sampled_from(["a1", "a2", "b1", "c1"]), unique=True, max_size=4),
    per_broker=st.integers(0, 9),
    clients=st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=12),
)
def test_together_the_members_cover_each_queue_exactly_once(
    strategy: Strategy, brokers: list[str], per_broker: int, clients: list[str]
) -> None:
    """
    Every strategy assigns each queue to exactly one member.
    """
    queues = sorted(queue for broker in brokers for queue in queues_of(per_broker, broker))
    members = in_java_order(clients)

    dealt = [queue for member in members for queue in strategy(member, queues, members)]

    assert queues == sorted(dealt)


@given(queue_count=st.integers(0, 64), member_count=st.integers(1, 40))
def test_averagely_gives_nobody_two_more_than_another(queue_count: int, member_count: int) -> None:
    """
    With `averagely` the shares of two members differ by one queue at most.
    """
    members = in_java_order(f"c{index}" for index in range(member_count))

    shares = [len(averagely(me, queues_of(queue_count), members)) for me in members]

    assert max(shares) - min(shares) <= 1
    assert shares == sorted(shares, reverse=True)


@given(member_count=st.integers(2, 12), leaver=st.integers(0, 11))
def test_on_a_ring_a_leaving_member_moves_only_its_own_queues(
    member_count: int, leaver: int
) -> None:
    """
    With `consistent_hash` only the queues of a leaving member move.
    """
    members = in_java_order(f"c{index}" for index in range(member_count))
    rest = [member for member in members if member != members[leaver % member_count]]
    ring, queues = consistent_hash(), queues_of(32)

    for member in rest:
        assert set(ring(member, queues, members)) <= set(ring(member, queues, rest))


def test_averagely_hands_out_pages() -> None:
    """
    `averagely` assigns runs of neighbouring queues.
    """
    members = ["c1", "c2", "c3"]

    assert [ids(averagely(me, queues_of(8), members)) for me in members] == [
        [0, 1, 2], [3, 4, 5], [6, 7],
    ]  # fmt: skip


def test_by_circle_deals_in_turn() -> None:
    """
    `by_circle` assigns the queues in turn.
    """
    members = ["c1", "c2", "c3"]

    assert [ids(by_circle(me, queues_of(8), members)) for me in members] == [
        [0, 3, 6], [1, 4, 7], [2, 5],
    ]  # fmt: skip


def test_more_members_than_queues_leaves_the_last_ones_idle() -> None:
    """
    With more members than queues the last members get none.
    """
    members = ["c1", "c2", "c3"]

    assert [ids(averagely(me, queues_of(2), members)) for me in members] == [[0], [1], []]


@pytest.mark.parametrize("strategy", SHARED.values(), ids=SHARED)
def test_a_stranger_gets_nothing(strategy: Strategy) -> None:
    """
    A client that is no member gets no queue.
    """
    assert strategy("stranger", queues_of(4), ["c1"]) == []


def test_a_configured_list_is_taken_as_it_is() -> None:
    """
    `by_config` returns the configured queues that the topic has.
    """
    mine = queues_of(2)

    assert by_config(mine)("anybody", queues_of(8), []) == mine
    assert by_config(mine)("anybody", [Queue("other", "b", 0)], []) == []


def test_machine_room_reads_only_the_rooms_it_was_given() -> None:
    """
    `by_machine_room` assigns only queues of brokers in the given rooms.
    """
    near, far = queues_of(5, "room1@a"), queues_of(4, "room2@b")
    members, strategy = ["c1", "c2"], by_machine_room(["room1"])

    dealt = [strategy(me, sorted(near + far), members) for me in members]

    assert [ids(mine) for mine in dealt] == [[0, 1, 4], [2, 3]]
    assert {queue.broker_name for mine in dealt for queue in mine} == {"room1@a"}
    assert strategy("c1", queues_of(3, "plain"), members) == []


def test_nearby_prefers_the_own_room_and_shares_deserted_ones() -> None:
    """
    `machine_room_nearby` prefers members of the same room, and shares rooms without members
    among all.
    """
    queues = sorted(queues_of(4, "a") + queues_of(2, "b") + queues_of(2, "z"))
    nearby = machine_room_nearby(averagely, lambda queue: queue.broker_name, first_letter)
    members = ["a1", "a2", "b1"]

    dealt = {me: [str(queue) for queue in nearby(me, queues, members)] for me in members}

    assert dealt == {
        "a1": ["T@a:0", "T@a:1", "T@z:0"],
        "a2": ["T@a:2", "T@a:3", "T@z:1"],
        "b1": ["T@b:0", "T@b:1"],
    }


def test_the_ring_uses_rocketmqs_positions() -> None:
    """
    The positions on the hash ring are RocketMQ's.
    """
    assert ring_position("c1-0") == 3886541579
    assert ring_position("MessageQueue [topic=T, brokerName=b, queueId=0]") == 562732085


def test_client_ids_sort_as_java_sorts_them() -> None:
    """
    Client ids are sorted by UTF-16 code units, as Java does.
    """
    beyond_the_basic_plane, private_use = "\U0001f600", "\ue000"

    assert in_java_order([private_use, beyond_the_basic_plane, "a", "a"]) == [
        "a", beyond_the_basic_plane, private_use,
    ]  # fmt: skip
