"""Alarms: they begin with their first round, last while a round has them, and end."""

from gantrymq.client.admin.monitoring.monitor_round import MonitorRound, Problem
from gantrymq.console.clusters import Clusters
from gantrymq.console.sampling.alarms import AlarmWatch
from gantrymq.testing.loop import simulate

STUCK = Problem("stuck", "billing", "orders:0 is stuck for 60 s")
STILL_STUCK = Problem("stuck", "billing", "orders:0 is stuck for 120 s")
OTHER = Problem("stuck", "billing", "orders:1 is stuck for 60 s")
WAITING = Problem("waiting", "audit", "20000 wait", 20_000, 10_000)


def test_alarms_begin_last_and_end() -> None:
    """An alarm keeps its begin while its text changes, and is among those that are over later."""

    async def work() -> AlarmWatch:
        watch = AlarmWatch("test", Clusters(()))
        for number, problems in enumerate(
            ([STUCK, WAITING], [STILL_STUCK, OTHER], [STILL_STUCK]), 1
        ):
            await watch.note(MonitorRound(number, number * 1000), problems)
        return watch

    watch = simulate(work)

    assert [(STILL_STUCK, 1000, None)] == [
        (each.problem, each.since_ms, each.until_ms) for each in watch.alarms
    ]
    assert [(WAITING, 1000, 2000), (OTHER, 2000, 3000)] == [
        (each.problem, each.since_ms, each.until_ms) for each in watch.ended
    ]
    assert 3000 == watch.at_ms
