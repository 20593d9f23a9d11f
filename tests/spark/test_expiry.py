"""Messages that expired before they were read."""

from collections.abc import Iterator

import pytest
from sparkkit import BROKER

from gantrymq import Message, Producer, ProducerOptions, Queue
from gantrymq.model.offset_ranges import OffsetRange
from gantrymq.spark.records.fetch import DataLost, Pull, Reader, skip
from gantrymq.spark.records.survey import bounds
from gantrymq.testing.plugin import GantryCluster

COUNT, BODY = 600, b"x" * 20_000
AS_IT_IS = ProducerOptions(compress_over_bytes=1 << 30)
QUEUE = Queue("old", BROKER, 0)


@pytest.fixture
def cut() -> Iterator[GantryCluster]:
    """A broker that keeps nothing longer than it must, and has thrown some messages away."""
    always = ";".join(f"{hour:02d}" for hour in range(24))
    cluster = GantryCluster(file_reserved_time=0, delete_when=always)
    cluster.create_topic(QUEUE.topic, queues=1)

    async def send() -> None:
        async with Producer(cluster.namesrv, group="tests", options=AS_IT_IS) as producer:
            for _ in range(COUNT):
                await producer.send(Message(QUEUE.topic, BODY), queue=QUEUE)

    cluster.call(send())
    cluster.clock.advance(120)
    yield cluster
    cluster.close()


def test_expired_messages_are_an_error_that_says_which(cut: GantryCluster) -> None:
    """Expired between planning and reading, or between two runs: never silently skipped."""
    with Reader(cut.namesrv, "tests") as reader:
        lows, highs = reader.ask(lambda instance: bounds(instance, [QUEUE.topic]))
        first = lows[QUEUE]
        assert 0 < first < highs[QUEUE] == COUNT
        with pytest.raises(DataLost, match=f"messages 0 to {first - 1}"):
            list(reader.replies(OffsetRange(QUEUE, 0, COUNT)))


def test_what_is_left_can_be_read(cut: GantryCluster) -> None:
    """By permission, or because the queue was new to the query and had no beginning yet."""
    with Reader(cut.namesrv, "tests") as reader:
        lows, _ = reader.ask(lambda instance: bounds(instance, [QUEUE.topic]))
        left = list(reader.replies(OffsetRange(QUEUE, lows[QUEUE], COUNT)))
        allowed = list(reader.replies(OffsetRange(QUEUE, 0, COUNT), lost=skip))
        new = list(reader.replies(OffsetRange(QUEUE, 0, COUNT, is_new=True)))

    assert b"".join(left) == b"".join(allowed) == b"".join(new)


def test_a_filter_does_not_hide_that_messages_expired(cut: GantryCluster) -> None:
    """A first record further on proves nothing there; where the queue begins does."""
    with Reader(cut.namesrv, "tests") as reader:
        lows, _ = reader.ask(lambda instance: bounds(instance, [QUEUE.topic]))
        first = lows[QUEUE]
        for pull in (Pull(tags="none"), Pull(sql="a = 1")):
            with pytest.raises(DataLost, match=f"messages 0 to {first - 1}"):
                list(reader.replies(OffsetRange(QUEUE, 0, COUNT), pull))
            assert [] == list(reader.replies(OffsetRange(QUEUE, first, COUNT), pull))
