"""Topics into tables through a real Spark from a real broker."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lakekit import FORMATS
from sparkkit import BROKER, Processes, bodies_of, numbered

from gantrymq.base.clock import SystemClock
from gantrymq.model import Queue
from gantrymq.pipelines.archive.run import Archive, Job, OtherQueue, Totals
from gantrymq.pipelines.archive.work import WorkFailed
from gantrymq.pipelines.lake import open_table
from gantrymq.pipelines.lake.files import doubled
from gantrymq.spark.plan import Offsets
from gantrymq.spark.rows import source_options

pytestmark = pytest.mark.timeout(240)

Make = Callable[..., Archive]


@pytest.fixture
def make(spark: Any, cluster: Processes, topic: str, tmp_path: Path) -> Make:
    """An archive of the test's topic into a table of its own."""

    def made(run: str = "one", *, form: str = "delta", topics: str = "", **job: Any) -> Archive:
        settings = {"nameServer": cluster.namesrv, "topic": topics or topic, "patience": "5s"}
        reports: list[Offsets] = []
        archive = Archive(
            spark, open_table(tmp_path / form, form, create=True),
            Job(options=source_options(settings), **job),
            run=run, clock=SystemClock(), report=reports.append,
        )  # fmt: skip
        archive.reports = reports  # type: ignore[attr-defined]
        return archive

    return made


def rows_of(spark: Any, path: Path) -> list[str]:
    """The bodies in a table, read anew."""
    table = open_table(path)
    assert [] == doubled(table.files())
    return bodies_of(table.frame(spark).collect())


@pytest.mark.parametrize("form", FORMATS)
def test_a_run_goes_on_where_the_last_one_ended(
    form: str, make: Make, spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """Every message once, run after run; a run without news does nothing."""
    cluster.create_topic(topic, queues=3)
    cluster.fill(topic, [30, 20, 0])

    archive = make(form=form)
    assert 50 == archive.run().rows
    cluster.fill(topic, [5, 0, 7], first=1000)
    assert 12 == make("two", form=form, rows_per_commit=4).run().rows
    idle = make("three", form=form).run()

    assert Totals() == idle
    assert numbered([30, 20, 0]) + numbered([5, 0, 7], first=1000) == sorted(
        rows_of(spark, tmp_path / form), key=lambda body: int(body.split(":")[1]) >= 1000
    )
    assert [{Queue(topic, BROKER, n): c for n, c in enumerate([30, 20, 0])}] == archive.reports  # type: ignore[attr-defined]
