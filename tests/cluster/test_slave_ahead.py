"""A slave that has what its master lost: it is refused, and the operator decides."""

import asyncio
import re
import shutil
from pathlib import Path

import pytest
from test_cli import SECONDS_MAX, gantry
from test_modes import by_hand, members, stored
from test_modes import send as send_by_command
from test_slaves import SLAVE, SMALL_FILES, bodies_of, copied, send, until

from gantrymq.base.offload import InlineOffload
from gantrymq.broker.copies.log_comparison import count_common
from gantrymq.kernel import walk_records
from gantrymq.protocol.record import decode_records
from gantrymq.store.recovery.log_cut import order_cut
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

ORDER = re.compile(r"run `gantry store cut (\S+) --at (\d+)`")
LARGE = 3_000


def bodies(name: str, count: int) -> list[str]:
    """Messages of which five fill a log file."""
    return [f"{name}-{number}".ljust(LARGE) for number in range(count)]


async def lose_power(cluster: Cluster) -> set[str]:
    """Cut the master's power until that costs it something; the bodies that it lost."""
    for number in range(20):  # what a power cut takes is a matter of chance
        await asyncio.sleep(10)  # the slave follows
        sent = bodies(f"tail-{number}", 12)
        await send(cluster, *sent)
        await copied(cluster)
        before = cluster.broker().store.log_max
        await cluster.kill_broker(power_cut=True)
        await cluster.start_broker()
        lost = before - cluster.broker().store.log_max
        if lost:
            return set(sent[-(lost // (LARGE + 200)) :])
    raise AssertionError("the master never lost anything")


async def refused(caplog: pytest.LogCaptureFixture) -> tuple[str, int]:
    """The folder and the offset of the order that the slave's log names."""
    await until(lambda: bool(ORDER.search(caplog.text)), 60)
    folder, at = ORDER.findall(caplog.text)[-1]
    return folder, int(at)


async def cut_slave(cluster: Cluster, folder: str, at: int) -> set[str]:
    """Stop the slave, order the cut and start it again; the bodies that were saved."""
    await cluster.stop_broker(SLAVE)
    disk = cluster._disks[SLAVE]
    cut = await order_cut(folder, at, disk=disk, offload=InlineOffload())
    saved = []
    for name in disk.list(f"{cut.saved}/commitlog"):
        data = disk.open_read(f"{cut.saved}/commitlog/{name}").pread(1 << 20, 0)
        _, end, _ = walk_records(data, int(name), len(data), True)
        found = decode_records(data[: end - int(name)])
        saved += [one.body.decode() for one in found if one.physical_offset >= at]
    assert len(saved) == cut.messages > 0
    await cluster.start_broker(SLAVE)
    return set(saved)


async def all_bodies(cluster: Cluster) -> list[str]:
    """Everything that consumers get of the topic."""
    queues = cluster.broker(cluster.running[0]).store.queues
    count = queues.max_offset("orders", 0) - queues.min_offset("orders", 0)
    async with cluster.consumer("readers", start="first") as consumer:
        consumer.subscribe("orders")
        return await bodies_of(consumer, count)


@pytest.mark.parametrize("goes_on", [False, True], ids=["shorter", "longer"])
@pytest.mark.parametrize("deletes", [False, True], ids=["whole", "trimmed"])
def test_a_slave_follows_after_the_cut(
    goes_on: bool, deletes: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The master lost its unflushed tail in a power cut, and may have taken other messages or
    deleted old files since. Nothing happens to the slave until the operator orders the cut; then
    it follows, and what only the slave had is saved."""

    async def story() -> None:
        async with Cluster(memory=True, slaves=1, **SMALL_FILES) as cluster:
            await cluster.create_topic("orders", queues=1)
            await send(cluster, *bodies("old", 30))
            lost = await lose_power(cluster)
            slave = cluster.broker(SLAVE).store
            before = slave.log_max
            if deletes:
                await asyncio.sleep(30)
                assert await cluster.broker().store.upkeep.delete_expired()
            agreed = cluster.broker().store.log_max
            if goes_on:
                await send(cluster, *bodies("new", 15))
                assert cluster.broker().store.log_max > before
            folder, at = await refused(caplog)
            await asyncio.sleep(20)
            assert slave.log_max == before
            saved = await cut_slave(cluster, folder, at)
            await copied(cluster)
            await send(cluster, "after")
            await copied(cluster)
            assert saved >= lost
            assert before > at
            assert at <= agreed < at + LARGE  # a blank may lie between
            ends = [
                cluster.broker(name).store.queues.max_offset("orders", 0)
                for name in ("broker-a", SLAVE)
            ]
            assert ends[0] == ends[1]
            found = await all_bodies(cluster)
            assert found[-1] == "after"
            assert not saved & set(found)

    simulate(story)


def test_the_slave_as_the_master_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """The other way out: the slave becomes the master, and the old one follows, being behind."""

    async def story() -> None:
        async with Cluster(memory=True, slaves=1, **SMALL_FILES) as cluster:
            await cluster.create_topic("orders", queues=1)
            await send(cluster, *bodies("old", 30))
            lost = await lose_power(cluster)
            await refused(caplog)
            for name, role, number in (("broker-a", "SLAVE", 1), (SLAVE, "ASYNC_MASTER", 0)):
                await cluster.stop_broker(name)
                cluster.reconfigure(name, broker_role=role, broker_id=number)
            await cluster.start_broker(SLAVE)
            await cluster.start_broker("broker-a")
            await copied(cluster)
            assert lost <= set(await all_bodies(cluster))

    simulate(story)


def test_another_log_is_not_cut(caplog: pytest.LogCaptureFixture) -> None:
    """The master's disk was replaced by an empty one: no offset is offered."""

    async def story() -> None:
        async with Cluster(memory=True, slaves=1) as cluster:
            await cluster.create_topic("orders", queues=1)
            await send(cluster, *"abcdefgh")
            await copied(cluster)
            await cluster.stop_broker()
            cluster.empty_disk("broker-a")
            await cluster.start_broker()
            await send(cluster, *"abc")
            await asyncio.sleep(20)
            assert "The two logs have no record in common" in caplog.text
            assert not ORDER.search(caplog.text)

    simulate(story)


def test_the_logs_are_compared_once(caplog: pytest.LogCaptureFixture) -> None:
    """A slave that is refused tries again every 5 s, but asks for checksums once."""

    async def story() -> None:
        async with Cluster(memory=True, slaves=1, **SMALL_FILES) as cluster:
            await cluster.create_topic("orders", queues=1)
            await send(cluster, *bodies("old", 30))
            await lose_power(cluster)
            await refused(caplog)
            reads = 0
            log_bytes, read = (
                cluster.broker().store.log_bytes,
                cluster.broker().store.log_bytes.read,
            )

            def counted(at: int, size: int) -> object:
                nonlocal reads
                reads += 1
                return read(at, size)

            log_bytes.read = counted  # type: ignore[method-assign, assignment]
            await asyncio.sleep(60)
            assert reads == 0

    simulate(story)


@pytest.mark.parametrize("count", range(9))
def test_bisection_counts_the_common_ones(count: int) -> None:
    """From none to all, with few questions."""
    asked = []

    async def is_common(item: int) -> bool:
        asked.append(item)
        return item < count

    assert count == asyncio.run(count_common(range(8), is_common))
    assert len(asked) <= 4


@pytest.mark.timeout(120)
def test_a_master_from_a_backup(tmp_path: Path) -> None:
    """As operators do it, with processes: the master is restored from an old copy, its slave is
    ahead, and `gantry store cut` with the offset from the slave's log lets it follow."""
    with by_hand(tmp_path) as hand:
        master = hand.broker("broker-a")
        slave = hand.broker("broker-a-s")
        hand.await_slave()
        send_by_command(hand.namesrv, "a", "b", topic="broker-a")
        master.terminate()
        master.wait(SECONDS_MAX)
        shutil.copytree(tmp_path / "broker-a", tmp_path / "backup")
        master = hand.broker("broker-a")
        hand.await_slave()
        send_by_command(hand.namesrv, "c", "d", topic="broker-a")
        master.terminate()
        master.wait(SECONDS_MAX)
        shutil.rmtree(tmp_path / "broker-a")
        shutil.move(tmp_path / "backup", tmp_path / "broker-a")
        hand.broker("broker-a")
        folder, at = hand.await_order()
        assert 1 == gantry("store", "cut", folder, "--at", at).returncode  # it runs
        slave.terminate()
        slave.wait(SECONDS_MAX)
        wrong = gantry("store", "cut", folder, "--at", str(int(at) + 1))
        done = gantry("store", "cut", folder, "--at", at, "-o", "json")
        hand.broker("broker-a-s")
        hand.await_slave()
        assert ["SEND_OK"] == send_by_command(hand.namesrv, "e", topic="broker-a")
        assert ["a", "b", "e"] == sorted(map(str, stored(hand.namesrv, "broker-a")))
        assert members(hand.namesrv)["broker-a/1"]["inSync"]

    assert (1, b"error: no record of") == (wrong.returncode, wrong.stderr[:19])
    assert 0 == done.returncode, done.stderr
    assert b'"messages": 2' in done.stdout
    assert b"the next start cuts off 2 messages; they are saved" in done.stderr
    assert list((tmp_path / "broker-a-s" / "cut").glob("*/commitlog/*"))
