# Stretches of a file from memory: the compiled twin of warm.py. Included by _fast.pyx.


def read_warm(int fd, object runs not None, int64_t base):
    """The stretches one behind the other, or None; see `warm.read_warm`."""
    cdef int64_t position, size, total = 0
    for position, size in runs:
        if size < 0 or position < base:
            return None
        total += size
    cdef bytes whole = PyBytes_FromStringAndSize(NULL, total)
    cdef char *at = PyBytes_AS_STRING(whole)
    for position, size in runs:
        if gq_read_warm(fd, at, size, position - base) != size:
            return None
        at += size
    return whole
