"""When pulls pause: a slow handler must not fill the memory."""

from typing import Any, NamedTuple

from gantrymq.client.consume.queue_progress import QueueProgress

MIB = 1024 * 1024


class FlowLimits(NamedTuple):
    """How much one process queue may hold unfinished before its pulls pause."""

    messages: int = 1000
    bytes: int = 100 * MIB
    span: int | None = 2000
    """How far a finished message may be ahead of an unfinished one; ordered queues have none."""


def hold_reason(limits: FlowLimits, progress: QueueProgress[Any]) -> str | None:
    """Why pulls of a queue should pause; None when they should not."""
    if progress.count > limits.messages:
        return f"{progress.count} unfinished messages (limit {limits.messages})"
    if progress.bytes_open > limits.bytes:
        return f"{progress.bytes_open} unfinished bytes (limit {limits.bytes})"
    if limits.span is not None and progress.span > limits.span:
        return f"offsets {progress.span} apart (limit {limits.span})"
    return None
