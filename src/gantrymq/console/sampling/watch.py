"""What goes on in the background of a console: samples and alarms of each cluster."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gantrymq.base.clock import WallClock
from gantrymq.console.clusters import Clusters
from gantrymq.console.errors import NotThere
from gantrymq.console.sampling.alarms import AlarmWatch
from gantrymq.console.sampling.cluster_tables import ClusterTables
from gantrymq.console.sampling.sample_file import SampleFile
from gantrymq.console.sampling.sampler import ClusterSampler

log = logging.getLogger(__name__)


class WatchedCluster:
    """The samples and alarms of one cluster."""

    def __init__(self, file: SampleFile, sampler: ClusterSampler, alarms: AlarmWatch) -> None:
        self.file, self.sampler, self.alarms = file, sampler, alarms
        self.rings = file.rings


class ClusterWatch:
    """All clusters of a console, while it runs."""

    def __init__(
        self, clusters: Clusters, tables: ClusterTables, data: Path, clock: WallClock
    ) -> None:
        self._clusters, self._tables, self._data, self._clock = clusters, tables, data, clock
        self._watched: dict[str, WatchedCluster] = {}

    def of(self, cluster: str) -> WatchedCluster:
        """The samples and alarms of a cluster."""
        self._clusters.address(cluster)
        if cluster not in self._watched:
            raise NotThere(f"nobody watches {cluster!r}: the console just begins or ends")
        return self._watched[cluster]

    def is_up(self, cluster: str) -> bool:
        """Whether the last look at a cluster found all of it."""
        watched = self._watched.get(cluster)
        return watched is not None and not watched.sampler.trouble

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watch as long as the block."""
        tasks: list[asyncio.Task[None]] = []
        try:
            for name in self._clusters.names:
                watched = self._open(name)
                tasks.append(asyncio.create_task(self._sampled(watched)))
                tasks.append(asyncio.create_task(watched.alarms.run()))
            yield
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            while self._watched:
                self._watched.popitem()[1].file.close()

    def _open(self, name: str) -> WatchedCluster:
        file = SampleFile(self._data, name)
        sampler = ClusterSampler(name, self._clusters, self._tables, file.rings, self._clock)
        found = WatchedCluster(file, sampler, AlarmWatch(name, self._clusters))
        self._watched[name] = found
        return found

    async def _sampled(self, watched: WatchedCluster) -> None:
        while True:
            try:
                await watched.sampler.run()
            except Exception:
                log.exception("sampling is begun again")
                await asyncio.sleep(10)
