"""The kit that ships with the package: what its users rely on."""

import ast
import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from gantrymq import Consumer, Message, Producer
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import MovableLoop, Stuck, simulate
from gantrymq.testing.threaded import GantryCluster

UP_SECONDS_MAX = 1.0


def loaded_by(statement: str, *others: str) -> list[str]:
    """Which heavy modules a fresh interpreter has after one statement."""
    heavy = ["numpy", "uvloop", "rich", "click", *others]
    code = f"import sys; {statement}; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names: list[str] = ast.literal_eval(found.stdout)
    return names


class TestGantry:
    def test_is_up_in_well_under_a_second(self) -> None:
        """
        A fixture that costs seconds is a fixture nobody uses.
        """
        began = time.perf_counter()
        cluster = GantryCluster()
        took = time.perf_counter() - began
        cluster.close()

        assert took < UP_SECONDS_MAX

    def test_serves_async_tests(self, gantry: GantryCluster) -> None:
        """
        On their own loop, over TCP.
        """
        gantry.create_topic("orders", queues=2)

        async def main() -> bytes:
            async with Producer(gantry.namesrv, group="p") as producer:
                await producer.send(Message("orders", b"hello"))
            async with Consumer(gantry.namesrv, group="c") as consumer:
                consumer.subscribe("orders")
                async for message in consumer:
                    await message.ack()
                    return message.body
            return b""

        assert b"hello" == asyncio.run(asyncio.wait_for(main(), 20))

    def test_time_can_be_moved(self, gantry: GantryCluster) -> None:
        """
        A message delayed by two hours arrives when the clock says so, not when we are patient.
        """
        gantry.create_topic("orders", queues=1)

        async def main() -> tuple[float, bytes]:
            async with Producer(gantry.namesrv, group="p") as producer:
                await producer.send(Message("orders", b"later", delay_level=18))
            began = time.monotonic()
            await asyncio.to_thread(gantry.clock.advance, 7201)
            async with Consumer(gantry.namesrv, group="c") as consumer:
                consumer.subscribe("orders")
                async for message in consumer:
                    await message.ack()
                    return time.monotonic() - began, message.body
            return 0.0, b""

        took, body = asyncio.run(asyncio.wait_for(main(), 30))
        assert b"later" == body
        assert took < 10

    def test_a_day_costs_an_idle_cluster_next_to_nothing(
        self, gantry: GantryCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """
        Rounds of upkeep fall together: there were 20,000 wake-ups an hour, each of which stopped
        the clock. The broker is still known afterwards, and messages come when they are due.
        """
        stops: list[float] = []
        next_stop = MovableLoop._next_stop

        def counted(loop: MovableLoop, end: float) -> float:
            stops.append(loop.time())
            return next_stop(loop, end)

        monkeypatch.setattr(MovableLoop, "_next_stop", counted)
        gantry.create_topic("orders", queues=1)

        async def main() -> list[bytes]:
            began = time.process_time()
            await gantry.clock.advance(24 * 3600)
            assert len(stops) < 3_000
            assert time.process_time() - began < 4.0  # 1 on a quiet machine; 30 before
            async with Producer(gantry.namesrv, group="p") as producer:
                for hours in (3, 1, 2):
                    await producer.send(Message("orders", f"{hours} h", delay=hours * 3600))
            await gantry.clock.advance(2.5 * 3600)
            async with Consumer(gantry.namesrv, group="c", start="first") as consumer:
                consumer.subscribe("orders")
                found = [await anext(consumer), await anext(consumer)]
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(consumer), 0.2)
                return [message.body for message in found]

        assert [b"1 h", b"2 h"] == asyncio.run(asyncio.wait_for(main(), 40))

    def test_its_clock_is_awaited_where_a_loop_runs(self, gantry: GantryCluster) -> None:
        """
        The test's own loop goes on meanwhile; without one the call waits by itself.
        """

        async def main() -> int:
            turns = 0

            async def tick() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            ticking = asyncio.create_task(tick())
            await gantry.clock.advance(3600)
            ticking.cancel()
            return turns

        before = gantry.clock.now_ms()
        assert asyncio.run(main()) > 2
        assert gantry.clock.now_ms() >= before + 3_600_000
        gantry.clock.advance(3600)
        assert gantry.clock.now_ms() >= before + 7_200_000

        async def on_its_loop() -> None:
            await gantry.clock.advance(3600)

        gantry.call(on_its_loop())
        assert gantry.clock.now_ms() >= before + 10_800_000

    def test_a_plugin_costs_other_peoples_tests_nothing(self) -> None:
        """
        Importing it loads neither the broker nor numpy.
        """
        assert [] == loaded_by("import gantrymq.testing.plugin", "gantrymq.broker.app")


class TestImports:
    def test_the_package_is_light(self) -> None:
        """
        `import gantrymq` loads no numpy, uvloop, rich or click.
        """
        assert [] == loaded_by("from gantrymq import Producer, Consumer, Message, Admin")


class TestSimulation:
    def test_a_seed_repeats_the_run_to_the_byte(self) -> None:
        """
        Ids, queues, offsets and virtual times are the same twice; another seed differs.
        """

        async def story(seed: int) -> list[Any]:
            async with Cluster(memory=True, seed=seed) as cluster:
                await cluster.create_topic("orders")
                async with cluster.producer() as producer:
                    sent = [await producer.send(Message("orders", b"%d" % n)) for n in range(20)]
                now = asyncio.get_running_loop().time()
                return [(r.queue, r.offset, r.offset_msg_id) for r in sent] + [round(now, 9)]

        first, again, other = (simulate(lambda s=seed: story(s)) for seed in (1, 1, 2))

        assert first == again
        assert first != other

    def test_hours_pass_in_milliseconds(self, gantry_sim: Callable[..., Any]) -> None:
        """
        Virtual time waits for nobody.
        """

        async def story(cluster: Cluster) -> float:
            await cluster.create_topic("orders", queues=1)
            async with cluster.producer() as producer:
                await producer.send(Message("orders", b"x", delay_level=18))
            async with cluster.consumer() as consumer:
                consumer.subscribe("orders")
                async for message in consumer:
                    await message.ack()
                    break
            return asyncio.get_running_loop().time()

        began = time.monotonic()
        assert 7200 <= gantry_sim(story) < 7300
        assert time.monotonic() - began < 20

    def test_a_wait_that_cannot_end_is_an_error(self) -> None:
        """
        Not a test that hangs.
        """

        async def forever() -> None:
            await asyncio.get_running_loop().create_future()

        with pytest.raises(Stuck):
            simulate(forever)

    def test_a_cut_network_is_survived(self, gantry_sim: Callable[..., Any]) -> None:
        """
        Every connection is lost in the middle; what was acknowledged is read all the same.
        """

        async def story(cluster: Cluster) -> set[bytes]:
            await cluster.create_topic("orders")
            acked, found = set(), set()
            async with cluster.producer() as producer:
                for number in range(60):
                    if number in (20, 40):
                        cluster.network.cut_all()  # type: ignore[attr-defined]
                    body = b"%d" % number
                    await producer.send(Message("orders", body))
                    acked.add(body)
            async with cluster.consumer() as consumer:
                consumer.subscribe("orders")
                async for message in consumer:
                    found.add(message.body)
                    await message.ack()
                    if len(found) == 30:
                        cluster.network.cut_all()  # type: ignore[attr-defined]
                    if acked <= found:
                        break
            return acked - found

        assert set() == gantry_sim(story)
