"""What the sink promises before it writes, and what its tasks do with rows: no Spark session."""

import asyncio
from collections.abc import Sequence

import pyarrow as pa
import pytest

from gantrymq.base.errors import ConfigError
from gantrymq.client.core.errors import BrokerRefused, BrokerUnknown
from gantrymq.model import Queue
from gantrymq.protocol import batch
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.publishing import WriterState
from gantrymq.spark.options.sink_options import AUTO, EXACTLY_ONCE, SKIP, SinkOptions
from gantrymq.spark.sink.encode import SendBatch
from gantrymq.spark.sink.sink import able
from gantrymq.spark.sink.task import Assignment, write_rows
from gantrymq.spark.sink.task_sends import DirectSends, SendSlots
from gantrymq.testing.cluster import Cluster

ABLE = WriterState()


def test_only_brokers_that_say_they_cannot_make_a_write_at_least_once() -> None:
    """`auto` is exactly once if all can; `exactly-once` is refused by name if one cannot."""
    states = {"broker-a": ABLE, "broker-b": None, "broker-c": ABLE}

    assert able(AUTO, {"broker-a", "broker-c"}, states)
    assert not able(AUTO, {"broker-a", "broker-b"}, states)
    with pytest.raises(ConfigError, match="broker-b is none"):
        able(EXACTLY_ONCE, {"broker-a", "broker-b"}, states)


@pytest.mark.parametrize("delivery", [AUTO, EXACTLY_ONCE])
def test_a_broker_that_is_away_does_not_lower_the_guarantee(delivery: str) -> None:
    """It has not said what it can: the write is refused until it is back."""
    with pytest.raises(BrokerUnknown, match=r"broker-b is not in the cluster now.*try again"):
        able(delivery, {"broker-a", "broker-b"}, {"broker-a": ABLE})


@pytest.mark.parametrize("exact", [True, False])
def test_bad_rows_are_left_out_when_the_topic_comes_from_a_column(exact: bool) -> None:
    """`onError=skip` goes for them, too, although no topic is set in the options."""

    async def work() -> tuple[int, int]:
        async with Cluster() as cluster:
            await cluster.create_topic("orders", 1)
            options = SinkOptions(namesrv=cluster.namesrv, on_error=SKIP)
            rows = pa.RecordBatch.from_pydict(
                {"topic": ["orders"] * 3, "body": ["a", "b", "c"], "tags": ["x", "y\x01z", "x"]}
            )
            written = await write_rows(Assignment("w", 0, 0, exact), options, iter([rows]))
            return written.rows, written.refused

    assert (2, 1) == asyncio.run(work())


class Clumsy(DirectSends):
    """Notes what would be sent; the first send is refused, for now or for good."""

    def __init__(self, code: ResponseCode) -> None:
        super().__init__(None, SinkOptions(namesrv="nowhere:1"))  # type: ignore[arg-type]
        self._code: ResponseCode | None = code
        self.stored: list[bytes] = []

    async def _send(self, queue: Queue, item: batch.Item | None, body: bytes) -> None:
        await asyncio.sleep(0.01)
        if self._code is not None:
            code, self._code = self._code, None
            raise BrokerRefused(code, "not this one")
        self.stored.append(body)

    async def send(self, bodies: Sequence[bytes]) -> None:
        slots = SendSlots(8)
        for number, body in enumerate(bodies):
            messages = SendBatch(0, bytearray(body), 1, f"id{number}")
            await slots.start(
                self.take(Queue("orders", "broker-a", 0), messages, timed=False, free=False)
            )
        await slots.drain()


def test_a_send_that_is_tried_again_stays_in_front_of_those_behind_it() -> None:
    """Rows of a sharding key keep their order at least once, too, busy broker or not."""
    sends = Clumsy(ResponseCode.SYSTEM_BUSY)
    asyncio.run(sends.send([b"first", b"second", b"third"]))

    assert [b"first", b"second", b"third"] == sends.stored


def test_behind_a_send_that_failed_for_good_nothing_follows() -> None:
    """The task fails, and when it is tried again everything comes in its order."""
    sends = Clumsy(ResponseCode.NO_PERMISSION)
    with pytest.raises(BrokerRefused):
        asyncio.run(sends.send([b"first", b"second", b"third"]))

    assert [] == sends.stored
