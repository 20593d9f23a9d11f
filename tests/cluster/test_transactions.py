"""Transactions on the wire: hidden halves, decisions, and the questions that follow silence."""

import asyncio
import errno
import threading
import time
from typing import Any

import pytest
from peer import Peer, Run, bodies, messages

from gantrymq.base.clock import WallClock
from gantrymq.broker.transactions import half_messages
from gantrymq.client.produce.check_back import Unfinished
from gantrymq.model import CHECK_MAX_TOPIC, HALF_TOPIC, OP_HALF_TOPIC, Message
from gantrymq.protocol import fastjson
from gantrymq.protocol.command import Command
from gantrymq.protocol.ids import parse_offset_msg_id
from gantrymq.protocol.record import decode_record
from gantrymq.remoting.connection import Connection
from gantrymq.sync import Producer as SyncProducer
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.loop import simulate

COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0
GROUP = "shop"
QUICK = {"transaction_time_out": 200, "transaction_check_interval": 400}
"""For real time, where nobody wants to wait for 6 and 60 seconds."""


class Shop(Peer):
    """A producer of transactions, by hand."""

    clock: WallClock

    async def half(
        self, body: bytes, *, topic: str = "orders", queue: int = 0, props: str = "", flag: int = 0
    ) -> Command:
        text = f"TRAN_MSG\x01true\x02PGROUP\x01{GROUP}\x02UNIQ_KEY\x01id-{body.decode()}\x02{props}"
        return await self.call(
            310, body, a=GROUP, b=topic, c="TBW102", d=4, e=queue, f=4, g=self.clock.now_ms(),
            h=flag, i=text,
        )  # fmt: skip

    async def end(self, half: Command, verdict: int, **more: Any) -> Command:
        return await self.call(37, **self._fields(half, verdict, **more))

    def end_oneway(self, half: Command, verdict: int) -> None:
        fields = {name: str(value) for name, value in self._fields(half, verdict).items()}
        self.connection.oneway(Command(code=37, ext=fields))

    def _fields(self, half: Command, verdict: int, **more: Any) -> dict[str, Any]:
        fields = {
            "producerGroup": GROUP,
            "tranStateTableOffset": half.ext["queueOffset"],
            "commitLogOffset": parse_offset_msg_id(half.ext["msgId"]).offset,
            "commitOrRollback": verdict,
            "fromTransactionCheck": "false",
            "msgId": "id",
        }
        return fields | more

    async def beat(self, client: str = "c1") -> None:
        beat = {
            "clientID": client,
            "consumerDataSet": [],
            "producerDataSet": [{"groupName": GROUP}],
        }
        await self.call(34, fastjson.dumps(beat))

    async def question(self) -> Command:
        """The next check that the broker sends."""
        async with asyncio.timeout(100):
            while not (found := [command for command in self.pushed if command.code == 39]):
                await asyncio.sleep(0.05)
        self.pushed.remove(found[0])
        return found[0]

    async def answer(self, question: Command, verdict: int) -> Command:
        fields = {
            "producerGroup": GROUP,
            "tranStateTableOffset": question.ext["tranStateTableOffset"],
            "commitLogOffset": question.ext["commitLogOffset"],
            "commitOrRollback": verdict,
            "fromTransactionCheck": "true",
            "msgId": question.ext["msgId"],
        }
        return await self.call(37, **fields)

    async def read(self, topic: str = "orders", queue: int = 0) -> list[bytes]:
        """All there is: a pull may stop early."""
        found: list[bytes] = []
        while more := bodies(await self.pull(topic, len(found), queue)):
            found += more
        return found


async def shop(cluster: Cluster) -> Shop:
    pushed: list[Command] = []
    port = cluster.broker().config.listen_port
    connection = await cluster.network.connect(
        "127.0.0.1", port, lambda: Connection(lambda _, command: pushed.append(command)), 3
    )
    peer = Shop(connection, pushed)
    peer.clock = cluster.clock
    return peer


class TestDecisions:
    def test_nobody_sees_a_message_before_its_commit(self, run: Run) -> None:
        """
        The half message waits in queue 0 of its own topic; the commit brings it where it was sent.
        """

        async def work(cluster: Cluster) -> None:
            peer = await shop(cluster)
            half = await peer.half(b"book", queue=2, flag=7)
            before = await peer.read(queue=2)
            answer = await peer.end(half, COMMIT)
            (found,) = messages(await peer.pull("orders", 0, 2))

            assert (0, "2") == (half.code, half.ext["queueId"])
            assert ([], 0) == (before, answer.code)
            assert (b"book", 7, 8) == (found.body, found.flag, found.sys_flag)
            assert parse_offset_msg_id(half.ext["msgId"]).offset == found.prepared_offset

        run(work)

    def test_a_rollback_leaves_nothing_to_see(self, run: Run) -> None:
        """
        Only the decision is written.
        """

        async def work(cluster: Cluster) -> None:
            peer = await shop(cluster)
            answer = await peer.end(await peer.half(b"book"), ROLLBACK)

            assert (0, []) == (answer.code, await peer.read())
            assert [b"0"] == await peer.read(OP_HALF_TOPIC)

        run(work)

    def test_one_way_ends_are_carried_out(self, run: Run) -> None:
        """
        That is how clients send them. Each decision is one record, which 4.9 can read as well.
        """

        async def work(cluster: Cluster) -> None:
            peer = await shop(cluster)
            halves = [await peer.half(b"%d" % number) for number in range(3)]
            for half, verdict in zip(halves, (COMMIT, ROLLBACK, COMMIT), strict=True):
                peer.end_oneway(half, verdict)
            await peer.pull("orders", 1, hold=5000)
            while len(ops := await peer.read(OP_HALF_TOPIC)) < 3:
                await asyncio.sleep(0.01)

            assert [b"0", b"2"] == await peer.read()
            assert [b"0", b"1", b"2"] == sorted(ops)

        run(work)

    def test_what_was_decided_stays_decided(self, run: Run) -> None:
        """
        A second commit stores nothing; a commit after a rollback delivers nothing.
        """

        async def work(cluster: Cluster) -> None:
            peer = await shop(cluster)
            first, second = await peer.half(b"1"), await peer.half(b"2")
            codes = [
                (await peer.end(half, verdict)).code
                for half, verdict in (
                    (first, COMMIT), (first, COMMIT), (first, ROLLBACK), (second, ROLLBACK),
                    (second, COMMIT),
                )
            ]  # fmt: skip

            assert [0, 1, 1, 0, 1] == codes
            assert [b"1"] == await peer.read()

        run(work)

    def test_a_word_from_the_wrong_place_is_refused(self, run: Run) -> None:
        """
        Group and both offsets must be those of the half message.
        """

        async def work(cluster: Cluster) -> None:
            peer = await shop(cluster)
            half = await peer.half(b"book")
            wrong: list[dict[str, Any]] = [
                {"producerGroup": "other"}, {"tranStateTableOffset": 5}, {"commitLogOffset": 1},
                {"commitOrRollback": 3},
            ]  # fmt: skip
            codes = [(await peer.end(half, COMMIT, **more)).code for more in wrong]

            assert [1, 1, 1, 1] == codes
            assert [] == await peer.read()
            assert 0 == (await peer.end(half, UNKNOWN)).code
            assert 0 == (await peer.end(half, COMMIT)).code

        run(work)

    def test_a_resent_message_is_no_half_one(self, run: Run) -> None:
        """
        A committed message keeps the mark of its transaction; on a retry topic it has no meaning.
        """

        async def work(cluster: Cluster) -> None:
            peer = await shop(cluster)
            await peer.heartbeat("c", "readers", "orders")
            answer = await peer.half(b"again", topic="%RETRY%readers")

            assert 0 == answer.code
            assert [b"again"] == await peer.read("%RETRY%readers")
            assert [] == await peer.read(HALF_TOPIC)

        run(work)

    def test_transactions_can_be_forbidden(self, run: Run) -> None:
        """
        rejectTransactionMessage answers NO_PERMISSION. A half message without its mark would
        never be seen again, so it is refused in any case.
        """

        async def work(cluster: Cluster) -> None:
            peer = await shop(cluster)
            unmarked = await peer.call(310, b"x", a="p", b="t", c="TBW102", d=4, e=0, f=4, g=1, h=0)

            assert 16 == (await peer.half(b"book")).code
            assert 13 == unmarked.code

        run(work, reject_transaction_message=True)

    def test_a_delay_begins_with_the_commit(self, run: Run) -> None:
        """
        A half message is never delayed; what it asks for is applied when it is committed.
        """

        async def work(cluster: Cluster) -> None:
            peer = await shop(cluster)
            half = await peer.half(b"late", props="DELAY\x011\x02")
            in_half = await peer.read(HALF_TOPIC)
            await peer.end(half, COMMIT)
            at_once = await peer.read()
            await peer.pull("orders", 0, hold=5000)
            (found,) = messages(await peer.pull("orders", 0))

            assert ([b"late"], []) == (in_half, at_once)
            assert b"late" == found.body
            assert "TRAN_MSG" not in found.properties

        run(work)


class TestQuestions:
    def test_a_producer_is_asked_for_its_word(self, run: Run) -> None:
        """
        The question carries the message as it was sent, and the answer decides.
        """

        async def work(cluster: Cluster) -> None:
            peer = await shop(cluster)
            await peer.beat()
            await peer.half(b"book", queue=1, flag=7)
            question = await peer.question()
            message = decode_record(question.body)
            await peer.answer(question, COMMIT)
            (found,) = messages(await peer.pull("orders", 0, 1))

            assert ("orders", 1, b"book", 7) == (
                message.topic, message.queue_id, message.body, message.flag,
            )  # fmt: skip
            assert "id-book" == question.ext["transactionId"] == question.ext["msgId"]
            assert (b"book", 7) == (found.body, found.flag)

        run(work, **QUICK)

    def test_a_late_word_about_the_first_copy_counts(self, run: Run) -> None:
        """
        The message was copied for a question; the producer still names where it was before.
        """

        async def work(cluster: Cluster) -> None:
            peer = await shop(cluster)
            await peer.beat()
            half = await peer.half(b"book")
            question = await peer.question()
            late = await peer.end(half, COMMIT)
            again = await peer.answer(question, COMMIT)

            assert (0, 1) == (late.code, again.code)
            assert [b"book"] == await peer.read()

        run(work, **QUICK)

    def test_any_live_producer_of_the_group_is_asked(self, run: Run) -> None:
        """
        The one that sent the message may be gone.
        """

        async def work(cluster: Cluster) -> None:
            gone, there = await shop(cluster), await shop(cluster)
            await gone.beat("gone")
            await there.beat("there")
            await gone.half(b"book")
            gone.close()
            await there.answer(await there.question(), ROLLBACK)

            assert [] == await there.read()

        run(work, **QUICK)

    def test_what_is_given_up_can_be_taken_up_again(self, run: Run) -> None:
        """
        After the last question the message lies in TRANS_CHECK_MAX_TIME_TOPIC; resuming it
        starts the questions again.
        """

        async def work(cluster: Cluster) -> None:
            peer = await shop(cluster)
            await peer.beat()
            await peer.half(b"book")
            await peer.question()
            while not (found := messages(await peer.pull(CHECK_MAX_TOPIC, 0))):
                await asyncio.sleep(0.05)
            (kept,) = found
            resumed = await peer.call(323, msgId=kept.offset_message_id)
            wrong = await peer.call(323, msgId=(await peer.send("plain", b"x")).ext["msgId"])
            await peer.answer(await peer.question(), COMMIT)

            assert (0, 1) == (resumed.code, wrong.code)
            assert [b"book"] == await peer.read()

        run(work, transaction_check_max=1, **QUICK)

    def test_a_half_message_can_be_asked_about_now(self, run: Run) -> None:
        """
        The next question comes at once, also after some that nobody answered, which no longer
        count; neither a decided message nor one for another topic can be asked about.
        """

        async def work(cluster: Cluster) -> None:
            peer = await shop(cluster)
            await peer.beat()
            half = await peer.half(b"book")
            named = {"topic": "orders", "msgId": half.ext["msgId"]}
            other = await peer.call(40111, **named | {"topic": "other"})
            for _ in range(3):
                began = cluster.clock.now_ms()
                assert 0 == (await peer.call(40111, **named)).code
                question = await peer.question()
                assert cluster.clock.now_ms() - began < 10_000
            assert b"TRANSACTION_CHECK_TIMES\x011\x02" in question.body
            await peer.answer(question, COMMIT)
            late = await peer.call(40111, **named)

            assert [b"book"] == await peer.read()
            assert (1, 1) == (other.code, late.code)
            assert "without a decision" in (late.remark or "")

        run(work, transaction_check_max=2)


class TestTimes:
    """Minutes and days, in virtual time only."""

    def test_first_after_6_seconds_then_every_60(self) -> None:
        """
        Fifteen questions in all; a minute after the last one the message is given up.
        """

        async def story() -> tuple[list[int], list[str], int]:
            loop = asyncio.get_running_loop()
            async with Cluster(memory=True) as cluster:
                peer = await shop(cluster)
                began = loop.time()
                await peer.half(b"book")
                times, counts = [], []
                for _ in range(15):
                    await peer.beat()
                    question = await peer.question()
                    times.append(round(loop.time() - began))
                    counts.append(
                        decode_record(question.body).properties["TRANSACTION_CHECK_TIMES"]
                    )
                while not await peer.read(CHECK_MAX_TOPIC):
                    await asyncio.sleep(1)
                    await peer.beat()
                return times, counts, round(loop.time() - began)

        times, counts, given_up = simulate(story)

        assert [6 + 60 * number for number in range(15)] == times
        assert [str(number) for number in range(1, 16)] == counts
        assert 6 + 60 * 15 <= given_up <= 6 + 60 * 15 + 2

    def test_a_message_can_ask_for_its_own_patience(self) -> None:
        """
        CHECK_IMMUNITY_TIME_IN_SECONDS, longer and shorter than the broker's. One that waits long
        holds nobody up: it is brought forward in its queue, and its first place still counts.
        """

        async def story() -> tuple[list[tuple[str, int]], int, list[bytes]]:
            loop = asyncio.get_running_loop()
            async with Cluster(memory=True) as cluster:
                peer = await shop(cluster)
                began = loop.time()
                patient = await peer.half(b"300", props="CHECK_IMMUNITY_TIME_IN_SECONDS\x01300\x02")
                await peer.half(b"2", props="CHECK_IMMUNITY_TIME_IN_SECONDS\x012\x02")
                await peer.half(b"200", props="CHECK_IMMUNITY_TIME_IN_SECONDS\x01200\x02")
                asked = []
                while loop.time() < began + 250:
                    await peer.beat()
                    for question in peer.pushed:
                        asked.append((question.ext["msgId"], round(loop.time() - began)))
                        await peer.answer(question, ROLLBACK)
                    peer.pushed.clear()
                    await asyncio.sleep(0.5)
                code = (await peer.end(patient, COMMIT)).code
                return asked, code, await peer.read()

        asked, code, found = simulate(story)

        assert [("id-2", 2), ("id-200", 200)] == [(name, at // 2 * 2) for name, at in asked]
        assert (0, [b"300"]) == (code, found)

    def test_nobody_is_asked_about_what_is_decided(self) -> None:
        """
        Not in the rounds after it either, also when the queues are read exactly at their ends.
        """

        async def story() -> int:
            async with Cluster(memory=True) as cluster:
                peer = await shop(cluster)
                await peer.beat()
                for number in range(20):
                    half = await peer.half(b"%d" % number)
                    await peer.end(half, COMMIT if number % 2 else ROLLBACK)
                for _ in range(10):
                    await asyncio.sleep(20)
                    await peer.beat()
                return len(peer.pushed)

        assert 0 == simulate(story)

    def test_progress_follows_the_decisions(self) -> None:
        """
        Under CID_RMQ_SYS_TRANS, as in RocketMQ: a restart begins near the ends, not at 0.
        """

        async def story() -> tuple[dict[str, dict[int, int]], int]:
            async with Cluster(memory=True) as cluster:
                peer = await shop(cluster)
                for number in range(300):
                    peer.end_oneway(await peer.half(b"%d" % number), COMMIT)
                await asyncio.sleep(30)
                table = cluster.broker().registry.offsets.table
                found = {key: dict(value) for key, value in table.items() if "TRANS" in key}
                return found, cluster.broker().store.queues.max_offset(OP_HALF_TOPIC, 0)

        found, ops = simulate(story)

        assert 300 == ops
        assert {
            f"{HALF_TOPIC}@CID_RMQ_SYS_TRANS": {0: 300},
            f"{OP_HALF_TOPIC}@CID_RMQ_SYS_TRANS": {0: 300},
        } == found

    def test_a_message_older_than_the_log_keeps_is_given_up(self) -> None:
        """
        fileReservedTime: what is older would be deleted under its producer's hands.
        """

        async def story() -> tuple[int, list[bytes]]:
            async with Cluster(memory=True, file_reserved_time=1) as cluster:
                peer = await shop(cluster)
                # Born long ago, as one that was brought forward again and again.
                text = f"TRAN_MSG\x01true\x02PGROUP\x01{GROUP}\x02"
                born = cluster.clock.now_ms() - 3_700_000
                await peer.call(
                    310, b"old", a=GROUP, b="orders", c="TBW102", d=4, e=0, f=4, g=born, h=0, i=text
                )
                await peer.beat()
                await asyncio.sleep(10)
                return len(peer.pushed), await peer.read(CHECK_MAX_TOPIC)

        assert (0, [b"old"]) == simulate(story)

    def test_an_unrelated_topic_can_be_deleted_meanwhile(self) -> None:
        """
        The queues of open transactions stay.
        """

        async def story() -> list[bytes]:
            async with Cluster(memory=True) as cluster:
                peer = await shop(cluster)
                await peer.send("other", b"x")
                await peer.end(await peer.half(b"1"), COMMIT)
                half = await peer.half(b"2")
                await peer.call(215, topic="other")
                await asyncio.sleep(30)
                await peer.end(half, COMMIT)
                return await peer.read()

        assert [b"1", b"2"] == simulate(story)


class TestTrouble:
    def test_contents_that_were_forgotten_are_read_again(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """
        Too many undecided ones to keep: commits and questions take them from the log.
        """
        monkeypatch.setattr(half_messages, "KEPT_BYTES_MAX", 300)

        async def work(cluster: Cluster) -> None:
            peer = await shop(cluster)
            halves = [await peer.half(b"%d" % number) for number in range(10)]
            codes = [(await peer.end(half, COMMIT)).code for half in halves[:5]]
            peer.end_oneway(halves[5], COMMIT)
            await peer.beat()
            asked = []
            for _ in range(4):
                question = await peer.question()
                asked.append(question.ext["msgId"])
                await peer.answer(question, ROLLBACK)

            assert [0] * 5 == codes
            assert [f"id-{number}" for number in range(6, 10)] == sorted(asked)
            assert [b"%d" % number for number in range(6)] == sorted(await peer.read())

        run(work, transaction_time_out=1000, transaction_check_interval=1000)

    def test_a_full_disk_decides_nothing(self) -> None:
        """
        The word is answered with an error, and the question comes when there is room again.
        """

        async def story() -> tuple[list[bool], list[str], list[bytes]]:
            async with Cluster(memory=True) as cluster:
                disk = cluster.disk
                assert isinstance(disk, MemoryDisk)
                peer = await shop(cluster)
                await peer.beat()
                first, second = await peer.half(b"1"), await peer.half(b"2")
                disk.fault = full_log
                refused = [
                    (await peer.end(first, COMMIT)).code != 0,
                    (await peer.end(second, ROLLBACK)).code != 0,
                    (await peer.half(b"3")).code != 0,
                ]
                await asyncio.sleep(20)
                disk.fault = None
                asked = []
                for _ in range(2):
                    question = await peer.question()
                    asked.append(question.ext["msgId"])
                    await peer.answer(question, COMMIT if len(asked) == 1 else ROLLBACK)
                return refused, asked, await peer.read()

        refused, asked, found = simulate(story)

        assert [True] * 3 == refused
        assert ["id-1", "id-2"] == asked
        assert [b"1"] == found

    def test_too_many_undecided_ones_are_flow_control(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """
        SYSTEM_BUSY, as for every queue that is full; a decision makes room.
        """
        monkeypatch.setattr(half_messages, "UNDECIDED_MAX", 2)

        async def work(cluster: Cluster) -> None:
            peer = await shop(cluster)
            halves = [await peer.half(b"%d" % number) for number in range(3)]
            await peer.end(halves[0], ROLLBACK)

            assert [0, 0, 2] == [half.code for half in halves]
            assert 0 == (await peer.half(b"again")).code

        run(work)


def full_log(operation: str, path: str) -> OSError | None:
    full = operation == "pwrite" and "commitlog" in path
    return OSError(errno.ENOSPC, "no room", path) if full else None


def test_the_blocking_client_has_transactions_too() -> None:
    """
    The same block without `async`; its check handler may block.
    """

    async def work(cluster: Cluster) -> None:
        await asyncio.to_thread(blocking, cluster.namesrv)
        peer = await shop(cluster)
        while len(found := await peer.read()) < 2:
            await asyncio.sleep(0.05)

        assert {b"1", b"3"} == set(found)

    def blocking(namesrv: str) -> None:
        with SyncProducer(namesrv, group=GROUP) as producer:
            asked = threading.Event()

            @producer.check
            def check(message: Unfinished) -> str:
                asked.set()
                return "commit"

            with producer.transaction(Message("orders", b"1")):
                pass
            with (
                pytest.raises(ZeroDivisionError),
                producer.transaction(Message("orders", b"2")),
            ):
                _ = 1 / 0
            with producer.transaction(Message("orders", b"3")) as tx:
                tx.unknown()
            assert asked.wait(10)
            time.sleep(0.2)  # the answer leaves behind the handler

    async def main() -> None:
        async with Cluster(default_topic_queue_nums=1, **QUICK) as cluster:
            await work(cluster)

    asyncio.run(main())
