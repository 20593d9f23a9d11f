"""The options of the sink, read once into a typed value; and the columns it takes. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gantrymq.base.errors import ConfigError
from gantrymq.model import GROUP_BYTES_MAX, UNSENDABLE_TOPICS, check_group_name, check_topic_name
from gantrymq.protocol.publishing import ONCE_PREFIX
from gantrymq.spark.options import values
from gantrymq.spark.options.client_security import (
    UNSECURED,
    ClientSecurity,
    parse_client_security,
)
from gantrymq.spark.options.columns import nearest
from gantrymq.spark.options.kafka_names import in_our_words
from gantrymq.spark.options.option_table import CONNECTION_OPTIONS, Option, canonical

AUTO, EXACTLY_ONCE, AT_LEAST_ONCE = "auto", "exactly-once", "at-least-once"
FAIL, DEAD_LETTER, SKIP = "fail", "dlq", "skip"
MIB: Final = 1 << 20
BATCH_BYTES_MAX: Final = 3 * MIB
"""A broker takes 4 MiB at once, its own words included."""
IN_FLIGHT_MAX: Final = 256

SINK_OPTIONS: Final = (
    *CONNECTION_OPTIONS,
    Option("topic", "", "where rows go that have no column `topic`"),
    Option(
        "createTopic",
        "false",
        "`true`: a topic that does not exist is created on every broker, also one that a row names",
    ),
    Option("createTopicQueues", "8", "queues of such a topic on each broker"),
    Option(
        "delivery",
        AUTO,
        "`exactly-once` (GantryMQ brokers), `at-least-once` (any), or `auto`: the best that the "
        "topic's brokers can do",
    ),
    Option(
        "writerId",
        "a stream's query id; new for every batch write",
        "names the writer whose epochs are published once each; a job that runs again must have "
        "the same",
    ),
    Option(
        "epoch",
        "",
        "of a batch write with a writerId: its number, counted upwards; the same "
        "epoch twice is published once",
    ),
    Option("producerGroup", "spark-writer", "the group that at-least-once sends name"),
    Option("sendBatchBytes", "512k", "how large a send may be; at most 3m"),
    Option("maxInFlight", "8", "sends of one task under way at once"),
    Option("sendTimeoutMs", "10000", "how long one send may take"),
    Option("retries", "10", "how often a send is tried again, with growing pauses"),
    Option(
        "onError",
        FAIL,
        "rows that no broker would take: `fail`, `skip` (counted), or `dlq` (sent to dlqTopic with "
        "the reason)",
    ),
    Option("dlqTopic", "", "for onError=dlq"),
)
"""In the order of the guide."""

SPARKS_OWN: Final = ("checkpointlocation", "path")
"""Options of a write that are Spark's, and none of ours."""

TEXT, BYTES, WHOLE = ("string",), ("binary", "string"), ("tinyint", "smallint", "int", "bigint")
SINK_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "body": BYTES,
    "topic": TEXT,
    "tags": TEXT,
    "keys": ("string", "array<string>"),
    "properties": ("map<string,string>",),
    "flag": WHOLE[:3],
    "shardingKey": TEXT,
    "brokerName": TEXT,
    "queueId": WHOLE[:3],
    "delayLevel": WHOLE[:3],
    "delaySeconds": (*WHOLE, "float", "double"),
    "deliverTime": ("timestamp", "bigint"),
}
"""What a frame may have, and the types it may have it in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """Where to write and how."""

    namesrv: str
    topic: str | None = None
    delivery: str = AUTO
    writer_id: str | None = None
    epoch: int | None = None
    group: str = "spark-writer"
    batch_bytes: int = MIB // 2
    in_flight_max: int = 8
    send_timeout_ms: int = 10_000
    retries: int = 10
    on_error: str = FAIL
    dead_topic: str | None = None
    new_topic_queues: int | None = None
    """Queues of a topic that does not exist and is created; None: it is an error."""
    security: ClientSecurity = UNSECURED


def parse_sink_options(
    options: Mapping[str, str], *, streaming: bool, namesrv_default: str = ""
) -> SinkOptions:
    """Read and check the options of a write."""
    own = {key: value for key, value in options.items() if key.lower() not in SPARKS_OWN}
    given = canonical(own, SINK_OPTIONS, " of the sink")
    namesrv = given.get("nameServer", namesrv_default)
    if not namesrv:
        raise ConfigError("nameServer is missing: the name server's host:port[;host:port]")
    on_error = values.choice(given.get("onError", FAIL), "onError", (FAIL, DEAD_LETTER, SKIP))
    if (on_error == DEAD_LETTER) != ("dlqTopic" in given):
        raise ConfigError("onError=dlq and dlqTopic belong together: give both or neither")
    return SinkOptions(
        namesrv=namesrv,
        topic=_topic(given, "topic"),
        delivery=values.choice(
            given.get("delivery", AUTO), "delivery", (AUTO, EXACTLY_ONCE, AT_LEAST_ONCE)
        ),
        writer_id=_writer(given),
        epoch=_epoch(given, streaming=streaming),
        group=check_group_name(given.get("producerGroup", "spark-writer")),
        batch_bytes=_batch_bytes(given.get("sendBatchBytes", "512k")),
        in_flight_max=min(
            values.count(given.get("maxInFlight", "8"), "maxInFlight"), IN_FLIGHT_MAX
        ),
        send_timeout_ms=values.count(given.get("sendTimeoutMs", "10000"), "sendTimeoutMs"),
        retries=values.number(given.get("retries", "10"), "retries"),
        on_error=on_error,
        dead_topic=_topic(given, "dlqTopic"),
        new_topic_queues=_new_topic_queues(given),
        security=parse_client_security(given),
    )


def _topic(given: Mapping[str, str], option: str) -> str | None:
    if option not in given:
        return None
    topic = check_topic_name(given[option].strip())
    if topic in UNSENDABLE_TOPICS:
        raise ConfigError(f"{option} {topic} is the system's own: nobody may send to it")
    return topic


def _new_topic_queues(given: Mapping[str, str]) -> int | None:
    queues = values.count(given.get("createTopicQueues", "8"), "createTopicQueues")
    creates = values.flag(given.get("createTopic", "false"), "createTopic")
    if not creates and "createTopicQueues" in given:
        raise ConfigError("createTopicQueues is for createTopic=true: give both or neither")
    return queues if creates else None


def _writer(given: Mapping[str, str]) -> str | None:
    writer = given.get("writerId")
    if writer is not None and not 0 < len(writer.encode()) <= GROUP_BYTES_MAX:
        raise ConfigError(f"writerId has 1 to {GROUP_BYTES_MAX} bytes, not {writer[:64]!r}")
    if writer is not None and writer.startswith(ONCE_PREFIX):
        raise ConfigError(
            f"writerId {writer[:64]!r}: names with {ONCE_PREFIX} are for writes that nobody "
            "repeats, and soon forgotten; take another one"
        )
    return writer


def _epoch(given: Mapping[str, str], *, streaming: bool) -> int | None:
    text = given.get("epoch")
    if streaming:
        if text is not None:
            raise ConfigError("epoch is an option of write: a stream counts its batches itself")
        return None
    if (text is None) != ("writerId" not in given):
        raise ConfigError("writerId and epoch belong together: give both or neither")
    return None if text is None else values.number(text, "epoch")


def _batch_bytes(text: str) -> int:
    size = values.size(text, "sendBatchBytes")
    if size > BATCH_BYTES_MAX:
        raise ConfigError(f"sendBatchBytes is at most {BATCH_BYTES_MAX >> 20}m, not {text!r}")
    return size


def check_sink_columns(types: Mapping[str, str], topic: str | None) -> None:
    """Raise ConfigError if the columns of a frame cannot be written."""
    for name, kind in types.items():
        words = in_our_words(name)
        if name not in SINK_COLUMNS and words:
            raise ConfigError(f"column {name}{words}: rename it with withColumnRenamed")
        if name not in SINK_COLUMNS:
            raise ConfigError(
                f"the sink has no column {name!r}{nearest(name, SINK_COLUMNS)}: drop it or put it "
                "into body or properties"
            )
        if kind not in SINK_COLUMNS[name]:
            wanted = " or ".join(SINK_COLUMNS[name])
            raise ConfigError(f"column {name} of the sink is {wanted}, not {kind}: cast it")
    if "body" not in types:
        raise ConfigError("the sink needs a column body: what the messages consist of")
    if topic is None and "topic" not in types:
        raise ConfigError("there is no topic: give the option topic or a column topic")
    if "brokerName" in types and "queueId" not in types:
        raise ConfigError("a column brokerName needs queueId beside it")
