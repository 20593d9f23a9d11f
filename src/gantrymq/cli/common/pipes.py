"""Pipes on both sides of a command.

A command ends when the reader of its output ends, as in `gantry tail orders | head -1`; and while
it waits for lines of standard input, its event loop goes on.
"""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TextIO

LINE_BYTES_MAX: Final = 64 * 1024 * 1024


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
    return sys.stdout.fileno() if _is_pipe(sys.stdout) else None


async def read_lines(path: Path | None) -> AsyncIterator[bytes]:
    """The lines of a file, or of standard input, with their ends."""
    if path is not None:
        with path.open("rb") as file:
            for line in file:
                yield line
    elif not _is_pipe(sys.stdin):
        for line in sys.stdin.buffer:
            yield line
    else:
        reader = asyncio.StreamReader(LINE_BYTES_MAX)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
        )
        try:
            while line := await reader.readline():
                yield line
        finally:
            transport.close()


def _is_pipe(stream: TextIO) -> bool:
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except OSError:
        return False  # it was replaced by another stream
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
