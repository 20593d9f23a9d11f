# Records of a pull's answer: the compiled twin of pulled.py. Included by _fast.pyx.

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        object (*tp_alloc)(PyTypeObject *, Py_ssize_t)
    void PyTuple_SET_ITEM(object, Py_ssize_t, object)


cdef inline void _set(object head, Py_ssize_t at, object value) noexcept:
    Py_INCREF(value)  # the tuple takes a reference of its own
    PyTuple_SET_ITEM(head, at, value)


cdef object _head(const uint8_t *record, Py_ssize_t born, Py_ssize_t store):
    """A RecordHead, filled without the detour over a plain tuple."""
    cdef object head = (<PyTypeObject *>RecordHead).tp_alloc(<PyTypeObject *>RecordHead, 15)
    cdef const uint8_t *behind = record + 48 + born
    _set(head, 0, <int32_t>gq_load32(record))
    _set(head, 1, <int32_t>gq_load32(record + 4))
    _set(head, 2, <int32_t>gq_load32(record + 8))
    _set(head, 3, <int32_t>gq_load32(record + 12))
    _set(head, 4, <int32_t>gq_load32(record + 16))
    _set(head, 5, <int64_t>gq_load64(record + 20))
    _set(head, 6, <int64_t>gq_load64(record + 28))
    _set(head, 7, <int32_t>gq_load32(record + 36))
    _set(head, 8, <int64_t>gq_load64(record + 40))
    _set(head, 9, PyBytes_FromStringAndSize(<const char *>record + 48, born))
    _set(head, 10, <int64_t>gq_load64(behind))
    _set(head, 11, PyBytes_FromStringAndSize(<const char *>behind + 8, store))
    _set(head, 12, <int32_t>gq_load32(behind + 8 + store))
    _set(head, 13, <int64_t>gq_load64(behind + 12 + store))
    _set(head, 14, <int32_t>gq_load32(behind + 20 + store))
    return head


def cut_records(bytes data not None, bint check=False):
    """The records that lie back to back; see `pulled.cut_records`."""
    cdef list found = []
    cdef int64_t at = 0, end = len(data), left, size, magic, head_size, body_size
    cdef int32_t sys_flag
    cdef Py_ssize_t born, store
    cdef const uint8_t *record
    while at < end:
        record = <const uint8_t *>PyBytes_AS_STRING(data) + at
        left = end - at
        if left < RECORD_BYTES_MIN:
            return found, ProtocolError(f"{left} bytes are left over, too few for a record")
        sys_flag = <int32_t>gq_load32(record + 36)
        born = 20 if sys_flag & BORN_V6 else 8
        store = 20 if sys_flag & STORE_V6 else 8
        head_size = HEAD_BYTES - 16 + born + store
        if left < head_size:
            return found, ProtocolError(f"the record at byte {at} is cut off")
        size, magic = <int32_t>gq_load32(record), <int32_t>gq_load32(record + 4)
        body_size = <int32_t>gq_load32(record + head_size - 4)
        if (magic != MAGIC_V1 and magic != MAGIC_V2) or size > left or (
            body_size < 0 or body_size > size - head_size - 3
        ):
            return found, ProtocolError(f"what stands at byte {at} is no record")
        if check and body_size and (
            <int32_t>(gq_crc32(record + head_size, body_size) & 0x7FFFFFFF)
            != <int32_t>gq_load32(record + 8)
        ):
            return found, ProtocolError(f"the record at byte {at} has a damaged body")
        found.append((at, at + head_size, _head(record, born, store)))
        at += size
    return found, None
