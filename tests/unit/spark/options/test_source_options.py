"""Options are read once, strictly."""

from pathlib import Path

import pytest

from gantrymq.base.errors import ConfigError
from gantrymq.model import Queue
from gantrymq.spark.options.columns import COLUMNS, check_types
from gantrymq.spark.options.option_table import reference
from gantrymq.spark.options.points import AtTime
from gantrymq.spark.options.row_shape import parse_row_shape
from gantrymq.spark.options.source_parser import parse_source_options

NEEDED = {"nameserver": "localhost:9876", "topic": "orders"}


def test_a_batch_reads_all_there_is_and_a_stream_what_comes() -> None:
    """The defaults are those of Spark's Kafka source."""
    batch, stream = (
        parse_source_options(NEEDED, streaming=streaming) for streaming in (False, True)
    )

    assert (batch.span.starting, batch.span.ending) == ("earliest", "latest")
    assert stream.span.starting == "latest"
    assert batch.shape.columns == tuple(COLUMNS)
    assert batch.fails_on_loss


def test_names_have_aliases_and_no_case() -> None:
    """Options come lower-case from Spark; the names of RocketMQ and Kafka work too."""
    options = parse_source_options(
        {"namesrvAddr": "a:1;b:2", "SUBSCRIBE": "one, two,one", "consumergroup": "readers"},
        streaming=False,
    )

    assert options.cluster.namesrv == "a:1;b:2"
    assert options.queues.topics == ("one", "two")
    assert options.cluster.group == "readers"


def test_everything_can_be_chosen() -> None:
    """Each option arrives where it belongs."""
    options = parse_source_options(
        NEEDED
        | {
            "startingoffsets": '{"orders": {"broker-a": {"0": 5}}}',
            "maxoffsetspertrigger": "1000",
            "maxpartitions": "3",
            "columns": "body, queueId",
            "failondataloss": "FALSE",
            "pullbatchsize": "64",
        },
        streaming=True,
    )

    assert options.span.starting == {Queue("orders", "broker-a", 0): 5}
    assert (options.trigger.rows_max, options.tasks.tasks_max, options.pull.count) == (1000, 3, 64)
    assert options.shape.columns == ("body", "queueId")
    assert not options.fails_on_loss


@pytest.mark.parametrize(
    "given, streaming, says",
    [
        ({"startingoffset": "latest"}, True, "did you mean startingOffsets"),
        ({"namesrv": "x"}, True, "unknown option namesrv; did you mean nameServer"),
        ({"subscribe": "payments"}, True, "topic is given twice"),
        ({"endingoffsets": "latest"}, True, "endingOffsets is an option of read"),
        ({"maxoffsetspertrigger": "5"}, False, "is an option of readStream"),
        ({"maxoffsetspertrigger": "0"}, True, "a number above 0"),
        ({"startingoffsets": "latest"}, False, "has no rows"),
        ({"columns": "bodi"}, False, "no column 'bodi'; did you mean body"),
        ({"columns": "body,body"}, False, "once each"),
        ({"failondataloss": "maybe"}, False, "true, false or report"),
        ({"topic": " , "}, False, "topic is missing"),
        ({"nameserver": ""}, False, "nameServer is missing"),
        ({"subscribepattern": "x.*"}, True, "give topic or subscribePattern, not both"),
        ({"startingtimestamp": "1", "startingoffsets": "earliest"}, True, "not both"),
        ({"startingtimestamp": "yesterday"}, True, "ms since 1970 or a time such as"),
        ({"startingtimestamp": "2026-01-31T08:00:00"}, True, "needs a time zone: write 2026"),
        ({"startingoffsetsbytimestamp": "{"}, True, "JSON with a time a queue"),
        ({"endingoffsets": "committed"}, False, "earliest, latest or JSON"),
        ({"startingoffsets": "committed"}, True, "set the option group"),
        ({"commitoffsets": "batch"}, True, "set the option group"),
        ({"tags": " || "}, True, "names no tag"),
        ({"queues": "3-1"}, True, "queue numbers such as"),
        ({"queues": "0-99999999999"}, True, "queue numbers such as"),
        ({"maxbytespertrigger": "many"}, True, "a size such as"),
        ({"maxtriggerdelay": "soon"}, True, "a time such as 500ms"),
        ({"minpartitions": "4", "maxpartitions": "3"}, True, "4 is more than maxPartitions 3"),
        ({"minoffsetspertrigger": "4", "maxoffsetspertrigger": "3"}, True, "is more than maxOff"),
        ({"failondataloss": "report"}, True, "report needs startStatePath"),
        ({"via": "store"}, False, "needs storePath"),
        ({"storepath": "/x"}, False, "needs storePath"),
        ({"via": "air"}, False, "broker or store"),
        ({"bodyas": "xml"}, False, "binary or text"),
        (
            {"kafka.bootstrap.servers": "b:9092"},
            True,
            "option kafka.bootstrap.servers is Kafka's: here it is nameServer, the host:port of",
        ),
        ({"kafka.group.id": "g"}, True, "Kafka's: here it is group$"),
        ({"kafka.max.poll.records": "9"}, True, "have no such setting, leave it out"),
        ({"partition": "0"}, False, "the column queueId; the option queues chooses some"),
        (
            {"startingoffsets": '{"orders": {"0": 23}}'},
            False,
            r"offsets 23 are not of the form .\"topic\": .\"broker\": ",
        ),
        ({"columns": "key"}, False, "column key is Kafka's: here it is the column keys;"),
        ({"columns": "topic,value"}, False, r"the column body \(or read with schema=kafka\)"),
        ({"schema": "avro"}, False, "schema is rocketmq or kafka"),
        ({"schema": "kafka", "columns": "body"}, False, "no column 'body'"),
    ],
)
def test_a_mistake_is_named(given: dict[str, str], streaming: bool, says: str) -> None:
    """What cannot be meant is refused, with the option and what to write instead."""
    with pytest.raises(ConfigError, match=says):
        parse_source_options(NEEDED | given, streaming=streaming)


def test_kafkas_columns_are_those_of_sparks_kafka_source() -> None:
    """In its order and its types; headers where they are asked for."""
    plain = {
        "key": "binary", "value": "binary", "topic": "string", "partition": "int",
        "offset": "bigint", "timestamp": "timestamp", "timestampType": "int",
    }  # fmt: skip
    headers = {"headers": "array<struct<key:string,value:binary>>"}

    assert plain == parse_row_shape({"schema": "kafka"}).types
    assert plain | headers == parse_row_shape({"schema": "kafka", "includeheaders": "true"}).types
    assert {"value": "string"} == parse_row_shape(
        {"schema": "Kafka", "columns": "value", "bodyAs": "text"}
    ).types


@pytest.mark.parametrize("text", ["x.*[", "(", "*"])
def test_a_pattern_must_be_one(text: str) -> None:
    """Before any topic is held against it."""
    given = {"nameServer": "a:1", "subscribePattern": text}
    with pytest.raises(ConfigError, match="no regular expression"):
        parse_source_options(given, streaming=True)


@pytest.mark.parametrize("text", ["[]", "{}", '{"t": ["b"]}', '{"t": {"b": [-1]}}', "x"])
def test_an_assignment_must_name_queues(text: str) -> None:
    """Topic, broker and numbers."""
    with pytest.raises(ConfigError, match="assign is JSON such as"):
        parse_source_options({"nameServer": "a:1", "assign": text}, streaming=True)


def test_values_are_written_as_people_do() -> None:
    """Sizes, durations, times, lists: each arrives as a number."""
    options = parse_source_options(
        NEEDED
        | {
            "startingTimestamp": "2026-01-31T08:00:00.250+01:00",
            "maxBytesPerTrigger": "64m",
            "maxBytesPerPartition": "1GiB",
            "maxTriggerDelay": "15m",
            "patience": "1h",
            "pullTimeout": "2500",
            "queues": "0, 2-4",
            "keyFilter": "a  b",
            "tags": " x || y ",
            "includeProperties": "false",
            "group": "readers",
        },
        streaming=True,
    )

    assert AtTime(1_769_842_800_250) == options.span.starting
    assert (64 << 20, 1 << 30) == (options.trigger.bytes_max, options.tasks.bytes_max)
    assert (900_000, 3_600_000, 2_500) == (
        options.trigger.delay_ms,
        options.cluster.patience_ms,
        options.pull.timeout_ms,
    )
    assert {0, 2, 3, 4} == options.queues.ids
    assert {"a", "b"} == options.messages.keys
    assert ("x", "y") == options.messages.tag_names
    assert "properties" not in options.shape.columns
    assert options.progress.commits


def test_a_group_is_reported_to_unless_that_is_switched_off() -> None:
    """Without one nothing is left on the broker; a batch reports nothing at all."""
    group = NEEDED | {"group": "readers"}

    assert parse_source_options(group, streaming=True).progress.commits
    off = group | {"commitOffsets": "off"}
    assert not parse_source_options(off, streaming=True).progress.commits
    assert not parse_source_options(NEEDED, streaming=True).progress.commits
    assert not parse_source_options(group, streaming=False).progress.commits


def test_files_need_no_name_server() -> None:
    """A folder may be all that is left of a broker."""
    given = {"topic": "orders", "via": "store", "storePath": "/data/store"}
    options = parse_source_options(given, streaming=False)

    assert ("store", "/data/store", "") == (
        options.files.via,
        options.files.path,
        options.cluster.namesrv,
    )


def test_the_guide_lists_every_option() -> None:
    """The table of the guide is the one that options are read by."""
    guide = Path(__file__).parents[4] / "docs" / "guides" / "spark-source.md"

    assert reference() in guide.read_text()


def test_a_schema_of_the_users_chooses_columns_but_not_types() -> None:
    """Columns can be left out by a schema; a type that is not the column's is an error."""
    assert check_types({"body": "binary", "queueId": "int"}) == ("body", "queueId")
    with pytest.raises(ConfigError, match="column body is binary, not string"):
        check_types({"body": "string"})
