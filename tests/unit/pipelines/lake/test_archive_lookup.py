"""One search over what brokers have and what the archive has."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from lakekit import NOON, written
from sparkkit import BROKER

from gantrymq import Admin, Message, Producer, ProducerOptions, Queue
from gantrymq.cli.main import main
from gantrymq.client.admin.messages.message_search import Found
from gantrymq.model.offset_ranges import OffsetRange
from gantrymq.pipelines.archive.watch import Watch, watch
from gantrymq.pipelines.archive.work import build_copy_work
from gantrymq.pipelines.lake import Change, Table, open_table
from gantrymq.pipelines.lake.combined_search import HotAndCold
from gantrymq.pipelines.lake.lookup import Lookup
from gantrymq.spark.options.source_parser import parse_source_options
from gantrymq.spark.records.survey import Sample
from gantrymq.spark.source.rows import open_rows
from gantrymq.testing.plugin import GantryCluster

A, B = Queue("orders", "broker-a", 0), Queue("orders", "broker-a", 1)
OLD = Queue("old", BROKER, 0)
COUNT = 600
AS_IT_IS = ProducerOptions(compress_over_bytes=1 << 30)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Two queues, 100 messages each, a second apart."""
    made = open_table(tmp_path / "t", "delta", create=True)
    files = [*written(made.root, A, 0, 49, NOON, 1000), *written(made.root, B, 0, 99, NOON, 1000)]
    files += written(made.root, A, 50, 99, NOON + 50_000, 1000)
    made.commit(Change(NOON, tuple(files), ends={A: 100, B: 100}))
    return made


def places(found: Any) -> list[tuple[int, int]]:
    return [(each.queue.queue_id, each.offset) for each in found.messages]


def test_an_archive_is_searched_by_id_key_time_and_place(table: Table) -> None:
    """Messages come back as brokers would have given them."""
    lookup = Lookup(table)

    (message,) = lookup.by_id(f"{0:02X}{7:030X}").messages
    assert (b"0:7", "t1", ("k7", "all"), NOON + 7000) == (
        message.body, message.tags, message.keys, message.store_ms,
    )  # fmt: skip
    assert (A, 7, ("127.0.0.1", 10911)) == (message.queue, message.offset, message.store_host)
    assert message.origin == f"archive {table.root}"
    assert [(0, 7), (1, 7)] == places(lookup.by_id(message.offset_msg_id))
    assert [(0, 7), (1, 7)] == places(lookup.by_key("orders", "k7"))
    assert [] == places(lookup.by_key("orders", "7"))
    assert [(0, 60)] == places(lookup.at(A, 60))
    timed = lookup.by_time("orders", NOON + 10_000, NOON + 12_000)
    assert [(0, 10), (1, 10), (0, 11), (1, 11), (0, 12), (1, 12)] == places(timed)
    assert [(0, 12), (1, 12)] == places(
        lookup.by_time("orders", NOON + 10_000, NOON + 12_000, tags="t0 || tx")
    )


def test_what_is_cut_off_is_told(table: Table) -> None:
    """A limit makes an answer incomplete: by key the newest are shown, by time the oldest."""
    lookup = Lookup(table)

    by_key = lookup.by_key("orders", "all", limit=3)
    by_time = lookup.by_time("orders", 0, NOON * 2, limit=3)

    assert [(1, 98), (0, 99), (1, 99)] == places(by_key)
    assert [(0, 0), (1, 0), (0, 1)] == places(by_time)
    assert (False, False) == (by_key.complete, by_time.complete)
    assert not lookup.at(A, 100).complete


def test_what_nobody_has_is_named(table: Table) -> None:
    """Between the end of the archive and the beginning of a broker's queue nothing may be."""
    lookup = Lookup(table)

    assert [] == lookup.gaps("orders", {A: 40, B: 100})
    assert ["orders@broker-a:0 100 to 119 is nowhere"] == lookup.gaps("orders", {A: 120, B: 0})
    assert ["orders@broker-a:2 0 to 4 is nowhere"] == lookup.gaps(
        "orders", {Queue("orders", "broker-a", 2): 5}
    )


def test_gaps_cannot_be_told_of_files_that_others_wrote(tmp_path: Path) -> None:
    """Their names do not say what they hold: neither "nowhere" nor "complete" would be true."""
    table = open_table(tmp_path / "f", create=True)
    for first in (0, 5):
        files = written(table.root, A, first, first + 4)
        table.commit(Change(NOON, files, ends={A: first + 5}))
    DeltaTable(table.root).optimize.compact()

    [problem] = Lookup(open_table(table.root)).gaps("orders", {A: 10})

    assert "whether all of orders is there cannot be told" in problem


@pytest.fixture
def cut(tmp_path: Path) -> Iterator[GantryCluster]:
    """A broker whose first messages are archived, and then deleted by retention."""
    always = ";".join(f"{hour:02d}" for hour in range(24))
    cluster = GantryCluster(file_reserved_time=0, delete_when=always)
    cluster.create_topic(OLD.topic, queues=1)

    async def send() -> None:
        async with Producer(cluster.namesrv, group="tests", options=AS_IT_IS) as producer:
            for number in range(COUNT):
                message = Message(OLD.topic, b"x" * 20_000, keys=[f"k{number}", "all"])
                await producer.send(message, queue=OLD)

    cluster.call(send())
    table = open_table(tmp_path / "t", "delta", create=True)
    options = parse_source_options({"nameServer": cluster.namesrv, "topic": OLD.topic})
    files = build_copy_work(table.root, options)((OffsetRange(OLD, 0, COUNT - 10),), "t").files
    table.commit(Change(NOON, tuple(files), ends={OLD: COUNT - 10}))
    cluster.clock.advance(120)
    with open_rows(options) as rows:
        lows, _ = rows.bounds()
    assert 0 < lows[OLD] < COUNT - 10
    yield cluster
    cluster.close()


def gantry(*words: str) -> tuple[Any, str]:
    """A command's rows and its word on completeness."""
    done = CliRunner().invoke(main, [*words, "-o", "json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout), done.stderr


def test_find_and_why_look_into_the_archive(cut: GantryCluster, tmp_path: Path) -> None:
    """By key, id, place and time: old from the archive, new from the broker, each once."""
    end = ["--archive", str(tmp_path / "t"), "--namesrv", cut.namesrv]
    cold = f"archive {tmp_path / 't'}"

    (old,), word = gantry("find", OLD.topic, "--key", "k3", *end)
    assert (3, cold, "1 found, complete\n") == (old["queueOffset"], old["from"], word)
    (new,), _ = gantry("find", OLD.topic, "--key", f"k{COUNT - 1}", *end)
    assert (COUNT - 1, "broker") == (new["queueOffset"], new["from"])
    (by_id,), _ = gantry("find", OLD.topic, "--id", old["msgId"], *end)
    (by_place,), _ = gantry("find", OLD.topic, "--queue", f"{BROKER}:0", "--offset", "3", *end)
    assert old == by_id == by_place
    rows, word = gantry("find", OLD.topic, "--from", "2000-01-01", *end)
    assert list(range(COUNT)) == [row["queueOffset"] for row in rows]
    assert {"broker", cold} == {row["from"] for row in rows}
    assert f"{COUNT} found, complete\n" == word

    (life,), _ = gantry("why", old["msgId"], "--topic", OLD.topic, *end)
    assert ("archived", f"no longer in its topic; from: {cold}") == (life["state"], life["text"])
    assert {cold} == {event["source"] for event in life["events"]}
    (life,), _ = gantry("why", new["msgId"], "--topic", OLD.topic, *end)
    assert "stored" == life["state"]


def test_the_archive_is_searched_when_no_broker_answers(table: Table) -> None:
    """What brokers would have said is named as missing, and what the archive has is shown."""

    async def look() -> list[Found]:
        async with Admin("127.0.0.1:1") as admin:
            both = HotAndCold(admin, Lookup(table))
            return [
                await both.at(A, 3),
                await both.at(A, 500),
                await both.by_key("orders", "k3", begin_ms=0, end_ms=NOON + 3_600_000, limit=5),
            ]

    there, nowhere, keyed = asyncio.run(look())

    assert ([(0, 3)], True) == (places(there), there.complete)
    assert ([], False) == (places(nowhere), nowhere.complete)
    assert ([(0, 3), (1, 3)], False) == (places(keyed), keyed.complete)
    for found in (nowhere, keyed):
        assert "brokers could not be asked: " in found.why


def test_a_search_without_the_archive_says_what_is_deleted(
    cut: GantryCluster, tmp_path: Path
) -> None:
    """And with an archive that has too little it names the gap."""
    rows, word = gantry("find", OLD.topic, "--from", "2000-01-01", "--namesrv", cut.namesrv)
    assert "is deleted" in word
    assert len(rows) < COUNT
    table = open_table(tmp_path / "u", "parquet", create=True)
    table.commit(Change(NOON, written(table.root, OLD, 0, 9), ends={OLD: 10}))

    _, word = gantry("find", OLD.topic, "--from", "2000-01-01", "--namesrv", cut.namesrv,
                     "--archive", str(tmp_path / "u"))  # fmt: skip

    assert f"not complete: {OLD} 10 to " in word


def test_retention_is_watched() -> None:
    """The queue with the least time left counts; without retention, the oldest message."""
    hour = 3_600_000
    now = NOON + 100 * hour
    samples = {A: Sample(100.0, now - 60 * hour), B: Sample(100.0, now - 5 * hour)}

    worst = watch({A: 10, B: 5}, samples, {"broker-a": 72.0}, now)

    assert (
        "archive is 60 hours behind, 12 hours before retention deletes "
        "(queue 0 of orders on broker-a)"
    ) == worst.text
    assert (True, False) == (worst.alarms(12.1), worst.alarms(11.9))
    unknown = watch({A: 10, B: 5}, samples, {}, now)
    assert "archive is 60 hours behind, retention is not known" == unknown.text
    assert ("archive is up to date", False) == (Watch().text, Watch().alarms(1e9))
