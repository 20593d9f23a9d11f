"""The progress of a stream, reported to brokers and in Spark's own progress.

The broker's copy is only a report: a query goes on from its checkpoint, whatever the broker says.
It lets tools that watch consumer groups watch Spark, too. It only moves forward, unless the query
was allowed to move it back.
"""

import logging
from typing import Any, Final

from gantrymq.base.clock import SystemClock, elapsed_seconds
from gantrymq.base.errors import GantryError
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.groups import group_settings
from gantrymq.client.consume.membership.offset_store import RemoteOffsets
from gantrymq.client.core.errors import NoRoute
from gantrymq.client.core.instance import Instance
from gantrymq.model import GroupConfig, retry_topic
from gantrymq.model.offset_ranges import QueueOffsets, count_behind
from gantrymq.spark.options.source_options import ClusterAccess, ProgressReports, SourceOptions
from gantrymq.spark.records.fetch import Reader
from gantrymq.spark.records.rows import Rows
from gantrymq.spark.records.survey import committed

log = logging.getLogger(__name__)

PROGRESS: Final = "@progress"
"""Where a query's progress has what is not an offset. No topic can have this name."""
REPORT_SECONDS_MAX: Final = 2.0
"""A batch does not wait longer for its report."""
AGAIN_SECONDS: Final = 10.0
"""After a failed report the next one is not tried sooner."""
SAMPLE_QUEUES_MAX: Final = 64
"""So many queues are asked for the age of their next message."""


class StreamProgress:
    """Reports the progress of one stream under its group."""

    def __init__(self, cluster: ClusterAccess, reports: ProgressReports) -> None:
        self._cluster, self._reports = cluster, reports
        self._reader: Reader | None = None
        self._told: QueueOffsets = {}
        self._not_before = 0.0

    def report(self, offsets: QueueOffsets) -> None:
        """Report to the broker. An error is logged; a later report makes up for it."""
        if not self._reports.commits or offsets == self._told:
            return
        if elapsed_seconds() < self._not_before:
            return
        try:
            self._report(offsets)
        except (GantryError, OSError) as error:
            self._not_before = elapsed_seconds() + AGAIN_SECONDS
            log.warning("progress of %s not reported: %s", self._cluster.group, error)
        else:
            self._told = offsets

    def _report(self, offsets: QueueOffsets) -> None:
        cluster, group, rewinds = self._cluster, self._cluster.group, self._reports.rewinds
        if self._reader is None:
            reader = Reader(
                cluster.namesrv, group, patience=REPORT_SECONDS_MAX, security=cluster.security
            )
            reader.ask(lambda instance: introduce(instance, group))
            self._reader = reader
        self._reader.ask(lambda instance: store(instance, group, offsets, rewinds=rewinds))

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None


async def introduce(instance: Instance, group: str) -> None:
    """Create the group on every master that lacks it: brokers keep no progress of an unknown group.

    Tools find groups by their retry topic, so it is created, too.
    """
    async with Admin(client=instance.options) as admin:
        known = (await group_settings.settings(admin)).get(group, {})
        for broker in await admin.masters():
            if broker not in known:
                await admin.update_group(
                    GroupConfig(group_name=group, retry_queue_nums=1), broker=broker
                )
        try:
            await instance.routes.refresh(retry_topic(group))
        except NoRoute:
            await admin.create_topic(retry_topic(group), queues=1)


async def store(
    instance: Instance, group: str, offsets: QueueOffsets, *, rewinds: bool = False
) -> QueueOffsets:
    """Store offsets that are ahead of the stored ones, with `rewinds` any; returns those."""
    stored = await committed(instance, group, list(offsets))
    moved = {
        queue: offset
        for queue, offset in offsets.items()
        if offset != stored.get(queue) and (rewinds or offset > stored.get(queue, -1))
    }
    await RemoteOffsets(instance, group).store(moved, wait=True)
    return moved


def describe_progress(
    options: SourceOptions, end: QueueOffsets, highs: QueueOffsets, rows: Rows
) -> dict[str, dict[str, Any]]:
    """What Spark's progress says beside the offsets: group, name server, and lag behind `end`."""
    left = count_behind(end, highs)
    asked = sorted(left, key=lambda queue: -left[queue])[:SAMPLE_QUEUES_MAX]
    samples = rows.samples({queue: end.get(queue, 0) for queue in asked}) if asked else {}
    oldest = min((sample.store_ms for sample in samples.values()), default=None)
    age_ms = 0 if oldest is None else max(0, SystemClock().now_ms() - oldest)
    return {
        PROGRESS: {
            "nameServer": options.cluster.namesrv,
            "group": options.cluster.group if options.progress.commits else None,
            "rewind": options.progress.rewinds,
            "statePath": options.state_path,
            "lagRows": sum(left.values()),
            "lagBytes": int(sum(left[queue] * sample.size for queue, sample in samples.items())),
            "lagSeconds": age_ms / 1000,
        }
    }
