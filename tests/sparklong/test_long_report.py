"""A report made on a cluster of Spark's, from live topics and from their archive."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from shopkit import open_shop
from sparkkit import Processes

from gantrymq.base.clock import SystemClock
from gantrymq.base.time_text import Period
from gantrymq.model import TRACE_TOPIC
from gantrymq.pipelines.archive.run import Archive, ArchiveRequest
from gantrymq.pipelines.lake import open_table
from gantrymq.pipelines.marts import lag, ledger, traffic
from gantrymq.pipelines.report.build import build_report
from gantrymq.pipelines.report.report import Report
from gantrymq.pipelines.report.request import ReportRequest
from gantrymq.pipelines.report.sections import MARTS
from gantrymq.spark.options.source_parser import parse_source_options

pytestmark = pytest.mark.timeout(600)

COUNT = 40


def made(spark: Any, tmp_path: Path | None = None, **wanted: Any) -> Report:
    return build_report(spark, ReportRequest(**wanted), clock=SystemClock(), history=tmp_path)


def rows(report: Report, *apart: Any) -> dict[str, Any]:
    """All tables but some."""
    names = {mart.name for mart in apart}
    return {mart.name: report.table(mart).rows for mart in MARTS if mart.name not in names}


def times(spark: Any, cluster: Processes, topic: str) -> list[int]:
    """When the messages of a topic were stored."""
    rows = spark.read.format("rocketmq").options(nameServer=cluster.namesrv, topic=topic).load()
    return sorted(row[0] for row in rows.selectExpr("unix_millis(storeTimestamp)").collect())


def test_a_period_of_live_topics_is_the_same_from_an_archive(
    far_spark: Any, cluster: Processes, tmp_path: Path
) -> None:
    """The same tables, with the messages of the period and no others; what was sent or consumed at
    its edges is not called lost."""
    spark = far_spark
    shop = asyncio.run(open_shop(cluster.namesrv, "report-orders", COUNT))
    stored = times(spark, cluster, shop.topic)
    period = Period(stored[COUNT // 4], stored[-COUNT // 4])
    inside = sum(period.since_ms <= at < period.until_ms for at in stored)  # type: ignore[operator]
    given = {"namesrv": cluster.namesrv, "topics": (shop.topic,), "period": period}
    settings = {"nameServer": cluster.namesrv, "topic": f"{shop.topic},{TRACE_TOPIC}"}
    archive = tmp_path / "archive"
    Archive(
        spark,
        open_table(archive, create=True),
        ArchiveRequest(options=parse_source_options(settings)),
        run="one",
        clock=SystemClock(),
        report=lambda _: None,
    ).run()

    live = made(spark, tmp_path / "history", **given)
    archived = made(spark, archive=archive, **given)

    assert rows(live, lag.LAG) == rows(archived, lag.LAG)
    assert (0, []) == (live.unexplained, live.notes)
    assert [inside] == [row["stored"] for row in live.table(ledger.TOPICS).rows]
    assert {inside} == {row["messages"] for row in live.table(ledger.GROUPS).rows}
    assert inside == sum(
        row["messages"] for row in live.table(traffic.TRAFFIC).rows if row["direction"] == "in"
    )
