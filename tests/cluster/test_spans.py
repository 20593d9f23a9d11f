"""Spans of OpenTelemetry: a send and what consumers do with its message are one trace."""

import asyncio

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from peer import Run

from gantrymq import Message
from gantrymq.base.errors import GantryError
from gantrymq.client.messages.delivery import Delivery
from gantrymq.testing.cluster import Cluster

EXPORTER = InMemorySpanExporter()
SECONDS_MAX = 60


@pytest.fixture(scope="module", autouse=True)
def provider() -> None:
    """The program's provider, which can be set once: that of the guide's program, if it ran."""
    found = trace.get_tracer_provider()
    if not isinstance(found, TracerProvider):
        found = TracerProvider()
        trace.set_tracer_provider(found)
    found.add_span_processor(SimpleSpanProcessor(EXPORTER))


def spans(kind: SpanKind) -> list[ReadableSpan]:
    return [span for span in EXPORTER.get_finished_spans() if span.kind is kind]


def trace_id(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.trace_id


def test_a_send_and_its_consumption_share_a_trace(run: Run) -> None:
    """
    The handler's span is a child of the send's, which is a child of the program's; what the handler
    sends is in the same trace.
    """

    async def work(cluster: Cluster) -> None:
        EXPORTER.clear()
        await cluster.create_topic("orders", 1)
        await cluster.create_topic("bills", 1)
        done = asyncio.Event()
        async with (
            cluster.producer("shop", spans=True) as producer,
            cluster.consumer("billing", start="first", spans=True, trace=True) as consumer,
        ):

            @consumer.handler
            async def handle(message: Delivery) -> None:
                await producer.send(Message("bills", b"y"))
                done.set()

            consumer.subscribe("orders", "paid")
            with trace.get_tracer("test").start_as_current_span("checkout") as checkout:
                sent = await producer.send(Message("orders", b"xyz", tags="paid", keys=["k1"]))
            async with asyncio.timeout(SECONDS_MAX):
                await done.wait()
        first, second = spans(SpanKind.PRODUCER)
        (consumed,) = spans(SpanKind.CONSUMER)
        assert first.parent == checkout.get_span_context()
        assert ("send orders", "process orders", "send bills") == (
            first.name, consumed.name, second.name,
        )  # fmt: skip
        assert consumed.parent is not None
        assert second.parent is not None
        assert first.context is not None
        assert consumed.context is not None
        assert first.context.span_id == consumed.parent.span_id
        assert consumed.context.span_id == second.parent.span_id
        assert {trace_id(first)} == {trace_id(consumed), trace_id(second)}
        assert {
            "messaging.system": "rocketmq",
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.destination.name": "orders",
            "messaging.destination.partition.id": "broker-a-0",
            "messaging.consumer.group.name": "billing",
            "messaging.message.id": sent.msg_id,
            "messaging.message.body.size": 3,
            "messaging.rocketmq.message.reconsume_times": 0,
            "messaging.rocketmq.message.finished": "ack",
            "messaging.rocketmq.message.tag": "paid",
            "messaging.rocketmq.message.keys": ("k1",),
        } == dict(consumed.attributes or {})

    run(work)


def test_a_retry_is_a_span_of_its_own_with_a_link_to_the_send(run: Run) -> None:
    """The failed attempt says why; both are in the trace of the send."""

    async def work(cluster: Cluster) -> None:
        EXPORTER.clear()
        await cluster.create_topic("orders", 1)
        done = asyncio.Event()
        async with (
            cluster.producer("shop", spans=True) as producer,
            cluster.consumer("billing", start="first", spans=True, ordered=True) as consumer,
        ):

            @consumer.handler
            async def handle(message: Delivery) -> None:
                if message.reconsume_times == 0:
                    raise ValueError("no address")
                done.set()

            consumer.subscribe("orders")
            await producer.send(Message("orders", b"x"))
            async with asyncio.timeout(SECONDS_MAX):
                await done.wait()
        (sent,) = spans(SpanKind.PRODUCER)
        failed, again = spans(SpanKind.CONSUMER)
        assert (StatusCode.ERROR, StatusCode.UNSET) == (failed.status.status_code,
                                                        again.status.status_code)  # fmt: skip
        assert (failed.attributes or {})["error.type"] in ("ValueError", "retry")
        for number, span in enumerate((failed, again)):
            assert trace_id(sent) == trace_id(span)
            assert sent.context is not None
            assert [sent.context.span_id] == [link.context.span_id for link in span.links]
            assert number == (span.attributes or {})["messaging.rocketmq.message.reconsume_times"]

    run(work)


def test_messages_of_a_batch_carry_the_span_of_its_send(run: Run) -> None:
    """One span for the send, and one for each message that a handler gets in a list."""

    async def work(cluster: Cluster) -> None:
        EXPORTER.clear()
        await cluster.create_topic("orders", 1)
        left = 3
        done = asyncio.Event()
        async with (
            cluster.producer("shop", spans=True) as producer,
            cluster.consumer("billing", start="first", spans=True) as consumer,
        ):

            @consumer.handler(batch=3)
            async def handle(messages: list[Delivery]) -> None:
                nonlocal left
                left -= len(messages)
                if left == 0:
                    done.set()

            consumer.subscribe("orders")
            await producer.send_batch([Message("orders", b"x") for _ in range(3)])
            async with asyncio.timeout(SECONDS_MAX):
                await done.wait()
        (sent,) = spans(SpanKind.PRODUCER)
        consumed = spans(SpanKind.CONSUMER)
        assert 3 == (sent.attributes or {})["messaging.batch.message_count"]
        assert 3 == len(consumed)
        assert {trace_id(sent)} == {trace_id(span) for span in consumed}

    run(work)


def test_every_way_to_send_ends_its_span(run: Run) -> None:
    """With its error when it fails; without `spans` there are none, and no property is added."""

    async def work(cluster: Cluster) -> None:
        EXPORTER.clear()
        await cluster.create_topic("orders", 1)
        async with cluster.producer("shop", spans=True) as producer:
            await producer.submit(Message("orders", b"a"))
            await producer.send_oneway(Message("orders", b"b"))
            async with producer.transaction(Message("orders", b"c")):
                pass
            with pytest.raises(GantryError):
                await producer.send(Message("orders", b"x" * 5_000_000))
        assert [None, None, None, "MessageRefused"] == [
            (span.attributes or {}).get("error.type") for span in spans(SpanKind.PRODUCER)
        ]
        EXPORTER.clear()
        await cluster.create_topic("plain", 1)
        async with (
            cluster.producer("plain") as producer,
            cluster.consumer("g", start="first") as consumer,
        ):
            consumer.subscribe("plain")
            await producer.send(Message("plain", b"x"))
            assert "traceparent" not in (await anext(consumer)).properties
        assert () == EXPORTER.get_finished_spans()

    run(work)
