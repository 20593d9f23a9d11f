# Send requests as whole frames: the compiled twin of requests.py. Included by _fast.pyx.

cdef enum:
    HEADER_BYTES = 8192
    PARTS_BYTES_MAX = 4096
    PLAIN_BYTES = 512


cdef inline void _put_bytes(Out *out, bytes part) noexcept:
    _put(out, PyBytes_AS_STRING(part), PyBytes_GET_SIZE(part))


cdef bint _put_escaped(Out *out, const char *text, Py_ssize_t size) noexcept nogil:
    """Properties inside a JSON string; False if they have more to escape than their separators."""
    cdef Py_ssize_t at
    cdef uint8_t byte
    for at in range(size):
        byte = text[at]
        if byte == 1:
            _put(out, b"\\u0001", 6)
        elif byte == 2:
            _put(out, b"\\u0002", 6)
        elif byte < 32 or byte == 34 or byte == 92:
            return False
        else:
            out.at[0] = byte
            out.at += 1
    return True


cdef object _send_frame(
    object message, object part, int64_t opaque, int64_t born_ms, str msg_id
):
    """One request with its id and properties; None if it is not plain."""
    cdef char text[PLAIN_BYTES]
    cdef char space[HEADER_BYTES]
    cdef Out out
    cdef bytes start = part[0], middle = part[1], end = part[2], body = message.body
    cdef Py_ssize_t size = _put_plain(text, PLAIN_BYTES, message, msg_id), header
    if size < 0 or len(start) + len(middle) + len(end) > PARTS_BYTES_MAX:
        return None
    out.start = space
    out.at = space + 8
    _put_bytes(&out, start)
    _put_int(&out, born_ms)
    _put(&out, b'","h":"', 7)
    _put_int(&out, message.flag)
    _put(&out, b'","i":"', 7)
    if not _put_escaped(&out, text, size):
        return None
    _put(&out, b'"', 1)
    _put_bytes(&out, middle)
    _put_int(&out, opaque)
    _put_bytes(&out, end)
    header = out.at - out.start - 8
    gq_store32(<uint8_t *>space, <uint32_t>(4 + header + len(body)))
    gq_store32(<uint8_t *>space + 4, <uint32_t>header)
    frame = PyBytes_FromStringAndSize(NULL, 8 + header + len(body))
    memcpy(PyBytes_AS_STRING(frame), space, 8 + header)
    memcpy(PyBytes_AS_STRING(frame) + 8 + header, PyBytes_AS_STRING(body), len(body))
    return frame, msg_id, PyUnicode_DecodeUTF8(text, size, NULL)


def encode_sends(
    list messages not None, list parts not None, list opaques not None, born_ms,
    str stem not None, counter,
):
    """Encode messages without properties of their own; see `requests.encode_sends`."""
    cdef Py_ssize_t at, stem_size = 0
    cdef const char *stem_text = PyUnicode_AsUTF8AndSize(stem, &stem_size)
    cdef char id_text[64]
    cdef uint32_t number = counter & 0xFFFF
    cdef int64_t born = born_ms
    cdef list found = []
    cdef int digit
    if stem_size > 60 or not len(messages) == len(parts) == len(opaques):
        return _pure_requests.encode_sends(messages, parts, opaques, born_ms, stem, counter)
    memcpy(id_text, stem_text, stem_size)
    for at in range(len(messages)):
        for digit in range(4):
            id_text[stem_size + digit] = HEX[number >> (12 - 4 * digit) & 15]
        msg_id = PyUnicode_DecodeUTF8(id_text, stem_size + 4, NULL)
        sent = _send_frame(messages[at], parts[at], opaques[at], born, msg_id)
        if sent is None:
            found += _pure_requests.encode_sends(
                messages[at : at + 1], parts[at : at + 1], opaques[at : at + 1], born_ms, stem,
                number,
            )
        else:
            found.append(sent)
        number = number + 1 & 0xFFFF
    return found
