"""Spans of OpenTelemetry for sends and consumptions, by its conventions for messaging.

Off by default; `spans=True` of a producer or a consumer switches them on, and needs the extra
`otel`. Spans go to the tracer provider that the program has set. The context of a send travels in
the properties `traceparent` and `tracestate` of its message, so that what a consumer does is in the
same trace, also when it is a retry, and in whatever language it is written.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from gantrymq.base.errors import ConfigError
from gantrymq.client.messages.delivery import Delivery
from gantrymq.client.sending.send_request import PreparedMessage
from gantrymq.model import Message, Queue, SendResult

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

    from gantrymq.client.messages.delivery import TracedAttempt
    from gantrymq.client.sending.trace_sink import HandOutSink

SYSTEM: Final = "rocketmq"


class Spans:
    """Makes the spans of one producer or consumer."""

    def __init__(self, group: str) -> None:
        try:
            from opentelemetry import context, trace
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        except ImportError:
            raise ConfigError("spans=True needs the extra: pip install 'gantrymq[otel]'") from None
        self._group, self._api, self._contexts = group, trace, context
        self._open: dict[str, Span] = {}
        """Spans of sends that are prepared and not yet under way."""
        self._tracer = trace.get_tracer("gantrymq")
        self._propagator = TraceContextTextMapPropagator()

    # sending

    def prepared(
        self, messages: Sequence[Message], prepare: Callable[[list[Message]], PreparedMessage]
    ) -> PreparedMessage:
        """Begin the span of a send, and prepare its messages with the span's context."""
        span = self._tracer.start_span(
            f"send {messages[0].topic}",
            kind=self._api.SpanKind.PRODUCER,
            attributes=self._of_messages(messages),
        )
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, self._api.set_span_in_context(span))
        try:
            found = prepare(
                [each.replace(properties=each.properties | carrier) for each in messages]
            )
        except Exception as error:
            self.fail(span, error)
            raise
        if not found.batch:
            span.set_attribute("messaging.message.id", found.msg_id)
        self._open[found.msg_id] = span
        return found

    def pending(self, prepared: PreparedMessage, future: "asyncio.Future[SendResult]") -> None:
        """End the span of a prepared send with its future."""
        span = self._open.pop(prepared.msg_id)
        future.add_done_callback(lambda done: self._sent(span, done))

    async def oneway(self, sending: Awaitable[None], future: "asyncio.Future[Any]") -> None:
        """Settle the future of a send that has no answer."""
        try:
            await sending
        except Exception as error:
            future.set_exception(error)
            raise
        future.set_result(None)

    def _of_messages(self, messages: Sequence[Message]) -> dict[str, Any]:
        first = messages[0]
        found: dict[str, Any] = {
            "messaging.system": SYSTEM,
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
            "messaging.destination.name": first.topic,
            "messaging.rocketmq.producer_group": self._group,
        }
        if len(messages) > 1:
            return found | {"messaging.batch.message_count": len(messages)}
        found["messaging.message.body.size"] = len(first.body)
        if first.tags:
            found["messaging.rocketmq.message.tag"] = first.tags
        if first.keys:
            found["messaging.rocketmq.message.keys"] = tuple(first.keys)
        if first.delay_level:
            found["messaging.rocketmq.message.delay_time_level"] = first.delay_level
        return found

    def _sent(self, span: "Span", done: "asyncio.Future[Any]") -> None:
        if done.cancelled():
            self.fail(span, asyncio.CancelledError())
            return
        error = done.exception()
        if error is not None:
            self.fail(span, error)
            return
        result = done.result()
        if isinstance(result, SendResult):
            span.set_attribute("messaging.destination.partition.id", _place(result.queue))
        span.end()

    def fail(self, span: "Span", error: BaseException) -> None:
        """End a span with an error."""
        span.set_attribute("error.type", type(error).__name__)
        span.set_status(self._api.Status(self._api.StatusCode.ERROR, str(error)))
        span.end()

    # consuming

    def of_consume(self, message: Delivery) -> "Span":
        """A span for one delivery, in the trace of its send and linked to it."""
        parent = self._context_of(message.properties)
        origin = self._api.get_current_span(parent).get_span_context()
        return self._tracer.start_span(
            f"process {message.topic}",
            context=parent,
            kind=self._api.SpanKind.CONSUMER,
            links=[self._api.Link(origin)] if origin.is_valid else [],
            attributes=self._of_delivery(message),
        )

    def _context_of(self, properties: Mapping[str, str]) -> "Context":
        return self._propagator.extract(dict(properties))

    def _of_delivery(self, message: Delivery) -> dict[str, Any]:
        found: dict[str, Any] = {
            "messaging.system": SYSTEM,
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.destination.name": message.topic,
            "messaging.destination.partition.id": _place(message.queue),
            "messaging.consumer.group.name": self._group,
            "messaging.message.id": message.msg_id,
            "messaging.message.body.size": len(message.body),
            "messaging.rocketmq.message.reconsume_times": message.reconsume_times,
        }
        if message.tags:
            found["messaging.rocketmq.message.tag"] = message.tags
        if message.keys:
            found["messaging.rocketmq.message.keys"] = tuple(message.keys)
        return found

    def ended(self, span: "Span", message: Delivery) -> None:
        """End the span of a delivery that is finished."""
        how = message.finished or ""
        span.set_attribute("messaging.rocketmq.message.finished", how)
        if how != "ack":
            failure = message.failure
            error = failure.error if failure is not None else ""
            span.set_attribute("error.type", error or how)
            why = (failure.text or failure.reason) if failure is not None else ""
            span.set_status(self._api.Status(self._api.StatusCode.ERROR, why or how))
        span.end()

    def enter(self, span: "Span") -> "Context":
        """Make a span the current one of this task; returns the context that was before."""
        before = self._contexts.get_current()
        self._contexts.attach(self._api.set_span_in_context(span))
        return before

    def leave(self, span: "Span", before: "Context") -> None:
        """Return to the context that was before, if the span is still the current one."""
        if self._api.get_current_span() is span:
            self._contexts.attach(before)


class ConsumeSpans:
    """Gives each delivery its span. While a handler works at one message, its span is current."""

    def __init__(self, spans: Spans, trace: "HandOutSink | None") -> None:
        """`trace` writes RocketMQ's own trace besides."""
        self._spans, self._trace = spans, trace

    def handed_out(self, messages: Sequence[Delivery]) -> None:
        if self._trace is not None:
            self._trace.handed_out(messages)
        for message in messages:
            span = self._spans.of_consume(message)
            # Called in the task that works at the messages; of several none is the current one.
            before = self._spans.enter(span) if len(messages) == 1 else None
            message.attempt = _SpannedAttempt(self._spans, span, before, message.attempt)


class _SpannedAttempt:
    def __init__(
        self, spans: Spans, span: "Span", before: "Context | None", inner: "TracedAttempt | None"
    ) -> None:
        self._spans, self._span, self._before, self._inner = spans, span, before, inner

    def ended(self, message: Delivery) -> None:
        if self._inner is not None:
            self._inner.ended(message)
        self._spans.ended(self._span, message)
        if self._before is not None:
            self._spans.leave(self._span, self._before)


def _place(queue: Queue) -> str:
    return f"{queue.broker_name}-{queue.queue_id}"
