"""Settings whose effect stands in logs and metrics."""

import logging

from effects import Trial, effect
from logkit import loggers_restored

from gantrymq.metrics import table
from gantrymq.metrics.metric import Row

UPDATE_CONSUMER_OFFSET = 15


@effect("logLevel")
async def lines_are_written_from_a_level_on(trial: Trial) -> None:
    """Those of all parts that have no level of their own."""
    with loggers_restored():
        part = logging.getLogger("gantrymq.store.engine")
        found = []
        for value in ("WARNING", "DEBUG", "info"):
            await trial.change(logLevel=value)
            found.append(part.getEffectiveLevel())
    assert [logging.WARNING, logging.DEBUG, logging.INFO] == found


@effect("logLevels")
async def parts_have_levels_of_their_own(trial: Trial) -> None:
    """As long as they are named."""
    with loggers_restored():
        store, remoting = (logging.getLogger(f"gantrymq.{name}") for name in ("store", "remoting"))
        found = []
        for value in ("store:DEBUG,remoting:ERROR", "remoting:ERROR", "remoting:WARN"):
            await trial.change(logLevel="INFO", logLevels=value)
            found.append((store.getEffectiveLevel(), remoting.getEffectiveLevel()))
    assert [
        (logging.DEBUG, logging.ERROR),
        (logging.INFO, logging.ERROR),
        (logging.INFO, logging.WARNING),
    ] == found


@effect("metricsLagPerQueue")
async def the_lag_of_each_queue_is_told(trial: Trial) -> None:
    """From the next collection on."""
    await trial.create("orders", queues=2)
    await trial.peer.heartbeat("c1", "billing", "orders")
    for queue in (0, 1, 1):
        assert 0 == (await trial.peer.send("orders", b"x", queue=queue)).code
    for queue in (0, 1):
        await trial.peer.call(
            UPDATE_CONSUMER_OFFSET,
            consumerGroup="billing", topic="orders", queueId=queue, commitOffset=0,
        )  # fmt: skip
    found = []
    for value in (False, True):
        await trial.change(metricsLagPerQueue=value)
        found.append({labels[-1]: lag for labels, lag in await _queue_lags(trial)})
    assert [{}, {"0": 1, "1": 2}] == found


async def _queue_lags(trial: Trial) -> list[Row]:
    return [
        row
        for collect in trial.cluster.broker().collectors
        async for metric, rows in collect()
        for row in rows
        if metric is table.QUEUE_LAG
    ]
