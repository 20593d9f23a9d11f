"""One bad message, request or read harms nobody else, and no service of a broker ends by it."""

import asyncio
import errno
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from peer import Peer, messages
from popper import POP, Lent, Popper

from gantrymq.base.offload import InlineOffload
from gantrymq.broker.announce import Announcer
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.tables.registry import Registry
from gantrymq.protocol.pop import revive_topic
from gantrymq.remoting.connection import Connection
from gantrymq.store.append import Append, PutStatus
from gantrymq.testing.clock import LoopClock
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.loop import simulate
from gantrymq.testing.network import MemoryNetwork

ODD = "k\x01v\x01w\x02"
"""A value that holds a separator: stored as it is, and not to be written again."""


def story(work: Callable[[Cluster], Awaitable[Any]], **settings: Any) -> Any:
    async def main() -> Any:
        async with Cluster(memory=True, **settings) as cluster:
            await cluster.create_topic("orders", queues=2)
            return await work(cluster)

    return simulate(main)


def bodies(lent: list[Lent]) -> list[bytes]:
    return sorted(one.body for one in lent)


class TestReviving:
    def test_properties_that_cannot_be_written_again_are_kept_as_they_are(self) -> None:
        """
        The message comes back, and so does every other one.
        """

        async def work(cluster: Cluster) -> tuple[list[bytes], list[bytes]]:
            peer = await Peer.to(cluster)
            await peer.send("orders", b"odd", 0, ODD)
            await peer.send("orders", b"even", 1)
            member = Popper(peer)
            lent = await member.pop(invisible=1_000)
            return bodies(lent), bodies(await member.pop(wait=10_000))

        lent, again = story(work)

        assert [b"even", b"odd"] == lent
        assert lent == again

    def test_a_time_beyond_all_reason_stops_no_other_loan(self) -> None:
        """
        A number of four hundred digits is more than a float can hold.
        """

        async def work(cluster: Cluster) -> list[bytes]:
            peer = await Peer.to(cluster)
            member, other = Popper(peer), Popper(peer, group="other")
            await peer.send("orders", b"1")
            answer = await member.peer.call(
                POP, consumerGroup="g", topic="orders", queueId=-1, maxMsgNums=1,
                invisibleTime="9" * 400, pollTime=0, bornTime=0, initMode=0,
            )  # fmt: skip
            (lent,) = member.lent(answer)
            assert 0 == (await member.change(lent, int("9" * 400))).code
            await asyncio.sleep(2)
            await other.pop(invisible=1_000)
            return bodies(await other.pop(wait=10_000))

        assert [b"1"] == story(work)

    @pytest.mark.parametrize("status", [PutStatus.MESSAGE_ILLEGAL, PutStatus.PAGECACHE_BUSY])
    def test_what_is_stored_again_is_not_stored_twice(
        self, monkeypatch: pytest.MonkeyPatch, status: PutStatus
    ) -> None:
        """
        One of two messages is refused, for good or for a while: the other one comes back once.
        """

        async def work(cluster: Cluster) -> tuple[list[bytes], int]:
            peer, store = await Peer.to(cluster), cluster.broker().store
            for body in (b"good", b"bad"):
                await peer.send("orders", body)
            member = Popper(peer)
            await member.pop(invisible=1_000)
            put = store.put

            def picky(append: Append) -> None:
                if append.topic.startswith("%RETRY%") and append.body == b"bad":
                    append.status, append.error = status, "not now"
                    asyncio.get_running_loop().call_soon(append.reply, append)
                else:
                    put(append)

            monkeypatch.setattr(store, "put", picky)
            await asyncio.sleep(5)
            monkeypatch.undo()
            await asyncio.sleep(5)
            lent = await member.pop(wait=10_000)
            return bodies(lent), store.queues.max_offset("%RETRY%g_orders", 0)

        lent, copies = story(work)

        wanted = [b"bad", b"good"] if status is PutStatus.PAGECACHE_BUSY else [b"good"]
        assert (wanted, len(wanted)) == (lent, copies)


class TestPopping:
    def test_a_failed_read_of_one_queue_hides_nothing_of_another(self) -> None:
        """
        What the first queue gave is not lent when the second one cannot be read.
        """

        async def work(cluster: Cluster) -> tuple[int, list[bytes]]:
            peer, disk = await Peer.to(cluster), cluster.disk
            assert isinstance(disk, MemoryDisk)
            for queue in (0, 1):
                await peer.send("orders", b"%d" % queue, queue)
            member = Popper(peer)
            reads = 0

            def second(operation: str, path: str) -> OSError | None:
                nonlocal reads
                reads += operation == "pread" and "commitlog" in path
                return OSError(errno.EIO, "broken") if reads == 2 else None

            disk.fault = second
            code = (await member.ask()).code
            disk.fault = None
            return code, bodies(await member.pop())

        code, lent = story(work)

        assert (1, [b"0", b"1"]) == (code, lent)

    def test_pops_of_a_topic_that_was_made_anew_are_woken(self) -> None:
        """
        Whoever waited before has watched queues that are gone.
        """

        async def work(cluster: Cluster) -> tuple[list[bytes], float]:
            peer, loop = await Peer.to(cluster), asyncio.get_running_loop()
            member = Popper(peer)
            await member.pop(wait=1_000)
            async with cluster.admin() as admin:
                await admin.delete_topic("orders")
            await asyncio.sleep(1)
            await cluster.create_topic("orders", queues=2)
            began = loop.time()
            waiting = asyncio.ensure_future(member.pop(wait=20_000))
            await asyncio.sleep(1)
            await (await Peer.to(cluster)).send("orders", b"new")
            return bodies(await waiting), loop.time() - began

        lent, seconds = story(work)

        assert [b"new"] == lent
        assert seconds < 2

    def test_a_question_for_news_needs_a_place_for_retries_too(self) -> None:
        """
        A group and a topic whose names are too long together are refused, once.
        """

        async def work(cluster: Cluster) -> tuple[int, int]:
            peer = await Peer.to(cluster)
            member = Popper(peer, group="g" * 250)
            answer = await member.notify(wait=1_000)
            return answer.code, await Popper(peer, group="g" * 250).polling()

        assert (29, 0) == story(work)


class TestRetention:
    @pytest.mark.parametrize("times", ["\u00b2", "9" * 5_000])
    def test_an_odd_count_of_rolls_keeps_no_file(self, times: str) -> None:
        """
        A sender may write any property; what is no number counts as none.
        """

        async def work(cluster: Cluster) -> tuple[int, list[bytes]]:
            peer = await Peer.to(cluster)
            props = f"TIMER_DELAY_SEC\x01600\x02TIMER_ROLL_TIMES\x01{times}\x02"
            assert 0 == (await peer.send("orders", b"later", 0, props)).code
            await fill(peer, cluster)
            store = cluster.broker().store
            gone = await store.upkeep.delete_expired()
            await asyncio.sleep(700)
            peer = await Peer.to(cluster)
            return gone, [message.body for message in messages(await peer.pull("orders", 0))]

        gone, found = story(work, **SHORT_LIVED)

        assert gone > 0
        assert [b"later"] == found

    def test_a_delayed_message_without_room_for_a_time_stays_until_it_is_due(self) -> None:
        """
        It cannot be moved to the timer, so its file has to wait.
        """

        async def work(cluster: Cluster) -> tuple[int, list[bytes]]:
            peer = await Peer.to(cluster)
            code = 13
            for size in range(32_767, 32_000, -1):  # the broker adds something
                if code:
                    props = f"DELAY\x0110\x02big\x01{'x' * size}\x02"
                    code = (await peer.send("orders", b"large", 0, props)).code
            await fill(peer, cluster)
            gone = await cluster.broker().store.upkeep.delete_expired()
            await asyncio.sleep(700)
            peer = await Peer.to(cluster)
            return gone, [message.body for message in messages(await peer.pull("orders", 0))]

        gone, found = story(work, **SHORT_LIVED)

        assert (0, [b"large"]) == (gone, found)


SHORT_LIVED = {
    "mapped_file_size_commit_log": 64 * 1024,
    "delete_when": "",
    "file_reserved_time": 0,
}


async def fill(peer: Peer, cluster: Cluster) -> None:
    """Write so much that log files are full, and let it be checkpointed."""
    for _ in range(30):
        assert 0 == (await peer.send("filler", bytes(10_000))).code
    await asyncio.sleep(1)
    await cluster.broker().store.upkeep.checkpoint()


class TestSending:
    def test_a_delay_of_thousands_of_digits_is_none(self) -> None:
        """
        As any other text that is no level.
        """

        async def work(cluster: Cluster) -> tuple[int, list[bytes]]:
            peer = await Peer.to(cluster)
            answer = await peer.send("orders", b"now", 0, f"DELAY\x01{'9' * 5_000}\x02")
            return answer.code, [m.body for m in messages(await peer.pull("orders", 0))]

        assert (0, [b"now"]) == story(work)


class TestServices:
    def test_a_table_that_cannot_be_saved_is_tried_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """
        Whatever went wrong, progress is written down as soon as it can be.
        """

        async def work(cluster: Cluster) -> list[bool]:
            disk = cluster.disk
            assert isinstance(disk, MemoryDisk)
            offsets = cluster.broker().registry.offsets
            monkeypatch.setattr(offsets, "ceilings", None)
            offsets.commit("g", "orders", 0, 0)
            saved = []
            for pause in (monkeypatch.undo, lambda: None):
                await asyncio.sleep(20)
                tables = [path for path in disk.contents() if path.endswith("Offset.json")]
                saved.append(any(b"orders@g" in disk.contents()[path] for path in tables))
                pause()
            return saved

        assert [False, True] == story(work)

    def test_a_service_that_fails_goes_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """
        A message is delivered late, not never.
        """

        async def work(cluster: Cluster) -> list[bytes]:
            peer, broker = await Peer.to(cluster), cluster.broker()
            monkeypatch.setattr(broker.delays, "_look", None)
            await peer.send("orders", b"late", 0, "DELAY\x011\x02")
            await asyncio.sleep(5)
            monkeypatch.undo()
            await asyncio.sleep(20)
            return [message.body for message in messages(await peer.pull("orders", 0))]

        assert [b"late"] == story(work)

    def test_a_name_server_that_hangs_up_is_not_asked_without_end(self) -> None:
        """
        As a proxy does whose own server is down: it takes connections and closes them.
        """

        async def main() -> int:
            network, calls = MemoryNetwork(random.Random(1)), 0

            def hang_up(connection: Connection) -> None:
                nonlocal calls
                calls += 1
                connection.close()

            listener = await network.listen("127.0.0.1", 9876, lambda: Connection(on_made=hang_up))
            config = BrokerConfig(namesrv_addr="127.0.0.1:9876")
            clock = LoopClock(asyncio.get_running_loop())
            registry = Registry(MemoryDisk(), InlineOffload(), clock, "/root")
            announcer = Announcer(config, "b:1", "b:2", registry.topics, network)
            work = asyncio.ensure_future(announcer.run())
            announcer._lost(Connection())
            async with asyncio.timeout(10):
                while calls < 1_000:
                    await asyncio.sleep(0.01)
            work.cancel()
            await listener.close()
            return calls

        with pytest.raises(TimeoutError):
            simulate(main)


class TestPulling:
    def test_a_failed_read_of_a_woken_pull_is_not_the_senders_fault(self) -> None:
        """
        The pull is answered with the error; the message that woke it is stored, and said to be.
        """

        async def work(cluster: Cluster) -> tuple[int, int]:
            peer, other, disk = await Peer.to(cluster), await Peer.to(cluster), cluster.disk
            assert isinstance(disk, MemoryDisk)
            await peer.send("orders", b"first")
            waiting = asyncio.ensure_future(other.pull("orders", 1, hold=20_000))
            await asyncio.sleep(1)
            disk.fault = lambda operation, path: (
                OSError(errno.EIO, "broken") if operation == "pread" else None
            )
            sent = await peer.send("orders", b"second")
            disk.fault = None
            return sent.code, (await waiting).code

        assert (0, 1) == story(work)


class TestReviveLog:
    @pytest.mark.parametrize(
        "body",
        [b'{"rp":"\xc2\xb2","n":1}', b'{"n":1000000000000}', b'{"n":1,"it":%s}' % (b"9" * 400)],
    )
    def test_a_forged_checkpoint_stops_no_start(self, body: bytes) -> None:
        """
        Clients may send to the log of what is lent; what is no checkpoint is passed over.
        """

        async def work(cluster: Cluster) -> list[bytes]:
            peer = await Peer.to(cluster)
            config = cluster.broker().config
            topic = revive_topic(config.broker_cluster_name)
            await peer.send("orders", b"1")
            await Popper(peer).pop(invisible=5_000)
            for queue in range(config.revive_queue_num):
                assert 0 == (await peer.send(topic, body, queue, "TAGS\x01ck\x02")).code
            await cluster.kill_broker()
            await cluster.start_broker()
            return bodies(await Popper(await Peer.to(cluster)).pop(wait=20_000))

        assert [b"1"] == story(work)
