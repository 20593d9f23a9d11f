"""The options of a query, as users write them, read into `SourceOptions`. Pure."""

import json
from collections.abc import Mapping
from typing import Any, Final

from gantrymq.base.errors import ConfigError
from gantrymq.filter import BadSql, condition
from gantrymq.model import Queue, check_group_name
from gantrymq.protocol.subscription import ALL, BadSubscription, parse_tags
from gantrymq.spark.options import values
from gantrymq.spark.options.client_security import parse_client_security
from gantrymq.spark.options.option_reader import OptionReader
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
from gantrymq.spark.options.row_shape import parse_row_shape
from gantrymq.spark.options.source_options import (
    AUTO,
    BROKER,
    FAIL,
    GROUP_DEFAULT,
    MIB,
    NEVER,
    REPORT,
    REQUIRE,
    SKIP,
    STORE,
    ClusterAccess,
    MessageConditions,
    ProgressReports,
    PullLimits,
    QuerySpan,
    QueueSelection,
    SourceOptions,
    StoreAccess,
    TaskLimits,
    TriggerLimits,
)

BATCH, OFF = "batch", "off"
BYTES_OF_A_TASK: Final = 256 * MIB


def parse_source_options(
    options: Mapping[str, str], *, streaming: bool = False, namesrv_default: str = ""
) -> SourceOptions:
    """Read and check the options of a batch or of a stream."""
    given = OptionReader(options, streaming=streaming)
    files = _files(given)
    cluster = _cluster(given, namesrv_default if files.via == BROKER else "")
    if not cluster.namesrv and (files.via == BROKER or files.access == NEVER):
        raise ConfigError("nameServer is missing: the name server's host:port[;host:port]")
    if (files.via == STORE) != given.has("storePath"):
        raise ConfigError("via=store needs storePath, the broker's store folder, and storePath it")
    progress, span = _progress(given), _span(given, streaming=streaming)
    needs_group = (progress.commits and streaming) or span.starting == COMMITTED
    if needs_group and not (given.has("group") and cluster.namesrv):
        raise ConfigError(
            "progress needs a group, and a nameServer to find it: set the option group"
        )
    queues, tasks, trigger = _queues(given), _tasks(given, streaming=streaming), _trigger(given)
    on_loss = given.choice("failOnDataLoss", FAIL, SKIP, REPORT)
    if on_loss == REPORT and not given.has("startStatePath"):
        raise ConfigError("failOnDataLoss=report needs startStatePath, a folder for what was lost")
    return SourceOptions(
        cluster=cluster,
        files=files,
        queues=queues,
        messages=_messages(given),
        span=span,
        trigger=trigger,
        tasks=tasks,
        progress=progress if streaming else ProgressReports(rewinds=progress.rewinds),
        pull=_pull(given),
        shape=parse_row_shape(options),
        on_loss=on_loss,
        state_path=given.get("startStatePath"),
    )


# one function a group


def _cluster(given: OptionReader, namesrv_default: str) -> ClusterAccess:
    group = given.maybe("group", lambda text, _: check_group_name(text))
    return ClusterAccess(
        namesrv=given.text("nameServer", namesrv_default),
        group=group or GROUP_DEFAULT,
        security=parse_client_security(given.given),
        **_known(
            patience_ms=given.maybe("patience", values.duration_ms),
            metadata_ms=given.maybe("metadataMaxAge", values.duration_ms),
        ),
    )


def _files(given: OptionReader) -> StoreAccess:
    return StoreAccess(
        via=given.choice("via", BROKER, STORE),
        path=given.get("storePath"),
        access=given.choice("storeAccess", AUTO, NEVER, REQUIRE),
    )


def _queues(given: OptionReader) -> QueueSelection:
    given.one_of("topic", "subscribePattern", "assign")
    pattern = given.maybe("subscribePattern", values.pattern)
    assigned = given.maybe("assign", _assigned) or ()
    topics = tuple(dict.fromkeys(values.words(given.text("topic", ""))))
    if assigned:
        topics = tuple(dict.fromkeys(queue.topic for queue in assigned))
    if not topics and pattern is None:
        raise ConfigError("topic is missing: one topic, or several with commas between")
    ids = given.maybe("queues", values.queue_ids)
    return QueueSelection(topics=topics, pattern=pattern, assigned=assigned, ids=ids)


def _messages(given: OptionReader) -> MessageConditions:
    return MessageConditions(
        tags=_tags(given),
        sql=given.maybe("sqlFilter", _sql),
        keys=frozenset(given.text("keyFilter", "").split()),
    )


def _span(given: OptionReader, *, streaming: bool) -> QuerySpan:
    strategy = given.choice("startingOffsetsByTimestampStrategy", "error", LATEST)
    return QuerySpan(
        starting=_starting(given, streaming=streaming),
        ending=_ending(given),
        future_is_latest=strategy == LATEST,
        new_queue_start=given.choice("newQueueStart", EARLIEST, LATEST),
    )


def _trigger(given: OptionReader) -> TriggerLimits:
    rows_min, rows_max = given.limits("OffsetsPerTrigger")
    return TriggerLimits(
        rows_max=rows_max,
        rows_min=rows_min,
        bytes_max=given.maybe("maxBytesPerTrigger", values.size),
        **_known(delay_ms=given.maybe("maxTriggerDelay", values.duration_ms)),
    )


def _tasks(given: OptionReader, *, streaming: bool) -> TaskLimits:
    tasks_min, tasks_max = given.limits("Partitions")
    bytes_max = given.maybe("maxBytesPerPartition", values.size)
    return TaskLimits(
        tasks_min=tasks_min,
        tasks_max=tasks_max,
        rows_max=given.maybe("maxRecordsPerPartition", values.count),
        bytes_max=bytes_max or (None if streaming else BYTES_OF_A_TASK),
    )


def _progress(given: OptionReader) -> ProgressReports:
    default = BATCH if given.has("group") else OFF
    return ProgressReports(
        commits=given.choice("commitOffsets", BATCH, OFF, default=default) == BATCH,
        rewinds=given.flag("commitRewind", default=False),
    )


def _pull(given: OptionReader) -> PullLimits:
    return PullLimits(
        **_known(
            count=given.maybe("pullBatchSize", values.count),
            size=given.maybe("pullBatchBytes", values.size),
            timeout_ms=given.maybe("pullTimeout", values.duration_ms),
        )
    )


def _known(**numbers: int | None) -> dict[str, Any]:
    """The numbers that were given; the others have the defaults of their group."""
    return {name: number for name, number in numbers.items() if number is not None}


# one function a value


def _starting(given: OptionReader, *, streaming: bool) -> Point:
    chosen = given.one_of("startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp")
    point = _point(given, chosen, LATEST if streaming else EARLIEST, committed=True)
    if not streaming and point != COMMITTED and moves(point):
        raise ConfigError("a batch that begins at latest has no rows: see startingOffsets")
    return point


def _ending(given: OptionReader) -> Point:
    chosen = given.one_of("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
    return _point(given, chosen, LATEST, committed=False)


def _point(given: OptionReader, chosen: str | None, default: str, *, committed: bool) -> Point:
    if chosen is None:
        return default
    text = given.text(chosen, "")
    if chosen.endswith("Offsets"):
        return parse_point(text, chosen, committed=committed)
    if chosen.endswith("OffsetsByTimestamp"):
        return parse_times(text, chosen)
    return AtTime(values.moment_ms(text, chosen))


def _assigned(text: str, option: str) -> tuple[Queue, ...]:
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


def _tags(given: OptionReader) -> str:
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
