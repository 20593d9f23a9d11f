"""What an archive does when something breaks: nothing is lost and nothing is doubled."""

import json
import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from archivechild import archive, many_commits, served, starved
from click.testing import CliRunner
from lakekit import FORMATS, NOON, Here, written
from sparkkit import BROKER, Processes
from storekeeping import keep_store, message

from gantrymq import Message, Producer, ProducerOptions, Queue
from gantrymq.base.clock import SystemClock
from gantrymq.base.errors import GantryError
from gantrymq.base.time_text import Period
from gantrymq.cli.main import main
from gantrymq.model.offset_ranges import QueueOffsets
from gantrymq.pipelines.archive import archive_topics
from gantrymq.pipelines.archive.rerun import GoneFromBroker, replace_period
from gantrymq.pipelines.archive.run import Archive, ArchiveBehind, ArchiveRequest, ArchiveResult
from gantrymq.pipelines.archive.upkeep import SAFE_MS, compact, sweep
from gantrymq.pipelines.archive.watch import Watcher
from gantrymq.pipelines.lake import Change, CommitConflict, TableError, open_table
from gantrymq.pipelines.lake.files import OffsetSpan, doubled, spans
from gantrymq.pipelines.lake.table import found_in
from gantrymq.spark.options.source_parser import parse_source_options
from gantrymq.testing.plugin import GantryCluster

pytestmark = pytest.mark.timeout(120)

KILLS = int(os.environ.get("GANTRY_KILLS", "5"))
COUNT = 600
AS_IT_IS = ProducerOptions(compress_over_bytes=1 << 30)


def offsets_of(path: Path) -> dict[int, list[int]]:
    """The offsets in a table's files by queue, sorted: a repeat is seen as well as a gap."""
    table = open_table(path)
    assert [] == doubled(table.files())
    rows = ds.dataset([str(table.root / each.path) for each in table.files()]).to_table(
        columns=["queueId", "queueOffset"]
    )
    found: dict[int, list[int]] = {}
    for row in rows.to_pylist():
        found.setdefault(row["queueId"], []).append(row["queueOffset"])
    return {queue_id: sorted(offsets) for queue_id, offsets in found.items()}


# killed


@pytest.mark.parametrize("form", FORMATS)
def test_a_driver_killed_at_any_moment_is_simply_started_again(
    form: str, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """While it reads, writes, commits: after the last run the table holds what was sent."""
    chance = random.Random(f"{form} {KILLS}")
    cluster.create_topic(topic, queues=2)
    cluster.fill(topic, [300, 300])
    began = time.monotonic()
    archive(cluster.namesrv, topic, tmp_path / "measure", form, rows_per_commit=60)
    length = time.monotonic() - began

    for number in range(KILLS):
        cluster.fill(topic, [40, 40], first=1000)
        child = served.Process(
            target=many_commits, args=(cluster.namesrv, topic, tmp_path / "t", form, number)
        )
        child.start()
        child.join(chance.uniform(0, 1.2 * length))
        child.kill()
        child.join(10)
    archive(cluster.namesrv, topic, tmp_path / "t", form, run="last")

    total = 300 + 40 * KILLS
    assert {0: list(range(total)), 1: list(range(total))} == offsets_of(tmp_path / "t")
    table = open_table(tmp_path / "t")
    assert {Queue(topic, BROKER, n): total for n in (0, 1)} == table.positions()
    sweep(table, now_ms=SystemClock().now_ms() + 2 * SAFE_MS)
    left = {str(each.relative_to(table.root)) for each in found_in(table.root)}
    assert {each.path for each in table.files()} == left


# the disk


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("size", [0, 20_000])
def test_a_full_disk_is_an_error_and_no_more(
    form: str, size: int, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """No half file in the table, no half commit; with room again the run goes on."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [100])
    archive(cluster.namesrv, topic, tmp_path / "t", form, run="before")
    cluster.send([Message(topic, os.urandom(1000)) for _ in range(100)], Queue(topic, BROKER, 0))
    hear, said = served.Pipe(duplex=False)

    child = served.Process(
        target=starved, args=(cluster.namesrv, topic, tmp_path / "t", form, size, said)
    )
    child.start()
    assert hear.poll(30)
    assert "the disk of the table is full (File too large)" in hear.recv()
    child.join(10)

    table = open_table(tmp_path / "t")
    assert {0: list(range(100))} == offsets_of(tmp_path / "t")
    left = {str(each.relative_to(table.root)) for each in found_in(table.root)}
    assert {each.path for each in table.files()} == left
    assert 100 == archive(cluster.namesrv, topic, tmp_path / "t", form, run="after").rows
    assert {0: list(range(200))} == offsets_of(tmp_path / "t")


# retention


@pytest.fixture
def cut() -> Iterator[tuple[GantryCluster, Queue]]:
    """A broker that throws old messages away."""
    always = ";".join(f"{hour:02d}" for hour in range(24))
    cluster = GantryCluster(file_reserved_time=0, delete_when=always)
    queue = Queue("old", BROKER, 0)
    cluster.create_topic(queue.topic, queues=1)

    async def send() -> None:
        async with Producer(cluster.namesrv, group="tests", options=AS_IT_IS) as producer:
            for _ in range(COUNT):
                await producer.send(Message(queue.topic, b"x" * 20_000), queue=queue)

    cluster.call(send())
    yield cluster, queue
    cluster.close()


def test_messages_that_retention_took_are_named(
    cut: tuple[GantryCluster, Queue], tmp_path: Path
) -> None:
    """An archive that came too late says which messages are gone, and goes on only if told to."""
    cluster, queue = cut
    table = open_table(tmp_path / "t", "delta", create=True)
    table.commit(Change(NOON, written(table.root, queue, 0, 9), ends={queue: 10}))
    cluster.clock.advance(120)

    with pytest.raises(ArchiveBehind, match=r"messages 10 to .* of queue 0 of old on broker-a are"):
        archive(cluster.namesrv, queue.topic, tmp_path / "t")
    totals = archive(cluster.namesrv, queue.topic, tmp_path / "t", run="s", allow_gaps=True)

    (text,) = totals.gaps
    first, rest = spans(open_table(tmp_path / "t").files())[queue]
    assert (OffsetSpan(queue, 0, 10), COUNT) == (first, rest.end)
    assert f"messages 10 to {rest.start - 1} of queue 0 of old on broker-a" == text
    assert totals.rows == COUNT - rest.start
    assert ArchiveResult() == archive(cluster.namesrv, queue.topic, tmp_path / "t", run="u")


def test_a_new_archive_of_an_old_topic_begins_where_the_topic_does(
    cut: tuple[GantryCluster, Queue], tmp_path: Path
) -> None:
    """What was deleted before the archive was begun is no gap of its own."""
    cluster, queue = cut
    cluster.clock.advance(120)

    totals = archive(cluster.namesrv, queue.topic, tmp_path / "t")

    assert (COUNT, []) == (open_table(tmp_path / "t").positions()[queue], totals.gaps)
    assert 0 < totals.rows < COUNT


def test_what_only_the_archive_has_is_never_replaced(
    cut: tuple[GantryCluster, Queue], tmp_path: Path
) -> None:
    """A period that the broker has in part only is left as it is."""
    cluster, queue = cut
    archive(cluster.namesrv, queue.topic, tmp_path / "t")
    cluster.clock.advance(120)
    table = open_table(tmp_path / "t")
    before = {each.path for each in table.files()}
    options = parse_source_options({"nameServer": cluster.namesrv, "topic": queue.topic})

    with pytest.raises(GoneFromBroker, match="nothing was replaced"):
        replace_period(Here(), table, options, Period(0, None), run="a", clock=SystemClock())

    table.refresh()
    assert before == {each.path for each in table.files()}
    left = {str(each.relative_to(table.root)) for each in found_in(table.root)}
    assert before == left


def test_an_alarm_is_given_before_retention_deletes(
    cut: tuple[GantryCluster, Queue], tmp_path: Path
) -> None:
    """By the age of the first message that is not archived, and what its broker is set to."""
    cluster, queue = cut
    said: list[str] = []
    options = parse_source_options({"nameServer": cluster.namesrv, "topic": queue.topic})
    watcher = Watcher({BROKER: 1.0}, 12.0, cluster.clock, said.append)
    table = open_table(tmp_path / "t", "delta", create=True)

    Archive(
        Here(),
        table,
        ArchiveRequest(options=options),
        run="r",
        clock=SystemClock(),
        watcher=watcher,
    ).run()

    assert [f"alarm: {watcher.last.text}"] == said
    assert "archive is 0.0 hours behind, 1.0 hours before retention deletes" in said[0]


# brokers


def test_a_broker_that_is_away_is_waited_for(
    cut: tuple[GantryCluster, Queue], tmp_path: Path
) -> None:
    """Between two commits, for as long as patience lasts; then it is an error, and no loss."""
    cluster, queue = cut
    table = open_table(tmp_path / "t", create=True)
    commit, backs = table.commit, list[threading.Timer]()

    def start() -> None:
        cluster.call(cluster.cluster.start_broker())

    def then_away(change: Change) -> None:
        commit(change)
        if not backs:
            cluster.call(cluster.cluster.stop_broker())
            backs.append(threading.Timer(1.0, start))
            backs[0].start()

    table.commit = then_away  # type: ignore[method-assign]
    settings = {"nameServer": cluster.namesrv, "topic": queue.topic}
    patient = ArchiveRequest(
        options=parse_source_options(settings | {"patience": "20s"}), rows_per_commit=250
    )
    totals = Archive(Here(), table, patient, run="one", clock=SystemClock()).run()
    backs[0].join()

    assert (COUNT, 3) == (totals.rows, totals.commits)
    assert {0: list(range(COUNT))} == offsets_of(tmp_path / "t")
    cluster.call(cluster.cluster.stop_broker())
    hasty = ArchiveRequest(options=parse_source_options(settings | {"patience": "300ms"}))
    with pytest.raises(GantryError):
        Archive(Here(), table, hasty, run="two", clock=SystemClock()).run()
    start()
    assert 0 == Archive(Here(), table, hasty, run="three", clock=SystemClock()).run().rows


def test_a_run_that_is_overtaken_has_nothing_left_to_do(
    cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """Another run of the same archive may be further than the end that this one set out for."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [50])
    table = open_table(tmp_path / "t", create=True)
    commit = table.commit

    def late(change: Change) -> None:
        table.commit = commit  # type: ignore[method-assign]
        cluster.fill(topic, [30], first=50)
        archive(cluster.namesrv, topic, tmp_path / "t", run="quick")
        commit(change)

    table.commit = late  # type: ignore[method-assign]
    options = parse_source_options({"nameServer": cluster.namesrv, "topic": topic})
    job = ArchiveRequest(options=options, rows_per_commit=20)
    totals = Archive(Here(), table, job, run="slow", clock=SystemClock()).run()

    assert (0, 1) == (totals.rows, totals.lost_races)
    assert {0: list(range(80))} == offsets_of(tmp_path / "t")


@pytest.mark.parametrize("form", FORMATS)
def test_a_commit_that_succeeds_and_reports_an_error_is_a_commit(
    form: str, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """Its files are the table's: to throw them away would be the loss that was feared."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [50])
    table = open_table(tmp_path / "t", form, create=True)
    commit = table.commit
    errors = [TableError("no answer"), CommitConflict("too late")]

    def doubtful(change: Change) -> None:
        commit(change)
        if errors:
            raise errors.pop()

    table.commit = doubtful  # type: ignore[method-assign]
    options = parse_source_options({"nameServer": cluster.namesrv, "topic": topic})
    job = ArchiveRequest(options=options, rows_per_commit=20)
    totals = Archive(Here(), table, job, run="r", clock=SystemClock()).run()

    assert (50, 3, 0) == (totals.rows, totals.commits, totals.lost_races)
    assert {0: list(range(50))} == offsets_of(tmp_path / "t")


# small files


def test_files_are_joined_while_an_archive_goes_on(
    cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """A commit in between is no harm to either; files that somebody else joined are left."""
    cluster.create_topic(topic, queues=1)
    for number in range(4):
        cluster.fill(topic, [10], first=10 * number)
        archive(cluster.namesrv, topic, tmp_path / "t", run=f"r{number}")
    one, other = open_table(tmp_path / "t"), open_table(tmp_path / "t")
    commit = one.commit

    def late(change: Change) -> None:
        one.commit = commit  # type: ignore[method-assign]
        cluster.fill(topic, [10], first=100)
        archive(cluster.namesrv, topic, tmp_path / "t", run="between")
        commit(change)

    one.commit = late  # type: ignore[method-assign]
    assert (4, 1) == compact(Here(), one, run="c", clock=SystemClock())
    assert {0: list(range(50))} == offsets_of(tmp_path / "t")

    def later(change: Change) -> None:
        other.commit = second  # type: ignore[method-assign]
        compact(Here(), one, run="d", clock=SystemClock())
        second(change)

    second = other.commit
    other.commit = later  # type: ignore[method-assign]
    assert (0, 0) == compact(Here(), other, run="e", clock=SystemClock())
    assert {0: list(range(50))} == offsets_of(tmp_path / "t")


def test_progress_is_reported_after_every_commit(
    cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """What the broker hears is never ahead of the table."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [25])
    heard: list[tuple[QueueOffsets, QueueOffsets]] = []
    table = open_table(tmp_path / "t", "parquet", create=True)
    options = parse_source_options({"nameServer": cluster.namesrv, "topic": topic})

    Archive(
        Here(),
        table,
        ArchiveRequest(options=options, rows_per_commit=10),
        run="r",
        clock=SystemClock(),
        report=lambda ends: heard.append((ends, open_table(tmp_path / "t").positions())),
    ).run()

    queue = Queue(topic, BROKER, 0)
    assert [({queue: at}, {queue: at}) for at in (10, 20, 25)] == heard


# from files


def test_files_of_a_store_are_archived_without_a_broker(tmp_path: Path) -> None:
    """A store folder is enough; what comes into it later is archived by the next run."""
    folder, source = tmp_path / "store", {"via": "store", "topic": "orders"}
    keep_store(folder, [message(at % 2, f"{at % 2}:{at // 2}") for at in range(60)])
    source |= {"storePath": f"{BROKER}={folder}"}

    assert 60 == archive_topics(Here(), source, tmp_path / "t").rows
    keep_store(folder, [message(0, f"0:{at}") for at in range(30, 35)])
    assert 5 == archive_topics(Here(), source, tmp_path / "t").rows

    assert {0: list(range(35)), 1: list(range(30))} == offsets_of(tmp_path / "t")


# what is new


def test_a_topic_that_joins_a_pattern_is_archived_from_its_beginning(
    cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """Also where the archive itself began at the end: nothing of a new topic is history."""
    table = open_table(tmp_path / "t", "parquet", create=True)
    options = parse_source_options(
        {"nameServer": cluster.namesrv, "subscribePattern": f"{topic}-.*"}
    )

    def run(word: str) -> int:
        job = ArchiveRequest(options=options, start="latest")
        return Archive(Here(), table, job, run=word, clock=SystemClock()).run().rows

    cluster.create_topic(f"{topic}-a", queues=1)
    cluster.fill(f"{topic}-a", [5])
    assert 0 == run("one")
    cluster.create_topic(f"{topic}-b", queues=1)
    cluster.fill(f"{topic}-a", [1], first=100)
    cluster.fill(f"{topic}-b", [4])
    assert 5 == run("two")


# the command


def gantry(*words: str) -> Any:
    return CliRunner().invoke(main, ["pipeline", "archive", *words])


def test_the_check_tells_how_far_behind_an_archive_is(
    cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """Without a session of Spark's; exit code 2 is an alarm."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [25])
    open_table(tmp_path / "t", create=True)
    words = ["--topic", topic, "--into", str(tmp_path / "t"), "--check", "-o", "json",
             "--namesrv", cluster.namesrv]  # fmt: skip

    behind = gantry(*words)
    alarm = gantry(*words, "--alarm-hours", "1000")
    archive(cluster.namesrv, topic, tmp_path / "t")
    done = gantry(*words)

    assert (0, 25) == (behind.exit_code, json.loads(behind.stdout)[0]["behindRows"])
    assert "archive is 0.0 hours behind, 72 hours before retention deletes" in behind.stderr
    assert (2, True) == (alarm.exit_code, json.loads(alarm.stdout)[0]["alarm"])
    assert (0, "archive is up to date\n") == (done.exit_code, done.stderr)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--into", "t"], "say what to archive: --topic or --pattern"),
        (["--into", "t", "--topic", "a", "--pattern", "b"], "say what to archive"),
        (["--into", "t", "--topic", "a", "--since", "now"], "belong to --again"),
        (["--into", "t", "--topic", "a", "--again", "--follow"], "without --follow"),
        (["--into", "t", "--topic", "a", "--from", "last week"], "'last week' is no time"),
        (["--into", "t", "--topic", "a", "--again", "--since", "now"], "there is no archive in"),
        (["--into", "s3://b/t", "--topic", "a"], "mount the storage"),
    ],
)
def test_a_mistake_at_the_command_is_answered_before_spark_starts(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line that says what to do."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NAMESRV_ADDR", "127.0.0.1:1")

    done = gantry(*words)

    assert 0 != done.exit_code
    assert said in done.output
    assert "Traceback" not in done.output
