"""When pulls pause: a slow handler must not fill the memory."""

from typing import Any, Final, NamedTuple

from gantrymq.client.consume.queue_progress import QueueProgress

MIB = 1024 * 1024


PULL_GROWTH_MAX: Final = 8
"""The largest pull, as a multiple of the first one."""


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


def next_pull_size(first: int, asked: int, found: int) -> int:
    """How many messages the next pull of a queue should ask for.

    Twice as many behind a full answer, up to a limit: a backlog is read in few large pulls. As many
    as the first time behind any other answer.
    """
    return min(2 * asked, PULL_GROWTH_MAX * first) if found >= asked else first


def pull_size(limits: FlowLimits, progress: QueueProgress[Any], first: int, wanted: int) -> int:
    """What of it is asked for: no more than there is room for, but always as many as the first
    time."""
    room = limits.messages - progress.count
    if progress.bytes_open:
        bytes_left = limits.bytes - progress.bytes_open
        room = min(room, bytes_left * progress.count // progress.bytes_open)
    if limits.span is not None:
        room = min(room, limits.span - progress.span)
    return max(first, min(wanted, room))
