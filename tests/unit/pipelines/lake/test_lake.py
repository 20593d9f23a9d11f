"""Tables of messages, in each format: what a commit does, and what it never does."""

import glob
import json
from datetime import UTC, date, datetime
from pathlib import Path

import duckdb
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from lakekit import FORMATS, NOON, batch, written

from gantrymq.base.errors import ConfigError
from gantrymq.cli.pipeline.compact import compact
from gantrymq.model import Queue
from gantrymq.model.offset_ranges import OffsetRange
from gantrymq.pipelines.archive.run import holes
from gantrymq.pipelines.jobs.results import Results
from gantrymq.pipelines.lake import Change, CommitConflict, TableError, open_table
from gantrymq.pipelines.lake.commits import commit
from gantrymq.pipelines.lake.file_writer import FileWriter
from gantrymq.pipelines.lake.files import (
    OffsetSpan,
    decoded,
    doubled,
    encoded,
    facts_of,
    name_of,
    pruned,
    spans,
)
from gantrymq.pipelines.lake.lookup import Lookup
from gantrymq.pipelines.lake.schema import ARROW

A, B = Queue("orders", "broker-a", 0), Queue("orders", "broker-a", 1)
ODD = Queue("%RETRY%group|1", "broker b/ü-1-2", 3)

formats = pytest.mark.parametrize("form", FORMATS)


@formats
def test_a_commit_adds_files_and_moves_positions_together(form: str, tmp_path: Path) -> None:
    """Whoever opens the table sees the files and the offsets they end at, or neither."""
    table = open_table(tmp_path / "t", form, create=True)
    files = written(table.root, A, 0, 9) + written(table.root, ODD, 5, 7)

    table.commit(Change(NOON, files, ends={A: 10, ODD: 8}))

    again = open_table(tmp_path / "t")
    assert form == again.format
    assert {A: 10, ODD: 8} == again.positions()
    assert {A: 10} == again.positions([A, B])
    assert sorted(files, key=str) == sorted(again.files(), key=str)


@formats
def test_a_glob_reads_the_files_of_a_table(form: str, tmp_path: Path) -> None:
    """Whatever reads Parquet: folders have no columns in their names that files have, too, no file
    of the table's log is among them, and no folder is hidden."""
    table = open_table(tmp_path / "t", form, create=True)
    hidden = Queue("_orders", "broker-a", 0)
    files = [each for queue in (A, ODD, hidden) for each in written(table.root, queue, 0, 4)]
    table.commit(Change(NOON, files, ends={A: 5, ODD: 5, hidden: 5}))
    table.forget(NOON)  # a Delta table has a checkpoint then, which is a Parquet file

    every = str(table.root / "data" / "**" / "*.parquet")
    by_duckdb = duckdb.sql(
        f"SELECT topic, count(*), min(dt) FROM read_parquet('{every}') GROUP BY topic ORDER BY 1"
    ).fetchall()
    by_pandas = pandas.read_parquet(table.root / "data")

    day = datetime.fromtimestamp(NOON / 1000, UTC).date()
    assert [(queue.topic, 5, day) for queue in sorted((A, ODD, hidden))] == by_duckdb
    assert {A.topic: 5, ODD.topic: 5, hidden.topic: 5} == dict(by_pandas.groupby("topic").size())
    assert sorted(table.paths()) == sorted(glob.glob(every, recursive=True))
    assert [each.path for each in files if each.topic == A.topic] == [
        str(Path(path).relative_to(table.root)) for path in table.paths(topics=[A.topic])
    ]


@formats
def test_one_of_two_writers_loses_and_can_go_on(form: str, tmp_path: Path) -> None:
    """A commit on a table that has moved on changes nothing; after a look it can be made."""
    first = open_table(tmp_path / "t", form, create=True)
    second = open_table(tmp_path / "t", form, create=True)
    first.commit(Change(NOON, written(first.root, A, 0, 9), ends={A: 10}))

    with pytest.raises(CommitConflict):
        second.commit(Change(NOON, written(second.root, A, 0, 4), ends={A: 5}))
    second.refresh()
    assert {A: 10} == second.positions()
    second.commit(Change(NOON, written(second.root, B, 0, 4), ends={B: 5}))

    first.refresh()
    assert {A: 10, B: 5} == first.positions()
    assert 15 == sum(each.rows for each in first.files())


@formats
def test_positions_that_were_asked_before_are_not_taken_for_the_present(
    form: str, tmp_path: Path
) -> None:
    """Others move them; so does a commit of one's own, whether or not they were asked before."""
    mine, other = (open_table(tmp_path / "t", form, create=True) for _ in range(2))
    assert {} == mine.positions([A, B])
    other.commit(Change(NOON, ends={A: 10}))
    with pytest.raises(CommitConflict):
        mine.commit(Change(NOON, ends={A: 5}))
    mine.refresh()
    assert {A: 10} == mine.positions([A, B])

    mine.commit(Change(NOON, ends={B: 3}))
    assert {A: 10, B: 3} == mine.positions([A, B])
    other.refresh()
    other.commit(Change(NOON, ends={A: 11, B: 4}))
    mine.refresh()
    assert {A: 11, B: 4} == mine.positions([A, B])


@formats
def test_positions_can_move_without_files(form: str, tmp_path: Path) -> None:
    """A queue that is archived from now on has a position before it has a row."""
    table = open_table(tmp_path / "t", form, create=True)

    table.commit(Change(NOON, ends={A: 100}))

    assert {A: 100} == open_table(tmp_path / "t").positions([A])


@formats
def test_files_are_replaced_in_one_step(form: str, tmp_path: Path) -> None:
    """Rows taken out and rows put in are one commit; positions stay."""
    table = open_table(tmp_path / "t", form, create=True)
    old = written(table.root, A, 0, 4) + written(table.root, A, 5, 9)
    table.commit(Change(NOON, old, ends={A: 10}))

    table.refresh()
    writer = FileWriter(table.root, A, "new")
    writer.add(batch(A, 0, 9))
    new = tuple(writer.close())
    table.commit(Change(NOON, new, old, reason="compact", same_rows=True))

    table.refresh()
    assert ({A: 10}, list(new)) == (table.positions(), table.files())
    table.forget(NOON)
    assert ({A: 10}, list(new)) == (table.positions(), open_table(tmp_path / "t").files())


@pytest.mark.parametrize(("form", "count"), [("delta", 110), ("iceberg", 10), ("parquet", 110)])
def test_many_commits_are_all_there(form: str, count: int, tmp_path: Path) -> None:
    """Also behind the points where a format writes its whole state anew."""
    table = open_table(tmp_path / "t", form, create=True)
    table.commit(Change(NOON, written(table.root, A, 0, 0), ends={A: 1}))
    for end in range(2, count + 1):
        table.commit(Change(NOON, ends={A: end}))

    again = open_table(tmp_path / "t")
    assert ({A: count}, 1) == (again.positions(), len(again.files()))


@formats
def test_a_damaged_log_is_an_error_that_says_so(form: str, tmp_path: Path) -> None:
    """Never an empty table: that would be archived into from the beginning."""
    table = open_table(tmp_path / "t", form, create=True)
    table.commit(Change(NOON, written(table.root, A, 0, 9), ends={A: 10}))
    places = {"delta": "_delta_log/*1.json", "iceberg": "metadata/*.metadata.json",
              "parquet": "_gantrymq/*0.json"}  # fmt: skip
    for path in table.root.glob(places[form]):
        path.write_bytes(b'{"cut')

    with pytest.raises(TableError, match=r"log of the table .* cannot be read"):
        open_table(tmp_path / "t").files()


@formats
def test_files_that_are_gone_are_not_committed(form: str, tmp_path: Path) -> None:
    """A sweep took them: the positions stay, so that the next run writes the rows again."""
    table = open_table(tmp_path / "t", form, create=True)
    gone, left = (*written(table.root, A, 0, 9), *written(table.root, B, 0, 9))
    (table.root / gone.path).unlink()

    with pytest.raises(TableError, match="was deleted before it was committed: run it again"):
        commit(table, Change(NOON, (gone, left), ends={A: 10, B: 10}), lambda: True)

    again = open_table(tmp_path / "t")
    assert ({}, []) == (again.positions([A, B]), again.files())
    assert not (table.root / left.path).exists()


@pytest.mark.parametrize("hours", ["0", "0.9", "-1"])
def test_a_sweep_leaves_the_files_of_a_run_alone(hours: str, tmp_path: Path) -> None:
    """Files that are just being written look like those of a run that was killed."""
    ended = CliRunner().invoke(compact, [str(tmp_path), "--vacuum-hours", hours])

    assert 2 == ended.exit_code
    assert "is not in the range x>=1" in ended.stderr


def test_a_missing_entry_of_the_plain_log_is_noticed(tmp_path: Path) -> None:
    """A log with a hole would be a table with a hole."""
    table = open_table(tmp_path / "t", "parquet", create=True)
    for end in (1, 2, 3):
        table.commit(Change(NOON, ends={A: end}))
    (tmp_path / "t" / "_gantrymq" / f"{1:020d}.json").unlink()

    with pytest.raises(TableError, match="is missing"):
        open_table(tmp_path / "t")


def test_a_foreign_table_is_refused_by_name(tmp_path: Path) -> None:
    """Other types, missing columns, other partitions: nothing is read before it is known."""
    wrong = pa.schema([("topic", pa.int64()), ("dt", pa.date32())])
    DeltaTable.create(tmp_path / "wrong", schema=wrong, partition_by=["topic", "dt"])
    DeltaTable.create(tmp_path / "other", schema=pa.schema([("name", pa.string())]))
    DeltaTable.create(tmp_path / "flat", schema=ARROW)

    with pytest.raises(ConfigError, match="its column topic is int64, not string"):
        open_table(tmp_path / "wrong", create=True)
    with pytest.raises(ConfigError, match="it has no column topic"):
        open_table(tmp_path / "other", create=True)
    with pytest.raises(ConfigError, match="partitioned by nothing, not by topic, dt"):
        open_table(tmp_path / "flat", create=True)


def test_columns_may_be_added(tmp_path: Path) -> None:
    """A table of an older version gets the columns it lacks; those of its owner stay."""
    less = pa.schema([field for field in ARROW if field.name not in ("bodyCRC", "flag")])
    own = less.append(pa.field("note", pa.string()))
    DeltaTable.create(tmp_path / "t", schema=own, partition_by=["topic", "dt"])

    table = open_table(tmp_path / "t", create=True)
    table.commit(Change(NOON, written(table.root, A, 0, 2), ends={A: 3}))

    rows = pa.table(DeltaTable(tmp_path / "t").to_pyarrow_dataset().to_table())
    assert [None] * 3 == rows["note"].to_pylist()
    assert [0] * 3 == rows["bodyCRC"].to_pylist()


def test_mistakes_in_the_path_are_told(tmp_path: Path) -> None:
    """A typing error must not begin a second archive beside the first."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "other.txt").write_text("mine")
    open_table(tmp_path / "t", "parquet", create=True)

    with pytest.raises(ConfigError, match="there is no archive in"):
        open_table(tmp_path / "nothing")
    with pytest.raises(ConfigError, match="is parquet, not delta"):
        open_table(tmp_path / "t", "delta", create=True)
    with pytest.raises(ConfigError, match="holds something that is no archive"):
        open_table(tmp_path / "full", create=True)
    with pytest.raises(ConfigError, match="mount the storage"):
        open_table("s3://bucket/t", create=True)
    with pytest.raises(ConfigError, match="delta, iceberg, parquet, not 'avro'"):
        open_table(tmp_path / "t", "avro")


@formats
def test_a_folder_that_takes_no_table_is_an_error_of_ours(form: str) -> None:
    """In a line, whatever the format's own library raises."""
    with pytest.raises(TableError, match="no table can be made in /proc/nope/t: "):
        open_table("/proc/nope/t", form, create=True)


def test_a_delta_table_whose_making_failed_can_be_made_later(tmp_path: Path) -> None:
    """A full disk leaves an empty log: that is no table yet."""
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    (tmp_path / "r" / "_delta_log").mkdir(parents=True)

    table = open_table(tmp_path / "t", create=True)

    assert ("delta", []) == (table.format, table.files())
    assert not Results(tmp_path / "r", "job", "hour").exists
    table.commit(Change(NOON, written(table.root, A, 0, 9), ends={A: 10}))
    for path in table.root.glob("_delta_log/*"):
        path.unlink()
    with pytest.raises(TableError, match="cannot be read"):
        open_table(tmp_path / "t", create=True)


def test_names_tell_what_a_file_holds() -> None:
    """Also for brokers and topics with signs that paths do not like."""
    assert ODD.topic == decoded(encoded(ODD.topic))
    assert "/" not in encoded(ODD.broker_name)
    assert (ODD, 5, 77) == facts_of("a/b/" + name_of(ODD, 5, 77, "x1"), ODD.topic)
    assert (None, 0, 0) == facts_of("topic=a/part-00000-1234.parquet", "a")


def test_files_are_cut_at_midnight(tmp_path: Path) -> None:
    """A file holds rows of one day, so that a day can be dropped or read by itself."""
    day = 86_400_000
    midnight = NOON // day * day + day
    files = written(tmp_path, A, 0, 9, midnight - 4)

    assert [(0, 3), (4, 9)] == [(each.first, each.last) for each in files]
    assert [date(2026, 3, 14), date(2026, 3, 15)] == [each.day for each in files]
    for each in files:
        rows = pq.read_table(tmp_path / each.path, partitioning=None)
        assert {each.day} == set(rows["dt"].to_pylist())
        assert rows.num_rows == each.rows
    assert [files[1]] == pruned(files, since_ms=midnight)
    assert [files[0]] == pruned(files, until_ms=midnight)
    assert [] == pruned(files, topics=["other"])


def test_gaps_and_doubles_are_seen_in_the_names(tmp_path: Path) -> None:
    """What is archived of a queue is known without reading a row."""
    files = [*written(tmp_path, A, 0, 4), *written(tmp_path, A, 5, 6), *written(tmp_path, A, 9, 9)]

    assert {A: [OffsetSpan(A, 0, 7), OffsetSpan(A, 9, 10)]} == spans(files)
    assert [] == doubled(files)
    assert 1 == len(doubled([*files, *written(tmp_path, A, 6, 8)]))


def test_work_that_is_not_wanted_leaves_nothing(tmp_path: Path) -> None:
    """Neither a finished file nor one that was begun."""
    writer = FileWriter(tmp_path, A, "x")
    writer.add(batch(A, 0, 9))
    writer.add(batch(A, 10, 19, NOON + 86_400_000))
    writer.drop()

    assert [] == [each for each in tmp_path.rglob("*") if each.is_file()]
    assert json.dumps([]) == json.dumps(writer.close()[2:])


def test_a_table_that_others_have_compacted_is_still_ours(tmp_path: Path) -> None:
    """Names of files tell nothing then: what they hold is looked up, and found as before."""
    table = open_table(tmp_path / "t", create=True)
    for queue, first in ((A, 0), (A, 5), (B, 0)):
        table.commit(
            Change(NOON, written(table.root, queue, first, first + 4), ends={queue: first + 5})
        )
    DeltaTable(tmp_path / "t").optimize.compact()

    again = open_table(tmp_path / "t")
    (file,) = again.files()
    assert (None, 15) == (file.queue, file.rows)
    assert {A: 10, B: 5} == again.positions()
    lookup = Lookup(again)
    assert [(A, 7)] == [
        (each.queue, each.offset) for each in lookup.by_key("orders", "k7").messages
    ]
    assert b"1:3" == lookup.at(B, 3).messages[0].body
    again.commit(Change(NOON, written(again.root, A, 10, 11), ends={A: 12}))
    assert {A: 12, B: 5} == open_table(tmp_path / "t").positions()


def test_any_reader_of_delta_can_read_the_table(tmp_path: Path) -> None:
    """The files keep the partition columns, too; that disturbs nobody."""
    table = open_table(tmp_path / "t", create=True)
    table.commit(Change(NOON, written(table.root, ODD, 0, 4), ends={ODD: 5}))

    found = DeltaTable(tmp_path / "t").to_pyarrow_table(
        filters=[("topic", "=", ODD.topic)], columns=["topic", "dt", "queueOffset", "body"]
    )

    assert {ODD.topic} == set(found["topic"].to_pylist())
    assert [b"3:0", b"3:1", b"3:2", b"3:3", b"3:4"] == sorted(found["body"].to_pylist())


def test_what_was_not_copied_is_known(tmp_path: Path) -> None:
    """A queue that is new begins where its first message is; anything else is a hole."""
    files = [*written(tmp_path, A, 5, 6), *written(tmp_path, A, 8, 8)]

    assert [OffsetSpan(A, 0, 5), OffsetSpan(A, 7, 8), OffsetSpan(A, 9, 12)] == holes(
        [OffsetRange(A, 0, 12)], files
    )
    assert [OffsetSpan(A, 7, 8)] == holes([OffsetRange(A, 0, 9, is_new=True)], files)
    assert [OffsetSpan(B, 0, 3)] == holes([OffsetRange(B, 0, 3)], files)
