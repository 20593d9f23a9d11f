"""Reports every finished micro-batch: to the broker, and into a file.

The source itself reports a batch when Spark plans the next one, which may be hours later, or never
after the last batch of a run. The listener reports at once. It lives in the process that holds the
session; the source puts the group and its name server into the query's progress.
"""

# ruff: noqa: N802 - the names of the methods are Spark's

import json
import logging
from typing import Any, Final

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from gantrymq.base.errors import GantryError
from gantrymq.model.offset_ranges import from_json
from gantrymq.spark.options.source_options import ClusterAccess, ProgressReports
from gantrymq.spark.records.state_files import write_state
from gantrymq.spark.source.progress import PROGRESS, StreamProgress

log = logging.getLogger(__name__)

FILE_NAME: Final = "progress.json"
GROUPS_MAX: Final = 64
"""Groups that a connection is kept for."""

_Key = tuple[str, str, bool]


class ProgressListener(StreamingQueryListener):  # type: ignore[misc, unused-ignore]
    """The listener of one session."""

    def __init__(self) -> None:
        self._groups: dict[_Key, StreamProgress] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Do nothing: no batch is finished yet."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Do nothing: the progress has not changed."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Close all connections; the next report opens them again."""
        for progress in self._groups.values():
            progress.close()
        self._groups.clear()

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Report the progress of each source; an error is logged and does not reach Spark."""
        for source in event.progress.sources:
            try:
                self._take(event.progress, source)
            except (GantryError, ValueError) as error:
                log.warning("progress of %s not passed on: %s", event.progress.id, error)

    def _take(self, progress: Any, source: Any) -> None:
        latest = _table(source.latestOffset)
        about = latest.pop(PROGRESS, None)
        end = _table(source.endOffset)
        if not isinstance(about, dict):
            return  # a source of another format
        if about["group"]:
            self._of(about["nameServer"], about["group"], about["rewind"]).report(from_json(end))
        if about["statePath"]:
            summary = {
                "queryId": str(progress.id),
                "name": progress.name,
                "batchId": progress.batchId,
                "timestamp": progress.timestamp,
                "rows": source.numInputRows,
                **{name: about[name] for name in ("lagRows", "lagBytes", "lagSeconds")},
                "endOffset": end,
                "latestOffset": latest,
            }
            content = json.dumps(summary, indent=1).encode() + b"\n"
            write_state(about["statePath"], FILE_NAME, content)

    def _of(self, namesrv: str, group: str, rewinds: bool) -> StreamProgress:
        key = (namesrv, group, rewinds)
        if key not in self._groups:
            while len(self._groups) >= GROUPS_MAX:
                self._groups.pop(next(iter(self._groups))).close()
            cluster = ClusterAccess(namesrv=namesrv, group=group)
            reports = ProgressReports(commits=True, rewinds=rewinds)
            self._groups[key] = StreamProgress(cluster, reports)
        return self._groups[key]


def _table(text: str | None) -> dict[str, Any]:
    found = json.loads(text) if text else {}
    return found if isinstance(found, dict) else {}
