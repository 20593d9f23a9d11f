"""Topics into tables through a real Spark from a real broker."""

import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from lakekit import FORMATS, Here
from sparkkit import BROKER, Processes, bodies_of, numbered

from gantrymq.base.clock import SystemClock
from gantrymq.base.time_text import Period
from gantrymq.model import Queue
from gantrymq.model.offset_ranges import QueueOffsets
from gantrymq.pipelines.archive.rerun import RerunResult, replace_period
from gantrymq.pipelines.archive.run import Archive, ArchiveRequest, ArchiveResult, OtherQueue
from gantrymq.pipelines.archive.upkeep import SAFE_MS, compact, sweep
from gantrymq.pipelines.lake import Change, Table, file_writer, open_table
from gantrymq.pipelines.lake.files import doubled, encoded
from gantrymq.spark.options.source_parser import parse_source_options

pytestmark = pytest.mark.timeout(240)

Make = Callable[..., Archive]


@pytest.fixture
def make(spark: Any, cluster: Processes, topic: str, tmp_path: Path) -> Make:
    """An archive of the test's topic into a table of its own."""

    def made(run: str = "one", *, form: str = "delta", topics: str = "", **job: Any) -> Archive:
        settings = {"nameServer": cluster.namesrv, "topic": topics or topic, "patience": "5s"}
        reports: list[QueueOffsets] = []
        archive = Archive(
            spark, open_table(tmp_path / form, form, create=True),
            ArchiveRequest(options=parse_source_options(settings), **job),
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

    assert ArchiveResult() == idle
    assert numbered([30, 20, 0]) + numbered([5, 0, 7], first=1000) == sorted(
        rows_of(spark, tmp_path / form), key=lambda body: int(body.split(":")[1]) >= 1000
    )
    assert [{Queue(topic, BROKER, n): c for n, c in enumerate([30, 20, 0])}] == archive.reports  # type: ignore[attr-defined]


def test_two_runs_of_one_archive_double_nothing(
    make: Make, spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """The slower one loses its commit, throws its files away and goes on behind the other."""
    cluster.create_topic(topic, queues=2)
    cluster.fill(topic, [10, 10])
    slow, quick = make("slow"), make("quick")
    commit = slow.table.commit

    def late(change: Change) -> None:
        slow.table.commit = commit  # type: ignore[method-assign]
        quick.run()
        cluster.fill(topic, [3, 0], first=1000)
        commit(change)

    slow.table.commit = late  # type: ignore[method-assign]
    totals = slow.run()
    make("third").run()

    assert (0, 1) == (totals.rows, totals.lost_races)
    assert sorted(numbered([10, 10]) + numbered([3], first=1000)) == rows_of(
        spark, tmp_path / "delta"
    )
    held = {each.path for each in open_table(tmp_path / "delta").files()}
    found = {str(each.relative_to(tmp_path / "delta"))
             for each in (tmp_path / "delta").glob("data/*/*/*")}  # fmt: skip
    assert held == found


def test_topics_of_one_table_do_not_disturb_each_other(
    make: Make, spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """A commit that only lost the race for the table's log is made again with the same files."""
    for name in (f"{topic}-a", f"{topic}-b"):
        cluster.create_topic(name, queues=1)
        cluster.fill(name, [5])
    one, other = make("one", topics=f"{topic}-a"), make("two", topics=f"{topic}-b")
    commit = one.table.commit

    def late(change: Change) -> None:
        one.table.commit = commit  # type: ignore[method-assign]
        other.run()
        commit(change)

    one.table.commit = late  # type: ignore[method-assign]

    assert (5, 0) == ((totals := one.run()).rows, totals.lost_races)
    assert 10 == len(rows_of(spark, tmp_path / "delta"))


def test_an_archive_can_begin_now(
    make: Make, spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """The beginning is kept in the table at once: what comes next is archived by the next run."""
    cluster.create_topic(topic, queues=2)
    cluster.fill(topic, [10, 10])

    assert 0 == make("one", start="latest").run().rows
    cluster.fill(topic, [2, 1], first=1000)
    assert 3 == make("two", start="latest").run().rows

    assert numbered([2, 1], first=1000) == rows_of(spark, tmp_path / "delta")


def test_a_topic_made_anew_is_not_mixed_with_the_old_one(
    make: Make, spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """Offsets that go back mean another topic of the same name: that is said, not guessed."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [5])
    make().run()
    table = open_table(tmp_path / "delta")
    table.commit(Change(0, ends={Queue(topic, BROKER, 0): 50}))

    with pytest.raises(OtherQueue, match=r"ends at 5, but the table .* has it up to 50"):
        make("two").run()


@pytest.mark.parametrize("form", FORMATS)
def test_a_period_is_replaced_and_nothing_else(
    form: str, make: Make, spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """To the millisecond: rows of the period come anew, the files of others keep their rows."""
    cluster.create_topic(topic, queues=1)
    for first in range(0, 30, 10):
        cluster.fill(topic, [10], first)
        make(f"r{first}", form=form).run()
        time.sleep(0.01)
    table = open_table(tmp_path / form)
    times = sorted(_ms(row.storeTimestamp) for row in table.frame(spark).collect())
    since, until = times[10] - 1, times[19] + 1
    before = {each.path for each in table.files()}
    _spoil(table, {each.path for each in table.files() if each.first == 10})

    options = parse_source_options({"nameServer": cluster.namesrv, "topic": topic})
    found = replace_period(
        spark, table, options, Period(since, until), run="again", clock=SystemClock()
    )

    assert RerunResult(rows=10, dropped=10) == found
    assert numbered([30]) == rows_of(spark, tmp_path / form)
    assert 2 == len(before & {each.path for each in open_table(tmp_path / form).files()})
    assert {Queue(topic, BROKER, 0): 30} == open_table(tmp_path / form).positions()

    wide = Period(times[15], None)  # from within a file to the end
    assert (
        sum(at >= times[15] for at in times)
        == replace_period(spark, table, options, wide, run="more", clock=SystemClock()).rows
    )
    assert numbered([30]) == rows_of(spark, tmp_path / form)


def test_small_files_are_joined_and_leftovers_deleted(
    make: Make, spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """The same rows in fewer files; old files stay for a while for those who read them."""
    cluster.create_topic(topic, queues=2)
    for first in range(0, 40, 10):
        cluster.fill(topic, [10, 10], first)
        make(f"r{first}").run()
    table = open_table(tmp_path / "delta")
    (table.root / table.files()[0].path).with_name(".0-dead.part").write_bytes(b"cut")
    rows, now_ms = numbered([40, 40]), SystemClock().now_ms()

    assert (8, 2) == compact(spark, table, run="c", clock=SystemClock())
    assert rows == rows_of(spark, table.root)
    assert {Queue(topic, BROKER, 0): 40, Queue(topic, BROKER, 1): 40} == table.positions()
    assert 0 == sweep(table, now_ms=now_ms)
    assert 9 == sweep(table, now_ms=now_ms + 2 * SAFE_MS)
    assert rows == rows_of(spark, table.root)
    cluster.fill(topic, [1, 0], first=1000)
    assert 1 == make("last").run().rows


def test_a_frame_has_every_row_of_a_table_that_others_compacted(
    make: Make, spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """A foreign hand leaves topic and day out of the files; the table knows them."""
    cluster.create_topic(topic, queues=2)
    for first in (0, 100):
        cluster.fill(topic, [5, 5], first)
        make(f"r{first}").run()
    DeltaTable(tmp_path / "delta").optimize.compact()
    cluster.fill(topic, [5, 0], first=200)
    make("last").run()

    table = open_table(tmp_path / "delta")
    rows = table.frame(spark, topics=[topic], since_ms=0).collect()
    assert 25 == len(bodies_of(rows)) == len(set(bodies_of(rows)))
    assert {(topic, rows[0].dt)} == {(row.topic, row.dt) for row in rows}
    options = parse_source_options({"nameServer": cluster.namesrv, "topic": topic})
    found = replace_period(spark, table, options, Period(0, None), run="a", clock=SystemClock())
    assert RerunResult(rows=25, dropped=25) == found
    assert 25 == len(rows_of(spark, tmp_path / "delta"))


def roots_of(table: Table) -> set[str]:
    """The folders beside the log in which files of rows lie."""
    return {each.path.split("/")[0] for each in table.files()}


@pytest.mark.parametrize("form", FORMATS)
def test_a_table_of_the_older_folder_layout_goes_on(
    form: str, make: Make, spark: Any, cluster: Processes, topic: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Files lay in `topic=T/dt=DAY` beside the log: what is there is read, new files lie in `data`,
    and joining and sweeping take both for the table's own."""
    cluster.create_topic(topic, queues=2)
    cluster.fill(topic, [5, 3])
    with monkeypatch.context() as patch:
        patch.setattr(file_writer, "folder_of", lambda name, day: f"topic={encoded(name)}/dt={day}")
        job = ArchiveRequest(
            options=parse_source_options({"nameServer": cluster.namesrv, "topic": topic})
        )
        older = open_table(tmp_path / form, form, create=True)
        Archive(Here(), older, job, run="one", clock=SystemClock()).run()
    assert {f"topic={encoded(topic)}"} == roots_of(older)
    assert numbered([5, 3]) == rows_of(spark, tmp_path / form)
    cluster.fill(topic, [2, 1], first=100)

    assert 3 == make("two", form=form).run().rows

    wanted = sorted([*numbered([5, 3]), *numbered([2, 1], first=100)])
    table = open_table(tmp_path / form)
    assert {"topic=" + encoded(topic), "data"} == {
        each.path.split("/")[0] for each in table.files()
    }
    assert wanted == rows_of(spark, tmp_path / form)
    assert all(Path(path).exists() for path in table.paths())
    assert {7, 4} == set(table.positions().values())
    now_ms = SystemClock().now_ms()
    assert (4, 2) == compact(spark, table, run="three", clock=SystemClock())
    table.refresh()
    assert {"data"} == roots_of(table)
    assert 0 < sweep(table, now_ms=now_ms + 2 * SAFE_MS)
    assert [] == list((tmp_path / form).glob("topic=*/*/*.parquet"))
    assert wanted == rows_of(spark, tmp_path / form)


def _ms(moment: datetime) -> int:
    """Spark shows times as the session's zone does; the tests' machine may have another."""
    return round(moment.timestamp() * 1000)


def _spoil(table: Table, paths: set[str]) -> None:
    """Let a file hold wrong bodies, as a job with an error would have written it."""
    for path in paths:
        rows = pq.read_table(table.root / path, partitioning=None)
        at = rows.schema.get_field_index("body")
        wrong = rows.set_column(at, "body", pa.array([b"wrong"] * rows.num_rows, pa.binary()))
        pq.write_table(wrong, table.root / path)
