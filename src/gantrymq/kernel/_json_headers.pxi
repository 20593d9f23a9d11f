# Headers in JSON, in the form in which RocketMQ's clients write them. Included by _fast.pyx.
#
# Plain is: no white space, no field twice, no field but those of a command, numbers without
# a fraction, strings whose escapes stand for ASCII. All else is left to `decode_header`.

cdef enum:
    JSON_TEXT_BYTES = 4096
    CODE = 1
    EXT = 2
    FLAG = 4
    LANGUAGE_FIELD = 8
    OPAQUE = 16
    REMARK = 32
    SERIALIZED = 64
    VERSION_FIELD = 128


cdef struct Json:
    const uint8_t *data
    Py_ssize_t at
    Py_ssize_t size


cdef inline bint _has(Json *json, uint8_t mark) noexcept nogil:
    """Go behind a mark, if it stands here."""
    if json.at < json.size and json.data[json.at] == mark:
        json.at += 1
        return True
    return False


cdef bint _json_int(Json *json, int64_t *value) noexcept nogil:
    """A whole number of at most 18 digits."""
    cdef bint negative = _has(json, 45)
    cdef Py_ssize_t start = json.at
    cdef int64_t number = 0
    while json.at < json.size and 48 <= json.data[json.at] <= 57 and json.at - start < 19:
        number = number * 10 + json.data[json.at] - 48
        json.at += 1
    if json.at == start or json.at - start > 18:
        return False
    if json.data[start] == 48 and (negative or json.at - start > 1):
        return False
    value[0] = -number if negative else number
    return True


cdef object _json_text(Json *json):
    """A string; None if it is not plain. UnicodeDecodeError if its bytes are no UTF-8."""
    cdef Py_ssize_t start
    cdef uint8_t byte
    if not _has(json, 34):
        return None
    start = json.at
    while json.at < json.size:
        byte = json.data[json.at]
        if byte == 34:
            json.at += 1
            return PyUnicode_DecodeUTF8(
                <const char *>json.data + start, json.at - 1 - start, NULL
            )
        if byte == 92:
            json.at = start
            return _json_escaped(json)
        if byte < 32:
            return None
        json.at += 1
    return None


cdef object _json_escaped(Json *json):
    """The rest of a string with escapes."""
    cdef char space[JSON_TEXT_BYTES]
    cdef Py_ssize_t used = 0
    cdef int value
    cdef uint8_t byte
    while json.at < json.size and used < JSON_TEXT_BYTES:
        byte = json.data[json.at]
        json.at += 1
        if byte == 34:
            return PyUnicode_DecodeUTF8(space, used, NULL)
        if byte < 32:
            return None
        value = byte
        if byte == 92:
            value = _unescaped(json)
            if value < 0:
                return None
        space[used] = <char>value
        used += 1
    return None


cdef int _unescaped(Json *json) noexcept nogil:
    """The character behind a backslash; -1 if it is not ASCII, or no escape."""
    cdef uint8_t byte
    cdef int high, low
    if json.at >= json.size:
        return -1
    byte = json.data[json.at]
    json.at += 1
    if byte == 117:
        if json.size - json.at < 4 or json.data[json.at] != 48 or json.data[json.at + 1] != 48:
            return -1
        high, low = _hex_digit(json.data[json.at + 2]), _hex_digit(json.data[json.at + 3])
        json.at += 4
        return high << 4 | low if 0 <= high < 8 and low >= 0 else -1
    if byte == 34 or byte == 92 or byte == 47:
        return byte
    if byte == 98:
        return 8
    if byte == 102:
        return 12
    if byte == 110:
        return 10
    if byte == 114:
        return 13
    return 9 if byte == 116 else -1


cdef inline int _hex_digit(uint8_t byte) noexcept nogil:
    if 48 <= byte <= 57:
        return byte - 48
    if 97 <= byte <= 102:
        return byte - 87
    return byte - 55 if 65 <= byte <= 70 else -1


cdef dict _json_ext(Json *json):
    """The extension fields; None if one is not plain."""
    cdef dict ext = {}
    if not _has(json, 123):
        return None
    if _has(json, 125):
        return ext
    while True:
        key = _json_text(json)
        if key is None or not _has(json, 58):
            return None
        value = _json_text(json)
        if value is None:
            return None
        ext[key] = value
        if _has(json, 125):
            return ext
        if not _has(json, 44):
            return None


cdef int _json_field(Json *json) noexcept nogil:
    """Which field begins here; 0 if none that is known."""
    cdef const char *name = <const char *>json.data + json.at
    cdef Py_ssize_t left = json.size - json.at
    cdef int field = 0
    cdef Py_ssize_t size = 0
    if left >= 7 and memcmp(name, b'"code":', 7) == 0:
        field, size = CODE, 7
    elif left >= 12 and memcmp(name, b'"extFields":', 12) == 0:
        field, size = EXT, 12
    elif left >= 7 and memcmp(name, b'"flag":', 7) == 0:
        field, size = FLAG, 7
    elif left >= 11 and memcmp(name, b'"language":', 11) == 0:
        field, size = LANGUAGE_FIELD, 11
    elif left >= 9 and memcmp(name, b'"opaque":', 9) == 0:
        field, size = OPAQUE, 9
    elif left >= 9 and memcmp(name, b'"remark":', 9) == 0:
        field, size = REMARK, 9
    elif left >= 26 and memcmp(name, b'"serializeTypeCurrentRPC":', 26) == 0:
        field, size = SERIALIZED, 26
    elif left >= 10 and memcmp(name, b'"version":', 10) == 0:
        field, size = VERSION_FIELD, 10
    json.at += size
    return field


cdef object _decode_json(const uint8_t *data, Py_ssize_t size):
    """A header in JSON; None if it is not plain."""
    cdef Json json
    cdef int64_t code = 0, flag = 0, opaque = 0, version = VERSION, number = 0
    cdef int seen = 0, field
    cdef dict ext = None
    language, remark = "PYTHON", None
    json.data, json.at, json.size = data, 0, size
    if not _has(&json, 123):
        return None
    try:
        while True:
            field = _json_field(&json)
            if not field or seen & field:
                return None
            seen |= field
            if field & (CODE | FLAG | OPAQUE | VERSION_FIELD):
                if not _json_int(&json, &number):
                    return None
                if field == CODE:
                    code = number
                elif field == FLAG:
                    flag = number
                elif field == OPAQUE:
                    opaque = number
                else:
                    version = number
            elif field == EXT:
                ext = _json_ext(&json)
                if ext is None:
                    return None
            else:
                text = _json_text(&json)
                if text is None:
                    return None
                if field == LANGUAGE_FIELD:
                    language = text
                elif field == REMARK:
                    remark = text
            if _has(&json, 125):
                break
            if not _has(&json, 44):
                return None
    except UnicodeDecodeError:
        return None
    if json.at != size or not seen & CODE:
        return None
    return Command(
        code, {} if ext is None else ext, flag, language, opaque, remark, version, b"", 0
    )
