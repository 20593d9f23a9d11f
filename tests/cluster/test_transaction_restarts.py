"""A broker that stops, is killed or loses its power in the middle of transactions."""

import asyncio
import random
from collections import Counter

import pytest
from peer import Run
from test_transactions import COMMIT, GROUP, QUICK, ROLLBACK, shop

from gantrymq.base.errors import GantryError
from gantrymq.broker.stored_copies import stored
from gantrymq.client.produce.check_back import Unfinished
from gantrymq.client.produce.transactions import Transaction
from gantrymq.model import HALF_TOPIC, OP_HALF_TOPIC, Message
from gantrymq.protocol.record import decode_records
from gantrymq.store.append import Append, ReadResult
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate


def delivered(cluster: Cluster, topic: str = "orders", queue: int = 0) -> list[bytes]:
    """Everything that consumers can see."""
    store, found = cluster.broker().store, []
    at = store.queues.min_offset(topic, queue)
    while at < store.queues.max_offset(topic, queue):
        pulled = store.reads.pull(topic, queue, at, 1000, 1 << 20)
        assert isinstance(pulled, ReadResult)
        found += [message.body for message in decode_records(pulled.body)]
        at = pulled.next_offset
    return found


class TestStopAndStart:
    def test_every_state_survives(self, run: Run) -> None:
        """
        Undecided ones are asked about, committed ones are there once, rolled back ones never.
        """

        async def work(cluster: Cluster) -> None:
            peer = await shop(cluster)
            await peer.beat()
            open_ = await peer.half(b"open")
            await peer.end(await peer.half(b"committed"), COMMIT)
            await peer.end(await peer.half(b"rolled back"), ROLLBACK)
            question = await peer.question()
            asked = question.ext["msgId"]
            one_way = await peer.half(b"one-way")
            peer.end_oneway(one_way, COMMIT)
            await asyncio.sleep(0.05)
            await cluster.stop_broker()
            await cluster.start_broker()
            peer = await shop(cluster)
            late = await peer.end(open_, COMMIT)  # its place was left behind before the stop
            await peer.beat()
            again = await peer.question()
            await peer.answer(again, COMMIT)
            await asyncio.sleep(1)

            assert "id-open" == asked == again.ext["msgId"]
            assert 1 == late.code
            assert [] == [each for each in peer.pushed if each.code == 39]
            assert [b"committed", b"one-way", b"open"] == sorted(delivered(cluster))

        run(work, **QUICK)

    def test_a_half_message_can_be_ended_after_a_restart(self, run: Run) -> None:
        """
        The producer need not be asked: what it was told about the half message still holds.
        """

        async def work(cluster: Cluster) -> None:
            peer = await shop(cluster)
            halves = [await peer.half(b"%d" % number) for number in range(4)]
            await cluster.stop_broker()
            await cluster.start_broker()
            peer = await shop(cluster)
            codes = [
                (await peer.end(half, COMMIT if number % 2 else ROLLBACK)).code
                for number, half in enumerate(halves)
            ]

            assert [0] * 4 == codes
            assert [b"1", b"3"] == delivered(cluster)

        run(work)

    def test_questions_go_on_where_they_were(self) -> None:
        """
        The count is in the copy: a restart neither forgets it nor asks at once.
        """

        async def story() -> list[str]:
            async with Cluster(memory=True) as cluster:
                peer = await shop(cluster)
                await peer.beat()
                await peer.half(b"open")
                counts = []
                for _ in range(3):
                    question = await peer.question()
                    message = next(iter(decode_records(question.body)))
                    counts.append(message.properties["TRANSACTION_CHECK_TIMES"])
                    await cluster.stop_broker()
                    await cluster.start_broker()
                    peer = await shop(cluster)
                    await peer.beat()
                    await asyncio.sleep(30)
                    assert [] == peer.pushed
                    await peer.beat()
                return counts

        assert ["1", "2", "3"] == simulate(story)


class TestRocketmqsStores:
    def test_ops_of_either_release_are_read(self) -> None:
        """
        RocketMQ 4.9 writes one offset a record, 5.x a list; both are decisions. A copy that 5.x
        made for a patient message is decided by the offset of the first one.
        """

        async def story() -> tuple[list[str], list[bytes]]:
            async with Cluster(memory=True) as cluster:
                peer = await shop(cluster)
                for number in range(5):
                    await peer.half(b"%d" % number)
                store, clock = cluster.broker().store, cluster.clock
                text = f"TRAN_MSG\x01true\x02PGROUP\x01{GROUP}\x02REAL_TOPIC\x01orders\x02"
                patient = f"{text}REAL_QID\x010\x02TRAN_PREPARED_QUEUE_OFFSET\x014\x02".encode()
                for copy in (
                    Append(HALF_TOPIC, 0, b"4", properties=patient, born_ms=clock.now_ms()),
                    Append(OP_HALF_TOPIC, 0, b"0", properties=b"TAGS\x01d\x02"),
                    Append(OP_HALF_TOPIC, 0, b"1,3,4,", properties=b"TAGS\x01d"),
                ):
                    await stored(store, copy)
                await cluster.stop_broker()
                await cluster.start_broker()
                peer = await shop(cluster)
                await peer.beat()
                await asyncio.sleep(10)
                asked = [question.ext["msgId"] for question in peer.pushed]
                await peer.answer(peer.pushed[0], COMMIT)
                return asked, delivered(cluster)

        assert (["id-2"], [b"2"]) == simulate(story)


class Shop:
    """Producers with a database of their own: what it says is the truth."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster, self._random = cluster, random.Random(seed)
        self.rows: dict[str, bool] = {}
        """Transaction id to whether it was committed."""
        self.bodies: dict[str, bytes] = {}
        self.over = False
        self.number = 0

    def check(self, message: Unfinished) -> str:
        return "commit" if self.rows.get(message.transaction_id) else "rollback"

    async def local(self, tx: Transaction) -> str:
        """Write the row, then perhaps forget to say so."""
        await asyncio.sleep(self._random.choice((0, 0, 0.01, 0.5)))
        committed = self._random.random() < 0.6
        self.rows[tx.transaction_id] = committed
        self.bodies[tx.transaction_id] = tx.message.body
        if self._random.random() < 0.3:
            return "unknown"
        return "commit" if committed else "rollback"

    async def trade(self) -> None:
        """Transactions one after the other, through any trouble, and answers to the end."""
        async with self._cluster.producer(GROUP) as producer:
            producer.check(self.check)
            while not self.over:
                self.number += 1
                message = Message("orders", str(self.number))
                try:
                    await producer.send_transaction(message, self.local)
                except GantryError:
                    await asyncio.sleep(0.2)
                await asyncio.sleep(self._random.random() * 0.3)
            await asyncio.sleep(300)


def traded(seed: int, *, power_cut: bool, **settings: object) -> tuple[Shop, Counter[bytes]]:
    """Trade, kill the broker a few times, then let every question be answered."""

    async def story() -> tuple[Shop, Counter[bytes]]:
        chance = random.Random(seed)
        options = {"transaction_time_out": 1000, "transaction_check_interval": 5000, **settings}
        async with Cluster(memory=True, seed=seed, **options) as cluster:  # type: ignore[arg-type]
            await cluster.create_topic("orders", queues=1)
            seller = Shop(cluster, seed)
            work = [asyncio.create_task(seller.trade()) for _ in range(3)]
            for _ in range(3):
                await asyncio.sleep(chance.random() * 15)
                await cluster.kill_broker(power_cut=power_cut)
                await cluster.start_broker()
            await asyncio.sleep(chance.random() * 10)
            seller.over = True
            await asyncio.gather(*work)
            return seller, Counter(delivered(cluster))

    return simulate(story)


@pytest.mark.parametrize("seed", range(10))
def test_a_kill_loses_nothing_and_delivers_nothing_rolled_back(seed: int) -> None:
    """
    Whatever state each transaction was in: the database and the topic agree in the end.
    """
    seller, found = traded(seed, power_cut=False)
    committed = {seller.bodies[key] for key, yes in seller.rows.items() if yes}

    assert len(committed) > 20
    assert committed == set(found)
    assert sum(found.values()) <= len(committed) + 3 * 3, "at most what was under way at each kill"


@pytest.mark.parametrize("seed", range(10))
def test_a_power_cut_loses_nothing_that_was_flushed(seed: int) -> None:
    """
    With SYNC_FLUSH a half message that was answered is on disk, and so nothing is lost.
    """
    seller, found = traded(seed, power_cut=True, flush_disk_type="SYNC_FLUSH")
    committed = {seller.bodies[key] for key, yes in seller.rows.items() if yes}

    assert committed == set(found)


@pytest.mark.parametrize("seed", range(10))
def test_a_power_cut_delivers_nothing_rolled_back(seed: int) -> None:
    """
    With ASYNC_FLUSH the last half second may be gone, as it may of every message; nothing that
    the database did not commit appears.
    """
    seller, found = traded(seed, power_cut=True)
    committed = {seller.bodies[key] for key, yes in seller.rows.items() if yes}

    assert set() == set(found) - committed
    assert len(set(found)) > len(committed) / 2
