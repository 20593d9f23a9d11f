"""Topics into a lakehouse table: every message once in each table, whatever is killed when."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gantrymq.pipelines.archive.run import Totals


def archive_topics(
    spark: Any,
    source: Mapping[str, str],
    into: str | Path,
    *,
    format: str | None = None,  # noqa: A002 - what users call it
    start: str = "earliest",
    allow_gaps: bool = False,
) -> "Totals":
    """Archive topics up to the present; again and again, it goes on from the table.

    `source` has options of the format "rocketmq" that say what to read: nameServer, topic or
    subscribePattern, via, storePath, group. With a group the progress is reported to brokers.
    """
    from gantrymq.pipelines.archive.entry import ArchiveRun, run_archive
    from gantrymq.pipelines.archive.run import ArchiveRequest
    from gantrymq.pipelines.lake import open_table
    from gantrymq.spark.options.points import parse_point
    from gantrymq.spark.source.rows import source_options

    options, table = source_options(source), open_table(into, format, create=True)
    request = ArchiveRequest(
        options=options, start=parse_point(start, "start"), allow_gaps=allow_gaps
    )
    names_group = "group" in {name.lower() for name in source}
    return run_archive(
        spark, ArchiveRun(request=request, table=table, commits_progress=names_group)
    )
