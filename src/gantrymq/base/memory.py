"""The machine's memory: its size, and the C library's allocator for large blocks."""

import ctypes
import os
from contextlib import suppress
from typing import Final

M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
KEPT_BYTES_MAX: Final = 64 * 1024 * 1024
BLOCK_BYTES_MAX: Final = 32 * 1024 * 1024
"""The largest threshold that glibc accepts."""


def memory_bytes() -> int:
    """The size of the machine's memory; RocketMQ's 24 GiB where it cannot be known."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 24 << 30


def keep_freed_memory() -> None:
    """Keep freed memory for the next large block.

    By default a block of a megabyte, such as the answer to a pull, goes back to the system when it
    is freed, and each of its pages costs a page fault when the next block is written: a quarter of
    a broker's time while a backlog is read. Without glibc this has no effect.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES_MAX)
        mallopt(M_MMAP_THRESHOLD, BLOCK_BYTES_MAX)
