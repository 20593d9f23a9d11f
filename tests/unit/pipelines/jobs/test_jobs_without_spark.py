"""Running again without Spark: steps of time, and tables whose periods are replaced."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from lakekit import written

from gantrymq.base.disk import LockedError
from gantrymq.base.errors import ConfigError, GantryError
from gantrymq.base.time_text import describe
from gantrymq.model import Queue
from gantrymq.pipelines.jobs.feeds import FOR_EVER, ArchiveFeed, oldest
from gantrymq.pipelines.jobs.job import Job, job
from gantrymq.pipelines.jobs.periods import parse_grain
from gantrymq.pipelines.jobs.result_files import Staged, write_part
from gantrymq.pipelines.jobs.results import ResultPeriod, Results
from gantrymq.pipelines.lake import Change, CommitConflict, TableError, open_table

HOUR = 3_600_000
QUEUE = Queue("orders", "broker-a", 0)
SCHEMA = pa.schema([("hour", pa.timestamp("us", "UTC")), ("name", pa.string())])


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


NOON = at("2026-05-05 12:00")


# steps of time


def test_a_step_begins_where_the_length_says() -> None:
    """
    Hours and minutes are counted in UTC; a moment on the edge begins a step.
    """
    quarter = parse_grain("15min", "Europe/Berlin")

    assert NOON == quarter.floor(NOON + 899_999)
    assert (NOON, NOON + 900_000) == (quarter.ceil(NOON), quarter.ceil(NOON + 1))
    assert [10, 1000, 60_000, HOUR, 2 * HOUR] == [
        parse_grain(text, "UTC").length_ms
        for text in ("10ms", "1s", "1 minute", "1 hour", "2 hours")
    ]


def test_a_day_is_that_of_the_zone() -> None:
    """
    The night the clocks change has a day of 23 or 25 hours.
    """
    day = parse_grain("1d", "Europe/Berlin")
    spring, autumn = at("2026-03-29 12:00"), at("2026-10-25 12:00")

    assert [23.0, 25.0] == [(day.ceil(noon) - day.floor(noon)) / HOUR for noon in (spring, autumn)]
    assert at("2026-03-28 23:00") == day.floor(spring)


@pytest.mark.parametrize("every", ["", "0s", "7min", "2d", "1 fortnight", "h", "-1h"])
def test_a_step_divides_a_day(every: str) -> None:
    """
    Others would begin at another time each day.
    """
    with pytest.raises(ConfigError, match="another part of a day"):
        parse_grain(every, "UTC")


def test_a_period_is_made_of_whole_steps() -> None:
    """
    Half a step cannot be replaced; the error tells the period that can.
    """
    hours = parse_grain("1h", "UTC")
    hours.check(NOON, NOON + HOUR)
    hours.check(NOON, None)

    with pytest.raises(ConfigError) as caught:
        hours.check(NOON + 1, NOON + HOUR + 1)

    assert (
        "a period begins and ends with a whole step of 3600 s: widen it to "
        "--since '2026-05-05 12:00:00.000+00:00' --until '2026-05-05 14:00:00.000+00:00'"
        == str(caught.value)
    )


def test_a_broker_has_everything_from_its_oldest_message_on() -> None:
    """
    Logs are deleted from the old end, all queues of a broker together.
    """
    other = Queue("orders", "broker-a", 1)

    assert {"broker-a": 50} == oldest({QUEUE: 70, other: 50}, {"broker-a"})
    assert {"broker-a": FOR_EVER} == oldest({}, {"broker-a"})
    assert {} == oldest({}, set())


# tables


def staged(folder: Path, *rows: tuple[int, str], schema: pa.Schema = SCHEMA) -> Staged:
    """Rows as a worker would have left them."""
    hours = pa.array([NOON + hour * HOUR for hour, _ in rows], pa.timestamp("ms", "UTC"))
    columns = [hours, pa.array([name for _, name in rows], pa.string())]
    batch = pa.RecordBatch.from_arrays(columns, ["hour", "name"]).cast(schema)
    reports = [row for part in write_part([batch], schema, str(folder), "hour")
               for row in part.to_pylist()]  # fmt: skip
    return Staged(
        schema=schema,
        paths=tuple(row["path"] for row in reports),
        rows=sum(row["rows"] for row in reports),
        blank=0,
        first_us=None,
        last_us=None,
    )


def content(root: Path) -> list[tuple[int, str]]:
    rows = DeltaTable(root).to_pyarrow_table().to_pylist()
    return sorted(
        ((round(row["hour"].timestamp() * 1000) - NOON) // HOUR, row["name"]) for row in rows
    )


def span(since: int, until: int | None) -> ResultPeriod:
    return ResultPeriod(NOON + since * HOUR, None if until is None else NOON + until * HOUR)


def test_a_commit_replaces_a_period_and_nothing_else(tmp_path: Path) -> None:
    """
    Rows before and behind stay; the same period may be replaced again; the end is exclusive.
    """
    results = Results(tmp_path / "t", "j", "hour")
    old = [(hour, "old") for hour in range(5)]
    results.replace(span(0, None), staged(tmp_path, *old), {QUEUE: 7}, "run")

    assert 2 == results.rows_in(span(1, 3))
    results.replace(span(1, 3), staged(tmp_path, (1, "new"), (2, "new"), (2, "more")), {}, "again")
    expected = [(0, "old"), (1, "new"), (2, "more"), (2, "new"), (3, "old"), (4, "old")]

    assert expected == content(tmp_path / "t")
    results.replace(span(1, 3), staged(tmp_path), {}, "again")
    assert [(0, "old"), (3, "old"), (4, "old")] == content(tmp_path / "t")
    assert {QUEUE: 7} == Results(tmp_path / "t", "j", "hour").positions([QUEUE])
    assert {} == Results(tmp_path / "t", "other", "hour").positions([QUEUE])


def test_of_two_runs_that_did_not_know_of_each_other_one_is_refused(tmp_path: Path) -> None:
    """
    Also when they replace different periods: their positions would not fit together.
    """
    first = Results(tmp_path / "t", "j", "hour")
    first.replace(span(0, None), staged(tmp_path, (0, "a"), (5, "a")), {QUEUE: 1}, "run")
    one, two = (Results(tmp_path / "t", "j", "hour") for _ in range(2))
    one.replace(span(5, None), staged(tmp_path, (5, "b")), {QUEUE: 2}, "run")

    with pytest.raises(CommitConflict, match="changed by somebody else"):
        two.replace(span(0, 1), staged(tmp_path, (0, "c")), {}, "again")

    assert [(0, "a"), (5, "b")] == content(tmp_path / "t")


def test_positions_move_on_without_rows(tmp_path: Path) -> None:
    """
    A commit of its own, which loses against others like any; no table is made for it.
    """
    empty = Results(tmp_path / "none", "j", "hour")
    assert None is empty.advance({QUEUE: 5}, "run")
    assert not (tmp_path / "none").exists()
    results = Results(tmp_path / "t", "j", "hour")
    version = results.replace(span(0, None), staged(tmp_path, (0, "a")), {QUEUE: 1}, "run")
    late = Results(tmp_path / "t", "j", "hour")

    assert version + 1 == results.advance({QUEUE: 5}, "run")
    assert {QUEUE: 5} == Results(tmp_path / "t", "j", "hour").positions([QUEUE])
    assert [(0, "a")] == content(tmp_path / "t")
    with pytest.raises(CommitConflict, match="changed by somebody else"):
        late.advance({QUEUE: 9}, "run")
    assert {QUEUE: 5} == Results(tmp_path / "t", "j", "hour").positions([QUEUE])


def test_a_table_belongs_to_one_job(tmp_path: Path) -> None:
    """
    A period is replaced whoever made its rows: so a second job, or one that was renamed, may not
    begin. A job that only repeated a period has made its rows itself.
    """
    made = Results(tmp_path / "t", "j", "hour")
    made.check_own()
    made.replace(span(0, 1), staged(tmp_path, (0, "a")), {}, "again")
    Results(tmp_path / "t", "j", "hour").check_own()
    renamed = Job(work=str, name="k", topic="orders", table=str(tmp_path / "t"), time="hour",
                  every="1h", archive=str(archived(tmp_path / "a", (0, 1, 0))))  # fmt: skip

    with pytest.raises(ConfigError, match=r"the job k did not make, .* choose another table"):
        renamed.run(None)
    with pytest.raises(ConfigError, match="choose another table"):
        renamed.again(None, since=when(0))

    assert [(0, "a")] == content(tmp_path / "t")
    made.replace(span(0, 1), staged(tmp_path), {}, "again")
    renamed.results().check_own()


def test_staging_belongs_to_one_run_and_is_cleaned_by_the_next(tmp_path: Path) -> None:
    """
    What a run that died left behind is deleted; a run at work is not disturbed.
    """
    results = Results(tmp_path / "t", "j", "hour")
    with results.staging() as folder:
        Path(folder, "x.parquet").write_text("")
        with pytest.raises(LockedError), results.staging():
            pass
        assert Path(folder, "x.parquet").exists()
    left = tmp_path / "t" / "_staging" / "dead"
    left.mkdir(parents=True)

    with results.staging() as folder:
        assert [Path(folder).name] == [each.name for each in left.parent.iterdir()]
    assert not left.parent.exists()


def test_columns_may_come_but_not_change(tmp_path: Path) -> None:
    """
    A column of another type, or one that is missing, is refused by name.
    """
    results = Results(tmp_path / "t", "j", "hour")
    results.replace(span(0, None), staged(tmp_path, (0, "1")), {}, "run")
    number = pa.schema([("hour", pa.timestamp("us", "UTC")), ("name", pa.int64())])
    with pytest.raises(ConfigError, match="the column name of"):
        results.replace(span(0, None), staged(tmp_path, (0, "1"), schema=number), {}, "run")
    only = Staged(pa.schema([SCHEMA.field("hour")]), (), 0, 0, None, None)
    with pytest.raises(ConfigError, match="no column name"):
        results.replace(span(0, None), only, {}, "run")
    wide = pa.schema([*SCHEMA, ("note", pa.string())])
    path = str(tmp_path / "more.parquet")
    later = pa.array([NOON + HOUR], pa.timestamp("ms", "UTC"))
    pq.write_table(pa.table({"hour": later, "name": ["2"], "note": ["x"]}).cast(wide), path)
    results.replace(span(1, None), Staged(wide, (path,), 1, 0, None, None), {}, "run")

    assert [(0, "1"), (1, "2")] == content(tmp_path / "t")
    assert ["hour", "name", "note"] == DeltaTable(tmp_path / "t").to_pyarrow_table().column_names


def test_maintenance_changes_no_row(tmp_path: Path) -> None:
    """
    Small files are joined; rows and positions stay.
    """
    results = Results(tmp_path / "t", "j", "hour")
    for hour in range(4):
        results.replace(span(hour, None), staged(tmp_path, (hour, "a")), {QUEUE: hour}, "run")
    before = len(DeltaTable(tmp_path / "t").file_uris())
    results.maintain()

    assert [(hour, "a") for hour in range(4)] == content(tmp_path / "t")
    assert {QUEUE: 3} == results.positions([QUEUE])
    assert (4, 1) == (before, len(DeltaTable(tmp_path / "t").file_uris()))


def test_a_folder_with_something_else_is_no_table(tmp_path: Path) -> None:
    """
    Nothing is written beside files that are not the job's; a damaged log is an error.
    """
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match="holds something else"):
        Results(tmp_path, "j", "hour")
    log = tmp_path / "t" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("{")
    with pytest.raises(TableError, match="cannot be read"):
        Results(tmp_path / "t", "j", "hour")


# jobs


def test_a_function_becomes_a_job_of_its_name() -> None:
    """
    And can still be called as a function.
    """

    @job(topic="orders", table="lake/orders", time="hour", every="1h", zone="Europe/Berlin")
    def per_hour(messages: str) -> str:
        return messages.upper()

    assert isinstance(per_hour, Job)
    assert ("per_hour", "ROWS") == (per_hour.name, per_hour("rows"))


def test_a_job_that_cannot_run_says_so_at_once() -> None:
    """
    When it is written, not when it is run.
    """
    settings: dict[str, Any] = {"topic": "t", "table": "x", "time": "hour", "every": "1h"}
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({"every": "7min"}, "part of a day"),
        ({"zone": "Mars"}, "no time zone"),
        ({"name": "a/b"}, "slash"),
        ({"group": "no good"}, "illegal characters"),
        ({"source": {"startingOffsets": "latest"}}, "startingOffsets is no option"),
        ({"source": {"columns": "body"}}, "storeTimestamp among them"),
    ]
    for wrong, problem in wrongs:
        with pytest.raises(GantryError, match=problem):
            job(**{**settings, **wrong})(str)


# archives that do not have it all


ARCHIVED = Queue("orders", "broker-a", 0)
DAY = 24 * HOUR


def archived(root: Path, *parts: tuple[int, int, int], end: int | None = None) -> Path:
    """An archive with some runs of offsets (first, last, day), and where it says it ends."""
    table = open_table(root, create=True)
    for first, last, day in parts:
        files = written(root, ARCHIVED, first, last, NOON + day * DAY)
        table.commit(Change(NOON, files, ends={ARCHIVED: last + 1 if end is None else end}))
    return root


def filled(table: Path, position: int) -> Job:
    """A job whose table has rows of three days, made of a topic up to a position."""
    made = Job(work=str, name="j", topic="orders", table=str(table), time="hour", every="1h")
    rows = [(24 * day, "old") for day in range(3)]
    made.results().replace(span(0, None), staged(table.parent, *rows), {ARCHIVED: position}, "run")
    return made


def when(day: int) -> str:
    return describe(NOON + day * DAY, "UTC")


def test_a_period_is_not_replaced_from_an_archive_that_lacks_some_of_it(tmp_path: Path) -> None:
    """
    Another topic's archive, one that ends too early, one with a gap: rows would only get fewer.
    """
    work = filled(tmp_path / "t", 20)
    short = archived(tmp_path / "short", (0, 1, 0))
    holed = archived(tmp_path / "holed", (0, 1, 0), (10, 19, 2))
    cut = archived(tmp_path / "cut", (0, 1, 0), end=20)
    other = Job(work=str, name="j", topic="ordres", table=work.table, time="hour", every="1h")

    for each, archive, problem in (
        (other, short, "has nothing of ordres: look at the name"),
        (
            work,
            short,
            "ends at 2 of queue 0 of orders on broker-a, and the table knows it up to 20: archive",
        ),
        (work, holed, "lacks some of 2 to 9 of queue 0 of orders on broker-a: choose a period"),
        (work, cut, "lacks some of 2 to 19 of queue 0 of orders on broker-a: choose a period"),
    ):
        with pytest.raises(ConfigError, match=f"{problem}.*Nothing was replaced"):
            each.again(None, since=when(1), until=when(2), archive=str(archive))
    with pytest.raises(ConfigError, match="ends at 2 of"):
        work.again(None, since=when(1), archive=str(short))

    assert [(0, "old"), (24, "old"), (48, "old")] == content(tmp_path / "t")


def test_what_an_archive_lacks_of_other_periods_does_not_matter(tmp_path: Path) -> None:
    """
    A gap lies between the times of its neighbours, and what is still to come behind the last.
    """
    holed = ArchiveFeed(str(archived(tmp_path / "a", (0, 1, 0), (10, 19, 2))), ["orders"])

    assert [] == holed.lacks(ResultPeriod(NOON + 2 * DAY + 1, None), {ARCHIVED: 20})
    assert [] == holed.lacks(ResultPeriod(NOON - DAY, NOON), {ARCHIVED: 20})
    assert [] == holed.lacks(ResultPeriod(NOON - DAY, NOON + 1), {ARCHIVED: 99})
    assert 2 == len(holed.lacks(ResultPeriod(NOON, None), {ARCHIVED: 99}))


def test_progress_is_not_committed_to_nobody(tmp_path: Path) -> None:
    """
    Without a name server there is nobody to tell: it is said before anything is computed.
    """
    work = Job(work=str, name="j", topic="orders", table=str(tmp_path / "t"), time="hour",
               every="1h", group="g")  # fmt: skip

    with pytest.raises(ConfigError, match="give a name server"):
        work.again(None, since=when(1), archive=str(tmp_path), commit_progress=True)


def test_an_archive_takes_the_options_it_can_and_refuses_others(tmp_path: Path) -> None:
    """
    A job that chooses by an option would be given other messages than those of the topic.
    """
    path = str(archived(tmp_path / "a", (0, 1, 0)))
    for name, value in (("queues", "0"), ("keyFilter", "k1"), ("bodyAs", "text")):
        with pytest.raises(ConfigError, match=f"{name} is no option for an archive"):
            ArchiveFeed(path, ["orders"], {name.lower(): value})
    with pytest.raises(GantryError):
        ArchiveFeed(path, ["orders"], {"sqlFilter": "a >"})
    with pytest.raises(ConfigError, match="unknown option tagz"):
        ArchiveFeed(path, ["orders"], {"tagz": "x"})


def test_files_of_a_foreign_hand_are_looked_into(tmp_path: Path) -> None:
    """
    Their names tell no queue: what they hold counts all the same, and so does what they lack.
    """
    whole = archived(tmp_path / "whole", (5, 6, 0), (7, 9, 0))
    holed = archived(tmp_path / "holed", (0, 1, 0), (10, 19, 0))
    for each in (whole, holed):
        DeltaTable(each).optimize.compact()
        assert [None] == [file.queue for file in open_table(each).files()]
    feed, lacking = (ArchiveFeed(str(each), ["orders"]) for each in (whole, holed))

    assert ({ARCHIVED: 5}, {ARCHIVED: 10}) == feed.bounds()
    assert {"broker-a": NOON} == feed.reaches_back()
    assert {ARCHIVED: 5} == feed.ends_at(NOON, {ARCHIVED: 10})
    assert [] == feed.lacks(ResultPeriod(NOON, None), {ARCHIVED: 10})
    [problem] = lacking.lacks(ResultPeriod(NOON, None), {ARCHIVED: 20})
    assert "lacks some of 0 to 19 of queue 0 of orders" in problem
    assert [] == lacking.lacks(ResultPeriod(NOON + DAY, None), {ARCHIVED: 20})
