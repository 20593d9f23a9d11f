"""QueueProgress: the smallest unfinished offset, whatever the order in which work ends."""

from hypothesis import given
from hypothesis import strategies as st

from gantrymq.client.consume.flow_control import MIB, FlowLimits, hold_reason
from gantrymq.client.consume.queue_progress import QueueProgress


def taken(start: int, *offsets: int, size: int = 10) -> QueueProgress[str]:
    progress: QueueProgress[str] = QueueProgress(start)
    for offset in offsets:
        progress.take(offset, f"m{offset}", size)
    return progress


def test_one_open_message_holds_the_progress_back() -> None:
    """
    The progress stays at the smallest unfinished offset while later messages are finished.
    """
    progress = taken(101, *range(101, 111))

    for offset in range(102, 111):
        progress.finish(offset)

    assert progress.done == 101
    progress.finish(101)
    assert progress.done == 111


@given(
    gaps=st.lists(st.integers(1, 5), min_size=1, max_size=40),
    order=st.randoms(use_true_random=False),
    finished=st.integers(0, 40),
)
def test_everything_below_the_progress_is_finished_and_nothing_more_is_claimed(
    gaps: list[int], order: object, finished: int
) -> None:
    """
    The progress is the smallest unfinished offset, in whatever order messages are finished.
    """
    offsets = [sum(gaps[: index + 1]) for index in range(len(gaps))]
    progress = taken(0, *offsets)
    shuffled = list(offsets)
    order.shuffle(shuffled)  # type: ignore[attr-defined]

    for offset in shuffled[:finished]:
        assert progress.finish(offset)

    still_open = shuffled[finished:]
    assert progress.done == min(still_open, default=offsets[-1] + 1)
    assert progress.count == len(still_open)
    assert progress.bytes_open == 10 * len(still_open)
    assert progress.open_items == [f"m{offset}" for offset in sorted(still_open)]


def test_what_the_broker_filtered_out_counts_once_nothing_is_open() -> None:
    """
    Offsets that the broker filtered out count as finished when nothing before them is open.
    """
    progress = taken(0, 3)

    progress.skip_to(20)
    assert progress.done == 3
    progress.finish(3)

    assert progress.done == 20
    assert progress.next_offset == 20


def test_a_message_that_was_taken_before_is_not_taken_again() -> None:
    """
    An offset that was taken before is not taken again, whether it is finished or not.
    """
    progress = taken(0, 0, 1, 2)

    assert not progress.take(1, "again", 10)
    progress.finish(1)
    assert not progress.take(1, "again", 10)
    assert progress.count == 2


def test_finishing_twice_changes_nothing() -> None:
    """
    Finishing an offset a second time returns false and changes no count.
    """
    progress = taken(0, 0)

    assert progress.finish(0)
    assert not progress.finish(0)
    assert progress.bytes_open == 0


def test_the_next_delivery_keeps_the_place_of_the_first() -> None:
    """
    A second delivery of a message replaces the first at the same place.
    """
    progress = taken(0, 0, 1)

    progress.replace(0, "second try")

    assert progress.open_items == ["second try", "m1"]
    assert progress.done == 0


def test_pulling_goes_on_up_to_the_limits_and_not_beyond() -> None:
    """
    Pulling pauses above the limit of messages, of bytes or of the distance between offsets.
    """
    limits = FlowLimits(messages=2, bytes=100, span=10)

    assert hold_reason(limits, taken(0, 0, 1)) is None
    assert "3 unfinished messages" in str(hold_reason(limits, taken(0, 0, 1, 2)))
    assert "101 unfinished bytes" in str(hold_reason(limits, taken(0, 0, size=101)))
    assert hold_reason(limits, taken(0, 0, 10)) is None
    assert "11 apart" in str(hold_reason(limits, taken(0, 0, 11)))


def test_ordered_queues_have_no_span_and_the_defaults_are_rocketmqs() -> None:
    """
    An ordered queue has no limit of distance, and the defaults are RocketMQ's.
    """
    assert hold_reason(FlowLimits(span=None), taken(0, 0, 999_999)) is None
    assert FlowLimits() == (1000, 100 * MIB, 2000)
