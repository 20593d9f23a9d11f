"""Drivers and brokers that die in the middle of an epoch: it is there once and whole, or not."""

import asyncio
import random
from collections.abc import Callable, Sequence

import pytest
from epochs import TOPIC, WRITER, publisher, stored, visible, write
from peer import Peer, Run

from gantrymq.base.errors import GantryError
from gantrymq.client.produce.epochs import Epoch
from gantrymq.client.produce.publishing import CoordinatorAway, EpochResult
from gantrymq.model import PUBLISH_TOPIC, STAGE_TOPIC, Message
from gantrymq.protocol.command import Command
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.disk import Fault, MemoryDisk
from gantrymq.testing.loop import simulate

FIRST = ["a1", "b1", "c1", "d1"]
SECOND = ["a2", "b2", "c2", "d2"]
FLUSHES = ["ASYNC_FLUSH", "SYNC_FLUSH"]


class Died(GantryError):
    """What the tests let a driver die of."""


class DiesAt:
    """A driver that ends in front of its n-th request, or right behind it, without the answer."""

    def __init__(self, number: int, *, behind: bool) -> None:
        self._left, self._behind = number, behind

    def before_request(self, address: str, command: Command) -> None:
        self._left -= 1
        if self._left >= 0:
            return
        if not self._behind:
            raise Died("here ends a driver")
        driver = asyncio.current_task()
        assert driver is not None
        asyncio.get_running_loop().call_soon(driver.cancel)

    def after_response(self, address: str, command: Command, response: Command) -> None:
        """What the answer was is nobody's concern any more."""


TINY = {"mapped_file_size_commit_log": 512 * 1024}
"""For a disk that is copied at every write, with all copies kept."""


class TestPowerCuts:
    @pytest.mark.parametrize("flush", FLUSHES)
    def test_a_cut_at_every_write_of_an_epoch(self, flush: str) -> None:
        """
        Wherever the power goes, what the log keeps is finished by the broker alone or written
        again by the driver, and is there once. What the driver was told of is never lost.
        """

        async def epoch(images: list[MemoryDisk], told: list[int]) -> None:
            disk = MemoryDisk()
            rng = random.Random(len(flush))
            async with Cluster(memory=True, disk=disk, flush_disk_type=flush, **TINY) as cluster:
                await cluster.create_topic(TOPIC, 2)
                await write(cluster, 0, ["a0"])
                disk.after_each = lambda: images.append(disk.image(rng))
                await write(cluster, 1, FIRST)
                told.append(len(images))
                await asyncio.sleep(11)  # the ledger is saved
                disk.after_each = None

        async def outcome(image: MemoryDisk, *, again: bool) -> list[str]:
            async with Cluster(memory=True, disk=image, flush_disk_type=flush, **TINY) as cluster:
                if again:
                    await write(cluster, 1, SECOND)
                    await write(cluster, 2, ["a3"])
                else:
                    await asyncio.sleep(5)
                return visible(cluster)

        images: list[MemoryDisk] = []
        told: list[int] = []
        simulate(lambda: epoch(images, told))
        seen = set()
        for number, image in enumerate(images):
            alone = simulate(lambda image=image: outcome(image.after_kill(), again=False))
            assert alone in (["a0"], sorted(["a0", *FIRST]))
            assert number < told[0] or ["a0"] != alone
            found = simulate(lambda image=image: outcome(image, again=True))
            assert found in (sorted(["a0", "a3", *FIRST]), sorted(["a0", "a3", *SECOND]))
            assert alone == ["a0"] or "b1" in found
            seen.add(tuple(found))

        assert 2 == len(seen)  # some cuts came before the decision, some behind it
        assert len(images) > 20

    @pytest.mark.parametrize("seed", range(6))
    def test_cuts_in_the_middle_of_the_copies(self, seed: int) -> None:
        """
        A large epoch, cut anywhere between intent and end, is complete after the next start: the
        log itself says what is missing, and the order of every key is kept.
        """
        count = 3_000
        bodies = [f"{number % 7}-{number:05}" for number in range(count)]

        async def epoch() -> MemoryDisk:
            disk, rng = MemoryDisk(), random.Random(seed)
            images: list[MemoryDisk] = []
            async with Cluster(memory=True, disk=disk) as cluster:
                await cluster.create_topic(TOPIC, 2)
                store = cluster.broker().store

                def look() -> None:
                    if 0 < len(visible(cluster)) < count and store.queues.max_offset(
                        PUBLISH_TOPIC, 0
                    ):
                        disk.after_each = None  # an image is large: one is enough
                        images.append(disk.image(rng) if seed % 2 else disk.after_kill())

                moments = rng.randint(0, 5)

                def later() -> None:
                    nonlocal moments
                    moments -= 1
                    if moments < 0:
                        look()

                async with publisher(cluster) as one:
                    epoch = Epoch(one, 1)
                    await epoch.add([Message(TOPIC, body, sharding_key=body[0]) for body in bodies])
                    disk.after_each = later
                    await epoch.publish()
            return images[0]

        async def outcome(image: MemoryDisk) -> list[bytes]:
            async with Cluster(memory=True, disk=image) as cluster:
                await write(cluster, 1, ["x"])
                return [message.body for message in stored(cluster)]

        found = simulate(lambda: outcome(simulate(epoch)))
        by_key: dict[bytes, list[bytes]] = {}
        for body in found:
            by_key.setdefault(body[:1], []).append(body)

        assert sorted(bodies) == sorted(body.decode() for body in found)
        assert all(sorted(each) == each for each in by_key.values())

    def test_staged_messages_that_a_cut_took_are_not_mistaken_for_others(self) -> None:
        """
        After the cut somebody else's messages lie at the same offsets; the epoch is refused.
        """

        async def story() -> tuple[str, list[str]]:
            disk = MemoryDisk()
            async with Cluster(memory=True, disk=disk) as cluster:
                await cluster.create_topic(TOPIC, 1)
                await asyncio.sleep(15)
                image = disk.after_kill()
                async with publisher(cluster) as one:
                    lost = Epoch(one, 0)
                    await lost.add([Message(TOPIC, "lost")])
                    shares = lost.shares
            async with Cluster(memory=True, disk=image) as cluster:
                async with publisher(cluster, writer=WRITER) as one:
                    await Epoch(one, 5).add([Message(TOPIC, "other")])
                    try:
                        await one.publish(0, shares)
                    except GantryError as error:
                        return str(error), visible(cluster)
                return "", visible(cluster)

        said, seen = simulate(story)
        assert "the broker lost them" in said
        assert [] == seen


class TestDriversThatDie:
    @pytest.mark.parametrize("cut", [False, True], ids=["drivers", "power too"])
    @pytest.mark.parametrize("behind", [False, True], ids=["in front", "behind"])
    def test_at_every_request_of_an_epoch_on_two_brokers(self, behind: bool, cut: bool) -> None:
        """
        The next driver stages other messages under the same epoch: the outcome is one of the two
        epochs as a whole, on both brokers together.
        """

        async def story(number: int) -> tuple[bool, list[str]]:
            async with Cluster(memory=True, brokers=2, seed=number) as cluster:
                await cluster.create_topic(TOPIC, 2)
                await asyncio.sleep(12)
                died = False
                try:
                    await write(cluster, 0, FIRST, hooks=[DiesAt(number, behind=behind)])
                except (GantryError, asyncio.CancelledError):
                    died = True
                if cut:
                    for name in list(cluster.running):
                        await cluster.kill_broker(name, power_cut=True)
                        await cluster.start_broker(name)
                await write(cluster, 0, SECOND)
                await write(cluster, 1, ["a3"])
                return died, visible(cluster)

        outcomes = set()
        for number in range(60):
            died, found = simulate(lambda number=number: story(number))
            assert found in (sorted(["a3", *FIRST]), sorted(["a3", *SECOND])), number
            outcomes.add(tuple(found))
            if not died:
                break

        assert not died
        assert 2 == len(outcomes)

    def test_a_coordinator_that_is_away_is_waited_for_and_named(self) -> None:
        """
        Nobody else may decide in its place: its decision may stand already.
        """

        async def story() -> tuple[str, list[str]]:
            async with Cluster(memory=True, brokers=2) as cluster:
                await cluster.create_topic(TOPIC, 2)
                await write(cluster, 0, FIRST)
                async with publisher(cluster) as one:
                    names = {s.coordinator for s in (await one.states()).values() if s}
                (keeper,) = names
                await cluster.stop_broker(keeper)
                said = ""
                try:
                    await write(cluster, 1, SECOND, patience=3.0)
                except GantryError as error:
                    said = str(error)
                await cluster.start_broker(keeper)
                await write(cluster, 1, SECOND)
                return said, visible(cluster)

        said, seen = simulate(story)
        assert "keeps the decisions of writer" in said or "does not answer" in said
        assert sorted(FIRST + SECOND) == seen

    def test_an_epoch_whose_only_broker_is_away_is_not_taken_for_a_new_one(self) -> None:
        """
        Brokers without a row of it know who decided: the repeat is refused until that one is back.
        """

        async def story() -> tuple[bool, str, list[str]]:
            async with Cluster(memory=True, brokers=2) as cluster:
                await cluster.create_topic(TOPIC, 1)
                await write(cluster, 0, ["b1"])  # one row, so on one broker
                (owner,) = (n for n in cluster.running if has_rows(cluster, n))
                await cluster.kill_broker(owner)
                await asyncio.sleep(150)  # the name server has forgotten it
                said = ""
                try:
                    await write(cluster, 0, ["b1"])
                except CoordinatorAway as error:
                    said = str(error)
                await cluster.start_broker(owner)
                again = await write(cluster, 0, ["b1"])
                await write(cluster, 1, ["z1"])
                return again.is_repeat, said, visible(cluster)

        is_repeat, said, seen = simulate(story)
        assert is_repeat
        assert "keeps the decisions of writer" in said
        assert ["b1", "z1"] == seen

    def test_a_broker_that_has_no_part_in_it_may_be_away(self) -> None:
        """
        Once the coordinator is known, nobody waits for the others.
        """

        async def story() -> tuple[float, list[str]]:
            async with Cluster(memory=True, brokers=3) as cluster:
                async with cluster.admin() as admin:
                    await admin.create_topic(TOPIC, queues=2, broker="broker-a")
                await write(cluster, 0, FIRST)
                await cluster.kill_broker("broker-c")
                began = asyncio.get_running_loop().time()
                await write(cluster, 1, SECOND)
                return asyncio.get_running_loop().time() - began, visible(cluster)

        seconds, seen = simulate(story)
        assert seconds < 10
        assert sorted(FIRST + SECOND) == seen


class TestStopAndStart:
    def test_the_ledger_outlives_its_notes(self) -> None:
        """
        Retention takes the notes after their time; which epochs are done is still known.
        """

        async def story() -> tuple[int, bool, list[str]]:
            async with Cluster(
                memory=True, mapped_file_size_commit_log=64 * 1024, file_reserved_time=0
            ) as cluster:
                await cluster.create_topic(TOPIC, 1)
                await write(cluster, 7, FIRST)
                peer = await Peer.to(cluster)
                for _ in range(6):
                    await peer.send("others", bytes(20_000))
                await asyncio.sleep(1)
                peer = await Peer.to(cluster)
                await peer.send("others", bytes(20_000))
                store = cluster.broker().store
                await store.upkeep.checkpoint()
                gone = await store.upkeep.delete_expired()
                notes = store.queues.max_offset(PUBLISH_TOPIC, 0) - store.queues.min_offset(
                    PUBLISH_TOPIC, 0
                )
                await cluster.kill_broker()
                await cluster.start_broker()
                again = await write(cluster, 7, SECOND)
                return gone * (not notes), again.is_repeat, visible(cluster)

        gone, is_repeat, seen = simulate(story)
        assert gone
        assert is_repeat
        assert [] == seen  # the messages themselves are past their time as well

    def test_a_restart_in_between_changes_nothing(self, run: Run) -> None:
        """
        Staged before, published behind it; epochs are still known.
        """

        async def work(cluster: Cluster) -> None:
            await cluster.create_topic(TOPIC, 2)
            await write(cluster, 0, ["a0"])
            async with publisher(cluster) as one:
                epoch = Epoch(one, 1)
                await epoch.add([Message(TOPIC, body) for body in FIRST])
            await cluster.stop_broker()
            await cluster.start_broker()
            async with publisher(cluster) as one:
                last = await one.last_epoch()
                await one.publish(1, epoch.shares)
            again = await write(cluster, 1, SECOND)

            assert 0 == last
            assert again.is_repeat
            assert sorted(["a0", *FIRST]) == visible(cluster)

        run(work)

    def test_a_full_disk_holds_an_epoch_up_and_no_more(self) -> None:
        """
        The driver is told to try again; with room again the epoch is finished, once.
        """

        async def story() -> tuple[str, list[str]]:
            disk = MemoryDisk()
            async with Cluster(memory=True, disk=disk) as cluster:
                await cluster.create_topic(TOPIC, 2)
                async with publisher(cluster, patience=5.0) as one:
                    epoch = Epoch(one, 1)
                    await epoch.add([Message(TOPIC, body) for body in FIRST])
                    disk.fault = only_notes()
                    said = ""
                    try:
                        await epoch.publish()
                    except GantryError as error:
                        said = str(error)
                    disk.fault = None
                    await epoch.publish()
                    return said, visible(cluster)

        said, seen = simulate(story)
        assert "no space left" in said
        assert sorted(FIRST) == seen

    def test_a_stage_that_cannot_be_read_for_a_while_is_read_again(self) -> None:
        """
        One failed read ends nothing: the copies go on when the disk does.
        """

        async def story() -> tuple[EpochResult, list[str]]:
            disk = MemoryDisk()
            async with Cluster(memory=True, disk=disk) as cluster:
                await cluster.create_topic(TOPIC, 1)
                left = iter([OSError(24, "too many open files")] * 3)
                disk.fault = while_copying(cluster, lambda: next(left, None))
                return await write(cluster, 0, FIRST), visible(cluster)

        outcome, seen = simulate(story)
        assert len(FIRST) == outcome.messages
        assert sorted(FIRST) == seen

    def test_what_nobody_foresaw_is_told_and_tried_again_after_the_next_start(self) -> None:
        """
        The request gets an answer at once, and the broker does not turn in circles.
        """

        async def story() -> tuple[list[str], list[str]]:
            disk = MemoryDisk()
            async with Cluster(memory=True, disk=disk) as cluster:
                await cluster.create_topic(TOPIC, 1)

                def break_down() -> None:
                    raise LookupError("nobody thought of this")

                disk.fault = while_copying(cluster, break_down)
                said = []
                for _ in range(2):
                    try:
                        await asyncio.wait_for(write(cluster, 0, FIRST), 10)
                    except GantryError as error:
                        said.append(str(error))
                disk.fault = None
                await cluster.stop_broker()
                await cluster.start_broker()
                await write(cluster, 0, SECOND)
                return said, visible(cluster)

        said, seen = simulate(story)
        assert 2 == len(said)
        assert all("LookupError: nobody thought of this" in each for each in said)
        assert sorted(FIRST) == seen

    def test_retention_waits_for_what_is_being_copied(self) -> None:
        """
        Files with staged messages of a running publication stay until it is done.
        """

        async def story() -> tuple[list[int], list[str]]:
            disk = MemoryDisk()
            async with Cluster(
                memory=True, disk=disk, mapped_file_size_commit_log=64 * 1024, file_reserved_time=0
            ) as cluster:
                await cluster.create_topic(TOPIC, 1)
                store, gone = cluster.broker().store, []
                async with publisher(cluster, patience=1.0) as one:
                    epoch = Epoch(one, 1)
                    await epoch.add([Message(TOPIC, body) for body in FIRST])
                    peer = await Peer.to(cluster)
                    for _ in range(6):
                        await peer.send("others", bytes(20_000))
                    await asyncio.sleep(1)
                    await store.upkeep.checkpoint()
                    disk.fault = only_notes()
                    publishing = asyncio.ensure_future(epoch.publish())
                    await asyncio.sleep(0.5)
                    gone.append(await store.upkeep.delete_expired())
                    await asyncio.gather(publishing, return_exceptions=True)
                    disk.fault = None
                    await one.publish(1, epoch.shares)
                    gone.append(await store.upkeep.delete_expired())
                    return gone, visible(cluster)

        gone, seen = simulate(story)
        assert 0 == gone[0]
        assert gone[1]
        assert sorted(FIRST) == seen


def has_rows(cluster: Cluster, broker: str) -> bool:
    store = cluster.broker(broker).store
    return any(store.queues.max_offset(TOPIC, queue_id) for queue_id in store.queues.ids(TOPIC))


def while_copying(cluster: Cluster, fail: Callable[[], OSError | None]) -> Fault:
    """A log that cannot be read once decision and intent stand in it."""
    store = cluster.broker().store

    def fault(operation: str, path: str) -> OSError | None:
        if operation != "pread" or "/commitlog/" not in path:
            return None
        return fail() if store.queues.max_offset(PUBLISH_TOPIC, 0) == 3 else None

    return fault


def only_notes() -> Fault:
    """A disk that takes the notes of preparation, decision and intent, and nothing behind them."""
    writes = 0

    def fault(operation: str, path: str) -> OSError | None:
        nonlocal writes
        if operation != "pwrite" or "/commitlog/" not in path:
            return None
        writes += 1
        return OSError(28, "no space left") if writes > 3 else None

    return fault


def test_stages_are_shared_out(run: Run) -> None:
    """
    Two queues of a topic do not necessarily share a stage queue; all lie in the stage topic.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic(TOPIC, 4)
        await write(cluster, 0, [f"{letter}1" for letter in "abcdefgh"])
        store = cluster.broker().store
        ends: Sequence[int] = [store.queues.max_offset(STAGE_TOPIC, queue) for queue in range(4)]

        assert 8 == sum(ends)

    run(work)
