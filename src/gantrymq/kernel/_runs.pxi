# Queue entries from records: the compiled twin of runs.py. Included by _fast.pyx.


def entry_runs(list records not None):
    """Entries of neighbours that follow each other in one queue; see `runs.entry_runs`."""
    cdef list runs = []
    cdef Py_ssize_t at = 0, start, count = len(records)
    cdef tuple record, first
    cdef bytes topic, entries
    cdef int64_t queue_id, queue_offset, kind
    cdef uint8_t *to
    while at < count:
        record = records[at]
        kind = <int64_t>record[5] & TRANSACTION_BITS
        if kind == TRANSACTION_PREPARED or kind == TRANSACTION_ROLLBACK:
            at += 1
            continue
        start, first = at, record
        topic, queue_id, queue_offset = first[0], first[1], first[2]
        at += 1
        while at < count:
            record = records[at]
            kind = <int64_t>record[5] & TRANSACTION_BITS
            if (
                <int64_t>record[2] != queue_offset + at - start or <int64_t>record[1] != queue_id
                or kind == TRANSACTION_PREPARED or kind == TRANSACTION_ROLLBACK
                or (record[0] is not topic and <bytes>record[0] != topic)
            ):
                break
            at += 1
        entries = PyBytes_FromStringAndSize(NULL, (at - start) * ENTRY_BYTES)
        to = <uint8_t *>PyBytes_AS_STRING(entries)
        for record in records[start:at]:
            gq_store64(to, <uint64_t><int64_t>record[3])
            gq_store32(to + 8, <uint32_t><int32_t>record[4])
            gq_store64(to + 12, <uint64_t><int64_t>record[6])
            to += ENTRY_BYTES
        runs.append((topic, first[1], first[2], start, at, entries))
    return runs
