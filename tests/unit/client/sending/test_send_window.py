"""The window of a producer, in virtual time."""

import asyncio

from gantrymq.client.sending.send_window import SendWindow
from gantrymq.testing import simulate


def test_a_send_that_leaves_lets_one_waiter_in() -> None:
    """
    Of two callers that wait for room, the first goes on when one send ends, the second when all do.
    """

    async def story() -> None:
        window = SendWindow(2, 1_000)
        window.enter(1)
        window.enter(1)
        first, second = (asyncio.create_task(window.room()) for _ in range(2))
        await asyncio.sleep(1)
        assert not first.done()
        window.leave(1)
        window.enter(1)  # before the woken waiter runs: it waits again
        await asyncio.sleep(1)
        assert (False, False) == (first.done(), second.done())
        window.leave(1)
        await asyncio.sleep(1)
        assert 1 == first.done() + second.done()
        window.leave(1)
        await asyncio.gather(first, second)

    simulate(story)


def test_bytes_fill_the_window_as_well_as_messages() -> None:
    """
    The window is full by either limit, and idle only when nothing is pending.
    """

    async def story() -> None:
        window = SendWindow(10, 100)
        window.enter(60)
        assert not window.full
        window.enter(60)
        assert window.full
        idle = asyncio.create_task(window.idle())
        window.leave(60)
        await asyncio.sleep(1)
        assert (False, False) == (window.full, idle.done())
        window.leave(60)
        await idle
        await window.idle()

    simulate(story)
