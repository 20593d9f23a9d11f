"""Replays with a real Spark: what is chosen, how it is sent, and how it goes on."""

import json
import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sparkkit import Processes

from gantrymq import Message
from gantrymq.base.clock import SystemClock
from gantrymq.base.errors import ConfigError, GantryError
from gantrymq.base.time_text import describe
from gantrymq.cli.pipeline.group import pipeline
from gantrymq.pipelines.archive.run import Archive
from gantrymq.pipelines.archive.run import ArchiveRequest as ArchiveJob
from gantrymq.pipelines.common.selection import select_messages
from gantrymq.pipelines.common.spark_run import StopRequest
from gantrymq.pipelines.lake import open_table
from gantrymq.pipelines.replay import Replay, ReplayRequest
from gantrymq.pipelines.replay.chunk_publisher import SinkPublisher
from gantrymq.pipelines.replay.journal import Journal, ReplayPlan
from gantrymq.pipelines.replay.request import Origin
from gantrymq.spark.options.source_parser import parse_source_options

pytestmark = pytest.mark.timeout(240)

COUNT, KEYS = 120, 7


@pytest.fixture(scope="module")
def origin(cluster: Processes) -> str:
    """A topic of numbered messages with keys, tags and properties."""
    topic = "replay-origin"
    cluster.create_topic(topic, 4)
    cluster.send(
        Message(
            topic, f"{number}", keys=[f"k{number % KEYS}", f"n{number}"], tags="ab"[number % 2],
            properties={"number": str(number)},
        )
        for number in range(COUNT)
    )  # fmt: skip
    return topic


@pytest.fixture
def target(cluster: Processes, topic: str) -> str:
    cluster.create_topic(topic, 3)
    return topic


def asked(origin: str, into: str, **words: Any) -> ReplayRequest:
    return ReplayRequest(origin=Origin("topic", origin), topic=origin, into=into, **words)


def sent(spark: Any, cluster: Processes, topic: str) -> list[Any]:
    """What is in a topic, each queue in its order."""
    options = {"nameServer": cluster.namesrv, "topic": topic}
    rows = spark.read.format("rocketmq").options(**options).load().collect()
    return sorted(rows, key=lambda row: (row.queueId, row.queueOffset))


def numbers(rows: list[Any]) -> list[int]:
    return sorted(int(bytes(row.body)) for row in rows)


def test_replayed_messages_keep_the_order_of_their_key_and_say_what_they_are(
    spark: Any, cluster: Processes, origin: str, target: str, tmp_path: Path
) -> None:
    """
    A key goes to one queue, across chunks; keys, tags and properties stay; what a dry run counts
    is what is sent.
    """
    request = asked(origin, target, everything=True)
    work = Replay(spark, cluster.namesrv, Journal(tmp_path), who="me", chunk_rows=50)
    plan = work.preview(request)
    report = work.run(request)
    rows = sent(spark, cluster, target)

    assert (COUNT, COUNT, "done") == (plan.messages, report.messages, report.result)
    assert len(plan.chunks) > 1
    assert list(range(COUNT)) == numbers(rows)
    by_key: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        by_key[row.keys.split()[0]].append(row)
    assert KEYS == len(by_key)
    by_origin: dict[tuple[str, str], list[int]] = defaultdict(list)
    for key, found in by_key.items():
        assert 1 == len({row.queueId for row in found})
        for row in found:
            topic, broker, queue, offset = row.properties["REPLAY_ORIGIN"].split("@")[1].split("/")
            assert (origin, "broker-a") == (topic, broker)
            by_origin[key, queue].append(int(offset))
    assert all(offsets == sorted(offsets) for offsets in by_origin.values())
    for row in rows:
        number = int(bytes(row.body))
        assert (f"k{number % KEYS} n{number}", "ab"[number % 2]) == (row.keys, row.tags)
        assert (str(number), report.id) == (row.properties["number"], row.properties["REPLAY_ID"])
    assert ["begun", "done"] == [line["event"] for line in Journal(tmp_path).history()]
    assert {"me"} == {line["who"] for line in Journal(tmp_path).history()}


class Kept(SinkPublisher):
    """Keeps what would be sent, and may break at a chunk."""

    def __init__(self, breaks_at: int | None = None) -> None:
        self.chunks: dict[int, list[Any]] = {}
        self._breaks_at = breaks_at

    def publish(self, frame: Any, plan: ReplayPlan, number: int) -> None:
        if number == self._breaks_at:
            raise GantryError("the broker is gone")
        self.chunks[number] = frame.collect()


def test_each_way_to_choose_means_what_it_says(
    spark: Any, cluster: Processes, origin: str, target: str, tmp_path: Path
) -> None:
    """
    Time, keys, tags, SQL and ids, from the topic and from the files of the store alike.
    """
    rows = sent(spark, cluster, origin)
    middle = rows[len(rows) // 2]
    half = int(middle.storeTimestamp.timestamp() * 1000 + 0.5)
    late = [row for row in rows if row.storeTimestamp >= middle.storeTimestamp]
    frame = spark.createDataFrame(rows).cache()

    def count(**words: Any) -> int:
        selection, _ = asked(origin, target, **words).selection(0)
        return int(select_messages(frame, selection).count())

    assert len(late) == count(since=str(half))
    assert COUNT - len(late) == count(until=describe(half, "UTC"))
    assert 17 == count(keys=("k3",))
    assert 18 == count(keys=("k3", "n0"))
    assert 60 == count(tags="b || c")
    assert 5 == count(sql="number BETWEEN 10 AND 19 AND TAGS = 'a'")
    assert 0 == count(sql="NOT (missing > 1)")
    assert 2 == count(ids=(rows[0].msgId, rows[1].offsetMsgId.lower()))
    assert 0 == count(keys=("k3",), tags="c")
    store = Origin("store", str(cluster.store))
    files = ReplayRequest(
        origin=store, topic=origin, into=target, sql="number < 30", tags="a", since=str(half)
    )
    expected = [row for row in late if int(bytes(row.body)) < 30 and row.tags == "a"]
    plan = Replay(spark, cluster.namesrv, Journal(tmp_path)).preview(files)
    assert len(expected) == plan.messages


def test_a_replay_from_an_archive_is_like_one_from_the_topic(
    spark: Any, cluster: Processes, origin: str, target: str, tmp_path: Path
) -> None:
    """
    Messages that the broker may have deleted long ago come back.
    """
    settings = {"nameServer": cluster.namesrv, "topic": origin}
    table = open_table(tmp_path / "lake", create=True)
    job = ArchiveJob(options=parse_source_options(settings))
    Archive(spark, table, job, run="one", clock=SystemClock(), report=lambda _: None).run()
    request = ReplayRequest(
        origin=Origin("archive", str(tmp_path / "lake")), topic=origin, into=target, tags="a"
    )
    report = Replay(spark, cluster.namesrv, Journal(tmp_path / "state"), chunk_rows=40).run(request)

    assert list(range(0, COUNT, 2)) == numbers(sent(spark, cluster, target))
    assert 60 == report.messages


def test_a_rate_bounds_the_whole_run(
    spark: Any, cluster: Processes, origin: str, target: str, tmp_path: Path
) -> None:
    """
    The second chunk of two seconds' worth of messages waits until they are over.
    """
    publisher = Kept()
    work = Replay(spark, cluster.namesrv, Journal(tmp_path), publisher=publisher)
    report = work.run(asked(origin, target, everything=True), rate=40)

    assert 2 == len(publisher.chunks)
    assert all(len(rows) <= 80 for rows in publisher.chunks.values())
    assert len(publisher.chunks[0]) / 40 <= report.seconds


def test_a_replay_that_broke_off_goes_on_where_it_was(
    spark: Any, cluster: Processes, origin: str, target: str, tmp_path: Path
) -> None:
    """
    With the same words or with its id; what is done stays done; then the words begin a new one.
    """
    request, journal = asked(origin, target, since="2h ago"), Journal(tmp_path)

    def work(publisher: Kept) -> Replay:
        return Replay(spark, cluster.namesrv, journal, publisher=publisher, chunk_rows=40)

    first, second, third = Kept(breaks_at=1), Kept(breaks_at=2), Kept()
    with pytest.raises(GantryError, match="the broker is gone"):
        work(first).run(request)
    with pytest.raises(GantryError, match="the broker is gone"):
        work(second).run(request)
    known = journal.history()[0]["id"]
    report = work(third).resume(known)

    chunks = [*first.chunks.values(), *second.chunks.values(), *third.chunks.values()]
    assert list(range(COUNT)) == numbers([row for chunk in chunks for row in chunk])
    assert ([0], [1], 2) == ([*first.chunks], [*second.chunks], min(third.chunks))
    assert (known, True, "done") == (report.id, report.resumed, report.result)
    events = [line["event"] for line in journal.history()]
    assert ["begun", "failed", "begun", "failed", "begun", "done"] == events
    with pytest.raises(ConfigError, match="is done"):
        work(Kept()).resume(known)
    assert known != work(Kept()).run(request).id
    assert {"since"} == set(journal.history()[0]["filter"])


def test_a_replay_that_is_asked_to_stop_ends_with_a_whole_chunk(
    spark: Any, cluster: Processes, origin: str, target: str, tmp_path: Path
) -> None:
    """
    Ctrl-C loses nothing: the chunk in hand is finished and written down.
    """
    stop = StopRequest()

    class Stopping(Kept):
        def publish(self, frame: Any, plan: ReplayPlan, number: int) -> None:
            super().publish(frame, plan, number)
            stop.asked = True

    publisher, journal, request = Stopping(), Journal(tmp_path), asked(origin, target, tags="b")
    work = Replay(spark, cluster.namesrv, journal, publisher=publisher, stop=stop, chunk_rows=40)
    report = work.run(request)
    plan = journal.load(report.id)

    assert ("stopped", [0], 1) == (report.result, [*publisher.chunks], journal.done(plan))
    assert report.messages == plan.chunks[0].rows < plan.messages == 60
    assert "stopped" == journal.history()[-1]["event"]


def test_anew_leaves_the_unfinished_replay_behind(
    spark: Any, cluster: Processes, origin: str, target: str, tmp_path: Path
) -> None:
    """
    Whoever wants to begin again can.
    """
    request, journal = asked(origin, target, keys=("k1",)), Journal(tmp_path)
    with pytest.raises(GantryError):
        Replay(spark, cluster.namesrv, journal, publisher=Kept(breaks_at=0)).run(request)
    report = Replay(spark, cluster.namesrv, journal, publisher=Kept()).run(request, anew=True)

    assert (False, 17) == (report.resumed, report.messages)
    assert None is journal.unfinished(request, cluster.namesrv)


def test_a_target_that_is_missing_is_named_before_anything_is_read(
    spark: Any, cluster: Processes, origin: str, tmp_path: Path
) -> None:
    """
    A topic is not made by a misspelt name.
    """
    with pytest.raises(ConfigError, match="there is no topic nowhere to replay into"):
        Replay(spark, cluster.namesrv, Journal(tmp_path)).run(asked(origin, "nowhere", tags="a"))


def test_the_command_counts_sends_and_remembers(
    spark: Any, cluster: Processes, origin: str, target: str, tmp_path: Path
) -> None:
    """
    A dry run shows each queue's days; a run its replay; the history who did it.
    """
    place = ["-n", cluster.namesrv, "--state", str(tmp_path), "--quiet", "-o", "json"]
    words = ["replay", "--from", f"topic:{origin}", "--into", target, "--key", "k2"]

    def gantry(*more: str) -> Any:
        done = CliRunner().invoke(pipeline, [*words, *more, *place])
        assert (0, None) == (done.exit_code, done.exception), done.output
        return json.loads(done.stdout)

    counted = gantry("--dry-run", "--rate", "100/s")
    assert 17 == sum(row["messages"] for row in counted)
    assert {origin} == {row["topic"] for row in counted}
    assert [] == gantry("--history")
    [done] = gantry()
    assert ("done", 17) == (done["result"], done["sent"])
    assert 17 == len(sent(spark, cluster, target))
    history = gantry("--history")
    assert [("begun", "keys=['k2']"), ("done", "keys=['k2']")] == [
        (row["event"], row["filter"]) for row in history
    ]


def test_a_stop_during_the_last_chunk_is_too_late(
    spark: Any, cluster: Processes, origin: str, target: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """
    All is sent: nobody is told to give the command again, which would send all of it again.
    """
    publish = SinkPublisher.publish

    def interrupted(sink: SinkPublisher, frame: Any, plan: ReplayPlan, number: int) -> None:
        publish(sink, frame, plan, number)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(SinkPublisher, "publish", interrupted)
    words = ["replay", "--from", f"topic:{origin}", "--into", target, "--key", "k2"]
    place = ["-n", cluster.namesrv, "--state", str(tmp_path), "--quiet", "-o", "json"]
    ended = CliRunner().invoke(pipeline, [*words, *place])

    assert (0, ["done"]) == (ended.exit_code, [row["result"] for row in json.loads(ended.stdout)])
    assert "the same command" not in ended.stderr
    assert 17 == len(sent(spark, cluster, target))


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--from", "topic:t", "--tags", "a"], "--same-topic"),
        (["--from", "topic:t", "--into", "u"], "nothing says which messages"),
        (["--from", "lake"], "--topic is missing"),
        (["--topic", "t"], "--from is missing"),
        (["--from", "topic:t", "--into", "u", "--all", "--rate", "fast"], "a rate is"),
        (["--from", "topic:t", "--into", "u", "--sql", "a >"], "^"),
        (["--resume", "nothing"], "there is no replay nothing"),
    ],
)
def test_the_command_refuses_what_cannot_be_meant(
    words: list[str], problem: str, tmp_path: Path
) -> None:
    """
    In a line, before Spark starts.
    """
    place = ["-n", "127.0.0.1:1", "--state", str(tmp_path)]
    done = CliRunner().invoke(pipeline, ["replay", *words, *place])

    assert 0 != done.exit_code
    assert problem in done.output


@pytest.fixture(autouse=True)
def _no_state_left(tmp_path: Path) -> Iterator[None]:
    """Replays keep their state where the test says, and nowhere else."""
    yield
    assert not list(tmp_path.glob("**/*.tmp"))
