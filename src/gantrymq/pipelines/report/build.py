"""Make the tables of a report: read what sections share, then section by section."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Final

from pyspark.sql import SparkSession

from gantrymq.base.clock import SystemClock, WallClock, elapsed_seconds
from gantrymq.pipelines.common.progress import RunProgress, Silent
from gantrymq.pipelines.report.facts import gather
from gantrymq.pipelines.report.report import Report
from gantrymq.pipelines.report.request import ReportRequest
from gantrymq.pipelines.report.sections import MARTS, SECTIONS
from gantrymq.pipelines.report.work import ReportWork
from gantrymq.pipelines.staging import group_progress

SETTLE_SECONDS: Final = 2.0
"""Time between the look at progress and the reading of trace: clients hold it back for half a
second."""
COMPILING: Final = "spark.sql.codegen.wholeStage"
FEW_ROWS: Final = 100_000


def build_report(
    spark: SparkSession,
    request: ReportRequest,
    *,
    clock: WallClock | None = None,
    history: Path | None = None,
    progress: RunProgress | None = None,
) -> Report:
    """Make all tables. The snapshot of progress is added to the history, if there is one."""
    progress, clock = progress or Silent(), clock or SystemClock()
    progress.start(len(MARTS), "tables")
    began = elapsed_seconds()
    facts = gather(request, clock)
    if history is not None:
        group_progress.append(
            history, [each for each in facts.progress if each["brokerOffset"] is not None]
        )
    if request.namesrv is not None:
        sleep(max(0.0, SETTLE_SECONDS - (elapsed_seconds() - began)))
    snapshots = group_progress.history(history) if history is not None else facts.progress
    work = ReportWork(spark, request, facts, snapshots, progress, clock.now_ms())
    try:
        with _compiled_if_many(spark, facts.rows):
            work.read()
            for section in SECTIONS:
                section.make(work)
    finally:
        work.release()
        progress.done()
    return work.report


@contextmanager
def _compiled_if_many(spark: SparkSession, rows: int | None) -> Iterator[None]:
    """Switch off Spark's compilation of queries for few rows: it would take longer than they do."""
    before = spark.conf.get(COMPILING)
    if rows is not None and rows <= FEW_ROWS:
        spark.conf.set(COMPILING, "false")
    try:
        yield
    finally:
        spark.conf.set(COMPILING, before or "true")
