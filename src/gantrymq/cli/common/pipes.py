"""Who reads what we print may leave first: `gantry tail orders | head -1`."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def while_read() -> AsyncIterator[None]:
    """BrokenPipeError in the block as soon as nobody reads our output, not at the next line."""
    output, task = _pipe(), asyncio.current_task()
    if output is None or task is None:
        yield
        return
    loop, left = asyncio.get_running_loop(), False

    def leave() -> None:
        nonlocal left
        left = True
        loop.remove_reader(output)
        task.cancel()

    # The end of a pipe that is written to becomes readable for one reason only: an error.
    loop.add_reader(output, leave)
    try:
        yield
    except asyncio.CancelledError:
        if not left:
            raise
        task.uncancel()
        raise BrokenPipeError from None
    finally:
        loop.remove_reader(output)


def _pipe() -> int | None:
    """The descriptor of our output, if that is a pipe."""
    try:
        output = sys.stdout.fileno()
        return output if stat.S_ISFIFO(os.fstat(output).st_mode) else None
    except OSError:
        return None  # somebody put another stream in its place
