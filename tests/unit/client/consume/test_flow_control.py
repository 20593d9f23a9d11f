"""How many messages pulls ask for."""

import pytest

from gantrymq.client.consume.flow_control import FlowLimits, next_pull_size, pull_size
from gantrymq.client.consume.queue_progress import QueueProgress


def test_a_backlog_is_read_in_larger_and_larger_pulls() -> None:
    """
    Up to eight times the first one; an answer that is not full begins anew.
    """
    sizes = [32]
    for _ in range(5):
        sizes.append(next_pull_size(32, sizes[-1], sizes[-1]))
    assert sizes == [32, 64, 128, 256, 256, 256]
    assert next_pull_size(32, 256, 255) == 32
    assert next_pull_size(32, 32, 40) == 64


@pytest.mark.parametrize(
    "limits, asked",
    [
        (FlowLimits(), 256),
        (FlowLimits(messages=150), 50),
        (FlowLimits(messages=99), 32),
        (FlowLimits(bytes=15_000), 50),
        (FlowLimits(span=149), 50),
        (FlowLimits(span=None), 256),
    ],
)
def test_a_pull_asks_for_what_there_is_room_for(limits: FlowLimits, asked: int) -> None:
    """
    In messages, bytes and span, of a queue that holds 100 messages of 100 bytes; and for as many
    as the first time where that is more.
    """
    progress: QueueProgress[None] = QueueProgress(0)
    for offset in range(100):
        progress.take(offset, None, 100)

    assert pull_size(limits, progress, 32, 256) == asked
    assert pull_size(limits, progress, 32, 0) == 32
