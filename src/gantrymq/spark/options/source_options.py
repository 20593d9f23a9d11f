"""The options of `format("rocketmq")`, read once into a typed value. Pure.

Spark hands options over with lower-case names and values of text. An unknown option is an
error: a misspelt `startingOffsets` must not read the wrong half of a topic.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from gantrymq.base.errors import ConfigError
from gantrymq.filter import BadSql, condition
from gantrymq.model import Queue, check_group_name
from gantrymq.protocol.subscription import ALL, BadSubscription, parse_tags
from gantrymq.spark.options import values
from gantrymq.spark.options.columns import COLUMNS, check_columns
from gantrymq.spark.options.kafka_names import KAFKA_COLUMNS
from gantrymq.spark.options.option_table import OPTIONS, canonical
from gantrymq.spark.options.points import (
    COMMITTED,
    EARLIEST,
    LATEST,
    AtTime,
    Point,
    moves,
    parse_point,
    parse_times,
)

T = TypeVar("T")

PULL_BATCH_DEFAULT: Final = 4096
GROUP_DEFAULT: Final = "spark-reader"
"""Pulls name a group; nothing of it is stored, so that readers may share one."""
MIB: Final = 1 << 20
BYTES_OF_A_TASK: Final = 256 * MIB

BROKER, STORE = "broker", "store"
AUTO, NEVER, REQUIRE = "auto", "never", "require"
BINARY, TEXT = "binary", "text"
FAIL, SKIP, REPORT = "true", "false", "report"
BATCH, OFF = "batch", "off"
ROCKETMQ, KAFKA = "rocketmq", "kafka"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What to read and how."""

    namesrv: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    """Topics by regular expression, instead of `topics`."""
    assigned: tuple[Queue, ...] = ()
    """Queues one by one, instead of all queues of `topics`."""
    queue_ids: frozenset[int] | None = None
    via: str = BROKER
    store_path: str | None = None
    store_access: str = AUTO
    """Whether the files of `store_path` are read where they cannot be seen, or must be."""

    tags: str = ALL
    sql: str | None = None
    keys: frozenset[str] = frozenset()

    starting: Point = EARLIEST
    ending: Point = LATEST
    future_is_latest: bool = False
    new_queue_start: str = EARLIEST
    start_state_path: str | None = None

    rows_max: int | None = None
    """Rows a micro-batch may have."""
    rows_min: int | None = None
    delay_ms: int = 15 * 60_000
    """How long a micro-batch may be put off for want of `rows_min`."""
    bytes_max: int | None = None

    tasks_min: int | None = None
    tasks_max: int | None = None
    task_rows_max: int | None = None
    task_bytes_max: int | None = None

    on_loss: str = FAIL
    group: str = GROUP_DEFAULT
    commits: bool = False
    """Progress is reported to the broker under `group`."""
    rewinds: bool = False

    columns: tuple[str, ...] = tuple(COLUMNS)
    body_as: str = BINARY
    pull_count: int = PULL_BATCH_DEFAULT
    pull_bytes: int = 4 * MIB
    pull_timeout_ms: int = 10_000
    patience_ms: int = 120_000
    metadata_ms: int = 1_000

    @property
    def fail_on_data_loss(self) -> bool:
        return self.on_loss == FAIL

    @property
    def tag_names(self) -> tuple[str, ...]:
        """The tags that are wanted; none means all."""
        return tuple(parse_tags(self.tags))

    def reads(self, queue: Queue) -> bool:
        """Whether the options select a queue."""
        if self.assigned:
            return queue in self.assigned
        if self.queue_ids is not None and queue.queue_id not in self.queue_ids:
            return False
        if self.pattern is not None:
            return re.fullmatch(self.pattern, queue.topic) is not None
        return queue.topic in self.topics

    def chosen(self, offsets: Mapping[Queue, int]) -> dict[Queue, int]:
        """The offsets of the queues that the options select."""
        return {queue: offset for queue, offset in offsets.items() if self.reads(queue)}

    @property
    def is_filtered(self) -> bool:
        """Whether the broker leaves messages out, by tag or by SQL condition."""
        return self.sql is not None or bool(self.tag_names)


class Given:
    """The options that the user gave; each is read where it is needed."""

    def __init__(self, options: Mapping[str, str], *, streaming: bool) -> None:
        self._given = canonical(options)
        for option in OPTIONS:
            if option.use == ("read" if streaming else "readStream") and self.has(option.name):
                raise ConfigError(f"{option.name} is an option of {option.use}")

    def has(self, name: str) -> bool:
        return name in self._given

    def get(self, name: str) -> str | None:
        return self._given.get(name)

    def text(self, name: str, default: str) -> str:
        return self._given.get(name, default)

    def maybe(self, name: str, read: Callable[[str, str], T]) -> T | None:
        text = self._given.get(name)
        return None if text is None else read(text, name)

    def choice(self, name: str, *choices: str, default: str | None = None) -> str:
        """One of some words; the first is the default unless another is."""
        return values.choice(self._given.get(name, default or choices[0]), name, choices)

    def flag(self, name: str, *, default: bool) -> bool:
        return values.flag(self._given.get(name, str(default)), name)

    def limits(self, what: str) -> tuple[int | None, int | None]:
        """The least and the most of something, `min...` and `max...`."""
        least, most = (self.maybe(f"{word}{what}", values.count) for word in ("min", "max"))
        if least is not None and most is not None and least > most:
            raise ConfigError(f"min{what} {least} is more than max{what} {most}")
        return least, most

    def one_of(self, *names: str) -> str | None:
        """Which of some options that exclude each other was given; None if none was."""
        found = [name for name in names if self.has(name)]
        if len(found) > 1:
            raise ConfigError(f"give {' or '.join(found)}, not both")
        return found[0] if found else None


def parse_options(
    options: Mapping[str, str], *, streaming: bool, namesrv_default: str = ""
) -> SourceOptions:
    """Read and check the options of a batch or of a stream."""
    given = Given(options, streaming=streaming)
    via = given.choice("via", BROKER, STORE)
    namesrv = given.text("nameServer", namesrv_default if via == BROKER else "")
    access = given.choice("storeAccess", AUTO, NEVER, REQUIRE)
    if not namesrv and (via == BROKER or access == NEVER):
        raise ConfigError("nameServer is missing: the name server's host:port[;host:port]")
    if (via == STORE) != given.has("storePath"):
        raise ConfigError("via=store needs storePath, the broker's store folder, and storePath it")
    group = given.maybe("group", lambda text, _: check_group_name(text))
    commits = given.choice("commitOffsets", BATCH, OFF, default=BATCH if group else OFF) == BATCH
    starting, ending = _starting(given, streaming=streaming), _ending(given)
    if ((commits and streaming) or starting == COMMITTED) and (not group or not namesrv):
        raise ConfigError(
            "progress needs a group, and a nameServer to find it: set the option group"
        )
    topics, pattern, assigned = _topics(given)
    small = _sizes(given, streaming=streaming)
    if small.get("on_loss") == REPORT and not given.has("startStatePath"):
        raise ConfigError("failOnDataLoss=report needs startStatePath, a folder for what was lost")
    return SourceOptions(
        namesrv=namesrv,
        topics=topics,
        pattern=pattern,
        assigned=assigned,
        queue_ids=given.maybe("queues", values.queue_ids),
        via=via,
        store_path=given.get("storePath"),
        store_access=access,
        tags=_tags(given),
        sql=given.maybe("sqlFilter", _sql),
        keys=frozenset(given.text("keyFilter", "").split()),
        starting=starting,
        ending=ending,
        future_is_latest=given.choice("startingOffsetsByTimestampStrategy", "error", LATEST)
        == LATEST,
        new_queue_start=given.choice("newQueueStart", EARLIEST, LATEST),
        start_state_path=given.get("startStatePath"),
        group=group or GROUP_DEFAULT,
        commits=commits and streaming,
        rewinds=given.flag("commitRewind", default=False),
        columns=columns_of(options),
        body_as=given.choice("bodyAs", BINARY, TEXT),
        **small,
    )


def _sizes(given: Given, *, streaming: bool) -> dict[str, Any]:
    """The options that are one number each, or one word."""
    tasks_min, tasks_max = given.limits("Partitions")
    rows_min, rows_max = given.limits("OffsetsPerTrigger")
    found = {
        "rows_max": rows_max,
        "rows_min": rows_min,
        "delay_ms": given.maybe("maxTriggerDelay", values.duration_ms),
        "bytes_max": given.maybe("maxBytesPerTrigger", values.size),
        "tasks_min": tasks_min,
        "tasks_max": tasks_max,
        "task_rows_max": given.maybe("maxRecordsPerPartition", values.count),
        "task_bytes_max": given.maybe("maxBytesPerPartition", values.size)
        or (None if streaming else BYTES_OF_A_TASK),
        "on_loss": given.choice("failOnDataLoss", FAIL, SKIP, REPORT),
        "pull_count": given.maybe("pullBatchSize", values.count),
        "pull_bytes": given.maybe("pullBatchBytes", values.size),
        "pull_timeout_ms": given.maybe("pullTimeout", values.duration_ms),
        "patience_ms": given.maybe("patience", values.duration_ms),
        "metadata_ms": given.maybe("metadataMaxAge", values.duration_ms),
    }
    return {name: value for name, value in found.items() if value is not None}


def _starting(given: Given, *, streaming: bool) -> Point:
    chosen = given.one_of("startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp")
    point = _point(given, chosen, LATEST if streaming else EARLIEST, committed=True)
    if not streaming and point != COMMITTED and moves(point):
        raise ConfigError("a batch that begins at latest has no rows: see startingOffsets")
    return point


def _ending(given: Given) -> Point:
    chosen = given.one_of("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
    return _point(given, chosen, LATEST, committed=False)


def _point(given: Given, chosen: str | None, default: str, *, committed: bool) -> Point:
    if chosen is None:
        return default
    text = given.text(chosen, "")
    if chosen.endswith("Offsets"):
        return parse_point(text, chosen, committed=committed)
    if chosen.endswith("OffsetsByTimestamp"):
        return parse_times(text, chosen)
    return AtTime(values.moment_ms(text, chosen))


def _topics(given: Given) -> tuple[tuple[str, ...], str | None, tuple[Queue, ...]]:
    given.one_of("topic", "subscribePattern", "assign")
    pattern = given.maybe("subscribePattern", values.pattern)
    assigned = given.maybe("assign", _queues) or ()
    topics = tuple(dict.fromkeys(values.words(given.text("topic", ""))))
    if assigned:
        topics = tuple(dict.fromkeys(queue.topic for queue in assigned))
    if not topics and pattern is None:
        raise ConfigError("topic is missing: one topic, or several with commas between")
    return topics, pattern, assigned


def _queues(text: str, option: str) -> tuple[Queue, ...]:
    wrong = f'{option} is JSON such as {{"orders": {{"broker-a": [0, 1]}}}}, not {text!r}'
    try:
        table = json.loads(text)
        found = tuple(
            sorted(
                Queue(topic, broker, int(queue_id))
                for topic, brokers in table.items()
                for broker, ids in brokers.items()
                for queue_id in ids
            )
        )
    except (ValueError, AttributeError, TypeError) as error:
        raise ConfigError(wrong) from error
    if not found or found[0].queue_id < 0:
        raise ConfigError(wrong)
    return found


def _tags(given: Given) -> str:
    text = given.text("tags", ALL).strip()
    try:
        parse_tags(text)
    except BadSubscription as error:
        raise ConfigError(f"tags: {error}") from error
    return text or ALL


def _sql(text: str, option: str) -> str:
    try:
        condition(text)
    except BadSql as error:
        raise ConfigError(f"{option}: {error}") from error
    return text


def columns_of(options: Mapping[str, str]) -> tuple[str, ...]:
    """The columns that were chosen, all of them if none were."""
    given, known = canonical(options), known_columns(options)
    if "columns" in given:
        return check_columns(values.words(given["columns"]), known)
    is_kafka = known is KAFKA_COLUMNS  # Kafka's source leaves headers out by default
    keeps = values.flag(given.get("includeProperties", str(not is_kafka)), "includeProperties")
    return tuple(name for name in known if keeps or name not in ("properties", "headers"))


def known_columns(options: Mapping[str, str]) -> Mapping[str, str]:
    """Every column that can be chosen, by our names or by Kafka's."""
    schema = values.choice(canonical(options).get("schema", ROCKETMQ), "schema", (ROCKETMQ, KAFKA))
    return KAFKA_COLUMNS if schema == KAFKA else COLUMNS


def column_types(options: Mapping[str, str]) -> dict[str, str]:
    """The columns that were chosen and the Spark type of each."""
    body = values.choice(canonical(options).get("bodyAs", BINARY), "bodyAs", (BINARY, TEXT))
    types = {**known_columns(options)}
    if body == TEXT:
        types["value" if "value" in types else "body"] = "string"
    return {name: types[name] for name in columns_of(options)}
