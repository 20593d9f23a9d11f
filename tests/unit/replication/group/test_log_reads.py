"""What a leader reads for its followers: from memory, or fetched by a worker."""

import asyncio
from collections.abc import Awaitable, Callable

from gantrymq.base.offload import InlineOffload
from gantrymq.protocol.ids import encode_host
from gantrymq.replication.group import log_reads
from gantrymq.replication.group.log_reads import LogReads
from gantrymq.store.append import Append
from gantrymq.store.config import StoreConfig
from gantrymq.store.engine import Store
from gantrymq.store.log.syncer import InlineSyncer
from gantrymq.store.shared import StorePorts
from gantrymq.testing.clock import LoopClock
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.loop import VirtualLoop

PIECE = 1 << 20


class Workers(InlineOffload):
    """Knows whether a worker reads, or the event loop does."""

    inside = False

    async def run(self, fn: Callable[..., object], *args: object) -> object:  # type: ignore[override]
        await asyncio.sleep(0.01)
        self.inside = True
        try:
            return fn(*args)
        finally:
            self.inside = False


class Files(MemoryDisk):
    """A disk whose log files are cold: the loop may not read them."""

    def __init__(self, workers: Workers) -> None:
        super().__init__()
        self.workers = workers
        self.on_loop = 0

    def freeze(self) -> None:
        self.is_cold = lambda path, at: "commitlog" in path
        self.fault = self._watch

    def _watch(self, operation: str, path: str) -> OSError | None:
        if operation == "pread" and "commitlog" in path and not self.workers.inside:
            self.on_loop += 1
        return None


def with_log(work: Callable[[Files, Store], Awaitable[None]]) -> None:
    """Run `work` with a store of about 10 MiB in files of 4 MiB."""

    async def main() -> None:
        workers = Workers()
        disk = Files(workers)
        loop = asyncio.get_running_loop()
        config = StoreConfig(
            directory="store",
            segment_bytes=4 << 20,
            queue_file_entries=1024,
            index_slots=16,
            index_entries=1024,
            judge_by_free_bytes=True,
        )
        store = await Store.open(
            config,
            StorePorts(disk, LoopClock(loop), workers, InlineSyncer()),  # type: ignore[arg-type]
            store_host=encode_host("127.0.0.1", 10_911),
        )
        for _ in range(100):
            stored = asyncio.Event()
            append = Append("orders", 0, bytes(100_000))
            append.reply = lambda _, done=stored: done.set()  # type: ignore[misc]
            store.put(append)
            await stored.wait()
        disk.freeze()
        await work(disk, store)
        disk.fault = None
        await store.close()

    loop = VirtualLoop()
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()


def test_warm_bytes_are_read_at_once() -> None:
    """A boundary and the bytes before it, without a worker."""

    async def work(disk: Files, store: Store) -> None:
        disk.is_cold = lambda path, at: False
        reads = LogReads(store.group_log)
        end = reads.boundary(0, PIECE)
        assert end is not None
        assert PIECE - 110_000 < end <= PIECE
        assert reads.read(0, end) == store.group_log.read(0, end)
        await reads.close()

    with_log(work)


def test_cold_bytes_are_fetched_by_a_worker() -> None:
    """The whole log is walked through, and the loop itself has not read a byte of it."""

    async def work(disk: Files, store: Store) -> None:
        reads, at, fetches = LogReads(store.group_log), 0, 0
        fetched = asyncio.Event()
        reads.on_fetched = fetched.set
        pieces = []
        while store.log_max - at > PIECE:
            end = reads.boundary(at, at + PIECE)
            if end is None:
                assert reads.boundary(at, at + PIECE) is None
                await fetched.wait()
                fetched.clear()
                fetches += 1
                continue
            read = reads.read(at, end - at)
            assert isinstance(read, bytes)
            pieces.append(read)
            at = end
        reads.forget()
        rest = reads.read(at, store.log_max - at)
        assert isinstance(rest, Awaitable)
        pieces.append(await rest)
        assert disk.on_loop == 0
        assert fetches <= 2 + store.log_max // (log_reads.FETCH_BYTES - PIECE)
        assert b"".join(pieces) == store.group_log.read(0, store.log_max)
        await reads.close()

    with_log(work)


def test_what_retention_deletes_meanwhile_is_no_error() -> None:
    """The worker finds nothing; whoever waits is told to look again."""

    async def work(disk: Files, store: Store) -> None:
        reads, fetched = LogReads(store.group_log), asyncio.Event()
        reads.on_fetched = fetched.set
        store.config.retention_hours = 0
        await store.upkeep.checkpoint()
        await asyncio.sleep(1)
        await store.upkeep.delete_expired()
        assert store.log_min > 0
        assert reads.boundary(0, PIECE) is None
        await fetched.wait()
        assert reads.boundary(0, PIECE) is None
        await reads.close()

    with_log(work)
