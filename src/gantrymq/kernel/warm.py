"""Reading many stretches of a file from the page cache at once: the readable twin."""

import os
from collections.abc import Sequence


def read_warm(fd: int, runs: Sequence[tuple[int, int]], base: int) -> bytes | None:
    """The stretches (offset and length), joined; offsets count from `base`.

    None if a read would wait for the disk, the file ends, or the file system does not support it.
    The caller then reads in another way, which reports the cause.
    """
    if not hasattr(os, "RWF_NOWAIT") or any(at < base or size < 0 for at, size in runs):
        return None  # offset -1 would mean the file's own position
    whole = memoryview(bytearray(sum(size for _, size in runs)))
    at = 0
    for position, size in runs:
        try:
            got = os.preadv(fd, [whole[at : at + size]], position - base, os.RWF_NOWAIT)
        except OSError:
            return None
        if got != size:
            return None
        at += size
    return bytes(whole)
