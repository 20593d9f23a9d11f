"""Marks that only rise, and who waits for them."""

from gantrymq.base.watermark import Watermark


def test_who_no_longer_waits_is_forgotten_although_the_mark_stands_still() -> None:
    """
    An idle queue is asked for ever: every question that was withdrawn must leave nothing behind.
    """
    mark, called = Watermark(5), []
    kept = mark.park(7, lambda: called.append("kept"))
    for _ in range(10_000):
        mark.park(6, lambda: called.append("withdrawn")).cancel()
    assert (1, True) == (mark.waiting, len(mark._waiting) < 100)
    mark.advance(7)
    assert (["kept"], 0, []) == (called, mark.waiting, mark._waiting)
    kept.cancel()
    assert 0 == mark._withdrawn


def test_a_callback_may_withdraw_and_park_others() -> None:
    """
    All in one rise of the mark: what it has reached is called at once, and each only once.
    """
    mark, called = Watermark(), []
    others = [mark.park(2, lambda: called.append("other")) for _ in range(100)]

    def first() -> None:
        called.append("first")
        for other in others:
            other.cancel()
        mark.park(3, lambda: called.append("third"))
        mark.park(1, lambda: called.append("at once")).cancel()

    mark.park(1, first)
    mark.park(2, lambda: called.append("second"))
    mark.advance(3)
    assert ["first", "third", "at once", "second"] == called
    assert (0, []) == (mark._withdrawn, mark._waiting)
