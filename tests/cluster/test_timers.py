"""Messages with a time of their own: taken in, delivered, recalled, kept and listed."""

import asyncio
import random
from typing import Any

import pytest
from clocks import ShiftedClock
from peer import Peer, Run, bodies, messages

from gantrymq.model import TIMER_TOPIC
from gantrymq.protocol.command import Command
from gantrymq.protocol.recall import RecallHandle
from gantrymq.protocol.record import StoredMessage
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.loop import simulate

DAY_MS = 86_400_000
BURST = 6_000


def wanted(**values: Any) -> str:
    """Properties in their text form."""
    return "".join(f"{name}\x01{value}\x02" for name, value in values.items())


async def at(peer: Peer, deliver_ms: int, body: bytes, topic: str = "orders") -> Command:
    """Send a message that is due at a time; its id is its body."""
    props = wanted(TIMER_DELIVER_MS=deliver_ms, UNIQ_KEY=body.decode())
    return await peer.send(topic, body, props=props)


async def everything(cluster: Cluster, topic: str = "orders") -> list[StoredMessage]:
    """All that lies in the topic's first queue now."""
    peer = await Peer.to(cluster)
    found: list[StoredMessage] = []
    first = cluster.broker().store.queues.min_offset(topic, 0)
    while more := messages(await peer.pull(topic, first + len(found), count=1000)):
        found += more
    peer.close()
    return found


async def all_bodies(cluster: Cluster, topic: str = "orders") -> list[bytes]:
    return [message.body for message in await everything(cluster, topic)]


class TestAsking:
    @pytest.mark.parametrize("name", ["TIMER_DELIVER_MS", "TIMER_DELAY_SEC", "TIMER_DELAY_MS"])
    def test_a_message_is_delivered_at_its_time(self, run: Run, name: str) -> None:
        """
        Absolute, in seconds or in milliseconds: never early, and soon.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            now = cluster.clock.now_ms()
            value = {"TIMER_DELIVER_MS": now + 1500, "TIMER_DELAY_SEC": 1, "TIMER_DELAY_MS": 700}
            answer = await peer.send("orders", b"later", props=wanted(**{name: value[name]}))
            assert 0 == answer.code
            assert [] == bodies(await peer.pull("orders", 0))
            (message,) = messages(await peer.pull("orders", 0, hold=10_000))
            took = cluster.clock.now_ms() - now

            least = {"TIMER_DELIVER_MS": 1500, "TIMER_DELAY_SEC": 1000, "TIMER_DELAY_MS": 700}
            assert b"later" == message.body
            assert least[name] <= message.store_ms - now <= took < least[name] + 1500

        run(work)

    def test_precedence_is_rocketmqs(self) -> None:
        """
        A delay level wins over any time; seconds over milliseconds over a time of day.
        """

        async def story() -> list[tuple[bytes, int]]:
            async with Cluster(memory=True) as cluster:
                peer = await Peer.to(cluster)
                start = cluster.clock.now_ms()
                far = start + 60_000
                for body, values in (
                    (b"level", {"DELAY": 1, "TIMER_DELAY_SEC": 9, "TIMER_DELIVER_MS": far}),
                    (b"ms", {"TIMER_DELAY_MS": 3000, "TIMER_DELIVER_MS": far}),
                    (b"sec", {"TIMER_DELAY_SEC": 2, "TIMER_DELAY_MS": 9000}),
                    (b"no level", {"DELAY": 0, "TIMER_DELAY_MS": 4000}),
                ):
                    await peer.send("orders", body, props=wanted(**values))
                await asyncio.sleep(10)
                found = await everything(cluster)
                return [(m.body, round((m.store_ms - start) / 1000)) for m in found]

        assert [(b"level", 1), (b"sec", 2), (b"ms", 3), (b"no level", 4)] == simulate(story)

    def test_a_time_that_is_past_is_now(self, run: Run) -> None:
        """
        Straight to the topic, without a stay in the waiting room.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await at(peer, cluster.clock.now_ms() - 1, b"past")
            await peer.send("orders", b"negative", props=wanted(TIMER_DELAY_SEC=-5))

            assert [b"past", b"negative"] == bodies(await peer.pull("orders", 0))
            assert 0 == cluster.broker().store.queues.max_offset(TIMER_TOPIC, 0)

        run(work)

    def test_what_cannot_be_is_refused_with_a_reason(self, run: Run) -> None:
        """
        Too far away, no number, a recall of the past, and the waiting room itself.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            now = cluster.clock.now_ms()
            far = await at(peer, now + 11 * DAY_MS, b"far")
            assert (13, True) == (far.code, "timerMaxDelaySec" in (far.remark or ""))
            odd = await peer.send("orders", b"odd", props=wanted(TIMER_DELAY_MS="soon"))
            assert (13, True) == (odd.code, "soon" in (odd.remark or ""))
            props = wanted(TIMER_DELIVER_MS=now - 1, TIMER_DEL_UNIQKEY="orders+x")
            assert 13 == (await peer.send("orders", b"0", props=props)).code
            assert 16 == (await peer.send(TIMER_TOPIC, b"direct")).code
            assert 0 == (await at(peer, now + 9 * DAY_MS, b"near")).code

        run(work, timer_max_delay_sec=10 * 86_400)

    def test_switched_off_it_says_so(self, run: Run) -> None:
        """
        timerWheelEnable=false: no such message is taken, others are.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            answer = await at(peer, cluster.clock.now_ms() + 1000, b"no")
            assert (1, True) == (answer.code, "timerWheelEnable" in (answer.remark or ""))
            assert 0 == (await peer.send("orders", b"plain")).code
            refused = await peer.call(370, topic="orders", recallHandle="x")
            assert 16 == refused.code

        run(work, timer_wheel_enable=False)


class TestDelivery:
    def test_the_soonest_comes_first_and_ties_keep_their_order(self) -> None:
        """
        However they were sent.
        """

        async def story() -> list[bytes]:
            async with Cluster(memory=True) as cluster:
                peer = await Peer.to(cluster)
                start = cluster.clock.now_ms() + 5_000
                order = [(number % 10, number) for number in range(200)]
                random.Random(7).shuffle(order)
                for due, number in order:
                    await at(peer, start + due, b"%d-%d" % (due, number))
                await asyncio.sleep(6)
                found = await all_bodies(cluster)
                expected = sorted(order, key=lambda pair: pair[0])
                assert [b"%d-%d" % pair for pair in expected] == found
                return found

        assert 200 == len(simulate(story))

    def test_it_is_the_message_that_was_sent(self) -> None:
        """
        Body, flag, tag, keys and the sender's own properties; RocketMQ's traces are added.
        """

        async def story() -> tuple[StoredMessage, int]:
            async with Cluster(memory=True) as cluster:
                peer = await Peer.to(cluster)
                props = wanted(
                    TAGS="a", KEYS="k1 k2", own="mine", TIMER_DELAY_MS=2000, UNIQ_KEY="id"
                )
                ext = {"a": "p", "b": "orders", "c": "TBW102", "d": 4, "e": 2, "f": 0, "g": 77}
                await peer.call(310, b"body", i=props, h=5, **ext)
                out = cluster.clock.now_ms()
                (message,) = messages(await peer.pull("orders", 0, queue=2, hold=10_000, tags="a"))
                return message, out

        message, sent = simulate(story)

        assert (b"body", 5, 77, 2) == (
            message.body, message.flag, message.born_ms, message.queue_id
        )  # fmt: skip
        added = {"MSG_REGION", "TRACE_ON", "CLUSTER"}
        found = {name: text for name, text in message.properties.items() if name not in added}
        stamps = [int(found.pop(f"TIMER_{name}_MS")) for name in ("ENQUEUE", "OUT", "DEQUEUE")]
        assert stamps == sorted(stamps)
        assert abs(stamps[0] - sent) < 10
        assert {
            "TAGS": "a", "KEYS": "k1 k2", "own": "mine", "UNIQ_KEY": "id", "TIMER_DELAY_MS": "2000",
            "REAL_TOPIC": "orders", "REAL_QID": "2",
        } == found  # fmt: skip

    def test_an_earlier_one_wakes_the_sleeper(self) -> None:
        """
        Waiting for tomorrow does not make today's message late: to the millisecond.
        """

        async def story() -> list[tuple[bytes, int]]:
            async with Cluster(memory=True) as cluster:
                peer = await Peer.to(cluster)
                start = cluster.clock.now_ms()
                await at(peer, start + DAY_MS, b"tomorrow")
                await asyncio.sleep(2)
                await at(peer, start + 3_333, b"today")
                await asyncio.sleep(5)
                return [(m.body, m.store_ms - start) for m in await everything(cluster)]

        assert [(b"today", 3_333)] == simulate(story)

    def test_a_full_store_is_waited_for(self) -> None:
        """
        Nothing is lost, nothing comes twice, and the lateness is known.
        """

        async def story() -> tuple[list[bytes], int]:
            disk = MemoryDisk()
            async with Cluster(memory=True, disk=disk) as cluster:
                peer = await Peer.to(cluster)
                for number in range(5):
                    await at(peer, cluster.clock.now_ms() + 1000, b"%d" % number)
                disk.fault = lambda name, path: (
                    OSError(28, "full", path) if name == "pwrite" and "commitlog" in path else None
                )
                await asyncio.sleep(10)
                disk.fault = None
                await asyncio.sleep(2)
                return await all_bodies(cluster), cluster.broker().timers.lateness.max_ms

        found, late = simulate(story)

        assert [b"%d" % number for number in range(5)] == found
        assert 8_000 <= late <= 12_000

    def test_damaged_and_foreign_records_stop_nobody(self) -> None:
        """
        A record without a time or a topic in the waiting room is reported and passed over.
        """

        async def story() -> list[bytes]:
            from gantrymq.store.append import Append

            async with Cluster(memory=True) as cluster:
                peer = await Peer.to(cluster)
                store = cluster.broker().store
                due = cluster.clock.now_ms() + 1000
                for text in ("", "a\x01b\x02", wanted(TIMER_OUT_MS="x", REAL_TOPIC="orders"),
                             wanted(TIMER_OUT_MS=due)):  # fmt: skip
                    store.put(Append(TIMER_TOPIC, 0, b"odd", properties=text.encode()))
                await at(peer, due, b"good")
                await asyncio.sleep(2)
                return await all_bodies(cluster)

        assert [b"good"] == simulate(story)

    def test_retries_of_a_timer_message_do_not_wait_again(self) -> None:
        """
        Given back, it comes after its level; its old time has no effect any more.
        """

        async def story() -> int:
            async with Cluster(memory=True) as cluster:
                peer = await Peer.to(cluster)
                await peer.heartbeat("c", "g", "orders")
                props = wanted(TIMER_DELAY_MS=3_600_000)
                await peer.send("orders", b"poison", props=props)
                await asyncio.sleep(3_601)
                peer = await Peer.to(cluster)
                (message,) = messages(await peer.pull("orders", 0))
                before = cluster.clock.now_ms()
                await peer.call(36, offset=message.physical_offset, group="g", delayLevel=1)
                await peer.pull("%RETRY%g", 0, hold=10_000)
                return cluster.clock.now_ms() - before

        assert 1000 <= simulate(story) < 1100

    def test_a_time_asked_for_in_a_transaction_counts_from_the_commit(self, run: Run) -> None:
        """
        The half message waits for its decision first; then its copy goes to the waiting room.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            props = wanted(TRAN_MSG="true", PGROUP="p", UNIQ_KEY="half", TIMER_DELAY_MS=800)
            ext = {"a": "p", "b": "orders", "c": "TBW102", "d": 4, "e": 0, "f": 4, "g": 1, "h": 0}
            half = await peer.call(310, b"bought", i=props, **ext)
            assert 0 == half.code
            await asyncio.sleep(1)
            committed = cluster.clock.now_ms()
            at_log = int(half.ext["msgId"][-16:], 16)
            answer = await peer.call(
                37, producerGroup="p", tranStateTableOffset=half.ext["queueOffset"],
                commitLogOffset=at_log, commitOrRollback=8, fromTransactionCheck="false",
                msgId="half", transactionId="half",
            )  # fmt: skip
            assert 0 == answer.code
            (message,) = messages(await peer.pull("orders", 0, hold=10_000))
            assert (b"bought", True) == (message.body, message.store_ms - committed >= 800)

        run(work)


class TestLiveTraffic:
    def test_a_burst_leaves_room_for_live_sends(self) -> None:
        """
        Thousands due together, in real time: while they are delivered, sends are answered.
        """

        async def work() -> tuple[int, float]:
            async with Cluster() as cluster:
                peer, live = await Peer.to(cluster), await Peer.to(cluster)
                timers, loop = cluster.broker().timers, asyncio.get_running_loop()
                due = cluster.clock.now_ms() + 4_000
                for start in range(0, BURST, 1_000):
                    sends = (at(peer, due, b"%d" % n) for n in range(start, start + 1_000))
                    await asyncio.gather(*sends)
                while not timers.delivered:
                    await asyncio.sleep(0.001)
                slowest, answered = 0.0, 0
                while timers.delivered < BURST:
                    begin = loop.time()
                    assert 0 == (await live.send("live", b"now")).code
                    slowest = max(slowest, loop.time() - begin)
                    answered += 1
                assert [b"%d" % number for number in range(BURST)] == await all_bodies(cluster)
                return answered, slowest

        answered, slowest = asyncio.run(work())

        assert answered >= 5
        assert slowest < 1.0


class TestRestart:
    def test_after_a_clean_stop_exactly_the_rest_comes(self) -> None:
        """
        None twice, none missing, also those that became due in between; at their own times.
        """

        async def story() -> tuple[list[bytes], list[tuple[bytes, int]]]:
            async with Cluster(memory=True) as cluster:
                peer = await Peer.to(cluster)
                start = cluster.clock.now_ms()
                for number in (1, 2, 3, 4, 5, 6):
                    await at(peer, start + number * 10_000, b"%d" % number)
                await asyncio.sleep(25)
                before = await all_bodies(cluster)
                await cluster.stop_broker()
                await asyncio.sleep(10)
                await cluster.start_broker()
                await asyncio.sleep(30)
                found = [(m.body, (m.store_ms - start) // 1000) for m in await everything(cluster)]
                return before, found

        before, after = simulate(story)

        assert [b"1", b"2"] == before
        assert [(b"1", 10), (b"2", 20), (b"3", 35), (b"4", 40), (b"5", 50), (b"6", 60)] == after

    @pytest.mark.parametrize("seed", range(12))
    def test_a_power_cut_loses_nothing(self, seed: int) -> None:
        """
        What was accepted and flushed is delivered at least once, wherever the cut falls; only
        what was delivered since the last checkpoint may come again.
        """

        async def story() -> tuple[list[bytes], set[bytes]]:
            async with Cluster(memory=True, seed=seed) as cluster:
                peer = await Peer.to(cluster)
                start = cluster.clock.now_ms() + 1_000
                for number in range(60):
                    await at(peer, start + number * 200, b"%d" % number)
                await cluster.broker().store.sync()
                await asyncio.sleep(1 + seed)
                await cluster.kill_broker(power_cut=True)
                await cluster.start_broker()
                await asyncio.sleep(20)
                return await all_bodies(cluster), {b"%d" % number for number in range(60)}

        found, expected = simulate(story)

        assert expected == set(found)
        assert len(found) <= 2 * len(expected)

    def test_progress_beyond_a_recovered_queue_is_pulled_back(self) -> None:
        """
        The log lost its unflushed tail, the checkpoint did not: messages sent afterwards still
        come, although their offsets were read before.
        """

        async def story() -> list[bytes]:
            from gantrymq.broker.waiting.timer.checkpoint import TimerCheck, save_check

            disk = MemoryDisk()
            async with Cluster(memory=True, disk=disk) as cluster:
                peer = await Peer.to(cluster)
                await at(peer, cluster.clock.now_ms() + 1000, b"first")
                await asyncio.sleep(2)
                root = cluster.broker().config.store_path_root_dir
                await cluster.stop_broker()
                check = TimerCheck(read_ms=cluster.clock.now_ms() + 60_000, offset=99, low=99)
                save_check(disk, f"{root}/config/timercheck", check)
                await cluster.start_broker()
                peer = await Peer.to(cluster)
                await at(peer, cluster.clock.now_ms() + 1000, b"second")
                await asyncio.sleep(2)
                return await all_bodies(cluster)

        assert [b"first", b"second"] == simulate(story)

    def test_years_ahead(self) -> None:
        """
        A message for the day after nine years waits through restarts and comes on that day.
        """

        async def story() -> tuple[list[bytes], int]:
            clock, years = ShiftedClock(), 9 * 365 * DAY_MS
            async with Cluster(memory=True, clock=clock) as cluster:
                peer = await Peer.to(cluster)
                start = clock.now_ms()
                await at(peer, start + years, b"patient")
                for _ in range(3):
                    await cluster.stop_broker()
                    clock.shift_ms += years // 3 - 5_000
                    await cluster.start_broker()
                    assert [] == await all_bodies(cluster)
                await asyncio.sleep(20)
                (message,) = await everything(cluster)
                return [message.body], message.store_ms - start - years

        assert ([b"patient"], 0) == simulate(story)


class TestRecall:
    def test_a_recalled_message_never_comes(self, run: Run) -> None:
        """
        The answer to the send carries a handle; others of the same time are not touched.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            due = cluster.clock.now_ms() + 1_500
            handles = {}
            for body in (b"a", b"b", b"c"):
                handles[body] = (await at(peer, due, body)).ext["recallHandle"]
            assert RecallHandle("orders", "broker-a", due, "b") == RecallHandle.decode(
                handles[b"b"]
            )
            answer = await peer.call(370, topic="orders", recallHandle=handles[b"b"])
            assert (0, "b") == (answer.code, answer.ext["msgId"])
            again = await peer.call(370, topic="orders", recallHandle=handles[b"b"])
            assert (0, "b") == (again.code, again.ext["msgId"])
            await peer.pull("orders", 0, hold=10_000)
            await peer.pull("orders", 1, hold=2_000)
            assert [b"a", b"c"] == await all_bodies(cluster)

        run(work)

    @pytest.mark.parametrize("how", ["stop", "kill"])
    def test_a_recall_survives_a_restart(self, how: str) -> None:
        """
        It is itself a message in the log.
        """

        async def story() -> list[bytes]:
            async with Cluster(memory=True, flush_disk_type="SYNC_FLUSH") as cluster:
                peer = await Peer.to(cluster)
                due = cluster.clock.now_ms() + 10_000
                handle = (await at(peer, due, b"back")).ext["recallHandle"]
                await at(peer, due, b"other")
                answer = await peer.call(370, topic="orders", recallHandle=handle)
                assert 0 == answer.code
                if how == "kill":
                    await cluster.kill_broker(power_cut=True)
                else:
                    await cluster.stop_broker()
                await cluster.start_broker()
                await asyncio.sleep(15)
                return await all_bodies(cluster)

        assert [b"other"] == simulate(story)

    def test_a_recall_that_is_refused_says_why(self, run: Run) -> None:
        """
        Delivered, of another topic or broker, or no handle at all.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            now = cluster.clock.now_ms()
            await peer.send("others", b"x")
            sent = await at(peer, now + 600_000, b"waits")
            gone = await at(peer, now + 300, b"gone")
            await peer.pull("orders", 0, hold=10_000)

            async def refused(topic: str, handle: str) -> tuple[int, str]:
                answer = await peer.call(370, topic=topic, recallHandle=handle)
                assert "DefaultRegion" == answer.ext["MSG_REGION"]
                return answer.code, answer.remark or ""

            async def code_of(topic: str, handle: str, part: str) -> int:
                code, remark = await refused(topic, handle)
                assert part in remark
                return code

            handle = sent.ext["recallHandle"]
            abroad = RecallHandle("orders", "broker-z", now + 600_000, "waits").encode()
            assert 604 == await code_of("orders", gone.ext["recallHandle"], "already delivered")
            assert 604 == await code_of("orders", abroad, "broker-z")
            assert 604 == await code_of("others", handle, "topic not match")
            assert 604 == await code_of("orders", "%%%", "invalid")
            assert 17 == await code_of("nowhere", handle, "not exist")
            assert 0 == (await peer.call(370, topic="orders", recallHandle=handle)).code

        run(work)

    def test_what_does_not_wait_is_recalled_with_success_as_rocketmq_does(self, run: Run) -> None:
        """
        The code is RocketMQ's; a field of our own tells whether there was anything to recall.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            due = cluster.clock.now_ms() + 600_000
            sent = await at(peer, due, b"waits")
            unknown = RecallHandle("orders", "broker-a", due, "nobody").encode()
            before = cluster.broker().store.queues.max_offset("rmq_sys_wheel_timer", 0)

            nothing = await peer.call(370, topic="orders", recallHandle=unknown)
            after = cluster.broker().store.queues.max_offset("rmq_sys_wheel_timer", 0)
            good = await peer.call(370, topic="orders", recallHandle=sent.ext["recallHandle"])

            assert (0, "nobody") == (nothing.code, nothing.ext["msgId"])
            assert "NOT_WAITING" == nothing.ext["recallState"]
            assert before == after
            assert (0, "RECALLED") == (good.code, good.ext["recallState"])

        run(work)

    def test_nobody_recalls_another_topics_message(self) -> None:
        """
        A recall sent as a plain message counts only for the topic it was sent to.
        """

        async def story() -> list[bytes]:
            async with Cluster(memory=True) as cluster:
                peer = await Peer.to(cluster)
                due = cluster.clock.now_ms() + 2_000
                await at(peer, due, b"safe")
                props = wanted(TIMER_DELIVER_MS=due, TIMER_DEL_UNIQKEY="orders+safe")
                await peer.send("elsewhere", b"0", props=props)
                await at(peer, due, b"recalled")
                props = wanted(TIMER_DELIVER_MS=due, TIMER_DEL_UNIQKEY="orders+recalled")
                await peer.send("orders", b"0", props=props)
                await asyncio.sleep(5)
                assert [] == await all_bodies(cluster, "elsewhere")
                return await all_bodies(cluster)

        assert [b"safe"] == simulate(story)


SMALL_FILES = {
    "mapped_file_size_commit_log": 64 * 1024,
    "delete_when": ";".join(f"{hour:02d}" for hour in range(24)),
}


async def fill(cluster: Cluster, files: int) -> None:
    """Write so much that log files are full, and let it be checkpointed."""
    peer = await Peer.to(cluster)
    for _ in range(files * 7):
        assert 0 == (await peer.send("filler", bytes(10_000))).code
    peer.close()
    await cluster.broker().store.upkeep.checkpoint()


class TestRetention:
    def test_a_month_of_waiting_outlives_three_days_of_retention(self) -> None:
        """
        Before a log file goes, what waits in it is copied to the end; a restart in between counts
        each message once, and a recalled one is not carried along.
        """

        async def story() -> tuple[list[int], list[bytes], int, list[tuple[bytes, int, str]]]:
            clock, month = ShiftedClock(), 30 * DAY_MS
            async with Cluster(memory=True, clock=clock, **SMALL_FILES) as cluster:
                peer = await Peer.to(cluster)
                start = clock.now_ms()
                await at(peer, start + month, b"patient")
                await peer.send("orders", b"relative", props=wanted(TIMER_DELAY_MS=month + 5))
                await at(peer, start + 4 * DAY_MS, b"soon")
                handle = (await at(peer, start + month, b"recalled")).ext["recallHandle"]
                assert 0 == (await peer.call(370, topic="orders", recallHandle=handle)).code
                begins, alone = [0], list[bytes]()
                for day in range(1, 30):
                    await fill(cluster, 2)
                    clock.shift_ms = day * DAY_MS
                    await asyncio.sleep(21)  # the cleaner looks every ten seconds
                    begins.append(cluster.broker().store.log_min)
                    if day == 5:
                        alone = await all_bodies(cluster)
                    if day % 7 == 0:
                        await cluster.stop_broker()
                        await cluster.start_broker()
                        await asyncio.sleep(1)
                waiting = len(cluster.broker().timers.schedule)
                clock.shift_ms = month - 3_000_000
                await asyncio.sleep(3_000)
                found = await everything(cluster)
                rows = [(m.body, m.store_ms - start - month, m.properties["TIMER_ROLL_TIMES"])
                        for m in found]  # fmt: skip
                return begins, alone, waiting, rows

        begins, before, waiting, found = simulate(story)

        assert begins[-1] > begins[10] > begins[5] > 0
        assert [b"soon"] == before
        assert 2 == waiting
        assert [b"patient", b"relative"] == [body for body, _, _ in found]
        assert all(0 <= late <= 10_000 for _, late, _ in found)
        assert all(int(times) >= 5 for _, _, times in found)

    @pytest.mark.parametrize("seed", range(6))
    def test_a_power_cut_while_copying_loses_nothing(self, seed: int) -> None:
        """
        The copies are durable before the originals go; each message still comes, and once.
        """

        async def story() -> list[bytes]:
            clock = ShiftedClock()
            async with Cluster(memory=True, clock=clock, seed=seed, **SMALL_FILES) as cluster:
                peer = await Peer.to(cluster)
                due = clock.now_ms() + 10 * DAY_MS
                for number in range(100):
                    await at(peer, due + number, b"%d" % number)
                await fill(cluster, 3)
                clock.shift_ms = 4 * DAY_MS
                store = cluster.broker().store
                cleaning = asyncio.ensure_future(store.upkeep.delete_expired())
                for _ in range(seed * 3):
                    await asyncio.sleep(0)
                await cluster.kill_broker(power_cut=True)
                await asyncio.wait([cleaning])
                await cluster.start_broker()
                clock.shift_ms = 10 * DAY_MS
                await asyncio.sleep(30)
                return await all_bodies(cluster)

        assert [b"%d" % number for number in range(100)] == simulate(story)

    def test_a_disk_that_runs_full_takes_no_waiting_message_with_it(self) -> None:
        """
        Files go before their time, whatever lies in them; the waiting ones are copied even when
        nothing else is taken any more.
        """

        async def story() -> tuple[int, list[bytes], list[bytes]]:
            disk = MemoryDisk(capacity=6 * 1024 * 1024)
            small = {**SMALL_FILES, "store_profile": "rocketmq", "max_hash_slot_num": 100}
            small |= {"max_index_num": 400, "mapped_file_size_consume_queue": 20 * 1000}
            async with Cluster(memory=True, disk=disk, **small) as cluster:
                peer = await Peer.to(cluster)
                due = cluster.clock.now_ms() + 600_000
                for number in range(20):
                    await at(peer, due, b"%d" % number)
                refused = 0
                for _ in range(2_000):
                    refused = (await peer.send("filler", bytes(10_000))).code
                    if refused or cluster.broker().store.log_min:
                        break
                    await asyncio.sleep(0.2)
                await asyncio.sleep(300)
                gone = cluster.broker().store.log_min
                before = await all_bodies(cluster)
                await asyncio.sleep(400)
                return gone, before, await all_bodies(cluster)

        gone, before, found = simulate(story)

        assert gone > 0
        assert [] == before
        assert [b"%d" % number for number in range(20)] == found

    def test_a_file_stays_while_its_waiting_messages_cannot_be_copied(self) -> None:
        """
        Better a file too many than a message too few.
        """

        async def story() -> tuple[int, int, list[bytes]]:
            clock, disk = ShiftedClock(), MemoryDisk()
            async with Cluster(memory=True, clock=clock, disk=disk, **SMALL_FILES) as cluster:
                peer = await Peer.to(cluster)
                await at(peer, clock.now_ms() + 10 * DAY_MS, b"held")
                await fill(cluster, 3)
                disk.fault = lambda name, path: (
                    OSError(5, "broken", path) if name == "pwrite" and "commitlog" in path else None
                )
                clock.shift_ms = 5 * DAY_MS
                await asyncio.sleep(30)
                kept = cluster.broker().store.log_min
                disk.fault = None
                await asyncio.sleep(30)
                later = cluster.broker().store.log_min
                clock.shift_ms = 10 * DAY_MS
                await asyncio.sleep(30)
                return kept, later, await all_bodies(cluster)

        kept, later, found = simulate(story)

        assert 0 == kept < later
        assert [b"held"] == found
