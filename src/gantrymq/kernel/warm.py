"""Reading many stretches of a file at once, as far as memory has them: the readable twin."""

import os
from collections.abc import Sequence


def read_warm(fd: int, runs: Sequence[tuple[int, int]], base: int) -> bytes | None:
    """The stretches (offset and length) one behind the other; offsets count from `base`.

    None when anything is in the way: the disk would have to be waited for, the file ends, the file
    system does not know how to tell. Whoever gets None asks in another way, which says what it is.
    """
    if not hasattr(os, "RWF_NOWAIT") or any(at < base or size < 0 for at, size in runs):
        return None  # offset -1 would mean wherever the file was read last
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
