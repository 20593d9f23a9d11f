"""A collection leaves the event loop to clients, and one failure does not hide the others."""

import asyncio
import logging

import pytest

from gantrymq.base.telemetry_settings import TelemetrySettings
from gantrymq.metrics import table
from gantrymq.metrics.growth import Growth, Seen
from gantrymq.metrics.metric import Metric, Samples
from gantrymq.metrics.scrape import MetricsSource

SLOW = Metric("slow", "gauge", "Takes its time", ("n",))
STEPS, STEP_SECONDS = 40, 0.002


async def steps() -> Samples:
    """Works 80 ms in all, as a broker with thousands of topics does."""
    loop = asyncio.get_running_loop()
    for n in range(STEPS):
        until = loop.time() + STEP_SECONDS
        while loop.time() < until:
            pass
        yield SLOW, [((str(n),), 1)]


async def broken() -> Samples:
    yield table.TOPIC_NUMBER, [((), 7)]
    raise OSError("no such disk")


def test_other_work_runs_between_the_steps_of_a_collection() -> None:
    """Each step is one turn of the loop."""

    async def work() -> tuple[int, str]:
        source = MetricsSource(TelemetrySettings(), {}, lambda: (steps,))
        turns, done = 0, asyncio.ensure_future(source.text())
        while not done.done():
            turns += 1
            await asyncio.sleep(0)
        return turns, b"".join(done.result()).decode()

    turns, text = asyncio.run(work())
    assert turns >= STEPS
    assert STEPS == text.count("slow{")
    assert 'gantrymq_scrape_seconds{part="longest_turn"}' in text


def test_what_fails_is_logged_and_the_rest_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """The samples that the failing collector gave before are kept."""

    async def work() -> str:
        source = MetricsSource(TelemetrySettings(), {}, lambda: (broken, steps))
        return b"".join(await source.text()).decode()

    text = asyncio.run(work())
    assert "rocketmq_topic_number 7" in text
    assert "slow{" in text
    assert "some metrics could not be collected" in caplog.text


def test_too_many_series_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """With the number, and the setting that allows more."""
    settings = TelemetrySettings(metrics_otel_cardinality_limit=5)

    async def work() -> None:
        source = MetricsSource(settings, {}, lambda: (steps,))
        for _ in range(3):
            await source.text()

    with caplog.at_level(logging.WARNING):
        asyncio.run(work())
    assert ["slow has 35 series more than metricsOtelCardinalityLimit (5): they are left out"] == [
        record.getMessage() for record in caplog.records
    ]


def test_a_switch_leaves_its_metrics_out() -> None:
    """Those of other switches stay."""

    async def work() -> str:
        settings = TelemetrySettings(enable_stats_metrics=False, metrics_label="zone:north")
        source = MetricsSource(settings, {"node_id": "a"}, lambda: (broken, lags))
        return b"".join(await source.text()).decode()

    async def lags() -> Samples:
        yield table.DEAD, [(("g", "t", "false"), 2)]

    assert [
        'rocketmq_send_to_dlq_messages_total{zone="north",node_id="a",consumer_group="g",'
        'topic="t",is_system="false"} 2'
    ] == [line for line in asyncio.run(work()).splitlines() if not line.startswith("#")]


def test_growth_is_told_from_what_was_told_before() -> None:
    """A push that failed is made up for by the next one; who fell has begun anew."""
    growth, found = Growth(), []
    for value, arrives in ((5, True), (8, False), (9, True), (2, True)):
        seen = Seen()
        found.append(growth.of(table.SEND_FAILED, ((), value), seen)[1])
        if arrives:
            growth.keep(seen)

    assert [5, 3, 4, 2] == found
