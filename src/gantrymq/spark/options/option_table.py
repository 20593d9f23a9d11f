"""Every option of the source, once: what is read, what errors name, what the guide lists. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from gantrymq.base.errors import ConfigError
from gantrymq.spark.options.columns import nearest
from gantrymq.spark.options.kafka_names import in_our_words

Use = Literal["both", "read", "readStream"]


@dataclass(frozen=True, slots=True)
class Option:
    """One option as users know it."""

    name: str
    default: str
    """As the guide shows it; empty when there is none."""
    text: str
    use: Use = "both"
    aliases: tuple[str, ...] = ()


CONNECTION_OPTIONS: Final = (
    Option(
        "nameServer",
        "$NAMESRV_ADDR",
        "name servers, `host:port;host:port`",
        aliases=("namesrvAddr",),
    ),
    Option(
        "credentialsFile",
        "$GANTRY_CREDENTIALS, or the keys in $ROCKETMQ_ACCESS_KEY and $ROCKETMQ_SECRET_KEY",
        "a file with lines `accessKey:` and `secretKey:`, like mqadmin's tools.yml; on every "
        "machine that runs tasks",
    ),
    Option("useTLS", "$ROCKETMQ_TLS_ENABLE", "`true`: all connections are encrypted"),
    Option(
        "tlsConfigFile",
        "$ROCKETMQ_TLS_CONFIG",
        "a file with RocketMQ's names, `tls.client.trustCertPath` and so on; on every machine that "
        "runs tasks",
    ),
)
"""Of source and sink: which cluster, as whom, and how."""

SECRETS: Final = ("accessKey", "secretKey", "securityToken")
"""What nobody may write as an option, whose values Spark shows."""

OPTIONS: Final = (
    *CONNECTION_OPTIONS,
    Option("topic", "", "one topic, or several with commas between", aliases=("subscribe",)),
    Option(
        "subscribePattern",
        "",
        "instead of topic: a regular expression; topics that appear later join",
    ),
    Option("assign", "", 'instead of topic: queues, `{"orders": {"broker-a": [0, 1]}}`'),
    Option("queues", "", "only queues with these numbers, `0,2,8-15`"),
    Option(
        "tags",
        "*",
        "only messages with one of these tags, `paid || shipped`; chosen by the broker",
        aliases=("subExpression",),
    ),
    Option(
        "sqlFilter",
        "",
        "only messages whose properties meet an SQL92 condition; evaluated by the broker",
    ),
    Option("keyFilter", "", "only messages that carry one of these keys, blanks between"),
    Option(
        "startingOffsets",
        "latest for a stream, earliest for a batch",
        "`earliest`, `latest`, `committed` (the group's progress), or JSON with an offset a "
        "queue (-1 latest, -2 earliest)",
    ),
    Option(
        "startingTimestamp",
        "",
        "instead: the first message stored at that time or later; ms since 1970 or ISO text "
        "with zone",
    ),
    Option("startingOffsetsByTimestamp", "", "instead: JSON with a time a queue"),
    Option(
        "startingOffsetsByTimestampStrategy",
        "error",
        "a starting time in the future: `error`, or `latest` to begin at the end",
    ),
    Option("endingOffsets", "latest", "`earliest`, `latest` or JSON; exclusive", "read"),
    Option(
        "endingTimestamp",
        "",
        "instead: up to the first message stored at that time or later",
        "read",
    ),
    Option("endingOffsetsByTimestamp", "", "instead: JSON with a time a queue", "read"),
    Option(
        "newQueueStart",
        "earliest",
        "where a queue begins that appears while the query runs: `earliest` or `latest`",
        "readStream",
    ),
    Option(
        "startStatePath",
        "",
        "folder that belongs to one checkpoint: the beginning is kept there from the first "
        "moment on, and `progress.json` and `losses/` are written",
    ),
    Option(
        "maxOffsetsPerTrigger",
        "",
        "rows a micro-batch may have, shared out by how much each queue has",
        "readStream",
    ),
    Option(
        "minOffsetsPerTrigger",
        "",
        "wait for so many rows before a micro-batch begins",
        "readStream",
    ),
    Option("maxTriggerDelay", "15m", "but not longer than this", "readStream"),
    Option(
        "maxBytesPerTrigger",
        "",
        "about so many bytes a micro-batch, `256m`; by the size of the messages that come next",
        "readStream",
    ),
    Option("minPartitions", "", "split queues until there are so many tasks"),
    Option(
        "maxPartitions",
        "processors of the driver for a stream, none for a batch",
        "pack queues into so many tasks",
    ),
    Option("maxRecordsPerPartition", "", "split queues so that no task has more rows"),
    Option(
        "maxBytesPerPartition",
        "256m for a batch, none for a stream",
        "split queues so that tasks have about so many bytes",
    ),
    Option(
        "failOnDataLoss",
        "true",
        "messages that are gone before they were read: `true` fails, `false` skips, `report` "
        "skips and writes them down under startStatePath",
    ),
    Option(
        "group",
        "",
        "consumer group to report progress under and to read `committed` from; without one "
        "nothing is left on the broker",
        aliases=("consumerGroup",),
    ),
    Option(
        "commitOffsets",
        "batch with a group",
        "`batch`: after every micro-batch; `off`",
        "readStream",
    ),
    Option(
        "commitRewind",
        "false",
        "let progress on the broker go back when the query does",
        "readStream",
    ),
    Option("columns", "all", "columns to read, commas between; what is not chosen is not decoded"),
    Option(
        "schema",
        "rocketmq",
        "`kafka`: the columns of Spark's Kafka source (key, value, topic, partition, offset, "
        "timestamp, timestampType, and headers with includeHeaders=true)",
    ),
    Option("bodyAs", "binary", "`binary`, or `text` (UTF-8; what is none is replaced)"),
    Option(
        "includeProperties",
        "true",
        "`false` leaves the column properties out",
        aliases=("includeHeaders",),
    ),
    Option("pullBatchSize", "4096", "messages asked for at once"),
    Option("pullBatchBytes", "4m", "bytes asked for at once; brokers may give less"),
    Option("pullTimeout", "10s", "how long one question to a broker may take"),
    Option(
        "metadataMaxAge",
        "1s",
        "how old what is known of topics, queues and brokers may be when a stream looks for news",
    ),
    Option(
        "patience",
        "2m",
        "how long brokers may be away, for instance to restart, before the query fails",
    ),
    Option("via", "broker", "`broker`: over the wire; `store`: from the files of a store"),
    Option(
        "storePath",
        "",
        "with via=store: the broker's store folder, or several, `broker-a=/data/a,broker-b=/data/b`"
        "; together with nameServer the live tail comes from the broker",
    ),
    Option(
        "storeAccess",
        "auto",
        "where the folder cannot be seen: `auto` asks the broker if there is a nameServer, "
        "`require` fails; `never` leaves the files alone",
    ),
)
"""In the order of the guide."""


def canonical(
    options: Mapping[str, str], table: Sequence[Option] = OPTIONS, of: str = ""
) -> dict[str, str]:
    """Options by their proper name, aliases resolved; Spark hands them over in lower case."""
    given: dict[str, str] = {}
    for key, value in options.items():
        name = proper_name(key, table, of)
        if name in given and given[name] != value:
            raise ConfigError(f"{name} is given twice, as {given[name]!r} and as {value!r}")
        given[name] = value
    return given


def proper_name(key: str, table: Sequence[Option], of: str = "") -> str:
    """The name of the option that a key means, in whatever case; `of` says whose options."""
    names = {word: option.name for option in table for word in (option.name, *option.aliases)}
    for word, name in names.items():
        if word.lower() == key.lower():
            return name
    if key.lower() in map(str.lower, SECRETS):
        raise ConfigError(
            f"option {key}: Spark shows options in plans, logs and pages; write accessKey and "
            "secretKey into a file, and name it with the option credentialsFile"
        )
    words = in_our_words(key)
    if words:
        raise ConfigError(f"option {key}{words}")
    raise ConfigError(f"unknown option {key}{of}{nearest(key, names)}")


def reference(table: Sequence[Option] = OPTIONS) -> str:
    """The table of the guide."""
    lines = ["| option | default | meaning |", "|---|---|---|"]
    for option in table:
        use = "" if option.use == "both" else f" ({option.use} only)"
        also = "".join(f", also `{alias}`" for alias in option.aliases)
        text = option.text.replace("|", "\\|")
        default = option.default.replace("|", "\\|")
        lines.append(f"| `{option.name}`{also} | {default} | {text}{use} |")
    return "\n".join(lines) + "\n"
