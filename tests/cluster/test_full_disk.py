"""A disk that is full or broken, as clients see it."""

import errno

from peer import Peer, bodies

from gantrymq.testing.cluster import Cluster
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.loop import simulate


def failing(number: int, operation: str, part: str) -> object:
    """A fault for one kind of operation on one kind of file."""

    def fault(name: str, path: str) -> OSError | None:
        if name == operation and part in path:
            return OSError(number, "injected", path)
        return None

    return fault


class TestFullDisk:
    def test_a_send_is_refused_and_stored_later_when_there_is_room(self) -> None:
        """
        An error answer, never a crash; reads go on; offsets have no gap.
        """

        async def story() -> None:
            async with Cluster(memory=True) as cluster:
                assert isinstance(cluster.disk, MemoryDisk)
                peer = await Peer.to(cluster)
                assert 0 == (await peer.send("orders", b"before")).code
                cluster.disk.fault = failing(errno.ENOSPC, "pwrite", "commitlog")  # type: ignore[assignment]
                refused = await peer.send("orders", b"during")
                assert refused.code in (1, 14)
                assert refused.remark
                assert [b"before"] == bodies(await peer.pull("orders", 0))
                cluster.disk.fault = None
                after = await peer.send("orders", b"after")
                assert (0, "1") == (after.code, after.ext["queueOffset"])
                assert [b"before", b"after"] == bodies(await peer.pull("orders", 0))

        simulate(story)

    def test_a_topic_that_cannot_be_saved_is_an_error(self) -> None:
        """
        Creating it says so; what was there before stays as it was.
        """

        async def story() -> None:
            async with Cluster(memory=True) as cluster:
                assert isinstance(cluster.disk, MemoryDisk)
                peer = await Peer.to(cluster)
                await peer.send("orders", b"before")
                cluster.disk.fault = failing(errno.ENOSPC, "pwrite", "topics.json")  # type: ignore[assignment]
                answer = await peer.call(
                    17, topic="fresh", readQueueNums=4, writeQueueNums=4, perm=6
                )
                assert (1, True) == (answer.code, "cannot be saved" in (answer.remark or ""))
                assert cluster.broker().registry.topics.get("fresh") is None
                cluster.disk.fault = None
                assert 0 == (await peer.send("orders", b"after")).code

        simulate(story)


class TestBrokenSync:
    def test_a_failed_fsync_is_never_answered_as_success(self) -> None:
        """
        The send is refused and the broker takes no more writes, but still serves reads.
        """

        async def story() -> None:
            async with Cluster(memory=True, flush_disk_type="SYNC_FLUSH") as cluster:
                assert isinstance(cluster.disk, MemoryDisk)
                peer = await Peer.to(cluster)
                assert 0 == (await peer.send("orders", b"safe")).code
                cluster.disk.fault = failing(errno.EIO, "sync", "commitlog")  # type: ignore[assignment]
                lost = await peer.send("orders", b"unsafe")
                assert lost.code not in (0, 10)
                cluster.disk.fault = None
                assert 0 != (await peer.send("orders", b"fenced")).code
                assert [b"safe"] == bodies(await peer.pull("orders", 0))

        simulate(story)
