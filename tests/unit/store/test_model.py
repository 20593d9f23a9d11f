"""The store against plain lists, with crashes of every kind in between."""

import asyncio
from random import Random
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from storekit import FOREVER, ManualClock, message, open_store, put, read_log, read_queue, tiny

from gantrymq.store import PutStatus, Store
from gantrymq.testing.disk import MemoryDisk

QUEUES = [("orders", 0), ("orders", 1), ("bills", 7)]
seeds = st.integers(0, 1 << 30)


class StoreMachine(RuleBasedStateMachine):
    """Everything acknowledged is there, in order, whatever happens; under SYNC_FLUSH."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.disk, self.clock = MemoryDisk(), ManualClock()
        self.model: dict[tuple[str, int], list[tuple[bytes, str]]] = {one: [] for one in QUEUES}
        self.serial = 0
        self.store: Store = self.runner.run(self._open())

    async def _open(self) -> Store:
        return await open_store(self.disk, tiny(), clock=self.clock)

    def teardown(self) -> None:
        self.runner.run(self.store.close())
        self.runner.close()

    @rule(
        sizes=st.lists(st.sampled_from([0, 20, 400, 1400, 3000]), min_size=1, max_size=6),
        seed=seeds,
        step_ms=st.sampled_from([0, 1, 1500]),
    )
    def put_some(self, sizes: list[int], seed: int, step_ms: int) -> None:
        random = Random(seed)
        self.clock.ms += step_ms
        appends = []
        for size in sizes:
            queue, body = random.choice(QUEUES), random.randbytes(size)
            self.serial += 1
            appends.append(message(*queue, body, unique=f"u{self.serial}", keys="all"))
            self.model[queue].append((body, f"u{self.serial}"))
        self.runner.run(put(self.store, *appends))
        assert {one.status for one in appends} == {PutStatus.PUT_OK}

    @rule(count=st.integers(1, 4), size=st.sampled_from([10, 900]))
    def put_a_batch(self, count: int, size: int) -> None:
        items = []
        for _ in range(count):
            self.serial += 1
            items.append((0, b"%d" % self.serial * (size // 4), b"UNIQ_KEY\x01u%d" % self.serial))
            self.model["orders", 0].append((items[-1][1], f"u{self.serial}"))
        (batch,) = self.runner.run(put(self.store, message(batch=items)))
        assert batch.status is PutStatus.PUT_OK

    @rule()
    def write_derived(self) -> None:
        self.runner.run(self.store.upkeep.write_derived())

    @rule()
    def take_a_checkpoint(self) -> None:
        self.runner.run(self.store.upkeep.checkpoint())

    @rule()
    def stop_and_start(self) -> None:
        self.runner.run(self.store.close())
        self.store = self.runner.run(self._open())

    @rule()
    def kill(self) -> None:
        self._crash(self.disk.after_kill())

    @rule(seed=seeds)
    def cut_the_power(self, seed: int) -> None:
        self._crash(self.disk.image(Random(seed)))

    @rule(seed=seeds, skip=st.integers(0, 25))
    def cut_the_power_during_recovery(self, seed: int, skip: int) -> None:
        """And once more while the next start repairs."""
        image = self.disk.image(Random(seed))
        images: list[MemoryDisk] = []
        image.after_each = lambda: images.append(image.image(Random(seed + len(images))))
        self._crash(image)
        image.after_each = None
        if len(images) > skip:
            self._crash(images[skip])

    def _crash(self, left: MemoryDisk) -> None:
        self.store.upkeep.stop()
        self.disk = left
        self.store = self.runner.run(self._open())

    @precondition(lambda self: self.serial > 0)
    @rule(data=st.data())
    def find_by_key(self, data: Any) -> None:
        wanted = f"u{data.draw(st.integers(1, self.serial))}"
        topics = {one[0] for one, rows in self.model.items() for _, key in rows if key == wanted}
        for topic in ("orders", "bills"):
            found = self.runner.run(self.store.reads.query(topic, wanted, 9, 0, FOREVER))
            assert len(found.records) == (topic in topics)

    @invariant()
    def queues_hold_what_was_put(self) -> None:
        for queue, expected in self.model.items():
            found = self.runner.run(read_queue(self.store, *queue))
            assert [one.queue_offset for one in found] == list(range(len(expected)))
            assert [(one.body, one.properties["UNIQ_KEY"]) for one in found] == expected

    @invariant()
    def the_log_holds_nothing_else(self) -> None:
        assert len(list(read_log(self.store))) == sum(len(rows) for rows in self.model.values())


StoreMachine.TestCase.settings = settings(
    max_examples=150,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestStoreAgainstLists = StoreMachine.TestCase
