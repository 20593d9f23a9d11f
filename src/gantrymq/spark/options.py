"""The options of `format("rocketmq")`, read once into a typed value. Pure.

Spark hands options over with lower-case names and values of text. An option nobody knows is an
error: a misspelt `startingOffsets` must not read the wrong half of a topic.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gantrymq.base.errors import ConfigError
from gantrymq.model import check_group_name
from gantrymq.spark.columns import COLUMNS, check_columns, nearest
from gantrymq.spark.plan import EARLIEST, LATEST, Point, moves, parse_point

NAME_SERVER: Final = "nameServer"
TOPIC: Final = "topic"
STARTING: Final = "startingOffsets"
ENDING: Final = "endingOffsets"
MAX_OFFSETS: Final = "maxOffsetsPerTrigger"
MAX_PARTITIONS: Final = "maxPartitions"
COLUMNS_OPTION: Final = "columns"
GROUP: Final = "group"
FAIL_ON_DATA_LOSS: Final = "failOnDataLoss"
PULL_BATCH_SIZE: Final = "pullBatchSize"

NAMES: Final = (
    NAME_SERVER, TOPIC, STARTING, ENDING, MAX_OFFSETS, MAX_PARTITIONS, COLUMNS_OPTION, GROUP,
    FAIL_ON_DATA_LOSS, PULL_BATCH_SIZE,
)  # fmt: skip
ALIASES: Final = {"namesrvAddr": NAME_SERVER, "subscribe": TOPIC, "consumerGroup": GROUP}
BATCH_ONLY: Final = (ENDING,)
STREAM_ONLY: Final = (MAX_OFFSETS, MAX_PARTITIONS)

PULL_BATCH_DEFAULT: Final = 4096
GROUP_DEFAULT: Final = "spark-reader"
"""Pulls name a group; nothing of it is stored, so that readers may share one."""

_CANONICAL = {name.lower(): name for name in NAMES} | {
    alias.lower(): name for alias, name in ALIASES.items()
}


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What to read and how."""

    namesrv: str
    topics: tuple[str, ...]
    starting: Point
    ending: Point = LATEST
    rows_max: int | None = None
    """Rows a micro-batch may have."""
    tasks_max: int | None = None
    columns: tuple[str, ...] = tuple(COLUMNS)
    group: str = GROUP_DEFAULT
    fail_on_data_loss: bool = True
    pull_count: int = PULL_BATCH_DEFAULT


def parse_options(
    options: Mapping[str, str], *, streaming: bool, namesrv_default: str = ""
) -> SourceOptions:
    """Read and check the options of a batch or of a stream."""
    given = canonical(options)
    for name in BATCH_ONLY if streaming else STREAM_ONLY:
        if name in given:
            raise ConfigError(f"{name} is an option of {'read' if streaming else 'readStream'}")
    namesrv = given.get(NAME_SERVER, namesrv_default)
    if not namesrv:
        raise ConfigError(f"{NAME_SERVER} is missing: the name server's host:port[;host:port]")
    starting = parse_point(given.get(STARTING, LATEST if streaming else EARLIEST), STARTING)
    ending = parse_point(given.get(ENDING, LATEST), ENDING)
    if not streaming and moves(starting):
        raise ConfigError(f"a batch that begins at {LATEST} has no rows: see {STARTING}")
    return SourceOptions(
        namesrv=namesrv,
        topics=_topics(given),
        starting=starting,
        ending=ending,
        rows_max=_count(given, MAX_OFFSETS),
        tasks_max=_count(given, MAX_PARTITIONS),
        columns=columns_of(options),
        group=check_group_name(given.get(GROUP, GROUP_DEFAULT)),
        fail_on_data_loss=_flag(given, FAIL_ON_DATA_LOSS, default=True),
        pull_count=_count(given, PULL_BATCH_SIZE) or PULL_BATCH_DEFAULT,
    )


def columns_of(options: Mapping[str, str]) -> tuple[str, ...]:
    """The columns that were chosen, all of them if none were."""
    text = canonical(options).get(COLUMNS_OPTION)
    return tuple(COLUMNS) if text is None else check_columns(_words(text))


def canonical(options: Mapping[str, str]) -> dict[str, str]:
    """Options by their proper name, aliases resolved."""
    given: dict[str, str] = {}
    for key, value in options.items():
        name = _CANONICAL.get(key.lower())
        if name is None:
            raise ConfigError(f"unknown option {key}{nearest(key, [*NAMES, *ALIASES])}")
        if name in given and given[name] != value:
            raise ConfigError(f"{name} is given twice, as {given[name]!r} and as {value!r}")
        given[name] = value
    return given


def _topics(given: Mapping[str, str]) -> tuple[str, ...]:
    topics = tuple(dict.fromkeys(_words(given.get(TOPIC, ""))))
    if not topics:
        raise ConfigError(f"{TOPIC} is missing: one topic, or several with commas between")
    return topics


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _count(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) < 1:
        raise ConfigError(f"{name} is a number above 0, not {text!r}")
    return int(text)


def _flag(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = given.get(name, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise ConfigError(f"{name} is true or false, not {given[name]!r}")
    return text == "true"
