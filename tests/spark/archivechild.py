"""Archives in processes of their own, to be killed or starved."""

import multiprocessing
import resource
import signal
from pathlib import Path
from typing import Any

from lakekit import Here

from gantrymq.base.clock import SystemClock
from gantrymq.pipelines.archive.run import Archive, ArchiveRequest, ArchiveResult
from gantrymq.pipelines.archive.work import WorkFailed
from gantrymq.pipelines.lake import TableError, open_table
from gantrymq.spark.options.source_parser import parse_source_options

served = multiprocessing.get_context("forkserver")
"""Children of a process that has imported everything and done nothing: they start at once."""
served.set_forkserver_preload(
    ["archivechild", "gantrymq.pipelines.lake.delta", "gantrymq.pipelines.lake.iceberg",
     "gantrymq.pipelines.lake.plain", "pyiceberg.catalog.sql", "pyiceberg.io.pyarrow"]
)  # fmt: skip


def archive(
    namesrv: str, topic: str, path: Path, form: str = "delta", run: str = "r", **job: Any
) -> ArchiveResult:
    """One run to the present, in this process."""
    settings = {"nameServer": namesrv, "topic": topic, "patience": "1s"}
    table = open_table(path, form, create=True)
    options = parse_source_options(settings)
    return Archive(
        Here(), table, ArchiveRequest(options=options, **job), run=run, clock=SystemClock()
    ).run()


def many_commits(namesrv: str, topic: str, path: Path, form: str, number: int) -> None:
    """A run with many moments to be killed at."""
    archive(namesrv, topic, path, form, run=f"k{number}", rows_per_commit=60)


def starved(namesrv: str, topic: str, path: Path, form: str, size: int, said: Any) -> None:
    """A process whose files cannot grow beyond a size, as on a disk that is full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    try:
        archive(namesrv, topic, path, form, run="full")
    except (WorkFailed, TableError) as error:
        said.send(str(error))
    else:
        said.send("")
