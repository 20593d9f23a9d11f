"""Where a query begins or ends, as users write it: words, offsets or times. Pure."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from gantrymq.base.errors import ConfigError
from gantrymq.model import Queue
from gantrymq.model.offset_ranges import QueueOffsets, from_json, queue_table
from gantrymq.spark.options.values import moment_ms

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
COMMITTED: Final = "committed"
AT_LATEST: Final = -1
AT_EARLIEST: Final = -2


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first message stored at a time or later; one time for all queues, or one a queue."""

    everywhere: int | None = None
    by_queue: Mapping[Queue, int] | None = None

    def of(self, queues: Mapping[Queue, int]) -> dict[Queue, int]:
        """The time for each queue; queues without one are left out."""
        if self.everywhere is not None:
            return dict.fromkeys(queues, self.everywhere)
        given = self.by_queue or {}
        _check_known(given, queues)
        return dict(given)

    @property
    def newest(self) -> int:
        """The latest of the times."""
        given = (self.by_queue or {}).values()
        return max(given, default=0) if self.everywhere is None else self.everywhere


Point = str | QueueOffsets | AtTime
"""`earliest`, `latest`, `committed`, an offset a queue (-1 latest, -2 earliest), or a time."""


def parse_point(text: str, option: str, *, committed: bool = True) -> Point:
    """The value of startingOffsets or endingOffsets."""
    word = text.strip().lower()
    if word in (EARLIEST, LATEST) or (word == COMMITTED and committed):
        return word
    kinds = "earliest, latest, committed" if committed else "earliest, latest"
    return from_json(_loads(text, f"{option} is {kinds} or JSON with an offset a queue"))


def parse_times(text: str, option: str) -> AtTime:
    """The value of startingOffsetsByTimestamp: a table like that of offsets, with times."""
    table = queue_table(_loads(text, f"{option} is JSON with a time a queue"))
    return AtTime(by_queue={queue: moment_ms(value, option) for queue, value in table})


def _loads(text: str, wanted: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{wanted}, not {text!r}") from error


def moves(point: Point) -> bool:
    """Whether the point may mean another offset each time it is looked up.

    A time does not: messages stored from now on lie behind it.
    """
    if isinstance(point, str):
        return point in (LATEST, COMMITTED)
    return isinstance(point, dict) and AT_LATEST in point.values()


def resolve(
    point: Point,
    lows: QueueOffsets,
    highs: QueueOffsets,
    *,
    otherwise: str,
    at_times: Callable[[dict[Queue, int]], QueueOffsets] | None = None,
    committed: Callable[[list[Queue]], QueueOffsets] | None = None,
) -> QueueOffsets:
    """An offset for every queue that exists. Queues that the point leaves out are at `otherwise`.

    `at_times` looks up times and `committed` looks up stored progress.
    """
    resolved = dict(lows if otherwise == EARLIEST else highs)
    if isinstance(point, AtTime):
        assert at_times is not None
        return resolved | at_times(point.of(highs))
    if isinstance(point, str):
        if point == COMMITTED:
            assert committed is not None
            return resolved | committed(list(highs))
        return dict(lows if point == EARLIEST else highs)
    _check_known(point, highs)
    for queue, offset in point.items():
        words = {AT_LATEST: highs[queue], AT_EARLIEST: lows[queue]}
        resolved[queue] = words.get(offset, offset)
    return resolved


def _check_known(given: Mapping[Queue, int], queues: Mapping[Queue, int]) -> None:
    missing = [queue for queue in given if queue not in queues]
    if missing:
        raise ConfigError(f"there is no {missing[0].text}: it was given a place to begin or end")
