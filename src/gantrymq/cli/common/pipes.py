"""End a command when the reader of its output ends, as in `gantry tail orders | head -1`."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def while_read() -> AsyncIterator[None]:
    """Raise BrokenPipeError in the block as soon as the reader ends, not at the next line."""
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

    # The write end of a pipe becomes readable only when the read end is closed.
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
    """The descriptor of stdout, if it is a pipe."""
    try:
        output = sys.stdout.fileno()
        return output if stat.S_ISFIFO(os.fstat(output).st_mode) else None
    except OSError:
        return None  # stdout was replaced by another stream
