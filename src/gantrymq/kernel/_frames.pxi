# Frames in, answers out: the compiled twin of frames.py. Included by _fast.pyx.


def cut_commands(buffer, size_max, count_max):
    """Decode whole frames from the front of `buffer`; see `frames.cut_commands`."""
    commands, _, used, error = cut_requests(buffer, size_max, count_max, None, b"")
    return commands, used, error


cdef object _decode(uint32_t codec, const uint8_t *data, Py_ssize_t size):
    """A header without its body; ProtocolError if it is none."""
    command = None
    if codec == 1:
        command = _decode_binary(data, size)
    elif codec == 0:
        command = _decode_json(data, size)
    if command is not None:
        return command
    return decode_header(codec, PyBytes_FromStringAndSize(<const char *>data, size))


cdef object _decode_binary(const uint8_t *data, Py_ssize_t size):
    """The header in ROCKETMQ's own form; None if it is not as simple as it should be."""
    cdef Py_ssize_t at = 17, end
    cdef int64_t length
    if size < 21:
        return None
    language, remark = None, None
    if data[2] < len(LANGUAGES):
        language = LANGUAGES[data[2]]
    length = <int32_t>gq_load32(data + 13)
    if length < 0 or length > size - 21:
        return None
    try:
        if length:
            remark = PyUnicode_DecodeUTF8(<const char *>data + at, length, NULL)
        at += length
        end = at + 4 + <int32_t>gq_load32(data + at)
        at += 4
        if end < at or end > size:
            return None
        ext = _decode_ext(data, at, end)
    except UnicodeDecodeError:
        return None
    if ext is None:
        return None
    return Command(
        <int16_t>gq_load16(data), ext, <int32_t>gq_load32(data + 9), language,
        <int32_t>gq_load32(data + 5), remark, <int16_t>gq_load16(data + 3), b"", 1,
    )


cdef dict _decode_ext(const uint8_t *data, Py_ssize_t at, Py_ssize_t end):
    cdef dict ext = {}
    cdef int64_t key_size, value_size
    while at < end:
        if end - at < 6:
            return None
        key_size = <int16_t>gq_load16(data + at)
        if key_size < 0 or key_size > end - at - 6:
            return None
        value_size = <int32_t>gq_load32(data + at + 2 + key_size)
        if value_size < 0 or value_size > end - at - 6 - key_size:
            return None
        key = PyUnicode_DecodeUTF8(<const char *>data + at + 2, key_size, NULL)
        value = PyUnicode_DecodeUTF8(<const char *>data + at + 6 + key_size, value_size, NULL)
        if key_size and value_size:
            ext[key] = value
        at += 6 + key_size + value_size
    return ext


# Answers out

cdef struct Out:
    char *start
    char *at


cdef inline void _put(Out *out, const char *text, Py_ssize_t size) noexcept nogil:
    memcpy(out.at, text, size)
    out.at += size


cdef void _put_int(Out *out, int64_t number) noexcept nogil:
    cdef char digits[20]
    cdef int count = 0
    cdef uint64_t rest = <uint64_t>number
    if number < 0:
        rest = 0 - rest
        out.at[0] = b"-"
        out.at += 1
    while True:
        digits[count] = 48 + rest % 10
        rest //= 10
        count += 1
        if not rest:
            break
    while count:
        count -= 1
        out.at[0] = digits[count]
        out.at += 1


cdef void _put_field(
    Out *out, const char *name, Py_ssize_t name_size, const char *value, Py_ssize_t size
) noexcept nogil:
    """A field of a binary header."""
    gq_store16(<uint8_t *>out.at, name_size)
    out.at += 2
    _put(out, name, name_size)
    gq_store32(<uint8_t *>out.at, size)
    out.at += 4
    _put(out, value, size)


cdef void _put_int_field(
    Out *out, const char *name, Py_ssize_t name_size, int64_t number
) noexcept nogil:
    cdef char digits[24]
    cdef Out text
    text.start = text.at = digits
    _put_int(&text, number)
    _put_field(out, name, name_size, digits, text.at - text.start)


cdef int LANGUAGE = LANGUAGE_CODES["PYTHON"]
cdef int VERSION = VERSION_4_9_8


cdef void _begin_binary(
    Out *out, int64_t code, int64_t opaque, const char *remark, Py_ssize_t size
) noexcept nogil:
    cdef uint8_t *head = <uint8_t *>out.at
    gq_store16(head, <uint32_t>code)
    head[2] = LANGUAGE
    gq_store16(head + 3, VERSION)
    gq_store32(head + 5, <uint32_t>opaque)
    gq_store32(head + 9, 1)
    gq_store32(head + 13, size)
    out.at += 17
    _put(out, remark, size)
    out.at += 4


cdef object _finish(Out *out, int codec, int64_t body_size):
    """Fill in the sizes in front and take the bytes."""
    cdef int64_t header = out.at - out.start - 8
    if 4 + header + body_size > 0xFFFFFFFF:
        return None
    gq_store32(<uint8_t *>out.start, 4 + header + body_size)
    gq_store32(<uint8_t *>out.start + 4, <uint32_t>codec << 24 | <uint32_t>header)
    return PyBytes_FromStringAndSize(out.start, header + 8)


cdef inline bint _fits_binary(int64_t code, int64_t opaque) noexcept nogil:
    return -32768 <= code <= 32767 and -2147483648 <= opaque <= 2147483647


def send_answer(
    codec, code, opaque, str msg_id not None, queue_id, queue_offset,
    str transaction_id not None="",
):
    """The answer to a stored message, as a whole frame."""
    cdef Py_ssize_t id_size = 0, transaction_size = 0
    cdef const char *id_text = PyUnicode_AsUTF8AndSize(msg_id, &id_size)
    cdef const char *transaction = PyUnicode_AsUTF8AndSize(transaction_id, &transaction_size)
    answer = None
    if id_size + transaction_size < ANSWER_BYTES // 2:
        try:
            answer = _send_answer(
                codec, code, opaque, id_text, id_size, queue_id, queue_offset,
                transaction, transaction_size,
            )
        except OverflowError:
            answer = None
    if answer is None:
        return _pure_frames.send_answer(
            codec, code, opaque, msg_id, queue_id, queue_offset, transaction_id
        )
    return answer


cdef object _send_answer(
    int codec, int64_t code, int64_t opaque, const char *id_text, Py_ssize_t id_size,
    int64_t queue_id, int64_t queue_offset, const char *transaction, Py_ssize_t transaction_size,
):
    cdef char space[ANSWER_BYTES]
    cdef Out out
    out.start = out.at = space
    if codec == 1 and not _fits_binary(code, opaque):
        return None
    _put_send_answer(
        &out, codec, code, opaque, id_text, id_size, queue_id, queue_offset,
        transaction, transaction_size,
    )
    return PyBytes_FromStringAndSize(out.start, out.at - out.start)


cdef void _put_send_answer(
    Out *out, int codec, int64_t code, int64_t opaque, const char *id_text, Py_ssize_t id_size,
    int64_t queue_id, int64_t queue_offset, const char *transaction, Py_ssize_t transaction_size,
) noexcept nogil:
    """A whole frame; the caller has made sure that it fits."""
    cdef char *frame = out.at
    cdef char *fields
    out.at += 8
    if codec == 1:
        _begin_binary(out, code, opaque, b"", 0)
        fields = out.at
        _put_field(out, b"MSG_REGION", 10, b"DefaultRegion", 13)
        _put_field(out, b"TRACE_ON", 8, b"true", 4)
        _put_field(out, b"msgId", 5, id_text, id_size)
        _put_int_field(out, b"queueId", 7, queue_id)
        _put_int_field(out, b"queueOffset", 11, queue_offset)
        if transaction_size:
            _put_field(out, b"transactionId", 13, transaction, transaction_size)
        gq_store32(<uint8_t *>fields - 4, out.at - fields)
    else:
        _put(out, b'{"code":', 8)
        _put_int(out, code)
        _put(out, b',"extFields":{"MSG_REGION":"DefaultRegion","TRACE_ON":"true","msgId":"', 70)
        _put(out, id_text, id_size)
        _put(out, b'","queueId":"', 13)
        _put_int(out, queue_id)
        _put(out, b'","queueOffset":"', 17)
        _put_int(out, queue_offset)
        if transaction_size:
            _put(out, b'","transactionId":"', 19)
            _put(out, transaction, transaction_size)
        _put(out, b'"},"flag":1,"language":"PYTHON","opaque":', 41)
        _put_int(out, opaque)
        _put(out, b',"serializeTypeCurrentRPC":"JSON","version":', 44)
        _put_int(out, VERSION)
        _put(out, b"}", 1)
    gq_store32(<uint8_t *>frame, out.at - frame - 4)
    gq_store32(<uint8_t *>frame + 4, <uint32_t>(codec == 1) << 24 | <uint32_t>(out.at - frame - 8))


def pull_answer(
    codec, code, opaque, str remark not None, suggest, next_offset, min_offset, max_offset,
    body_size,
):
    """The head of an answer to a pull; the body follows it on the wire untouched."""
    cdef Py_ssize_t size = 0
    cdef const char *text = PyUnicode_AsUTF8AndSize(remark, &size)
    answer = None
    if size < ANSWER_BYTES // 2:
        try:
            answer = _pull_answer(
                codec, code, opaque, text, size, suggest, next_offset, min_offset, max_offset,
                body_size,
            )
        except OverflowError:
            answer = None
    if answer is None:
        return _pure_frames.pull_answer(
            codec, code, opaque, remark, suggest, next_offset, min_offset, max_offset, body_size
        )
    return answer


cdef object _pull_answer(
    int codec, int64_t code, int64_t opaque, const char *remark, Py_ssize_t size, int64_t suggest,
    int64_t next_offset, int64_t min_offset, int64_t max_offset, int64_t body_size,
):
    cdef char space[ANSWER_BYTES]
    cdef Out out
    cdef char *fields
    out.start = space
    out.at = space + 8
    if codec == 1:
        if not _fits_binary(code, opaque):
            return None
        _begin_binary(&out, code, opaque, remark, size)
        fields = out.at
        _put_int_field(&out, b"maxOffset", 9, max_offset)
        _put_int_field(&out, b"minOffset", 9, min_offset)
        _put_int_field(&out, b"nextBeginOffset", 15, next_offset)
        _put_int_field(&out, b"suggestWhichBrokerId", 20, suggest)
        gq_store32(<uint8_t *>fields - 4, out.at - fields)
        return _finish(&out, 1, body_size)
    _put(&out, b'{"code":', 8)
    _put_int(&out, code)
    _put(&out, b',"extFields":{"maxOffset":"', 27)
    _put_int(&out, max_offset)
    _put(&out, b'","minOffset":"', 15)
    _put_int(&out, min_offset)
    _put(&out, b'","nextBeginOffset":"', 21)
    _put_int(&out, next_offset)
    _put(&out, b'","suggestWhichBrokerId":"', 26)
    _put_int(&out, suggest)
    _put(&out, b'"},"flag":1,"language":"PYTHON","opaque":', 41)
    _put_int(&out, opaque)
    _put(&out, b',"remark":"', 11)
    _put(&out, remark, size)
    _put(&out, b'","serializeTypeCurrentRPC":"JSON","version":', 45)
    _put_int(&out, VERSION)
    _put(&out, b"}", 1)
    return _finish(&out, 0, body_size)
