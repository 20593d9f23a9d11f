# The header of a plain send, read without an object. Included by _fast.pyx.
#
# Read here is what RocketMQ's clients write: ASCII, the code in front, no field twice, escapes in
# the properties only, 16 KiB at most. Everything else is left to `_decode`, which rules on it.

cdef struct Span:
    const char *at
    Py_ssize_t size


cdef struct SendHeader:
    int64_t code, flag, opaque
    Span fields[26]  # by their letters, a to z
    Span access_key, signature
    bint has_others  # fields with other names
    bint is_escaped  # the properties


cdef enum:
    LETTER_A = 97
    LETTER_Z = 122
    TOPIC = 1
    QUEUE_ID = 4
    SYS_FLAG = 5
    BORN_MS = 6
    FLAG_FIELD = 7
    PROPERTIES = 8
    AGAIN = 9
    BATCH = 12
    SEND_CODE = 310
    SEND_HEADER_BYTES = 16384


cdef bint _may_be_send(uint32_t codec, const uint8_t *data, Py_ssize_t size) noexcept nogil:
    """A cheap first look. What is plain has short properties, and so a short header."""
    if size > SEND_HEADER_BYTES:
        return False
    if codec == 1:
        return size >= 21 and gq_load16(data) == SEND_CODE
    return codec == 0 and size > 12 and memcmp(data, b'{"code":310,', 12) == 0


cdef bint _read_header(
    uint32_t codec, const uint8_t *data, Py_ssize_t size, SendHeader *header
) noexcept nogil:
    """Find the fields of a send; False if the header is not written as usual."""
    memset(header, 0, sizeof(SendHeader))
    if codec == 1:
        return _read_binary(data, size, header)
    return _read_json(data, size, header)


cdef inline bint _is_ascii(const uint8_t *text, Py_ssize_t size) noexcept nogil:
    cdef uint8_t high = 0
    cdef Py_ssize_t at
    for at in range(size):
        high |= text[at]
    return high < 128


cdef inline bint _note(
    SendHeader *header, const char *key, Py_ssize_t key_size, const char *value, Py_ssize_t size
) noexcept nogil:
    """Keep a field; False if it came before. Others have no letter, and are no part of a signature.
    """
    cdef Span *span
    if key_size == 1 and LETTER_A <= key[0] <= LETTER_Z:
        span = &header.fields[key[0] - LETTER_A]
    elif key_size == 9 and memcmp(key, b"AccessKey", 9) == 0:
        span = &header.access_key
    elif key_size == 9 and memcmp(key, b"Signature", 9) == 0:
        span = &header.signature
    else:
        header.has_others = True
        return True
    if span.at != NULL:
        return False
    span.at, span.size = value, size
    return True


cdef bint _read_binary(const uint8_t *data, Py_ssize_t size, SendHeader *header) noexcept nogil:
    cdef Py_ssize_t at = 21, end
    cdef int64_t key_size, value_size
    header.code = <int16_t>gq_load16(data)
    header.opaque = <int32_t>gq_load32(data + 5)
    header.flag = <int32_t>gq_load32(data + 9)
    if gq_load32(data + 13):
        return False
    end = at + <int32_t>gq_load32(data + 17)
    if end < at or end > size:
        return False
    while at < end:
        if end - at < 6:
            return False
        key_size = <int16_t>gq_load16(data + at)
        if key_size < 0 or key_size > end - at - 6:
            return False
        value_size = <int32_t>gq_load32(data + at + 2 + key_size)
        if value_size < 0 or value_size > end - at - 6 - key_size:
            return False
        if not _is_ascii(data + at + 2, key_size):
            return False
        if not _is_ascii(data + at + 6 + key_size, value_size):
            return False
        if key_size and value_size and not _note(
            header, <const char *>data + at + 2, key_size,
            <const char *>data + at + 6 + key_size, value_size,
        ):
            return False
        at += 6 + key_size + value_size
    return True


cdef bint _span_of(Json *json, Span *span, bint *is_escaped) noexcept nogil:
    """The inside of a string; False if it is not ASCII."""
    cdef const uint8_t *start = json.data + json.at + 1
    cdef const uint8_t *end = json.data + json.size
    cdef const uint8_t *stop
    cdef const uint8_t *at
    cdef Py_ssize_t number
    cdef uint8_t is_odd = 0
    if not _has(json, 34):
        return False
    stop = <const uint8_t *>memchr(start, 34, end - start)
    if stop == NULL:
        return False
    # Without a branch in the loop it is compiled to vector instructions.
    for number in range(stop - start):
        is_odd |= (start[number] < 32) | (start[number] > 127) | (start[number] == 92)
    if is_odd:
        is_escaped[0] = True
        at = start
        while at < end and at[0] != 34:
            if at[0] < 32 or at[0] > 127:
                return False
            at += 2 if at[0] == 92 else 1
        if at >= end:
            return False
        stop = at
    span.at, span.size = <const char *>start, stop - start
    json.at = stop + 1 - json.data
    return True


cdef bint _read_json_fields(Json *json, SendHeader *header) noexcept nogil:
    cdef Span key, value
    cdef bint is_escaped = False
    if not _has(json, 123):
        return False
    if _has(json, 125):
        return True
    while True:
        if not _span_of(json, &key, &is_escaped) or is_escaped or not _has(json, 58):
            return False
        if not _span_of(json, &value, &is_escaped):
            return False
        if is_escaped:
            if key.size != 1 or key.at[0] != LETTER_A + PROPERTIES:
                return False
            header.is_escaped, is_escaped = True, False
        if not _note(header, key.at, key.size, value.at, value.size):
            return False
        if _has(json, 125):
            return True
        if not _has(json, 44):
            return False


cdef bint _read_json(const uint8_t *data, Py_ssize_t size, SendHeader *header) noexcept nogil:
    cdef Json json
    cdef int64_t number = 0
    cdef int seen = 0, field
    cdef Span text
    cdef bint is_escaped = False
    json.data, json.at, json.size = data, 1, size
    while True:
        field = _json_field(&json)
        if not field or seen & field:
            return False
        seen |= field
        if field == EXT:
            if not _read_json_fields(&json, header):
                return False
        elif field & (CODE | FLAG | OPAQUE | VERSION_FIELD):
            if not _json_int(&json, &number):
                return False
            if field == CODE:
                header.code = number
            elif field == FLAG:
                header.flag = number
            elif field == OPAQUE:
                header.opaque = number
        elif not _span_of(&json, &text, &is_escaped) or is_escaped:
            return False
        if _has(&json, 125):
            return json.at == size
        if not _has(&json, 44):
            return False


cdef Py_ssize_t _unescape(const Span *raw, char *to) noexcept nogil:
    """Write a string without its escapes; returns its length, -1 if an escape is not ASCII."""
    cdef Json json
    cdef Py_ssize_t used = 0
    cdef int value
    json.data, json.at, json.size = <const uint8_t *>raw.at, 0, raw.size
    while json.at < json.size:
        value = json.data[json.at]
        json.at += 1
        if value == 92:
            value = _unescaped(&json)
            if value < 0:
                return -1
        to[used] = <char>value
        used += 1
    return used


cdef bint _number(
    const SendHeader *header, int letter, int64_t high, bint is_needed, int64_t *value
) noexcept nogil:
    """A number of a header, 0 if it may be missing; False if it is none."""
    cdef const Span *span = &header.fields[letter]
    value[0] = 0
    if span.at == NULL:
        return not is_needed
    return _parse_digits(span.at, span.size, -high - 1, high, value)


cdef bint _read_numbers(const SendHeader *header, Plain *plain) noexcept nogil:
    cdef int64_t queue_id = 0, flag = 0, sys_flag = 0, again = 0, high = 2147483647
    if not (
        _number(header, QUEUE_ID, high, True, &queue_id)
        and _number(header, FLAG_FIELD, high, False, &flag)
        and _number(header, SYS_FLAG, high, False, &sys_flag)
        and _number(header, BORN_MS, INT64_MAX, True, &plain.born_ms)
    ):
        return False
    if header.fields[AGAIN].size and not _number(header, AGAIN, high, False, &again):
        return False
    plain.queue_id, plain.flag = <int32_t>queue_id, <int32_t>flag
    plain.sys_flag, plain.again = <int32_t>sys_flag, <int32_t>again
    return queue_id >= 0 and not sys_flag & 0xC


cdef bint _is_name(const char *text, Py_ssize_t size) noexcept nogil:
    """Whether a topic has a legal name, and one that producers may send to."""
    cdef Py_ssize_t at
    cdef char byte
    if not 0 < size <= 255 or _is_guarded(text, size):
        return False
    for at in range(size):
        byte = text[at]
        if not (
            97 <= byte <= 122 or 65 <= byte <= 90 or 48 <= byte <= 57 or byte == 45 or byte == 95
            or byte == 43 or byte == 124
        ):
            return False
    return True


cdef bint _is_word(const char *text, Py_ssize_t size) noexcept nogil:
    """Whether a message id has letters and digits only."""
    cdef Py_ssize_t at
    cdef char byte
    for at in range(size):
        byte = text[at]
        if not (97 <= byte <= 122 or 65 <= byte <= 90 or 48 <= byte <= 57):
            return False
    return 0 < size <= 255
