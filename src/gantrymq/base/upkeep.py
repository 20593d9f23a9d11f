"""Pauses between rounds of upkeep: flushing, saving, scanning, registering.

A round may be late without harm, unlike a time-out or a delayed message. On an ordinary event loop
these are plain timers. A loop in virtual time (`gantrymq.testing`) may merge rounds of an idle
server, so that a simulated day passes quickly.
"""

import asyncio
from collections.abc import Callable
from typing import Any


def call_at(when: float, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
    """Like the loop's own `call_at`, for upkeep."""
    loop = asyncio.get_running_loop()
    handle = loop.call_at(when, callback, *args)
    note = getattr(loop, "note_upkeep", None)
    if note is not None:
        note(handle)
    return handle


async def pause(seconds: float) -> None:
    """Sleep until the next round."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    handle = call_at(loop.time() + seconds, _end, over)
    try:
        await over
    except asyncio.CancelledError:
        handle.cancel()
        raise


def _end(over: "asyncio.Future[None]") -> None:
    if not over.done():
        over.set_result(None)
