"""Sends that wait for the disk: answered in batches, at a stop as well, refused when too many."""

import asyncio

from peer import Peer, Run, bodies

from gantrymq.store.log.syncer import InlineSyncer
from gantrymq.testing.cluster import Cluster

SLOW_SYNC_SECONDS = 0.2


class TestSyncFlush:
    def test_many_senders_share_one_sync(self, run: Run) -> None:
        """
        64 sends under way at once take about two syncs, not 64.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await peer.send("orders", b"warm")
            began = asyncio.get_running_loop().time()
            answers = await asyncio.gather(*(peer.send("orders", b"x") for _ in range(64)))
            took = asyncio.get_running_loop().time() - began

            assert {0} == {answer.code for answer in answers}
            assert SLOW_SYNC_SECONDS <= took < 4 * SLOW_SYNC_SECONDS

        run(work, flush_disk_type="SYNC_FLUSH", syncer=InlineSyncer(SLOW_SYNC_SECONDS))

    def test_nobody_reads_what_is_not_on_disk(self, run: Run) -> None:
        """
        A pull sees a message only once its sender may be told that it is safe.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await peer.send("orders", b"first")
            sending = asyncio.ensure_future(peer.send("orders", b"second"))
            await asyncio.sleep(SLOW_SYNC_SECONDS / 4)
            assert [b"first"] == bodies(await peer.pull("orders", 0))
            await sending
            assert [b"first", b"second"] == bodies(await peer.pull("orders", 0))

        run(work, flush_disk_type="SYNC_FLUSH", syncer=InlineSyncer(SLOW_SYNC_SECONDS))

    def test_a_stop_answers_what_was_accepted(self, run: Run) -> None:
        """
        The send that waits for its sync gets its answer before the connection closes.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await peer.send("orders", b"first")
            sending = asyncio.ensure_future(peer.send("orders", b"second"))
            await asyncio.sleep(SLOW_SYNC_SECONDS / 4)
            await cluster.stop_broker()
            assert 0 == (await sending).code
            await cluster.start_broker()
            again = await Peer.to(cluster)
            assert [b"first", b"second"] == bodies(await again.pull("orders", 0))

        run(work, flush_disk_type="SYNC_FLUSH", syncer=InlineSyncer(SLOW_SYNC_SECONDS))


class TestOverload:
    def test_too_many_waiting_sends_are_refused_with_the_limit(self, run: Run) -> None:
        """
        SYSTEM_BUSY at once, never a stall; the others are stored.
        """

        async def work(cluster: Cluster) -> None:
            peer = await Peer.to(cluster)
            await peer.send("orders", b"warm")
            answers = await asyncio.gather(*(peer.send("orders", b"x") for _ in range(20)))
            refused = [answer for answer in answers if answer.code == 2]

            assert (12, 8) == (len(refused), sum(answer.code == 0 for answer in answers))
            assert "sendThreadPoolQueueCapacity is 8" in (refused[0].remark or "")

        run(
            work,
            flush_disk_type="SYNC_FLUSH",
            syncer=InlineSyncer(SLOW_SYNC_SECONDS),
            send_thread_pool_queue_capacity=8,
        )
