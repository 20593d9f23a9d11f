"""Options are read once, strictly."""

import pytest

from gantrymq.base.errors import ConfigError
from gantrymq.model import Queue
from gantrymq.spark.columns import COLUMNS, check_types
from gantrymq.spark.options import parse_options

NEEDED = {"nameserver": "localhost:9876", "topic": "orders"}


def test_a_batch_reads_all_there_is_and_a_stream_what_comes() -> None:
    """The defaults are those of Spark's Kafka source."""
    batch, stream = (parse_options(NEEDED, streaming=streaming) for streaming in (False, True))

    assert (batch.starting, batch.ending) == ("earliest", "latest")
    assert stream.starting == "latest"
    assert batch.columns == tuple(COLUMNS)
    assert batch.fail_on_data_loss


def test_names_have_aliases_and_no_case() -> None:
    """Options come lower-case from Spark; the names of RocketMQ and Kafka work too."""
    options = parse_options(
        {"namesrvAddr": "a:1;b:2", "SUBSCRIBE": "one, two,one", "consumergroup": "readers"},
        streaming=False,
    )

    assert options.namesrv == "a:1;b:2"
    assert options.topics == ("one", "two")
    assert options.group == "readers"


def test_everything_can_be_chosen() -> None:
    """Each option arrives where it belongs."""
    options = parse_options(
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

    assert options.starting == {Queue("orders", "broker-a", 0): 5}
    assert (options.rows_max, options.tasks_max, options.pull_count) == (1000, 3, 64)
    assert options.columns == ("body", "queueId")
    assert not options.fail_on_data_loss


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
    ],
)
def test_a_mistake_is_named(given: dict[str, str], streaming: bool, says: str) -> None:
    """What cannot be meant is refused, with the option and what to write instead."""
    with pytest.raises(ConfigError, match=says):
        parse_options(NEEDED | given, streaming=streaming)


def test_a_schema_of_the_users_chooses_columns_but_not_types() -> None:
    """Columns can be left out by a schema; a type that is not the column's is an error."""
    assert check_types({"body": "binary", "queueId": "int"}) == ("body", "queueId")
    with pytest.raises(ConfigError, match="column body is binary, not string"):
        check_types({"body": "string"})
