"""How the C library's allocator deals with large blocks that come and go."""

import ctypes
from contextlib import suppress
from typing import Final

M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
KEPT_BYTES_MAX: Final = 64 * 1024 * 1024
BLOCK_BYTES_MAX: Final = 32 * 1024 * 1024
"""The most that glibc takes."""


def keep_freed_memory() -> None:
    """Keep what was freed for the next large block.

    A block of a megabyte, as an answer to a pull is, goes back to the system when it is freed, and
    each of its pages costs a fault when the next one is written: a quarter of a broker's time when
    a backlog is read. Elsewhere than on glibc nothing happens.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES_MAX)
        mallopt(M_MMAP_THRESHOLD, BLOCK_BYTES_MAX)
