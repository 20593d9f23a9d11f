# The fields of an ordinary send: the compiled twin of sends.py. Included by _fast.pyx.

cdef enum:
    PROPERTIES_BYTES = 4096


cdef bint _parse(object text, int64_t low, int64_t high, int64_t *value) except -1:
    """A decimal number between two bounds; False if the text is none."""
    cdef Py_ssize_t size = 0
    cdef const char *digits
    if text is None:
        return False
    digits = PyUnicode_AsUTF8AndSize(text, &size)
    return _parse_digits(digits, size, low, high, value)


cdef bint _parse_digits(
    const char *digits, Py_ssize_t size, int64_t low, int64_t high, int64_t *value
) noexcept nogil:
    cdef Py_ssize_t at = 0
    cdef int64_t number = 0
    if size and digits[0] == 45:
        at = 1
    if size == at or size - at > 18:
        return False
    value[0] = -1 if at else 1
    while at < size:
        if digits[at] < 48 or digits[at] > 57:
            return False
        number = number * 10 + digits[at] - 48
        at += 1
    value[0] *= number
    return low <= value[0] <= high


cdef bint _is_careful(const char *text, Py_ssize_t size) noexcept nogil:
    """Whether properties ask for a delay, a time or a transaction."""
    cdef const char *at = text
    cdef const char *end = text + size
    while end > at:
        at = <const char *>memchr(at, 84, end - at)
        if at == NULL:
            break
        if end - at >= 9 and memcmp(at, b"TIMER_DEL", 9) == 0:
            return True
        at += 1
    at = text
    while True:
        at = <const char *>memchr(at, 1, end - at)
        if at == NULL:
            return False
        if at - text >= 5 and memcmp(at - 5, b"DELAY", 5) == 0:
            return True
        if at - text >= 8 and end - at > 4 and memcmp(at - 8, b"TRAN_MSG\x01true", 13) == 0:
            return True
        at += 1


cdef bint _is_guarded(const char *topic, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t at
    cdef bint lower = False
    if topic[0] != 83 and topic[0] != 82 and topic[0] != 84 and topic[0] != 79:
        return False
    for at in range(size):
        if 97 <= topic[at] <= 122:
            lower = True
        if size - at >= 5 and memcmp(topic + at, b"_XXXX", 5) == 0:
            return True
    return not lower


def read_send(dict ext not None, bytes tail not None):
    """What a SEND_MESSAGE_V2 header says, if it is an ordinary one; see `sends.read_send`."""
    cdef Py_ssize_t size = 0
    cdef const char *raw
    cdef int64_t queue_id = 0, flag = 0, sys_flag = 0, born_ms = 0, again = 0
    cdef int64_t low = -2147483648, high = 2147483647
    topic, text, more = ext.get("b"), ext.get("i", ""), ext.get("j")
    if not topic or ext.get("m") == "true":
        return None
    raw = PyUnicode_AsUTF8AndSize(topic, &size)
    if raw[0] == 37 or _is_guarded(raw, size):
        return None
    if not (
        _parse(ext.get("e"), low, high, &queue_id) and _parse(ext.get("h", "0"), low, high, &flag)
        and _parse(ext.get("f", "0"), low, high, &sys_flag)
        and _parse(ext.get("g"), INT64_MIN, INT64_MAX, &born_ms)
        and (not more or _parse(more, low, high, &again))
    ):
        return None
    raw = PyUnicode_AsUTF8AndSize(text, &size)
    if sys_flag & 0xC or _is_careful(raw, size):
        return None
    if size + len(tail) + 1 > PROPERTIES_BYTES:
        return _pure_sends.read_send(ext, tail)
    properties, unique, waits = _stored_properties(raw, size, tail)
    return topic, queue_id, flag, sys_flag, born_ms, again, properties, unique, waits


cdef tuple _stored_properties(const char *text, Py_ssize_t size, bytes tail):
    """The properties as they are stored, the client's message id, whether the sender waits."""
    cdef char space[PROPERTIES_BYTES]
    cdef Out out
    cdef Stored stored
    out.start = out.at = space
    _put_entries(&out, text, size, &stored)
    unique = ""
    if stored.unique != NULL:
        unique = PyUnicode_DecodeUTF8(stored.unique, stored.unique_size, NULL)
    _put(&out, PyBytes_AS_STRING(tail), len(tail))
    return PyBytes_FromStringAndSize(out.start, out.at - out.start), unique, stored.waits


cdef struct Stored:
    const char *unique
    Py_ssize_t unique_size
    bint waits


cdef void _put_entries(Out *out, const char *text, Py_ssize_t size, Stored *stored) noexcept nogil:
    """All properties except POP_CK. The client's message id lies in what is put."""
    cdef const char *at = text
    cdef const char *end = text + size
    cdef const char *stop
    cdef Py_ssize_t length
    cdef bint is_last = False
    stored.unique, stored.unique_size, stored.waits = NULL, 0, True
    while not is_last:
        stop = <const char *>memchr(at, 2, end - at) if end > at else NULL
        is_last = stop == NULL
        length = (end if is_last else stop) - at
        if length and not (length >= 7 and memcmp(at, b"POP_CK\x01", 7) == 0):
            if length >= 5 and memcmp(at, b"WAIT\x01", 5) == 0:
                stored.waits = length != 10 or memcmp(at + 5, b"false", 5) != 0
            elif (
                not stored.unique_size and length >= 9 and memcmp(at, b"UNIQ_KEY\x01", 9) == 0
            ):
                stored.unique, stored.unique_size = out.at + 9, length - 9
            _put(out, at, length)
            _put(out, b"\x02", 1)
        at += length + 1


cdef const char *HEX = b"0123456789ABCDEF"


cdef void _put_id(char *to, bytes store_host, int64_t position):
    """The id of a stored message: two hex digits for each byte of address and log offset."""
    cdef uint8_t place[28]
    cdef Py_ssize_t host_size = len(store_host), at
    memcpy(place, PyBytes_AS_STRING(store_host), host_size)
    gq_store64(&place[host_size], <uint64_t>position)
    for at in range(host_size + 8):
        to[2 * at] = HEX[place[at] >> 4]
        to[2 * at + 1] = HEX[place[at] & 15]


def stored_answer(
    codec, code, opaque, bytes store_host not None, position, queue_id, queue_offset,
    str transaction_id not None,
):
    """The answer to one stored message, whose id tells the broker's address and log offset."""
    cdef char id_text[56]
    cdef Py_ssize_t host_size = len(store_host), size = 0
    cdef const char *transaction = PyUnicode_AsUTF8AndSize(transaction_id, &size)
    answer = None
    if host_size <= 20 and size < ANSWER_BYTES // 2:
        try:
            _put_id(id_text, store_host, <int64_t>position)
            answer = _send_answer(
                codec, code, opaque, id_text, 2 * (host_size + 8), queue_id, queue_offset,
                transaction, size,
            )
        except OverflowError:
            answer = None
    if answer is None:
        return _pure_sends.stored_answer(
            codec, code, opaque, store_host, position, queue_id, queue_offset, transaction_id
        )
    return answer


def offset_msg_ids(bytes store_host not None, offsets):
    """The ids of stored messages with a comma between them; see `sends.offset_msg_ids`."""
    cdef Py_ssize_t host_size = len(store_host), size = 2 * host_size + 16, at
    cdef list given = list(offsets)
    cdef bytes text
    cdef char *to
    cdef uint8_t place[8]
    cdef const uint8_t *host = <const uint8_t *>PyBytes_AS_STRING(store_host)
    if not given:
        return ""
    text = PyBytes_FromStringAndSize(NULL, len(given) * (size + 1) - 1)
    to = PyBytes_AS_STRING(text)
    for number, offset in enumerate(given):
        if number:
            to[0] = 44
            to += 1
        if offset < 0:
            return _pure_sends.offset_msg_ids(store_host, given)
        gq_store64(place, <uint64_t><int64_t>offset)
        for at in range(host_size):
            to[2 * at], to[2 * at + 1] = HEX[host[at] >> 4], HEX[host[at] & 15]
        to += 2 * host_size
        for at in range(8):
            to[2 * at], to[2 * at + 1] = HEX[place[at] >> 4], HEX[place[at] & 15]
        to += 16
    return text.decode("ascii")
