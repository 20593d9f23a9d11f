"""Metrics of a real RocketMQ 5.3.3: ours have their names, kinds and labels."""

import asyncio
from collections.abc import Iterator

import pytest
from metricskit import Page, scrape_until
from real import RealCluster

from gantrymq import Admin, Consumer, Message, Producer
from gantrymq.base.network import free_port
from gantrymq.metrics import table
from gantrymq.metrics.metric import COMMON_LABELS, ROCKETMQ

pytestmark = pytest.mark.timeout(240)

HOST = "127.0.0.1"
THEIR_OWN = {*COMMON_LABELS, "otel_scope_name", "le"}
OUR_LABELS = {"is_retry"}
"""Theirs have it on what POP gave out only, ours on all that was given out."""
LAST = "rocketmq_consumer_lag_messages", "rocketmq_send_to_dlq_messages_total"
"""Their page has these some time after the others."""


@pytest.fixture(scope="module")
def theirs() -> dict[str, tuple[str, set[str]]]:
    """Kind and own labels of each metric, by its name."""
    port = free_port(HOST)
    settings = {
        "metricsExporterType": "PROM", "metricsPromExporterHost": HOST,
        "metricsPromExporterPort": str(port),
    }  # fmt: skip
    with RealCluster("5.3.3", settings=settings) as cluster:
        page = asyncio.run(asyncio.wait_for(_use(cluster.namesrv, f"{HOST}:{port}"), 120))
    return dict(_metrics(page))


async def _use(namesrv: str, address: str) -> Page:
    """Send, consume, let one die and decide a transaction, so that there is something to tell."""
    async with Admin(namesrv) as admin:
        await admin.create_topic("orders", queues=2)
    async with (
        Producer(namesrv, group="shop") as producer,
        Consumer(namesrv, group="billing", start="first") as consumer,
    ):
        consumer.subscribe("orders")
        for _ in range(3):
            await producer.send(Message("orders", b"a book"))
        async with producer.transaction(Message("orders", b"a lamp")):
            pass
        for number in range(3):
            message = await anext(consumer)
            await (message.dead(reason="no") if number == 2 else message.ack())
        return await scrape_until(address, lambda page: all(page.has(name) for name in LAST))


def _metrics(page: Page) -> Iterator[tuple[str, tuple[str, set[str]]]]:
    """By their samples: many of their lines about kinds have the name without its unit."""
    for sample, lines in page.samples.items():
        name = next(
            (
                sample.removesuffix(end)
                for end in ("_bucket", "_sum", "_count")
                if sample.endswith(end) and f"{sample.removesuffix(end)}_bucket" in page.samples
            ),
            sample,
        )
        is_histogram = f"{name}_bucket" in page.samples
        kind = "histogram" if is_histogram else "counter" if name.endswith("_total") else "gauge"
        if name.startswith(ROCKETMQ):
            yield name, (kind, {label for labels, _ in lines for label in labels} - THEIR_OWN)


def test_what_both_have_is_the_same(theirs: dict[str, tuple[str, set[str]]]) -> None:
    """
    Dashboards and alert rules for RocketMQ find what they name.
    """
    ours = {metric.name: (metric.kind, set(metric.labels)) for metric in table.METRICS}
    both = theirs.keys() & ours.keys()
    assert len(both) > 25
    different = {
        name: (theirs[name], ours[name])
        for name in both
        if theirs[name][0] != ours[name][0] or theirs[name][1] - ours[name][1]
    }
    assert different == {}
    more = {name: ours[name][1] - theirs[name][1] for name in both}
    assert {name: labels for name, labels in more.items() if labels} == {
        table.MESSAGES_OUT.name: OUR_LABELS,
        table.THROUGHPUT_OUT.name: OUR_LABELS,
    }


def test_what_only_they_have_is_on_our_page(theirs: dict[str, tuple[str, set[str]]]) -> None:
    """
    `docs/metrics.md` says of each why it is not here.
    """
    missing = theirs.keys() - {metric.name for metric in table.METRICS}
    assert {name.removesuffix("_milliseconds") for name in missing} <= {
        name.removesuffix("_milliseconds") for name in table.LEFT_OUT
    }
