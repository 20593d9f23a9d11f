"""A backlog moved into a wider topic: nothing lost, nothing doubled, order per key kept."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from peer import Peer, Run, messages

from gantrymq import Message, ProducerOptions
from gantrymq.cli.main import main
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.topics import spread_marks
from gantrymq.client.admin.topics.spread import GroupRuns, Spread, SpreadRow
from gantrymq.client.admin.topics.spread_marks import parse_mark
from gantrymq.client.core.errors import ClientError
from gantrymq.model import Queue
from gantrymq.protocol import properties
from gantrymq.protocol.command import Command
from gantrymq.protocol.compression import decompress
from gantrymq.protocol.record import StoredMessage
from gantrymq.remoting.pending_call import ConnectionLost
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

KEYS = [f"user-{number}" for number in range(7)]


async def fill(cluster: Cluster, count: int, *, queues: int = 2, **more: Any) -> None:
    """Messages `key number`, each key in its queue as producers choose it; group g reads at 0."""
    await cluster.create_topic("orders", queues=queues)
    async with cluster.producer() as producer:
        for number in range(count):
            key = KEYS[number % len(KEYS)]
            await producer.send(Message("orders", f"{key} {number}", sharding_key=key, **more))
    for name in cluster.running:
        for queue_id in range(queues):
            await commit(cluster, queue_id, 0, broker=name)


async def commit(
    cluster: Cluster, queue_id: int, offset: int, group: str = "g", broker: str = "broker-a"
) -> None:
    peer = await Peer.to(cluster, cluster.broker(broker).config.listen_port)
    await peer.pull("orders", 0, queue=queue_id, group=group)
    await peer.call(15, consumerGroup=group, topic="orders", queueId=queue_id, commitOffset=offset)
    peer.close()


async def stored(cluster: Cluster, topic: str = "wide") -> dict[Queue, list[StoredMessage]]:
    """Everything in a topic."""
    found: dict[Queue, list[StoredMessage]] = {}
    for name in cluster.running:
        config = cluster.broker(name).registry.topics.table.get(topic)
        peer = await Peer.to(cluster, cluster.broker(name).config.listen_port)
        for queue_id in range(config.read_queue_nums if config else 0):
            rows = found[Queue(topic, name, queue_id)] = []
            while part := messages(await peer.pull(topic, len(rows), queue_id, group="check")):
                rows += part
        peer.close()
    return found


def bodies_of(found: dict[Queue, list[StoredMessage]]) -> list[str]:
    return sorted(row.body.decode() for rows in found.values() for row in rows)


def by_key(found: dict[Queue, list[StoredMessage]]) -> dict[str, list[int]]:
    """Key to its numbers in the order of its queue; a key in two queues is an error."""
    homes: dict[str, Queue] = {}
    numbers: dict[str, list[int]] = {}
    for queue, rows in found.items():
        for row in rows:
            key, number = row.body.decode().split()
            assert queue == homes.setdefault(key, queue)
            numbers.setdefault(key, []).append(int(number))
    return numbers


async def spread(cluster: Cluster, **more: Any) -> list[SpreadRow]:
    wanted: dict[str, Any] = {"group": "g", "to": "wide", "queues": 6, "rate": 100_000}
    async with cluster.admin() as admin:
        return await Spread(admin, "orders", **{**wanted, **more}).run()


async def lag(cluster: Cluster, group: str = "g") -> int:
    async with cluster.admin() as admin:
        return (await admin.consume_stats(group, "orders")).lag


class TestMoving:
    def test_everything_is_moved_and_keys_stay_in_order(self, run: Run) -> None:
        """
        A key keeps to one queue, the one where producers put its next message.
        """

        async def work(cluster: Cluster) -> None:
            await fill(cluster, 100)
            rows = await spread(cluster)
            assert (100, 0) == (sum(r.moved for r in rows), sum(r.skipped for r in rows))
            assert 0 == await lag(cluster)
            async with cluster.producer() as producer:
                for number, key in enumerate(KEYS, 1_000):
                    await producer.send(Message("wide", f"{key} {number}", sharding_key=key))
            found = by_key(await stored(cluster))
            assert {
                key: [*range(at, 100, len(KEYS)), 1_000 + at] for at, key in enumerate(KEYS)
            } == found
            assert 6 == len(await stored(cluster))

        run(work, brokers=1)

    def test_only_what_the_group_has_not_read(self, run: Run) -> None:
        """
        Its progress is where it begins; other groups are not touched; again there is nothing left.
        """

        async def work(cluster: Cluster) -> None:
            await fill(cluster, 20, queues=1)
            await commit(cluster, 0, 15)
            await commit(cluster, 0, 2, group="other")
            async with cluster.admin() as admin:
                work = Spread(admin, "orders", group="g", to="wide", queues=6)
                assert [(15, 20, 5)] == [(r.start, r.end, r.waiting) for r in await work.plan()]
                assert "wide" not in await admin.topics()
            assert [5] == [row.moved for row in await spread(cluster)]
            assert [0] == [row.moved for row in await spread(cluster)]
            assert (0, 18) == (await lag(cluster), await lag(cluster, "other"))
            found = await stored(cluster)
            assert [15, 16, 17, 18, 19] == sorted(
                n for each in by_key(found).values() for n in each
            )

        run(work)

    def test_over_several_brokers(self, run: Run) -> None:
        """
        The new topic is where the old one is, with so many queues on each.
        """

        async def work(cluster: Cluster) -> None:
            await fill(cluster, 60)
            await spread(cluster, queues=3)
            found = await stored(cluster)
            assert 6 == len(found)
            assert list(range(60)) == sorted(n for each in by_key(found).values() for n in each)
            assert all(each == sorted(each) for each in by_key(found).values())

        run(work, brokers=2)

    def test_a_copy_is_the_message_as_far_as_a_producer_can_make_it(self, run: Run) -> None:
        """
        Id, tags, keys, properties, flag, packed body, time of birth; and where it came from.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic("orders", queues=1)
            body = "book " * 2_000
            async with cluster.producer(options=ProducerOptions(compression="zlib")) as producer:
                await producer.send(
                    Message("orders", body, "paid", ["a", "b"], properties={"x": "1"}, flag=7)
                )
            await commit(cluster, 0, 0)
            (was,) = (await stored(cluster, "orders"))[Queue("orders", "broker-a", 0)]
            await spread(cluster, queues=1)
            (now,) = (await stored(cluster))[Queue("wide", "broker-a", 0)]
            kept = ("UNIQ_KEY", "TAGS", "KEYS", "x")
            assert {name: was.properties[name] for name in kept} == {
                name: now.properties[name] for name in kept
            }
            assert (was.body, was.flag, was.born_ms) == (now.body, now.flag, now.born_ms)
            assert was.sys_flag == now.sys_flag
            assert body.encode() == decompress(now.body, now.sys_flag)
            mark = now.properties[properties.SPREAD_FROM]
            assert "orders/broker-a/0/0" == mark
            assert (Queue("orders", "broker-a", 0), 0) == parse_mark(mark)

        run(work)

    def test_a_message_that_has_waited_does_not_wait_again(self) -> None:
        """
        Its delay is over, and the copy is there at once.
        """

        async def story() -> None:
            async with Cluster(memory=True) as cluster:
                await cluster.create_topic("orders", queues=1)
                async with cluster.producer() as producer:
                    await producer.send(Message("orders", b"level", delay_level=5))
                    await producer.send(Message("orders", b"timer", delay=60))
                await asyncio.sleep(100)
                await commit(cluster, 0, 0)
                await spread(cluster, queues=1)
                assert ["level", "timer"] == bodies_of(await stored(cluster))

        simulate(story)

    def test_not_faster_than_wanted(self) -> None:
        """
        However many queues are moved at once.
        """

        async def story() -> None:
            async with Cluster(memory=True) as cluster:
                await fill(cluster, 50)
                started = asyncio.get_running_loop().time()
                await spread(cluster, rate=10)
                took = asyncio.get_running_loop().time() - started
                assert 4.9 <= took <= 8

        simulate(story)


class TestKeyless:
    @pytest.mark.parametrize("keyless", [None, "spread", "queue", "keys"])
    @pytest.mark.parametrize("order", [False, True])
    def test_go_where_they_are_told_to(self, keyless: Any, order: bool) -> None:
        """
        Anywhere, or where their queue goes, or by their first key. Order topics keep to the queue.
        """

        async def story() -> None:
            async with Cluster(memory=True) as cluster:
                async with cluster.admin() as admin, cluster.producer() as producer:
                    await admin.create_topic("orders", queues=2, order=order)
                    for number in range(24):
                        queue = Queue("orders", "broker-a", number % 2)
                        message = Message("orders", f"{number % 2} {number}", keys=["k", "l"])
                        await producer.send(message, queue=queue)
                for queue_id in (0, 1):
                    await commit(cluster, queue_id, 0)
                await spread(cluster, keyless=keyless)
                found = await stored(cluster)
                sizes = sorted(len(rows) for rows in found.values())
                if (keyless or ("queue" if order else "spread")) == "spread":
                    assert [4] * 6 == sizes
                elif keyless == "keys":
                    assert [0] * 5 + [24] == sizes
                else:
                    assert [0] * 4 + [12] * 2 == sizes
                    assert {"0": list(range(0, 24, 2)), "1": list(range(1, 24, 2))} == by_key(found)

        simulate(story)


class TestInterrupted:
    @pytest.mark.parametrize("seconds", [0.1, 0.55, 1.3, 2.9])
    def test_the_same_call_goes_on(self, run: Run, seconds: float) -> None:
        """
        Wherever it was cut off: no message is lost, none is there twice, order is kept.
        """

        async def work(cluster: Cluster) -> None:
            await fill(cluster, 150)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(seconds):
                    await spread(cluster, rate=40)
            before = len(bodies_of(await stored(cluster)))
            assert 0 < before < 150
            rows = await spread(cluster)
            assert {key: list(range(at, 150, len(KEYS))) for at, key in enumerate(KEYS)} == by_key(
                await stored(cluster)
            )
            assert 150 - before == sum(row.moved for row in rows)
            assert 0 == await lag(cluster)

        run(work)

    @pytest.mark.parametrize("block", [4, 256])
    def test_copies_made_before_progress_was_lost_are_found(
        self, block: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """
        A broker may forget the last seconds of progress; also others may write into the new topic.
        """

        monkeypatch.setattr(spread_marks, "BLOCK", block)

        async def story() -> None:
            async with Cluster(memory=True) as cluster:
                await fill(cluster, 300)
                await spread(cluster)
                async with cluster.producer() as producer:
                    for number, key in enumerate(KEYS * 20, 1_000):
                        await producer.send(Message("wide", f"{key} {number}", sharding_key=key))
                for queue_id, offset in ((0, 20), (1, 0)):
                    await commit(cluster, queue_id, offset)
                waiting = await lag(cluster)
                rows = await spread(cluster)
                assert (0, waiting) == (sum(r.moved for r in rows), sum(r.skipped for r in rows))
                assert 300 + 140 == len(bodies_of(await stored(cluster)))
                assert 0 == await lag(cluster)

        simulate(story)

    @pytest.mark.parametrize("power_cut", [False, True])
    def test_a_broker_that_dies_on_the_way_costs_no_message(self, power_cut: bool) -> None:
        """
        The run fails and says why; the next one leaves every message that was stored in its place.
        """

        async def story() -> None:
            async with Cluster(memory=True, flush_disk_type="SYNC_FLUSH") as cluster:
                await fill(cluster, 200)
                await asyncio.sleep(6)  # brokers save progress every 5 s
                spreading = asyncio.ensure_future(spread(cluster, rate=50))
                await asyncio.sleep(2)
                await cluster.kill_broker(power_cut=power_cut)
                with pytest.raises(ClientError):
                    await spreading
                await cluster.start_broker()
                await spread(cluster)
                found = by_key(await stored(cluster))
                assert {
                    key: list(range(at, 200, len(KEYS))) for at, key in enumerate(KEYS)
                } == found

        simulate(story)

    def test_an_answer_that_is_lost_makes_no_second_copy(self, run: Run) -> None:
        """
        Whatever was asked is asked again, but a copy that was stored is looked for first.
        """

        class Lossy:
            """Every third answer of a broker gets lost on its way."""

            def __init__(self) -> None:
                self.count = self.lost = 0

            def before_request(self, address: str, command: Command) -> None:
                pass

            def after_response(self, address: str, command: Command, response: Command) -> None:
                if command.code in (11, 15, 310):
                    self.count += 1
                    if not self.count % 3:
                        self.lost += command.code == 310
                        raise ConnectionLost("the answer is lost")

        async def work(cluster: Cluster) -> None:
            await fill(cluster, 30)
            hook = Lossy()
            async with Admin(
                cluster.namesrv, hooks=[hook], network=cluster.network, clock=cluster.clock,
                rng=cluster.rng,
            ) as admin:  # fmt: skip
                copying = Spread(admin, "orders", group="g", to="wide", queues=6, rate=10_000)
                rows = await copying.run()
            assert 30 == sum(row.moved for row in rows)
            assert {key: list(range(at, 30, len(KEYS))) for at, key in enumerate(KEYS)} == by_key(
                await stored(cluster)
            )
            assert 0 == await lag(cluster)
            assert hook.lost > 0

        run(work)


class TestRefused:
    def test_members_that_run_are_in_the_way(self, run: Run) -> None:
        """
        Before the start and on the way; with force they are sent on behind what was moved.
        """

        async def work(cluster: Cluster) -> None:
            await fill(cluster, 40)
            async with cluster.consumer("g") as consumer:
                consumer.subscribe("orders")
                await consumer.wait_assigned(2)
                with pytest.raises(GroupRuns, match=r"'g' reads 'orders' right now \(.*Stop them"):
                    await spread(cluster)
                assert {} == await stored(cluster)
                rows = await spread(cluster, force=True)
                assert 40 == sum(row.moved for row in rows)

        run(work)

    def test_members_that_come_back_stop_it(self) -> None:
        """
        It can go on when they are gone again.
        """

        async def story() -> None:
            async with Cluster(memory=True) as cluster:
                await fill(cluster, 100)
                spreading = asyncio.ensure_future(spread(cluster, rate=10))
                await asyncio.sleep(1)
                async with cluster.consumer("g") as consumer:
                    consumer.subscribe("orders")
                    with pytest.raises(GroupRuns):
                        await spreading
                assert len(bodies_of(await stored(cluster))) < 100

        simulate(story)

    def test_progress_that_was_reset_is_moved_all_the_same(self, run: Run) -> None:
        """
        The broker ignores commits until somebody has read from the new place: nobody has.
        """

        async def work(cluster: Cluster) -> None:
            await fill(cluster, 80)
            async with cluster.admin() as admin:
                await admin.reset("g", "orders", "last", force=True)
                await admin.reset("g", "orders", "first")
            await spread(cluster)
            assert 0 == await lag(cluster)

        run(work)

    @pytest.mark.parametrize(
        "wanted, words",
        [
            ({"to": "orders"}, "not into itself"),
            ({"to": "%RETRY%g"}, "belongs to the system"),
            ({"to": "rmq_sys_x"}, "belongs to the system"),
            ({"group": "stranger"}, "'stranger' has never read 'orders'"),
            ({"rate": 0}, "above 0"),
            ({"to": "narrow"}, "'narrow' has 1 queue on broker-a, not 6"),
        ],
    )
    def test_what_makes_no_sense(self, run: Run, wanted: dict[str, Any], words: str) -> None:
        """
        Said before anything is moved.
        """

        async def work(cluster: Cluster) -> None:
            await fill(cluster, 1)
            await cluster.create_topic("narrow", queues=1)
            with pytest.raises(ClientError, match=words):
                await spread(cluster, **wanted)
            assert 1 == await lag(cluster)

        run(work)


class TestCommand:
    def test_gantry_topic_spread_moves_and_goes_on(self, tmp_path: Path) -> None:
        """
        A dry run, Ctrl-C, and the same command again.
        """

        async def work() -> None:
            async with Cluster() as cluster:
                await fill(cluster, 120)
                arguments = ["topic", "spread", "orders", "--to", "wide", "--queues", "8",
                             "--group", "g", "-n", cluster.namesrv]  # fmt: skip

                async def gantry(*more: str) -> tuple[str, str]:
                    result = await asyncio.to_thread(CliRunner().invoke, main, [*arguments, *more])
                    assert 0 == result.exit_code, result.output
                    return result.stdout, result.stderr

                out, said = await gantry("--dry-run", "-o", "json")
                assert 120 == sum(row["waiting"] for row in json.loads(out))
                assert "120 messages would be moved" in said
                process = await asyncio.create_subprocess_exec(
                    str(Path(sys.executable).parent / "gantry"), *arguments, "--rate", "25",
                    stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                )  # fmt: skip
                assert process.stderr is not None
                while b" moved, " not in await process.stderr.readline():
                    pass
                process.send_signal(signal.SIGINT)
                said = (await process.stderr.read()).decode()
                assert 130 == await process.wait()
                assert "stopped: the same command goes on where it was" in said
                before = len(bodies_of(await stored(cluster)))
                out, said = await gantry("-o", "json")
                assert 120 - before == sum(row["moved"] for row in json.loads(out))
                assert "let g subscribe to wide" in said
                assert 120 == len(set(bodies_of(await stored(cluster))))
                assert 120 == len(bodies_of(await stored(cluster)))

        asyncio.run(work())
