"""Open checkpoints: what is lent, in which order it is due, what may be forgotten."""

from hypothesis import given
from hypothesis import strategies as st

from gantrymq.broker.pop.assignment import assign_for_pop
from gantrymq.broker.pop.checkpoints import OpenCheckpoints, PopCheckpoint, read_checkpoint
from gantrymq.broker.pop.reviver import runs
from gantrymq.model import Queue
from gantrymq.protocol import fastjson
from gantrymq.protocol.assignment import averagely
from gantrymq.protocol.pop import CheckpointBody


def lent(start: int, offsets: list[int], pop_ms: int = 100, place: int = 0) -> PopCheckpoint:
    made = PopCheckpoint("t", "g", 0, start, offsets, pop_ms, 50, "b", 0)
    made.revive_offset = place
    return made


def test_a_checkpoint_is_open_until_all_its_messages_are_settled() -> None:
    """
    In any order, some of them twice; others' offsets settle nothing.
    """
    table, one = OpenCheckpoints(1), lent(5, [5, 7, 9])
    table.add(one)

    table.settle(one, one.bits([7, 6]))
    assert [5, 9] == one.open_offsets()
    table.settle(one, one.bits([7, 5]))
    assert table.is_open(one)
    table.settle(one, one.bits([9]))

    assert not table.is_open(one)
    assert 0 == len(table)
    assert table.first(0) is None


def test_checkpoints_come_due_in_order_and_once() -> None:
    """
    Settled ones are passed over; a taken one is in line again only when told.
    """
    table = OpenCheckpoints(1)
    early, late, settled = lent(0, [0], 10, 0), lent(1, [1], 30, 1), lent(2, [2], 5, 2)
    for one in (late, early, settled):
        table.add(one)
    table.settle(settled, 1)

    assert 60 == table.next_due_ms
    assert [] == table.take_due(59, 9)
    assert [early] == table.take_due(79, 9)
    assert [late] == table.take_due(80, 9)
    assert [] == table.take_due(1_000, 9)
    table.watch(early, 500)
    table.watch(early, 400)
    assert [early] == table.take_due(1_000, 9)


def test_long_loans_that_were_settled_soon_are_not_kept() -> None:
    """
    Otherwise a day's worth of them would wait in line for their time.
    """
    table = OpenCheckpoints(1)
    for number in range(20_000):
        one = lent(number, [number], place=number)
        table.add(one)
        table.settle(one, 1)

    assert 0 == len(table)
    assert len(table._by_time) <= 2_000


def test_the_same_checkpoint_further_on_in_the_log_replaces_the_former() -> None:
    """
    What was settled before stays settled, whichever record says so.
    """
    table, former = OpenCheckpoints(1), lent(0, [0, 1, 2], place=3)
    table.add(former)
    table.settle(former, 0b001)
    again = lent(0, [0, 1, 2], place=90)
    again.acked = 0b010
    table.add(again)

    assert [2] == again.open_offsets()
    assert again is table.get(again.key)
    first = table.first(0)
    assert first is not None
    assert 90 == first.revive_offset


@given(st.lists(st.integers(0, 300), min_size=1, max_size=32, unique=True), st.data())
def test_a_checkpoint_reads_as_it_is_written(distances: list[int], data: st.DataObject) -> None:
    """
    Through JSON, with what was settled.
    """
    offsets = sorted(1_000 + distance for distance in distances)
    one = lent(1_000, offsets)
    one.acked = data.draw(st.integers(0, (1 << len(offsets)) - 1))
    body = fastjson.load_as(fastjson.dumps(one.body()), CheckpointBody)

    copy = read_checkpoint(body, 4, 77)

    assert (one.key, one.open_offsets(), one.due_ms) == (
        copy.key, copy.open_offsets(), copy.due_ms,
    )  # fmt: skip
    assert (4, 77) == (copy.revive_queue, copy.revive_offset)


def test_old_checkpoints_count_instead_of_naming_distances() -> None:
    """
    As RocketMQ 5.0 wrote them.
    """
    body = CheckpointBody(so=10, n=3, t="t", c="g", pt=1, it=2, bm=0b101)

    assert [11] == read_checkpoint(body, 0, 0).open_offsets()


def test_neighbouring_offsets_are_read_together() -> None:
    """
    A pull a run, not a pull a message.
    """
    assert [(3, 3), (8, 1), (10, 2)] == runs([3, 4, 5, 8, 10, 11])
    assert [] == runs([])


def test_popping_members_share_with_their_neighbours() -> None:
    """
    Everything for everybody unless a number says otherwise; nobody is left without a queue.
    """
    queues = [Queue("t", "b", number) for number in range(4)]
    clients = ["a", "b", "c", "d"]

    def mine(me: str, number: int, members: list[str] = clients) -> list[int]:
        found = assign_for_pop(averagely, me, queues, members, number)
        return sorted(queue.queue_id for queue in found)

    assert [-1] == mine("a", 0) == mine("a", 3) == mine("stranger", -1)
    assert [0, 1] == mine("a", 1)
    assert [0, 3] == mine("d", 1)
    assert [0, 1, 2] == mine("a", 2)
    assert [] == mine("stranger", 1)
    crowd = [f"c{number}" for number in range(6)]
    assert [0] == mine("c4", 1, crowd)
