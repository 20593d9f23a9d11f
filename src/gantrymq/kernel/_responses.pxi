# Answers to sends: the compiled twin of responses.py. Included by _fast.pyx.

cdef enum:
    STORED_FRAME_BYTES = 1024


cdef struct StoredAnswer:
    int64_t opaque
    int64_t queue_id
    int64_t offset
    const char *msg_id
    Py_ssize_t msg_id_size
    const char *transaction
    Py_ssize_t transaction_size


cdef inline bint _skip(Json *json, const char *text, Py_ssize_t size) noexcept nogil:
    """Go behind a text, if it stands here."""
    if json.size - json.at < size or memcmp(json.data + json.at, text, size) != 0:
        return False
    json.at += size
    return True


cdef bint _digits(Json *json, Py_ssize_t count_max, int64_t *value) noexcept nogil:
    """A number of up to so many digits."""
    cdef Py_ssize_t start = json.at
    value[0] = 0
    while json.at < json.size and 48 <= json.data[json.at] <= 57:
        if json.at - start >= count_max:
            return False
        value[0] = value[0] * 10 + json.data[json.at] - 48
        json.at += 1
    return json.at > start


cdef Py_ssize_t _ascii(Json *json) noexcept nogil:
    """The size of a text without escapes up to its quotation mark; -1 if it is not plain."""
    cdef Py_ssize_t start = json.at
    cdef uint8_t byte
    while json.at < json.size:
        byte = json.data[json.at]
        json.at += 1
        if byte == 34:
            return json.at - 1 - start
        if byte < 32 or byte > 126 or byte == 92:
            return -1
    return -1


cdef bint _stored_fields(Json *json, StoredAnswer *stored) noexcept nogil:
    """The fields of an answer; False if there is another one, or one is missing."""
    cdef int seen = 0
    stored.transaction_size = -1
    while True:
        if _skip(json, b'"msgId":"', 9):
            stored.msg_id = <const char *>json.data + json.at
            stored.msg_id_size = _ascii(json)
            if stored.msg_id_size < 0:
                return False
            seen |= 1
        elif _skip(json, b'"queueId":"', 11):
            if not _digits(json, 18, &stored.queue_id) or not _has(json, 34):
                return False
            seen |= 2
        elif _skip(json, b'"queueOffset":"', 15):
            if not _digits(json, 18, &stored.offset) or not _has(json, 34):
                return False
            seen |= 4
        elif _skip(json, b'"transactionId":"', 17):
            stored.transaction = <const char *>json.data + json.at
            stored.transaction_size = _ascii(json)
            if stored.transaction_size < 0:
                return False
        elif _skip(json, b'"MSG_REGION":"', 14) or _skip(json, b'"TRACE_ON":"', 12):
            if _ascii(json) < 0:
                return False
        else:
            return False
        if not _has(json, 44):
            return seen == 7 and _has(json, 125)


cdef bint _read_stored(Json *json, StoredAnswer *stored) noexcept nogil:
    """Whether a header says no more than that a message is stored, and where."""
    cdef int64_t version = 0
    cdef Py_ssize_t start
    if not _skip(json, b'{"code":0,"extFields":{', 23) or not _stored_fields(json, stored):
        return False
    if not _skip(json, b',"flag":1,"language":"', 22):
        return False
    start = json.at
    while json.at < json.size and (65 <= json.data[json.at] <= 90 or json.data[json.at] == 95):
        json.at += 1
    return (
        json.at > start and _skip(json, b'","opaque":', 11)
        and _digits(json, 10, &stored.opaque)
        and _skip(json, b',"serializeTypeCurrentRPC":"JSON","version":', 44)
        and _digits(json, 10, &version) and _has(json, 125) and json.at == json.size
    )


cdef object _send_result(StoredAnswer *stored, object call, object queue):
    """A SendResult, filled without the detour over a plain tuple."""
    cdef object result = (<PyTypeObject *>SendResult).tp_alloc(<PyTypeObject *>SendResult, 7)
    _set(result, 0, "SEND_OK")
    _set(result, 1, call.prepared.msg_id)
    _set(result, 2, PyUnicode_DecodeUTF8(stored.msg_id, stored.msg_id_size, NULL))
    _set(result, 3, queue)
    _set(result, 4, stored.offset)
    transaction = None
    if stored.transaction_size >= 0:
        transaction = PyUnicode_DecodeUTF8(stored.transaction, stored.transaction_size, NULL)
    _set(result, 5, transaction)
    _set(result, 6, None)
    return result


def cut_stored(buffer, dict calls not None, kind):
    """Take answers that say "stored" from the front of `buffer`; see `responses.cut_stored`."""
    cdef list found = []
    cdef Py_ssize_t at = 0
    cdef int64_t size
    cdef Json json
    cdef StoredAnswer stored
    cdef const uint8_t *data
    memset(&stored, 0, sizeof(stored))
    cdef Py_buffer view
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        data = <const uint8_t *>view.buf
        while view.len - at >= 8:
            size = gq_load32(data + at)
            if gq_load32(data + at + 4) != size - 4 or size > STORED_FRAME_BYTES or (
                size < 4 or at + 4 + size > view.len
            ):
                break
            json.data, json.at, json.size = data + at + 8, 0, size - 4
            if not _read_stored(&json, &stored):
                break
            call = calls.get(stored.opaque)
            if type(call) is not kind:
                break
            target = call.target
            if target is None:
                break
            queue = target.queue
            if queue.queue_id != stored.queue_id:
                break
            del calls[stored.opaque]
            found.append((call, _send_result(&stored, call, queue)))
            at += 4 + size
    finally:
        PyBuffer_Release(&view)
    return found, at
