"""What the windows of statistics cost, and that they let go of what is deleted."""

import asyncio
import time
import tracemalloc

from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.stats_windows import BLOCK_ROWS, BLOCKS_PER_TURN, StatsWindows
from gantrymq.store.writing.write_counts import WriteCounts

TOPICS, GROUPS = 200, 50
BYTES_PER_ROW_MAX = 1_400
HOLD_SECONDS_MAX = 0.005


def counted(topics: int, groups: int) -> tuple[BrokerStats, StatsWindows]:
    stats = BrokerStats(0, WriteCounts())
    for topic in range(topics):
        for group in range(groups):
            stats.get(f"topic-{topic}", f"group-{group}", 3, 300)
    return stats, StatsWindows(stats, "DefaultCluster")


def test_a_row_costs_little_however_long_it_counts() -> None:
    """
    Ten thousand pairs that all count for thirty hours take 1.2 kB each, 100,000 take 120 MB.
    """

    async def main() -> None:
        stats, windows = counted(TOPICS, GROUPS)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for hour in range(30):
            for row in stats.group_get.values():
                row[0] += 1_000_000
            await windows.sample(hour * 3600.0)
        used = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert used / (TOPICS * GROUPS) < BYTES_PER_ROW_MAX

    asyncio.run(main())


def test_sampling_lets_the_loop_run_in_between() -> None:
    """
    100,000 rows never hold the loop for 5 ms of its own time; the best of some rounds counts.
    """

    async def longest_hold(windows: StatsWindows, now: float) -> float:
        holds, over = [0.0], False

        async def beat() -> None:
            last = time.thread_time()
            while not over:
                await asyncio.sleep(0)
                now = time.thread_time()
                holds.append(now - last)
                last = now

        beating = asyncio.create_task(beat())
        await asyncio.sleep(0)
        await windows.sample(now)
        over = True
        await beating
        assert len(holds) > 100_000 // (BLOCK_ROWS * BLOCKS_PER_TURN)
        return max(holds)

    async def main() -> None:
        _, windows = counted(1000, 100)
        rounds = [await longest_hold(windows, 3600.0 * number) for number in range(6)]
        assert min(rounds) < HOLD_SECONDS_MAX
        found = windows.view("GROUP_GET_NUMS", "topic-999@group-99")
        assert found is not None
        assert 3 == found.stats_day.sum

    asyncio.run(main())


def test_the_place_of_what_is_deleted_is_used_again() -> None:
    """
    A thousand topics that come and go leave nothing behind, and new ones begin at zero.
    """

    async def main() -> None:
        stats, windows = counted(0, 0)
        for number in range(1000):
            topic = f"topic-{number}"
            stats.put(topic, 5, 500)
            stats.get(topic, "g", 5, 500)
            stats.back(topic, "g")
            stats.wait_for_disk(topic, "g", 0, 7)
            await windows.sample(number * 10.0)
            latency = windows.view("GROUP_GET_LATENCY", f"0@{topic}@g")
            assert latency is not None
            assert (7, 7.0) == (latency.stats_minute.sum, latency.stats_minute.avgpt)
            seen = windows.view("TOPIC_PUT_NUMS", topic)
            assert seen is not None
            assert 5 == seen.stats_minute.sum
            windows.forget_topic(topic)
            assert None is windows.view("TOPIC_PUT_NUMS", topic)
        assert 1 == len(windows._blocks)
        assert not any(stats.rows.values())

    asyncio.run(main())


def test_a_row_that_is_deleted_before_its_first_sample_is_not_kept() -> None:
    """
    A topic may come and go between two samples, and come again.
    """

    async def main() -> None:
        stats, windows = counted(0, 0)
        stats.put("orders", 5, 500)
        windows.forget_topic("orders")
        stats.put("orders", 1, 100)
        await windows.sample(10.0)
        found = windows.view("TOPIC_PUT_NUMS", "orders")
        assert found is not None
        assert 1 == found.stats_minute.sum
        assert 2 == len(windows._slots)

    asyncio.run(main())


def test_a_group_that_reads_from_memory_has_waited_for_nothing() -> None:
    """
    Its latency is told as zero; that of a group that never read is not told.
    """
    stats, windows = counted(1, 1)
    found = windows.view("GROUP_GET_LATENCY", "0@topic-0@group-0")
    assert found is not None
    assert 0 == found.stats_minute.sum
    assert None is windows.view("GROUP_GET_LATENCY", "0@topic-0@nobody")
    assert None is windows.view("GROUP_GET_LATENCY", "x@topic-0@group-0")
    assert 1 == len(stats.new_rows)
