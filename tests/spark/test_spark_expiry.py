"""Messages that expired before they were read."""

from collections.abc import Iterator

import pytest
from sparkkit import BROKER

from gantrymq import Message, Producer, ProducerOptions, Queue
from gantrymq.spark.fetch import DataLost, Reader
from gantrymq.spark.plan import Range
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
        lows, highs = reader.bounds([QUEUE.topic])
        first = lows[QUEUE]
        assert 0 < first < highs[QUEUE] == COUNT
        with pytest.raises(DataLost, match=f"messages 0 to {first - 1}"):
            list(reader.replies(Range(QUEUE, 0, COUNT), 4096, strict=True))


def test_what_is_left_can_be_read(cut: GantryCluster) -> None:
    """By permission, or because the queue was new to the query and had no beginning yet."""
    with Reader(cut.namesrv, "tests") as reader:
        lows, _ = reader.bounds([QUEUE.topic])
        left = list(reader.replies(Range(QUEUE, lows[QUEUE], COUNT), 4096, strict=True))
        allowed = list(reader.replies(Range(QUEUE, 0, COUNT), 4096, strict=False))
        new = list(reader.replies(Range(QUEUE, 0, COUNT, is_new=True), 4096, strict=True))

    assert b"".join(left) == b"".join(allowed) == b"".join(new)
