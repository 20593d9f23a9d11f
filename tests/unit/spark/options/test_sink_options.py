"""The sink's options and columns, and which queue a row goes to: plain Python, no Spark."""

import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from gantrymq.base.errors import GantryError
from gantrymq.client.sending.send_policy import sharded
from gantrymq.model import Queue
from gantrymq.spark.options.option_table import reference
from gantrymq.spark.options.sink_options import SINK_OPTIONS, check_sink_columns, parse_sink_options
from gantrymq.spark.sink.encode import GOOD, NO_QUEUE, NO_TOPIC
from gantrymq.spark.sink.queue_choice import Targets
from gantrymq.spark.sink.sink import BatchSink

GUIDE = Path(__file__).parents[4] / "docs" / "guides" / "spark-sink.md"
QUEUES = [Queue("t", broker, number) for broker in ("a", "b") for number in range(4)]


@pytest.mark.parametrize(
    "options, streaming, words",
    [
        ({}, False, "nameServer is missing"),
        ({"nameserver": "x", "topik": "t"}, False, "unknown option topik .*did you mean topic?"),
        ({"nameserver": "x", "namesrvaddr": "y"}, False, "nameServer is given twice, as 'x' and"),
        ({"nameserver": "x", "delivery": "twice"}, False, "delivery is auto, exactly-once or"),
        ({"nameserver": "x", "writerid": "w"}, False, "writerId and epoch belong together"),
        ({"nameserver": "x", "epoch": "1"}, True, "a stream counts its batches itself"),
        ({"nameserver": "x", "writerid": "w", "epoch": "-1"}, False, "epoch is a number from 0"),
        ({"nameserver": "x", "writerid": ""}, True, "writerId has 1 to 255 bytes"),
        ({"nameserver": "x", "writerid": "once-a-day"}, True, "names with once- are for writes"),
        ({"nameserver": "x", "sendbatchbytes": "9m"}, False, "sendBatchBytes is at most 3m"),
        ({"nameserver": "x", "onerror": "dlq"}, False, "onError=dlq and dlqTopic belong together"),
        ({"nameserver": "x", "dlqtopic": "d"}, False, "onError=dlq and dlqTopic belong together"),
        ({"nameserver": "x", "topic": "no blanks"}, False, "contains illegal characters"),
        ({"nameserver": "x", "topic": "SCHEDULE_TOPIC_XXXX"}, False, "is the system's own"),
        ({"nameserver": "x", "retries": "many"}, False, "retries is a number"),
        ({"nameserver": "x", "maxinflight": "0"}, False, "maxInFlight is a number above 0"),
    ],
)
def test_bad_options_are_named(options: dict[str, str], streaming: bool, words: str) -> None:
    """Before Spark does anything, in one line."""
    with pytest.raises(GantryError, match=words):
        parse_sink_options(options, streaming=streaming)


def test_options_are_read_whatever_their_case() -> None:
    """Spark hands them over in lower case, with the checkpoint of a stream among them."""
    found = parse_sink_options(
        {
            "namesrvaddr": "x", "topic": "t", "writerid": "w", "onerror": "skip",
            "checkpointlocation": "/c",
        },
        streaming=True,
    )  # fmt: skip

    assert (found.namesrv, found.topic, found.writer_id, found.on_error) == ("x", "t", "w", "skip")


@pytest.mark.parametrize(
    "types, words",
    [
        ({"body": "string", "tag": "string"}, "no column 'tag'; did you mean tags?"),
        ({"body": "int"}, "column body of the sink is binary or string, not int: cast it"),
        ({"keys": "string"}, "needs a column body"),
        ({"body": "string"}, "there is no topic"),
        ({"body": "string", "topic": "string", "brokerName": "string"}, "needs queueId beside it"),
    ],
)
def test_foreign_columns_are_named(types: dict[str, str], words: str) -> None:
    """A column that would silently be lost is an error."""
    with pytest.raises(GantryError, match=words):
        check_sink_columns(types, None)


def test_the_guide_lists_every_option() -> None:
    """The table in the guide is made from the one that the code reads."""
    lines = reference(SINK_OPTIONS).splitlines()
    assert [line for line in lines if line not in GUIDE.read_text()] == []


def choose(table: pa.RecordBatch, topic: str | None = "t") -> tuple[list[Queue | None], list[int]]:
    faults = np.zeros(table.num_rows, np.int8)
    targets = Targets(0)
    chosen, _ = targets.choose(table, topic, {"t": QUEUES, "u": QUEUES[:1]}, faults)
    found = [targets.queue(number) if number >= 0 else None for number in chosen]
    return found, faults.tolist()


def test_a_sharding_key_leads_to_the_queue_that_clients_choose() -> None:
    """Spark and the ordinary client send a key to the same queue."""
    keys = [f"key-{number}" for number in range(50)] + [None]
    table = pa.RecordBatch.from_pydict({"body": ["b"] * 51, "shardingKey": keys})
    found, _ = choose(table)

    assert found[:50] == [sharded(QUEUES, key) for key in keys if key is not None]
    assert found[50] in QUEUES


def test_rows_without_a_wish_are_spread_evenly_in_runs() -> None:
    """Large frames reach every queue; few rows stay together."""
    many, _ = choose(pa.RecordBatch.from_pydict({"body": ["b"] * 800}))
    few, _ = choose(pa.RecordBatch.from_pydict({"body": ["b"] * 10}))
    changes = sum(1 for one, next_ in itertools.pairwise(many) if one != next_)

    assert set(Counter(many).values()) == {100}
    assert changes == 7
    assert len(set(few)) == 1


def test_rows_may_name_their_queue_and_their_topic() -> None:
    """What does not exist is a fault of the row, not of its neighbours."""
    table = pa.RecordBatch.from_pydict(
        {
            "body": ["b"] * 6,
            "topic": ["t", "t", "t", "nowhere", "u", None],
            "queueId": pa.array([2, 2, 9, None, 0, 1], pa.int32()),
            "brokerName": [None, "b", None, None, "a", None],
        }
    )
    found, faults = choose(table)

    assert faults == [GOOD, GOOD, NO_QUEUE, NO_TOPIC, GOOD, GOOD]
    assert [str(queue) for queue in found if queue is not None] == [
        "t@a:2", "t@b:2", "t@a:0", "t@a:1",
    ]  # fmt: skip


def test_a_batch_write_that_names_no_writer_has_a_new_one_of_one_epoch() -> None:
    """Brokers forget such writers first, so they push out nobody who comes back."""
    options = parse_sink_options({"nameserver": "x"}, streaming=False)
    writers = {BatchSink(options, exact=True)._writer for _ in range(2)}

    assert 2 == len(writers)
    assert all(writer.startswith("once-") for writer in writers)
