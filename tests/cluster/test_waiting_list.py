"""Who waits, seen by clients and tools; and messages sent for later by our own producer."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click.testing import CliRunner
from peer import Peer, Run, bodies

from gantrymq import Message, RecallRefused
from gantrymq.cli.main import main
from gantrymq.client.core.errors import MessageRefused
from gantrymq.protocol.recall import RecallHandle
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.loop import simulate


class TestProducer:
    def test_it_sends_for_later_and_takes_back(self, run: Run) -> None:
        """
        A time, a while, a level; only what waits for a time of its own can be recalled.
        """

        async def work(cluster: Cluster) -> None:
            now = cluster.clock.now_ms()
            when = datetime.fromtimestamp((now + 1_200) / 1000, UTC)
            async with cluster.producer() as producer:
                plain = await producer.send(Message("orders", b"now"))
                level = await producer.send(Message("orders", b"level", delay_level=18))
                assert (None, None) == (plain.recall_handle, level.recall_handle)
                queue = plain.queue
                timed = [
                    Message("orders", b"at", deliver_at=when),
                    Message("orders", b"ms", deliver_at=now + 900),
                    Message("orders", b"while", delay=timedelta(milliseconds=600)),
                    Message("orders", b"seconds", delay=0.3),
                    Message("orders", b"recalled", delay=1.0),
                ]
                sent = [await producer.send(message, queue=queue) for message in timed]
                handle = sent[-1].recall_handle
                assert handle is not None
                recalled = await producer.recall("orders", handle)
                assert (sent[-1].msg_id, "RECALLED") == recalled
                unknown = RecallHandle("orders", "broker-a", now + 600_000, "nobody").encode()
                assert ("nobody", "NOT_WAITING") == await producer.recall("orders", unknown)
                peer = await Peer.to(cluster)
                at = 1
                for body in (b"seconds", b"while", b"ms", b"at"):
                    answer = await peer.pull("orders", at, queue.queue_id, hold=10_000)
                    assert [body] == bodies(answer)
                    at += 1
                with pytest.raises(RecallRefused, match="already delivered"):
                    await producer.recall("orders", sent[0].recall_handle or "")
                with pytest.raises(RecallRefused, match="no recall handle"):
                    await producer.recall("orders", "nonsense")

        run(work)

    def test_what_makes_no_sense_is_refused_before_it_is_sent(self) -> None:
        """
        Two ways of waiting at once, a delay into the past, a batch that waits.
        """
        soon = datetime.now(UTC)
        both: list[dict[str, Any]] = [
            {"delay": 1, "deliver_at": soon},
            {"delay": 1, "delay_level": 3},
            {"deliver_at": soon, "delay_level": 3},
            {"delay": -1},
        ]
        for wrong in both:
            with pytest.raises(ValueError, match="only"):
                Message("orders", b"x", **wrong)

        async def story() -> None:
            async with Cluster(memory=True) as cluster, cluster.producer() as producer:
                with pytest.raises(MessageRefused, match="batch"):
                    await producer.send_batch([Message("orders", b"x", delay=5)])

        simulate(story)


class TestWaitingList:
    def test_it_names_rooms_topics_and_messages(self, run: Run) -> None:
        """
        Levels and timers together, soonest first, of one topic or of all; recalled ones are gone.
        """

        async def work(cluster: Cluster) -> None:
            now = cluster.clock.now_ms()
            async with cluster.producer() as producer, cluster.admin() as admin:
                sent = {}
                for name, message in {
                    "hour": Message("orders", b"x", keys=["k1", "k2"], delay=3_600),
                    "day": Message("orders", b"x", tags="a", delay=86_400),
                    "other": Message("others", b"x", delay=1_800),
                    "level": Message("orders", b"x", delay_level=17),
                    "level 18": Message("orders", b"x", delay_level=18),
                    "gone": Message("orders", b"x", delay=600),
                }.items():
                    sent[name] = await producer.send(message)
                await producer.recall("orders", sent["gone"].recall_handle or "")
                table = (await admin.waiting("orders"))["broker-a"]

                expected = ["level", "hour", "level 18", "day"]
                found = {message.msg_id: message for message in table.messages}
                assert {sent[name].msg_id for name in expected} == set(found)
                assert sorted(m.due_ms for m in table.messages) == [
                    m.due_ms for m in table.messages
                ]
                hour = found[sent["hour"].msg_id]
                assert (["k1", "k2"], "timer", "orders") == (hour.keys, hour.room, hour.topic)
                assert 0 <= hour.due_ms - now - 3_600_000 < 5_000
                assert "a" == found[sent["day"].msg_id].tags
                assert "level 17" == found[sent["level"].msg_id].room
                rows = {(row.topic, row.room): row.count for row in table.topics}
                assert {
                    ("orders", "level 17"): 1, ("orders", "level 18"): 1, ("orders", "timer"): 2,
                } == rows  # fmt: skip
                rooms = {room.room: (room.count, room.overdue_ms) for room in table.rooms}
                assert {"level 17": (1, 0), "level 18": (1, 0), "timer": (3, 0)} == rooms
                late = await admin.waiting("orders", count=1, from_ms=now + 86_000_000)
                assert [sent["day"].msg_id] == [m.msg_id for m in late["broker-a"].messages]
                every = (await admin.waiting(count=0))["broker-a"]
                assert ([], 4) == (every.messages, len(every.topics))

        run(work)

    def test_wound_delayed_messages_late_and_no_tool_shows_where_they_are(self) -> None:
        """
        Deliveries that are minutes late can be seen while they are late, by message, and their
        lateness is known afterwards.
        """

        async def story() -> None:
            disk = MemoryDisk()
            async with Cluster(memory=True, disk=disk) as cluster, cluster.admin() as admin:
                async with cluster.producer() as producer:
                    level = await producer.send(Message("orders", b"x", delay_level=1))
                    timer = await producer.send(Message("orders", b"x", delay=2))
                disk.fault = lambda name, path: (
                    OSError(28, "full", path) if name == "pwrite" and "commitlog" in path else None
                )
                await asyncio.sleep(302)
                table = (await admin.waiting())["broker-a"]
                assert [level.msg_id, timer.msg_id] == [m.msg_id for m in table.messages]
                overdue = {room.room: round(room.overdue_ms / 10_000) for room in table.rooms}
                assert {"level 1": 30, "timer": 30} == overdue
                disk.fault = None
                await asyncio.sleep(2)
                table = (await admin.waiting())["broker-a"]
                assert [] == table.messages
                rooms = {
                    room.room: (room.count, round(room.max_late_ms / 10_000))
                    for room in table.rooms
                }
                assert {"level 1": (0, 30), "timer": (0, 30)} == rooms

        simulate(story)

    def test_runtime_figures_tell_of_the_timer(self, run: Run) -> None:
        """
        Under the names that `mqadmin clusterList` of 5.x reads.
        """

        async def work(cluster: Cluster) -> None:
            async with cluster.producer() as producer, cluster.admin() as admin:
                await producer.send(Message("orders", b"x", delay=3_600))
                timers = cluster.broker().timers
                await timers.follower.read.reach(1)
                (address,) = (await admin.masters()).values()
                figures = await admin.broker_runtime(address)

                assert ("0", "0", "1") == (
                    figures["timerReadBehind"], figures["timerOffsetBehind"],
                    figures["timerCongestNum"],
                )  # fmt: skip
                assert float(figures["timerEnqueueTps"]) >= 0 == float(figures["timerDequeueTps"])

        run(work)

    def test_timers_are_counted_by_topic(self, run: Run) -> None:
        """
        GET_TIMER_METRICS counts what waits for a time of its own, not levels or what was recalled.
        """

        async def work(cluster: Cluster) -> None:
            async with cluster.producer() as producer:
                for topic, count in (("orders", 3), ("bills", 1)):
                    for _ in range(count):
                        last = await producer.send(Message(topic, b"later", delay=60.0))
                await producer.send(Message("orders", b"level", delay_level=18))
                await producer.recall("bills", last.recall_handle or "")
            peer = await Peer.to(cluster)
            answer = json.loads((await peer.call(61)).body)
            counted = {topic: each["count"] for topic, each in answer["timingCount"].items()}
            assert counted == {"orders": 3}

        run(work)


class TestCommand:
    def test_gantry_waiting_prints_what_waits(self) -> None:
        """
        As a table for people and as lines for scripts; the summary goes to standard error.
        """

        async def work() -> None:
            async with Cluster() as cluster:
                address = ["-n", cluster.namesrv]

                async def gantry(*arguments: str) -> tuple[str, str]:
                    result = await asyncio.to_thread(
                        CliRunner().invoke, main, [*arguments, *address]
                    )
                    assert 0 == result.exit_code, result.output
                    return result.stdout, result.stderr

                sent, _ = await gantry(
                    "send", "orders", "x", "--key", "k", "--delay", "3600", "-o", "json"
                )
                await gantry("send", "orders", "y", "--delay-level", "18")
                out, said = await gantry("waiting", "orders", "-o", "jsonl")
                rows = [json.loads(line) for line in out.splitlines()]
                assert [("timer", ["k"]), ("level 18", [])] == [
                    (r["room"], r["keys"]) for r in rows
                ]
                assert json.loads(sent)["msgId"] == rows[0]["msgId"]
                assert json.loads(sent)["recallHandle"]
                assert "2 messages wait" in said
                await gantry("topic", "create", "others")
                out, said = await gantry("waiting", "others", "-o", "json")
                assert "0 messages wait" in said
                assert [] == json.loads(out)
                out, _ = await gantry("waiting")
                assert 3 == len(out.splitlines())
                assert rows[0]["msgId"] in out
                out, _ = await gantry("waiting", "--show", "rooms", "-o", "json")
                assert {"level 18": 1, "timer": 1} == {
                    r["room"]: r["count"] for r in json.loads(out)
                }
                out, _ = await gantry("waiting", "--show", "topics", "-o", "json")
                assert ["orders", "orders"] == [row["topic"] for row in json.loads(out)]

        asyncio.run(work())
