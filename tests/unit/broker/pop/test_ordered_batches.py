"""Ordered batches: when a queue is closed, what opens it, what is kept in its file."""

from gantrymq.base.offload import InlineOffload
from gantrymq.broker.pop.order import OrderTable
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.loop import simulate

PLACE = ("g", "t", 0)


def table(disk: MemoryDisk | None = None) -> OrderTable:
    return OrderTable(disk or MemoryDisk(), InlineOffload(), "/config")


def test_a_queue_is_closed_until_its_batch_is_settled() -> None:
    """
    Or until the last of its open messages is visible again.
    """
    order = table()
    order.popped(*PLACE, 4, [4, 6], 100, 50, "a")

    assert 150 == order.closed_until_ms(*PLACE, 4, "b")
    assert 0 == order.closed_until_ms(*PLACE, 4, "a")
    assert 4 == order.ack(*PLACE, 4, 6, 100)
    assert order.show_again_at(*PLACE, 4, 4, 100, 120)
    assert 120 == order.closed_until_ms(*PLACE, 4, "b")
    assert 7 == order.ack(*PLACE, 4, 4, 100)
    assert 0 == order.closed_until_ms(*PLACE, 7, "b")


def test_an_acknowledgement_of_another_delivery_counts_nothing() -> None:
    """
    Another time: that delivery is over. An offset that was not in it: it never was.
    """
    order = table()
    order.popped(*PLACE, 0, [0, 1], 100, 50, None)

    assert order.ack(*PLACE, 0, 0, 99) is None
    assert -1 == order.ack(*PLACE, 0, 5, 100)
    assert order.ack("other", "t", 0, 0, 0, 100) is None
    assert not order.show_again_at(*PLACE, 0, 0, 99, 500)


def test_messages_that_come_again_are_counted() -> None:
    """
    A repeated attempt is the same delivery; another one counts up.
    """
    order = table()

    assert {} == order.popped(*PLACE, 0, [0, 1], 100, 50, "a")
    assert {} == order.popped(*PLACE, 0, [0, 1], 110, 50, "a")
    assert {0: 1, 1: 1} == order.popped(*PLACE, 0, [0, 1, 2], 200, 50, "b")
    assert {0: 2, 1: 2, 2: 1} == order.popped(*PLACE, 0, [0, 1, 2], 300, 50, "c")


def test_progress_that_somebody_moved_opens_the_queue() -> None:
    """
    A reset is not held up by what was out before it.
    """
    order = table()
    order.popped(*PLACE, 4, [4, 5], 100, 1_000, "a")

    assert 0 == order.closed_until_ms(*PLACE, 0, "b")
    assert order.ack(*PLACE, 0, 4, 100) is None


def test_the_file_has_rocketmqs_shape_and_reads_back() -> None:
    """
    consumerOrderInfo.json; what nobody used for a day is left out.
    """
    disk = MemoryDisk()

    async def work() -> tuple[int, int, bytes]:
        order = table(disk)
        order.popped(*PLACE, 4, [4, 6], 100, 50, "a")
        order.ack(*PLACE, 4, 6, 100)
        await order.save(200)
        file = disk.open_read("/config/consumerOrderInfo.json")
        text = file.pread(file.size(), 0)
        kept = table(disk).closed_until_ms(*PLACE, 4, "b")
        order.popped("h", "t", 0, 0, [0], 200 + 86_400_000, 50, "a")
        await order.save(200 + 86_400_000)
        return kept, table(disk).closed_until_ms(*PLACE, 4, "b"), text

    kept, forgotten, text = simulate(work)

    assert (150, 0) == (kept, forgotten)
    assert b'"table"' in text
    assert b'"t@g"' in text
    assert b'"cm":2' in text
    assert b'"o":[4,2]' in text
    assert b'"popTime":100' in text
