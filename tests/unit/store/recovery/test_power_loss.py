"""A power cut after every single operation on the disk, with every kind of half-written state."""

import asyncio
from random import Random
from typing import NamedTuple

import pytest
from storekit import FOREVER, ManualClock, message, open_store, put, read_log, read_queue, tiny

from gantrymq.protocol.record import StoredMessage
from gantrymq.store.append import Append, PutStatus
from gantrymq.store.config import StoreConfig
from gantrymq.store.engine import Store
from gantrymq.testing.disk import MemoryDisk

OPERATIONS_MIN = 1_000
IMAGES_PER_OPERATION = 2
QUEUES = [("orders", 0), ("orders", 1), ("bills", 0), ("fleeting", 0)]


class Cut(NamedTuple):
    """What a power cut left, and what had been promised by then."""

    operation: int
    disk: MemoryDisk
    promised: list[Append]
    submitted: list[Append]
    life: int


class Script:
    """A random life of a store, with a power cut recorded after each operation."""

    def __init__(self, seed: int, config: StoreConfig) -> None:
        self.random, self.config = Random(seed), config
        self.disk, self.clock = MemoryDisk(), ManualClock()
        self.operations = 0
        self.submitted: list[Append] = []
        self.acked: list[Append] = []
        self.life = 0
        """How often the topic `fleeting` was deleted."""
        self.life_of: dict[str, int] = {}
        self.cuts: list[Cut] = []
        self._tear = Random(seed + 1)
        self._serial = 0

    async def run(self) -> None:
        while self.operations < OPERATIONS_MIN:
            self.disk.after_each = self._record
            store = await open_store(self.disk, self.config, clock=self.clock)
            self._forget_what_is_lost(store)
            for _ in range(self.random.randint(3, 40)):
                await self._step(store)
            end = self.random.random()
            if end < 0.4:
                await store.close()
            else:
                store.upkeep.stop()  # the process ends without a word
                self.disk.after_each = None
                self.disk = self.disk.image(self._tear) if end < 0.7 else self.disk.after_kill()

    def _record(self) -> None:
        self.operations += 1
        for _ in range(IMAGES_PER_OPERATION):
            image = self.disk.image(self._tear)
            cut = Cut(self.operations, image, self.acked[:], self.submitted[:], self.life)
            self.cuts.append(cut)

    def _forget_what_is_lost(self, store: Store) -> None:
        """What one recovery did not find must never be found again."""
        found = {record.properties["UNIQ_KEY"] for record in read_log(store)}
        self.submitted = [
            append
            for append in self.submitted
            if _unique(append) in found or 0 <= append.physical_offset < store.log_min
        ]
        self.acked = [append for append in self.acked if append in self.submitted]

    async def _step(self, store: Store) -> None:
        self.clock.ms += self.random.choice([0, 1, 700])
        kind = self.random.random()
        if kind < 0.8:
            await self._put(store)
        elif kind < 0.9:
            await store.upkeep.write_derived()
        elif kind < 0.95:
            await store.upkeep.checkpoint()
        elif kind < 0.98:
            self.life += 1
            store.delete_topic("fleeting")
        else:
            self.clock.ms += 80 * 3_600_000
            await self._put(store)
            await store.upkeep.delete_expired()

    async def _put(self, store: Store) -> None:
        appends = [self._message() for _ in range(self.random.randint(1, 5))]
        self.submitted += appends
        for append in appends:
            append.reply = self._on_reply
        await put(store, *appends)
        self.acked += [append for append in appends if append.status is PutStatus.PUT_OK]

    def _message(self) -> Append:
        self._serial += 1
        topic, queue_id = self.random.choice(QUEUES)
        body = self.random.randbytes(self.random.choice([0, 10, 300, 900, 1500]))
        unique = f"{self._serial:08d}"
        self.life_of[unique] = self.life
        return message(topic, queue_id, body, unique=unique, tags="t", keys="shared x" * 3)

    def _on_reply(self, append: Append) -> None:
        raise AssertionError("replaced by put")


async def check(cut: Cut, script: Script, must_keep: bool) -> None:
    """Recover what the cut left and hold it against what was promised."""
    store = await open_store(cut.disk, script.config, clock=ManualClock(script.clock.ms))
    submitted = {_unique(append): append for append in cut.submitted}
    records = list(read_log(store))
    by_unique = {record.properties["UNIQ_KEY"]: record for record in records}

    assert len(by_unique) == len(records), "a record is in the log twice"
    for unique, record in by_unique.items():
        assert record.body == submitted[unique].body, "a record nobody sent"
        assert record.topic == submitted[unique].topic
    if must_keep:
        for append in cut.promised:
            if append.physical_offset >= store.log_min:
                found = by_unique[_unique(append)]
                assert found.physical_offset == append.physical_offset
                assert found.queue_offset == append.queue_offset
    await _check_queues(store, records, cut, script)
    await _check_index(store, by_unique, submitted)
    await _check_again(cut, script, store)


async def _check_queues(
    store: Store, records: list[StoredMessage], cut: Cut, script: Script
) -> None:
    for topic, queue_id in QUEUES:
        in_log = [one for one in records if (one.topic, one.queue_id) == (topic, queue_id)]
        in_queue = await read_queue(store, topic, queue_id)
        if topic == "fleeting":
            # The newest life of the topic has to be there; older ones may have been forgotten.
            in_log = _newest_life(in_log, cut, script)
            in_queue = in_queue[len(in_queue) - len(in_log) :]
        assert [_place(one) for one in in_log] == [_place(one) for one in in_queue]
        queue = store.queues.get(topic, queue_id)
        if queue is not None:
            assert queue.next == queue.max_offset
            if in_queue:
                assert in_queue[-1].queue_offset == queue.max_offset - 1


def _newest_life(in_log: list[StoredMessage], cut: Cut, script: Script) -> list[StoredMessage]:
    return [one for one in in_log if script.life_of[one.properties["UNIQ_KEY"]] == cut.life]


async def _check_index(
    store: Store, by_unique: dict[str, StoredMessage], submitted: dict[str, Append]
) -> None:
    for unique, append in list(submitted.items())[-40:]:
        found = await store.reads.query(append.topic, unique, 8, 0, FOREVER)
        expected = 1 if unique in by_unique else 0
        assert len(found.records) == expected, f"{unique} is found {len(found.records)} times"


async def _check_again(cut: Cut, script: Script, store: Store) -> None:
    """A second recovery finds nothing left to do."""
    await _settle(store)
    once = cut.disk.after_kill()
    before = _used_files(once)
    again = await open_store(once, script.config, clock=ManualClock(script.clock.ms))
    await _settle(again)
    after = _used_files(once)
    changed = [path for path in before | after if before.get(path) != after.get(path)]
    assert not changed, f"a second recovery changed {changed}"


def _used_files(disk: MemoryDisk) -> dict[str, bytes]:
    """Contents without the log files that are made ahead of need and hold nothing yet."""
    return {
        path: data
        for path, data in disk.contents().items()
        if "commitlog/" not in path or any(data)
    }


async def _settle(store: Store) -> None:
    """Let the next log file be made, and let go of the store as a killed process does."""
    await store._writer.drain()
    store.upkeep.stop()


def _unique(append: Append) -> str:
    return append.properties.partition(b"UNIQ_KEY\x01")[2].partition(b"\x02")[0].decode()


def _place(one: StoredMessage) -> tuple[int, int]:
    return one.queue_offset, one.physical_offset


def every_cut_recovers(seed: int, config: StoreConfig, must_keep: bool) -> None:
    async def run() -> None:
        script = Script(seed, config)
        await script.run()
        assert len(script.cuts) >= OPERATIONS_MIN * IMAGES_PER_OPERATION
        for number, cut in enumerate(script.cuts):
            try:
                await check(cut, script, must_keep)
            except Exception as error:
                error.add_note(f"seed {seed}, cut {number} after operation {cut.operation}")
                raise

    asyncio.run(run())


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "flush, must_keep", [("SYNC_FLUSH", True), ("ASYNC_FLUSH", False)], ids=["sync", "async"]
)
def test_a_power_cut_after_any_operation_loses_nothing_promised_and_invents_nothing(
    flush: str, must_keep: bool
) -> None:
    """Whatever sectors and names survive, recovery ends in a state that was promised."""
    every_cut_recovers(20_26, tiny(flush=flush), must_keep)
