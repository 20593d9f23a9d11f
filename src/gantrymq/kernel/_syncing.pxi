# The thread that syncs files: the compiled twin of syncing.py. Included by _fast.pyx.


cdef class SyncThread:
    """Syncs the files named in `requests` and tells `replies`; see `syncing.SyncThread`."""

    cdef gq_syncing _syncing
    cdef bint _joined

    def __init__(self, int requests, int replies) -> None:
        self._syncing.requests, self._syncing.replies = requests, replies
        self._joined = True
        cdef int failed = gq_sync_start(&self._syncing)
        if failed:
            raise OSError(failed, os.strerror(failed))
        self._joined = False
        Py_INCREF(self)  # the thread reads its pipes' numbers from here until it is joined

    def join(self) -> None:
        """Wait until the thread has ended, which it does when `requests` is closed."""
        if not self._joined:
            self._joined = True
            with nogil:
                gq_sync_join(&self._syncing)
            Py_DECREF(self)
