"""Where a query begins and ends, found once and then kept.

Spark asks a new stream several times where it begins, also after a crash in its first batch, and
needs the same answer: messages between two answers would be lost. The beginning is kept in a
file if there is a folder for it. Without one, a beginning that may move is made safe by an empty
first batch, which carries it into the checkpoint before a row depends on it.
"""

import json
from typing import Final

from gantrymq.base.errors import ConfigError
from gantrymq.model.offset_ranges import QueueOffsets, from_json, to_json
from gantrymq.spark.options.points import EARLIEST, LATEST, AtTime, Point, moves, resolve
from gantrymq.spark.options.source_options import QuerySpan, QueueSelection, SourceOptions
from gantrymq.spark.records.rows import Rows
from gantrymq.spark.records.state_files import read_state, write_state

FILE_NAME: Final = "initial.json"


class Beginning:
    """The beginning of one stream."""

    def __init__(self, options: SourceOptions, now_ms: int) -> None:
        self._options = options
        self._point = starting_point(options.span, now_ms)
        self.found: QueueOffsets | None = None

    @property
    def is_kept(self) -> bool:
        """Whether another lookup finds the same beginning."""
        return self._options.state_path is not None or not moves(self._point)

    def find(self, rows: Rows) -> QueueOffsets:
        """The beginning: from memory, from its file, or looked up."""
        if self.found is None:
            self.found = self._kept()
        if self.found is None:
            self.found = locate(self._options.queues, self._point, rows, otherwise=EARLIEST)
            self._keep(self.found)
        return self.found

    def _kept(self) -> QueueOffsets | None:
        folder = self._options.state_path
        content = None if folder is None else read_state(folder, FILE_NAME)
        if content is None:
            return None
        kept = from_json(json.loads(content))
        check_own(self._options.queues, kept, f"startStatePath {folder}")
        return kept

    def _keep(self, found: QueueOffsets) -> None:
        folder = self._options.state_path
        if folder is not None:
            write_state(folder, FILE_NAME, json.dumps(to_json(found)).encode())


def starting_point(span: QuerySpan, now_ms: int) -> Point:
    """The starting point of a query. A future time is `latest`, or an error."""
    point = span.starting
    if not isinstance(point, AtTime) or point.newest <= now_ms:
        return point
    if span.future_is_latest:
        return LATEST
    raise ConfigError(
        "the starting time lies in the future: give an earlier one, or set "
        "startingOffsetsByTimestampStrategy=latest to begin at the end"
    )


def locate(selection: QueueSelection, point: Point, rows: Rows, *, otherwise: str) -> QueueOffsets:
    """The offsets that a point means now."""
    lows, highs = rows.bounds()
    missing = [queue for queue in selection.assigned if queue not in highs]
    if missing:
        raise ConfigError(f"there is no {missing[0].text}: see the option assign")
    return resolve(
        point, lows, highs, otherwise=otherwise, at_times=rows.offsets_at, committed=rows.committed
    )


def check_own(
    selection: QueueSelection, offsets: QueueOffsets, where: str = "the checkpoint"
) -> None:
    """Raise ConfigError if kept offsets have a topic that is not selected."""
    strange = sorted({queue.topic for queue in offsets if not selection.reads(queue)})
    if strange:
        what = selection.pattern or ", ".join(selection.topics)
        raise ConfigError(
            f"{where} is of {', '.join(strange)}, but the options name {what}: use another folder "
            "for this query, or name what it read before"
        )
