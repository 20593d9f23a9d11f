"""Jobs on a real Spark and a real cluster: run, run on, run again."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from lakekit import NOON, Here, written
from pyspark.sql import functions as f
from sparkkit import BROKER, Processes

from gantrymq import Admin, Message, Producer, ProducerOptions
from gantrymq.base.clock import SystemClock
from gantrymq.base.errors import ConfigError
from gantrymq.base.time_text import describe, parse_moment
from gantrymq.cli.pipeline.group import pipeline
from gantrymq.model import Queue
from gantrymq.pipelines.archive.run import Archive
from gantrymq.pipelines.archive.run import ArchiveRequest as ArchiveJob
from gantrymq.pipelines.jobs.feeds import FOR_EVER, ArchiveFeed, TopicFeed
from gantrymq.pipelines.jobs.job import Job, JobResult
from gantrymq.pipelines.jobs.results import ResultPeriod
from gantrymq.pipelines.lake import Change, open_table
from gantrymq.spark.options.source_parser import parse_source_options
from gantrymq.testing.plugin import GantryCluster

pytestmark = pytest.mark.timeout(240)


def bodies(frame: Any) -> list[str]:
    return sorted(row.said for row in frame.collect())


def says(word: str) -> Any:
    """A job that writes down what messages say, each with a word of its own."""

    def work(messages: Any) -> Any:
        said = f.concat(f.lit(f"{word} "), f.col("body").cast("string")).alias("said")
        return messages.select(f.date_trunc("second", "storeTimestamp").alias("second"), said)

    return work


def job_of(topic: str, table: Path, work: Any, **settings: Any) -> Job:
    plain: dict[str, Any] = {"name": "said", "time": "second", "every": "1s"}
    return Job(work=work, topic=topic, table=str(table), **{**plain, **settings})


def send(cluster: Processes, topic: str, *words: str) -> int:
    """Send in the first half of a second; the beginning of that second."""
    time.sleep(1 - time.time() % 1 + 0.05)
    results = cluster.send([Message(topic, word) for word in words])
    assert len(words) == len(results)
    return int(time.time()) * 1000


def test_a_job_runs_on_where_its_table_says(
    spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """
    Each message is in the table once, however often the job runs.
    """
    cluster.create_topic(topic, 2)
    work = job_of(topic, tmp_path / "t", says("I say"), group=f"{topic}-group")
    send(cluster, topic, "a", "b")
    first = work.run(spark, cluster.namesrv)
    send(cluster, topic, "c")
    second, third = (work.run(spark, cluster.namesrv) for _ in range(2))

    assert ["I say a", "I say b", "I say c"] == bodies(work.results().frame(spark))
    assert (2, 1) == (first.rows, second.rows)
    assert JobResult(None, None) == third

    async def lag() -> int:
        async with Admin(cluster.namesrv) as admin:
            stats = await admin.consume_stats(f"{topic}-group", topic)
            return sum(row.broker_offset - row.consumer_offset for row in stats.queues.values())

    assert 0 == asyncio.run(lag())


def test_a_step_that_is_not_over_is_computed_anew(
    spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """
    Totals of a day are right after every run: new messages do not become rows of their own.
    """

    def per_day(messages: Any) -> Any:
        day = f.date_trunc("day", "storeTimestamp").alias("second")
        return messages.groupBy(day, "tags").count()

    cluster.create_topic(topic, 2)
    work = job_of(topic, tmp_path / "t", per_day, every="1d")
    cluster.send([Message(topic, "1", tags="x"), Message(topic, "2", tags="y")])
    work.run(spark, cluster.namesrv)
    cluster.send([Message(topic, "3", tags="x")])
    work.run(spark, cluster.namesrv)

    rows = work.results().frame(spark).groupBy("tags").agg(f.sum("count").alias("n")).collect()
    assert {"x": 2, "y": 1} == {row.tags: row.n for row in rows}


def test_a_job_that_was_wrong_is_repeated_for_a_period(
    spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """
    The rows of the period are those of the mended job, all others stay; so does the progress of
    the group, and a later run goes on where it would have.
    """
    cluster.create_topic(topic, 2)
    wrong = job_of(topic, tmp_path / "t", says("wrong"), group=f"{topic}-group")
    _, since, until = (send(cluster, topic, word) for word in ("a", "b", "c"))
    wrong.run(spark, cluster.namesrv)
    send(cluster, topic, "d")
    mended = job_of(topic, tmp_path / "t", says("right"), group=f"{topic}-group")
    period = {"since": describe(since, "UTC"), "until": describe(until, "UTC")}

    trial = mended.again(spark, cluster.namesrv, **period, dry_run=True)
    assert ["wrong a", "wrong b", "wrong c"] == bodies(mended.results().frame(spark))
    done = mended.again(spark, cluster.namesrv, **period)

    assert ["right b", "wrong a", "wrong c"] == bodies(mended.results().frame(spark))
    assert (1, 1, None) == (trial.rows_before, trial.rows, trial.version)
    assert (since, until, 1, 1) == (done.since_ms, done.until_ms, done.rows_before, done.rows)

    async def behind() -> int:
        async with Admin(cluster.namesrv) as admin:
            stats = await admin.consume_stats(f"{topic}-group", topic)
            return sum(row.broker_offset - row.consumer_offset for row in stats.queues.values())

    assert 1 == asyncio.run(behind())
    mended.again(spark, cluster.namesrv, since=period["since"], commit_progress=True)
    assert 0 == asyncio.run(behind())
    expected = ["right b", "right c", "right d", "wrong a"]
    assert expected == bodies(mended.results().frame(spark))
    mended.run(spark, cluster.namesrv)
    assert expected == bodies(mended.results().frame(spark))


def test_rows_of_another_time_are_refused(
    spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """
    A job whose rows are not in the period would leave doubles behind: nothing is written.
    """

    def early(messages: Any) -> Any:
        then = f.col("storeTimestamp") - f.expr("interval 1 hour")
        return messages.select(then.alias("second"), f.lit("x").alias("said"))

    def timeless(messages: Any) -> Any:
        return messages.select(f.lit(None).cast("timestamp").alias("second"))

    cluster.create_topic(topic, 1)
    send(cluster, topic, "a")
    for work in (early, timeless):
        with pytest.raises(ConfigError, match="is not in its period"):
            job_of(topic, tmp_path / "t", work).run(spark, cluster.namesrv)
    with pytest.raises(ConfigError, match="has no column second"):
        job_of(topic, tmp_path / "t", lambda rows: rows.select("body")).run(spark, cluster.namesrv)
    with pytest.raises(ConfigError, match="is string, not timestamp"):
        job_of(topic, tmp_path / "t", says("x"), time="said").run(spark, cluster.namesrv)
    with pytest.raises(ConfigError, match="widen it to --since"):
        job_of(topic, tmp_path / "t", says("x")).again(
            spark, cluster.namesrv, since="2026-01-01 00:00:00.001"
        )

    assert not (tmp_path / "t" / "_delta_log").exists()


def test_a_period_that_messages_are_gone_from_is_not_replaced(tmp_path: Path) -> None:
    """
    Rows are never replaced by fewer because the broker has deleted messages meanwhile. What it
    still has can be computed, and of an untouched topic everything.
    """
    always = ";".join(f"{hour:02d}" for hour in range(24))
    cluster = GantryCluster(file_reserved_time=0, delete_when=always)
    try:
        cluster.create_topic("old", queues=1)
        cluster.call(_fill(cluster.namesrv, "old"))
        cluster.clock.advance(120)
        cluster.create_topic("fresh", queues=1)
        old = job_of("old", tmp_path / "t", says("x"))

        with pytest.raises(ConfigError, match=r"broker-a no longer has what is older than .* Take"):
            old.again(None, cluster.namesrv, since="2000-01-01")
        [(broker, reach)] = TopicFeed(_source(cluster, "old")).reaches_back().items()
        assert (BROKER, True) == (broker, 0 < reach < FOR_EVER)
        assert {} == TopicFeed(_source(cluster, "fresh")).reaches_back()
    finally:
        cluster.close()


def test_an_archive_gives_a_job_what_its_options_choose(spark: Any, tmp_path: Path) -> None:
    """
    The same messages as of the topic: by tags, by SQL over properties, in the columns it asked for.
    """
    queue = Queue("orders", BROKER, 0)
    archive = open_table(tmp_path / "a", create=True)
    files = written(archive.root, queue, 0, 9)
    archive.commit(Change(NOON, files, ends={queue: 10}))

    def rows(source: dict[str, str]) -> list[str]:
        name = "-".join(source).lower()
        work = job_of(
            "orders", tmp_path / name, says("x"), source=source, archive=str(archive.root)
        )
        work.run(spark)
        ran = bodies(work.results().frame(spark))
        work.again(spark, since=describe(NOON, "UTC"))
        assert ran == bodies(work.results().frame(spark))
        return ran

    tagged = [f"x 0:{offset}" for offset in (1, 4, 7)]
    assert tagged == rows({"tags": "t1"})
    assert tagged == rows({"sqlFilter": "TAGS = 't1'", "columns": "storeTimestamp,body"})
    feed = ArchiveFeed(str(archive.root), ["orders"], {"columns": "storeTimestamp"})
    assert ["storeTimestamp"] == feed.frame(
        spark, ResultPeriod(NOON, None), {}, {queue: 10}
    ).columns


def test_messages_that_are_not_chosen_are_passed(spark: Any, tmp_path: Path) -> None:
    """
    They may be deleted before one comes that is: a job that waited at them could never go on.
    """
    queue = Queue("orders", BROKER, 0)
    archive = open_table(tmp_path / "a", create=True)
    work = job_of(
        "orders", tmp_path / "t", says("x"), source={"tags": "t0"}, archive=str(archive.root)
    )
    positions = []
    for first, last in ((0, 0), (1, 2), (3, 3)):
        files = written(archive.root, queue, first, last, NOON + first * 1000)
        archive.commit(Change(NOON, files, ends={queue: last + 1}))
        work.run(spark)
        positions.append(work.results().positions([queue])[queue])

    assert [1, 3, 4] == positions
    assert ["x 0:0", "x 0:3"] == bodies(work.results().frame(spark))


MODULE = """
from gantrymq.pipelines.jobs.job import job
from pyspark.sql import functions as f

@job(topic={topic!r}, table={table!r}, time="day", every="1d", zone="Europe/Berlin")
def counted(messages):
    day = f.lit({since}).cast("timestamp").alias("day")
    return messages.groupBy().count().select(day, "count")
"""


def test_the_commands_run_a_job_and_run_it_again(
    spark: Any, cluster: Processes, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A module of the user's, found in the current folder; the row tells the period in its zone.
    """
    since = parse_moment("yesterday", "Europe/Berlin", SystemClock().now_ms()) // 1000 + 90_000
    text = MODULE.format(topic=topic, table=str(tmp_path / "t"), since=since)
    (tmp_path / "my_spark_jobs.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    cluster.create_topic(topic, 1)
    cluster.send([Message(topic, "a"), Message(topic, "b")])
    place = ["-n", cluster.namesrv, "-o", "json", "--quiet"]

    def gantry(*words: str) -> Any:
        done = CliRunner().invoke(pipeline, [*words, *place])
        assert (0, None) == (done.exit_code, done.exception), done.output
        return json.loads(done.stdout)[0]

    target = "my_spark_jobs:counted"
    first, idle = gantry("run", target), gantry("run", target)
    assert ("counted", 1, None) == (first["job"], first["rows"], first["until"])
    assert (None, 0) == (idle["since"], idle["rows"])
    trial = gantry("again", target, "--since", "yesterday 00:00", "--dry-run")
    assert (1, 1, None) == (trial["rowsBefore"], trial["rows"], trial["version"])
    assert trial["since"].endswith((" 00:00:00.000+01:00", " 00:00:00.000+02:00"))
    done = gantry("again", target, "--since", "yesterday", "--zone", "Europe/Berlin")
    assert first["version"] + 1 == done["version"]


ARCHIVED_MODULE = """
from gantrymq.pipelines.jobs.job import job
from pyspark.sql import functions as f

@job(topic={topic!r}, table={table!r}, time="second", every="1s", archive={archive!r})
def said(messages):
    said = f.concat(f.lit("{word} "), f.col("body").cast("string")).alias("said")
    return messages.select(f.date_trunc("second", "storeTimestamp").alias("second"), said)
"""


def archived(cluster: Processes, topic: str, folder: Path) -> None:
    """Let the archive go on to the end of the topic."""
    job = ArchiveJob(options=parse_source_options({"nameServer": cluster.namesrv, "topic": topic}))
    table = open_table(folder, create=True)
    Archive(Here(), table, job, run=str(time.time_ns()), clock=SystemClock()).run()


def test_the_commands_run_a_job_on_an_archive_and_run_it_again(
    spark: Any, cluster: Processes, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    No broker is needed: the topic is deleted, and no name server named. The job goes on where its
    table is, and a period of it is replaced from the archive as from a topic.
    """
    lake, table = tmp_path / "lake", tmp_path / "t"
    for word, archive in (("wrong", lake), ("right", lake), ("live", None)):
        place = None if archive is None else str(archive)
        text = ARCHIVED_MODULE.format(topic=topic, table=str(table), archive=place, word=word)
        (tmp_path / f"{word}_archive_jobs.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)

    def gantry(*words: str) -> Any:
        done = CliRunner().invoke(pipeline, [*words, "-o", "json", "--quiet"])
        assert (0, None) == (done.exit_code, done.exception), done.output
        return json.loads(done.stdout)[0]

    def rows() -> list[str]:
        return bodies(job_of(topic, table, says("x")).results().frame(spark))

    cluster.create_topic(topic, 2)
    send(cluster, topic, "a", "b")
    archived(cluster, topic, lake)
    first = gantry("run", "wrong_archive_jobs:said")
    since, until = send(cluster, topic, "c"), send(cluster, topic, "d")
    unseen = gantry("run", "wrong_archive_jobs:said")
    archived(cluster, topic, lake)
    asyncio.run(_delete(cluster.namesrv, topic))
    second = gantry("run", "wrong_archive_jobs:said")

    assert (2, None, 2) == (first["rows"], unseen["version"], second["rows"])
    assert ["wrong a", "wrong b", "wrong c", "wrong d"] == rows()
    period = ["--since", describe(since, "UTC"), "--until", describe(until, "UTC")]
    done = gantry("again", "right_archive_jobs:said", *period)
    assert (1, 1) == (done["rowsBefore"], done["rows"])
    assert ["right c", "wrong a", "wrong b", "wrong d"] == rows()
    assert None is gantry("run", "right_archive_jobs:said")["version"]
    gantry("again", "live_archive_jobs:said", "--since", period[3], "--archive", str(lake))
    assert ["live d", "right c", "wrong a", "wrong b"] == rows()


async def _delete(namesrv: str, topic: str) -> None:
    async with Admin(namesrv) as admin:
        await admin.delete_topic(topic)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["again", "nothing:here"], "Missing option '--since'"),
        (["again", "no_such_module:here", "--since", "today"], "write MODULE:JOB"),
        (["run", "json"], "write MODULE:JOB"),
        (["run", "json:loads"], "has no job called 'loads'"),
    ],
)
def test_the_commands_refuse_what_is_no_job(words: list[str], problem: str) -> None:
    """
    Before Spark starts, and with a word about what to write.
    """
    done = CliRunner().invoke(pipeline, words)

    assert 2 == done.exit_code
    assert problem in done.output


def _source(cluster: GantryCluster, topic: str) -> dict[str, str]:
    return {"nameServer": cluster.namesrv, "topic": topic}


async def _fill(namesrv: str, topic: str) -> None:
    """More than a broker keeps that keeps nothing."""
    options = ProducerOptions(compress_over_bytes=1 << 30)
    async with Producer(namesrv, group="tests", options=options) as producer:
        for _ in range(600):
            await producer.send(Message(topic, b"x" * 20_000))
