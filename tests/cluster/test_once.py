"""Effectively-once consuming against the three sources of doubles, and crashes."""

import asyncio
import sqlite3
from pathlib import Path

import pytest
from once_member import STRENGTHS, Member, send, until
from peer import Run

from gantrymq.client.core.consumer_errors import ConsumerMisused
from gantrymq.client.core.options import ClientOptions
from gantrymq.client.once.guard import Once
from gantrymq.client.once.sqlite_store import SqliteStore
from gantrymq.testing.cluster import Cluster

strengths = pytest.mark.parametrize("strength", STRENGTHS)


def rows(path: Path) -> list[str]:
    """What committed transactions wrote."""
    with sqlite3.connect(path) as db:
        return sorted(body for (body,) in db.execute("SELECT body FROM written"))


@strengths
def test_what_is_sent_again_is_handled_once(run: Run, strength: str, tmp_path: Path) -> None:
    """
    A producer that repeats itself makes new messages with new ids; the key stays.
    """
    path = tmp_path / "once.db"

    async def story(cluster: Cluster) -> None:
        await send(cluster, "order-1", "order-2", times=3)
        async with Member(cluster, path, strength, "m") as member:
            await until(lambda: member.once.suppressed_count == 4)
            assert ["order-1", "order-2"] == sorted(member.written)

    run(story)
    if strength == "transaction":
        assert ["order-1", "order-2"] == rows(path)


@strengths
def test_what_is_delivered_again_is_handled_once(run: Run, strength: str, tmp_path: Path) -> None:
    """
    A member dies after its work, before the broker knows: its successor gets everything again.
    """
    path = tmp_path / "once.db"

    async def story(cluster: Cluster) -> None:
        orders = [f"order-{number}" for number in range(5)]
        await send(cluster, *orders)
        first = await Member(cluster, path, strength, "first").__aenter__()
        await until(lambda: len(first.written) == 5)
        await asyncio.sleep(0.3)
        first.die()
        async with Member(cluster, path, strength, "second") as second:
            await until(lambda: second.once.suppressed_count == 5)
            assert (orders, []) == (sorted(first.written), second.written)

    run(story)
    if strength == "transaction":
        assert [f"order-{number}" for number in range(5)] == rows(path)


@strengths
def test_what_changes_hands_while_it_is_handled_is_handled_once(
    run: Run, strength: str, tmp_path: Path
) -> None:
    """
    A second member takes queues over whose messages the first one is still working on.
    """
    path = tmp_path / "once.db"

    async def story(cluster: Cluster) -> None:
        orders = [f"order-{number}" for number in range(12)]
        await cluster.create_topic("orders", queues=4)
        await send(cluster, *orders)
        async with Member(cluster, path, strength, "first") as first:
            first.go_on.clear()
            await first.begun.wait()
            async with Member(cluster, path, strength, "second") as second:
                await until(lambda: len(first.consumer.assignment) == 2)
                await second.consumer.wait_assigned(2)
                await asyncio.sleep(0.3)
                first.go_on.set()
                doubles = (first.once, second.once)
                await until(lambda: len(first.written + second.written) >= 12)
                await until(lambda: sum(once.suppressed_count for once in doubles) > 0)
                await asyncio.sleep(1)
                assert orders == sorted(first.written + second.written, key=orders.index)

    run(story)
    if strength == "transaction":
        assert sorted(f"order-{number}" for number in range(12)) == rows(path)


@strengths
def test_work_that_died_half_way_is_done_by_another(
    run: Run, strength: str, tmp_path: Path
) -> None:
    """
    A transaction is rolled back; a claim lapses after its lease. Nothing is lost.
    """
    path = tmp_path / "once.db"

    async def story(cluster: Cluster) -> None:
        await send(cluster, "order-1")
        first = await Member(cluster, path, strength, "first", lease=1.5).__aenter__()
        first.go_on.clear()
        await first.begun.wait()
        first.die()
        async with Member(cluster, path, strength, "second") as second:
            await until(lambda: second.written == ["order-1"])
            assert ([], 0) == (first.written, second.once.suppressed_count)

    run(story)
    if strength == "transaction":
        assert ["order-1"] == rows(path)


def test_a_file_is_no_store_for_members_on_other_machines(run: Run, tmp_path: Path) -> None:
    """
    A consumer with SQLite stops as soon as a member elsewhere joins, and starts no more after it.
    """
    path = tmp_path / "once.db"

    async def story(cluster: Cluster) -> None:
        await cluster.create_topic("orders")
        async with Member(cluster, path, "claims", "here") as member:
            await member.consumer.wait_assigned(4)
            elsewhere = cluster.consumer("g", client=ClientOptions(client_ip="192.0.2.7"))
            async with elsewhere:
                elsewhere.subscribe("orders")
                with pytest.raises(ConsumerMisused, match=r"192\.0\.2\.7@.*PostgresStore"):
                    await member.consumer.run()
                await send(cluster, "order-1", "order-2", "order-3", "order-4")
                late = cluster.consumer(
                    "g",
                    once=Once(SqliteStore(str(path))),
                    client=ClientOptions(instance_name="late"),
                )
                late.subscribe("orders")
                with pytest.raises(ConsumerMisused, match="other machines"):
                    await late.start()
        assert [] == member.written

    run(story)
