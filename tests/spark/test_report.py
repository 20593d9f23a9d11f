"""Reports on a real cluster: nothing missing, something missing, and the same from elsewhere."""

import asyncio
import json
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from lakekit import Here
from shopkit import Member, Shop, double, lose, open_shop, pass_by
from sparkkit import Processes
from storekeeping import BROKER, TOPIC, keep_store, message

from gantrymq.base.clock import SystemClock
from gantrymq.cli.pipeline.report import report as command
from gantrymq.client import tracing
from gantrymq.pipelines.archive.run import Archive, ArchiveRequest
from gantrymq.pipelines.lake import open_table
from gantrymq.pipelines.marts import ledger
from gantrymq.pipelines.report.build import build_report
from gantrymq.pipelines.report.facts import gather
from gantrymq.pipelines.report.request import ReportRequest
from gantrymq.pipelines.report.sources import Sources
from gantrymq.pipelines.staging import coverage
from gantrymq.spark.options.source_parser import parse_source_options

pytestmark = pytest.mark.timeout(300)

COUNT = 40
SAVED_SECONDS_MAX = 15.0


@pytest.fixture(scope="module")
def shop(cluster: Processes) -> Shop:
    """A topic that was sent to and consumed; each test may add to it."""
    return asyncio.run(open_shop(cluster.namesrv, "report-orders", COUNT))


def test_a_store_folder_tells_what_its_broker_tells(
    spark: Any, cluster: Processes, shop: Shop
) -> None:
    """Rows, topics, and the progress that the broker keeps beside its log."""

    def told(**place: Any) -> tuple[list[Any], list[str], set[Any]]:
        wanted = ReportRequest(topics=(shop.topic,), **place)
        facts = gather(wanted, SystemClock())
        found = Sources(spark, wanted, facts).messages(("queueId", "queueOffset", "msgId"))
        progress = {
            (row["group"], row["queueId"], row["groupOffset"])
            for row in facts.progress
            if row["topic"] == shop.topic
        }
        return sorted(map(tuple, found.collect())), facts.topics, progress

    live, give_up = told(namesrv=cluster.namesrv), time.monotonic() + SAVED_SECONDS_MAX
    stored = told(store=cluster.store)
    while live != stored and time.monotonic() < give_up:  # progress is saved every few seconds
        time.sleep(1)
        stored = told(store=cluster.store)

    assert live == stored
    assert COUNT == len(stored[0])


def test_what_is_not_archived_yet_is_read_from_the_cluster(
    spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """Each message once, whoever has it: an archive that lags behind has lost nothing."""
    cluster.create_topic(topic, queues=2)
    cluster.fill(topic, [5, 3])
    job = ArchiveRequest(
        options=parse_source_options({"nameServer": cluster.namesrv, "topic": topic})
    )
    table = open_table(tmp_path / "t", create=True)
    Archive(Here(), table, job, run="one", clock=SystemClock()).run()
    cluster.fill(topic, [4, 0], first=100)
    told = {}
    for namesrv in (None, cluster.namesrv):
        wanted = ReportRequest(namesrv=namesrv, archive=tmp_path / "t", topics=(topic,))
        found = Sources(spark, wanted, gather(wanted, SystemClock()))
        rows = found.messages(("queueId", "queueOffset")).collect()
        told[namesrv] = sorted(map(tuple, rows))
        beside = found.about((topic,), ("queueId", "queueOffset")).collect()  # as trace is read
        assert set(told[namesrv]) == set(map(tuple, beside))

    second = [(1, offset) for offset in range(3)]
    assert [(0, offset) for offset in range(5)] + second == told[None]
    assert [(0, offset) for offset in range(9)] + second == told[cluster.namesrv]


def test_a_store_where_nothing_ever_waited_says_what_is_done(
    spark: Any, uncompiled: None, tmp_path: Path
) -> None:
    """No waiting room is no retry that waits: what a group is past is done, not unknown."""
    store = tmp_path / "store"
    keep_store(store, [message(0, f"{at}", unique=f"{at:032X}") for at in range(5)])
    topics = {BROKER: {"perm": 7, "readQueueNums": 1, "writeQueueNums": 1}}
    progress = {"offsetTable": {f"{TOPIC}@billing": {"0": 3}}}
    (store / "config").mkdir(exist_ok=True)
    (store / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": topics}))
    (store / "config" / "consumerOffset.json").write_text(json.dumps(progress))
    made = build_report(spark, ReportRequest(store=store), clock=SystemClock())

    (group,) = made.table(ledger.GROUPS).rows
    assert {"acknowledged": 3, "waiting": 2, "unknown": 0}.items() <= group.items()


def test_what_is_lost_doubled_or_passed_by_is_found_and_named(
    spark: Any, cluster: Processes, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Message by message, on the page and in the tables; the command ends with 1."""
    monkeypatch.setattr(coverage, "CLOCK_SLACK_MS", 0)
    asyncio.run(lose(cluster.namesrv, shop))
    asyncio.run(double(cluster.namesrv, shop))
    into = tmp_path / "report"

    arguments = ["--into", str(into), "-n", cluster.namesrv, "--topic", shop.topic, "--quiet",
                 "--zone", "Europe/Berlin", "-o", "json"]  # fmt: skip
    with closing(Member(cluster.namesrv, shop.billing, shop.topic, traced=True, idle=True)):
        unseen = asyncio.run(pass_by(cluster.namesrv, shop))
        ended = CliRunner().invoke(command, arguments)

    assert 1 == ended.exit_code
    told = json.loads(ended.stdout)
    assert {"lost": 1, "doubled": 1, "passed by": len(unseen)} == {
        row["what"]: row["messages"] for row in told["differences"] if not row["explained"]
    }
    listed = json.loads((into / "tables" / "ledger_differences.json").read_text())
    assert {
        ("lost", None, shop.lost), ("doubled", None, shop.doubled), ("delayed", None, shop.delayed),
        *(("passed by", shop.billing, msg_id) for msg_id in unseen),
    } == {(row["what"], row["group"], row["msgId"]) for row in listed}  # fmt: skip
    text = (into / "report.html").read_text()
    assert all(msg_id in text for msg_id in (shop.lost, shop.doubled, *unseen))
    assert 1 == len(list((into / "history").iterdir()))
    check_books(told, shop, len(unseen))


def test_with_dropped_trace_the_verdict_is_not_known(
    spark: Any, cluster: Processes, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every message was handled; how many trace records are missing is said, and the exit code is
    0."""
    monkeypatch.setattr(tracing, "QUEUE_MAX", 9)
    shop = asyncio.run(open_shop(cluster.namesrv, topic, COUNT))

    ended = CliRunner().invoke(
        command,
        ["--into", str(tmp_path / "r"), "-n", cluster.namesrv, "--topic", shop.topic,
         "--group", shop.billing, "--quiet", "--zone", "UTC", "-o", "json"],
    )  # fmt: skip

    assert (0, None) == (ended.exit_code, ended.exception), ended.output
    told = json.loads(ended.stdout)
    (group,) = told["groups"]
    assert (0, 0, 0) == tuple(group[name] for name in ("passedBy", "unfinished", "dropped"))
    assert group["untraced"] > 0
    assert (None, 0) == (told["verdict"]["balanced"], told["unexplained"])
    assert f"Not known for {group['untraced']} messages: " in told["verdict"]["text"]
    (note,) = [note for note in told["notes"] if "is not complete" in note]
    assert "trace records were dropped by its consumers" in note
    assert note in told["verdict"]["basis"]


def test_what_members_without_trace_handled_is_not_known(
    spark: Any, cluster: Processes, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that traces and one that does not share a group, and the second one has left before the
    report: no alarm, but the reason and what to do; the same when both have left."""
    monkeypatch.setattr(coverage, "CLOCK_SLACK_MS", 0)
    namesrv, group = cluster.namesrv, f"{topic}-group"
    cluster.create_topic(topic, queues=4)
    arguments = ["-n", namesrv, "--topic", topic, "--quiet", "--zone", "UTC", "-o", "json"]
    with closing(Member(namesrv, group, topic, traced=True)) as traced:
        sent = 0
        with ExitStack() as stack:
            members, give_up = [traced], time.monotonic() + SAVED_SECONDS_MAX
            while len(members) < 2 or any(not each.handled for each in members):
                assert time.monotonic() < give_up
                cluster.fill(topic, [1, 1, 1, 1])
                sent += 4
                while sum(each.handled for each in members) < sent:
                    assert time.monotonic() < give_up
                    time.sleep(0.1)
                if len(members) < 2:
                    untraced = Member(namesrv, group, topic, traced=False)
                    members.append(stack.enter_context(closing(untraced)))
        first = CliRunner().invoke(command, ["--into", str(tmp_path / "1"), *arguments])
    second = CliRunner().invoke(command, ["--into", str(tmp_path / "2"), *arguments])

    for ended, why in (
        (first, "1 of its consumers did not trace: set trace=True for all"),
        (second, "no consumer that traces is connected"),
    ):
        assert (0, None) == (ended.exit_code, ended.exception), ended.output
        told = json.loads(ended.stdout)
        (row,) = told["groups"]
        assert (sent, sent) == (row["messages"], row["acknowledged"] + row["untraced"])
        assert 0 < row["untraced"] <= untraced.handled  # those that changed hands came twice
        assert (None, 0) == (told["verdict"]["balanced"], told["unexplained"])
        assert told["verdict"]["text"].startswith(f"Not known for {row['untraced']} message")
        assert why in told["verdict"]["basis"]


def check_books(told: dict[str, Any], shop: Shop, unseen: int) -> None:
    """The numbers that were sent and consumed, and what was put in the way of them."""
    dead, stored = len(shop.dead), COUNT + unseen
    (topic,) = told["topics"]
    assert {"sent": COUNT + 2, "stored": stored + 1, "messages": stored, "untraced": unseen,
            "delayed": 1, "lost": 1, "doubled": 1}.items() <= topic.items()  # fmt: skip
    billing, mailing = told["groups"]
    assert {"basis": "trace", "messages": stored, "delivered": COUNT, "acknowledged": COUNT - dead,
            "dead": dead, "passedBy": unseen, "waiting": 0}.items() <= billing.items()  # fmt: skip
    assert ("offset", stored) == (mailing["basis"], mailing["acknowledged"] + mailing["waiting"])
    assert 0 < mailing["acknowledged"] <= shop.read
    assert {"unexplained": 2 + unseen, "dead": dead}.items() <= told["figures"].items()


def test_what_is_not_there_is_said(
    spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """A time without messages, no trace: notes, no error."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [3])

    ended = CliRunner().invoke(
        command,
        ["--into", str(tmp_path / "r"), "-n", cluster.namesrv, "--topic", topic,
         "--trace-topic", "untold", "--quiet", "--until", "2020-01-01", "--zone", "UTC"],
    )  # fmt: skip

    assert (0, "There is nothing to account for.") == (
        ended.exit_code, ended.stdout.splitlines()[0],
    )  # fmt: skip
    for note in ("there is no trace (untold)", "no message was stored in this period"):
        assert note in ended.stderr
    assert "No message died." in (tmp_path / "r" / "report.html").read_text()


@pytest.mark.parametrize("unknown", [["--topic", "gone"], ["--group", "nobody"]], ids="-".join)
def test_names_that_nobody_knows_are_an_error(
    cluster: Processes, topic: str, tmp_path: Path, unknown: list[str]
) -> None:
    """As in every command: exit 1, the name, and nothing is written."""
    cluster.create_topic(topic, queues=1)
    where = ["--into", str(tmp_path / "r"), "-n", cluster.namesrv, "--topic", topic]

    ended = CliRunner().invoke(command, [*where, *unknown])

    assert 1 == ended.exit_code
    assert unknown[1] in ended.stderr
    assert not (tmp_path / "r").exists()


def test_a_wrong_name_server_is_told_before_spark_starts(tmp_path: Path) -> None:
    """One line within five seconds."""
    began = time.monotonic()
    ended = CliRunner().invoke(command, ["--into", str(tmp_path / "r"), "-n", "127.0.0.1:1"])

    assert (1, True) == (ended.exit_code, "no name server answers" in ended.stderr)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "arguments, why",
    [
        (["--since", "soon"], "'soon' is no time"),
        (["--zone", "Mars/North"], "there is no time zone 'Mars/North'"),
        (["--archive", "nowhere"], "there is no archive in"),
        (["--store", "nowhere"], "nowhere is no store"),
        (["--store", "a", "--archive", "b"], "rows come from --store or from --archive"),
    ],
)
def test_mistakes_are_answered_in_a_line(
    spark: Any, cluster: Processes, tmp_path: Path, arguments: list[str], why: str
) -> None:
    """Nothing is written then."""
    ended = CliRunner().invoke(
        command, ["--into", str(tmp_path / "r"), "-n", cluster.namesrv, "--quiet", *arguments]
    )

    assert 1 == ended.exit_code
    assert ended.stderr.startswith("error: ")
    assert why in ended.stderr
    assert 1 == len(ended.stderr.splitlines())
    assert not (tmp_path / "r").exists()
