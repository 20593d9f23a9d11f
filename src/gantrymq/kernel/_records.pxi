# Records and queue entries: the compiled twin of records.py. Included by _fast.pyx.


def crc32(data) -> int:
    """CRC-32 of a buffer, as zlib computes it."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return gq_crc32(<const uint8_t *>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


def encode_records(items, int64_t base, int64_t store_ms, bytes store_host not None):
    """Lay records back to back from log offset `base`; see `records.encode_records`."""
    cdef Py_ssize_t store_size = 20 if len(store_host) == 20 else 8
    cdef Py_ssize_t total = 0, size
    cdef list sizes = []
    cdef uint8_t *at
    cdef int64_t position = base
    for item in items:
        size = (<SendRun>item).size if type(item) is SendRun else _record_size(item, store_size)
        sizes.append(size)
        total += size
    data = PyBytes_FromStringAndSize(NULL, total)
    at = <uint8_t *>PyBytes_AS_STRING(data)
    for item in items:
        if type(item) is SendRun:
            size = (<SendRun>item).encode(at, position, store_ms, store_host)
        else:
            size = _encode_record(at, item, position, store_ms, store_host)
        at += size
        position += size
    return data, sizes


cdef inline Py_ssize_t _host_size(bytes host) except -1:
    return 20 if len(host) == 20 else 8


cdef Py_ssize_t _record_size(tuple item, Py_ssize_t store_size) except -1:
    cdef bytes topic = item[0], born_host = item[6], body = item[9], properties = item[10]
    if len(topic) > 65535 or len(properties) > 65535:
        raise OverflowError("a topic or properties too long for a record")
    return (
        HEAD_BYTES - 16 + _host_size(born_host) + store_size
        + len(body) + _length_bytes(topic) + len(topic) + 2 + len(properties)
    )


cdef inline Py_ssize_t _length_bytes(bytes topic) except -1:
    """One byte tells a topic's length in version 1 of a record, two in version 2."""
    return 1 if len(topic) <= V1_TOPIC_BYTES_MAX else 2


cdef inline uint8_t *_put_host(uint8_t *at, bytes host, Py_ssize_t size) except NULL:
    cdef Py_ssize_t given = len(host)
    if given < size:
        memset(at, 0, size)
    memcpy(at, PyBytes_AS_STRING(host), min(given, size))
    return at + size


cdef struct Record:
    int32_t queue_id, flag, sys_flag, again
    int64_t queue_offset, position, born_ms, store_ms, prepared
    const void *body
    const void *properties
    const void *tail
    Py_ssize_t body_size, properties_size, tail_size


cdef Py_ssize_t _encode_record(
    uint8_t *start, tuple item, int64_t position, int64_t store_ms, bytes store_host
) except -1:
    cdef bytes topic = item[0], born_host = item[6], body = item[9], properties = item[10]
    cdef Record record
    record.queue_id, record.queue_offset, record.flag = item[1], item[2], item[3]
    record.sys_flag, record.born_ms = item[4], item[5]
    record.again, record.prepared = item[7], item[8]
    record.position, record.store_ms = position, store_ms
    record.body, record.body_size = PyBytes_AS_STRING(body), len(body)
    record.properties, record.properties_size = PyBytes_AS_STRING(properties), len(properties)
    record.tail, record.tail_size = NULL, 0
    return _put_record(start, &record, topic, born_host, store_host)


cdef Py_ssize_t _put_record(
    uint8_t *start, const Record *record, bytes topic, bytes born_host, bytes store_host
) except -1:
    cdef Py_ssize_t born_size = _host_size(born_host), store_size = _host_size(store_host)
    cdef Py_ssize_t length_bytes = _length_bytes(topic)
    cdef uint8_t *at = start
    cdef int32_t host_bits = BORN_V6 * (born_size == 20) | STORE_V6 * (store_size == 20)
    gq_store32(at + 4, <uint32_t>(MAGIC_V1 if length_bytes == 1 else MAGIC_V2))
    gq_store32(at + 8, gq_crc32(<const uint8_t *>record.body, record.body_size) & 0x7FFFFFFF)
    gq_store32(at + 12, record.queue_id)
    gq_store32(at + 16, record.flag)
    gq_store64(at + 20, record.queue_offset)
    gq_store64(at + 28, record.position)
    gq_store32(at + 36, (record.sys_flag & ~HOST_BITS) | host_bits)
    gq_store64(at + 40, record.born_ms)
    at = _put_host(at + 48, born_host, born_size)
    gq_store64(at, record.store_ms)
    at = _put_host(at + 8, store_host, store_size)
    gq_store32(at, record.again)
    gq_store64(at + 4, record.prepared)
    gq_store32(at + 12, record.body_size)
    memcpy(at + 16, record.body, record.body_size)
    at += 16 + record.body_size
    if length_bytes == 1:
        at[0] = len(topic)
    else:
        gq_store16(at, len(topic))
    memcpy(at + length_bytes, PyBytes_AS_STRING(topic), len(topic))
    at += length_bytes + len(topic)
    gq_store16(at, record.properties_size + record.tail_size)
    memcpy(at + 2, record.properties, record.properties_size)
    if record.tail_size:
        memcpy(at + 2 + record.properties_size, record.tail, record.tail_size)
    at += 2 + record.properties_size + record.tail_size
    gq_store32(start, at - start)
    return at - start


def walk_records(buffer, int64_t base, int64_t room, bint check):
    """List the records that lie back to back in `buffer`; see `records.walk_records`."""
    cdef list found = []
    cdef int64_t at = 0, size, magic, length
    cdef const uint8_t *data
    cdef bytes topic = b""
    cdef int stop = 2
    cdef Py_buffer view
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        data, length = <const uint8_t *>view.buf, view.len
        while True:
            if length - at < BLANK_BYTES:
                stop = 0
                break
            size, magic = <int32_t>gq_load32(data + at), <int32_t>gq_load32(data + at + 4)
            if magic == MAGIC_BLANK and size == room - at:
                stop = 1
                break
            if (magic != MAGIC_V1 and magic != MAGIC_V2) or (
                size < RECORD_BYTES_MIN or size > room - at - 8
            ):
                stop = 2 if size or magic else 3
                break
            if size > length - at:
                stop = 0
                break
            record = _walk_one(data + at, base + at, magic == MAGIC_V2, size, check, topic)
            if record is None:
                break
            topic = <bytes>(<tuple>record)[0]
            found.append(record)
            at += size
    finally:
        PyBuffer_Release(&view)
    return Walk(found, base + at, stop)


cdef tuple _walk_one(
    const uint8_t *record, int64_t position, bint is_v2, int64_t size, bint check, bytes last
):
    """One record, or None if its parts contradict each other. `last` is the topic before it:
    records of one topic share the object."""
    cdef int32_t sys_flag = <int32_t>gq_load32(record + 36)
    cdef int64_t born_size = 20 if sys_flag & BORN_V6 else 8
    cdef int64_t body_at = HEAD_BYTES - 16 + born_size + (20 if sys_flag & STORE_V6 else 8)
    cdef int64_t body_size, topic_at, topic_size, topic_end
    if body_at + 3 > size:
        return None
    body_size = <int32_t>gq_load32(record + body_at - 4)
    if <int64_t>gq_load64(record + 28) != position:
        return None
    if body_size < 0 or body_size > size - body_at - 3:
        return None
    topic_at = body_at + body_size + 1
    topic_size = record[topic_at - 1]
    if is_v2:
        topic_size = topic_size << 8 | record[topic_at]
        topic_at += 1
    topic_end = topic_at + topic_size
    if topic_size == 0 or topic_end + 2 > size:
        return None
    if topic_end + 2 + <int16_t>gq_load16(record + topic_end) != size:
        return None
    if check:
        if body_size and (
            (gq_crc32(record + body_at, body_size) & 0x7FFFFFFF) != gq_load32(record + 8)
        ):
            return None
        if memchr(record + topic_at, 0, topic_size) != NULL:
            return None
        if _is_torn(record + topic_end + 2, size - topic_end - 2, position + size):
            return None
    if len(last) != topic_size or memcmp(PyBytes_AS_STRING(last), record + topic_at, topic_size):
        last = PyBytes_FromStringAndSize(<const char *>record + topic_at, topic_size)
    return (
        last, <int32_t>gq_load32(record + 12), <int64_t>gq_load64(record + 20), position, size,
        sys_flag, _tag_code(record + topic_end + 2, size - topic_end - 2),
        <int64_t>gq_load64(record + 48 + born_size),
        PyBytes_FromStringAndSize(<const char *>record + topic_end + 2, size - topic_end - 2),
    )


cdef bint _is_torn(const uint8_t *properties, int64_t length, int64_t end) noexcept nogil:
    """Whether a sector's share of the properties is all zero; `end` is their end in the log."""
    cdef int64_t start = end - length, stop, at
    if length == 0 or memchr(properties, 0, length) == NULL:
        return False
    while start < end:
        stop = min(end, start - start % SECTOR + SECTOR)
        at = start
        while at < stop and properties[length - (end - at)] == 0:
            at += 1
        if at == stop:
            return True
        start = stop
    return False


cdef const uint8_t *_find(
    const uint8_t *properties, Py_ssize_t length, const char *name, Py_ssize_t size,
    Py_ssize_t *value_size,
) noexcept nogil:
    """The value of the last property of this name; NULL if there is none."""
    cdef const uint8_t *at = properties
    cdef const uint8_t *end = properties + length
    cdef const uint8_t *found = NULL
    cdef const uint8_t *stop
    while end - at > size:
        if at[size] == 1 and memcmp(at, name, size) == 0:
            found = at + size + 1
        at = <const uint8_t *>memchr(at, 2, end - at)
        if at == NULL:
            break
        at += 1
    if found == NULL:
        return NULL
    stop = <const uint8_t *>memchr(found, 2, end - found)
    value_size[0] = (stop if stop != NULL else end) - found
    return found


cdef bint _hash_ascii(const uint8_t *text, Py_ssize_t size, int32_t *value) noexcept nogil:
    """Java's hash of ASCII text, going on from the value of what stands before it; False if it is
    not ASCII."""
    cdef uint32_t folded = <uint32_t>value[0]
    cdef uint8_t high = 0
    cdef Py_ssize_t at
    for at in range(size):
        folded = folded * 31 + text[at]
        high |= text[at]
    value[0] = <int32_t>folded
    return high < 128


cdef object _tag_code(const uint8_t *properties, Py_ssize_t length):
    cdef Py_ssize_t size = 0
    cdef int32_t value = 0
    cdef const uint8_t *tags = _find(properties, length, b"TAGS", 4, &size)
    if tags == NULL:
        return 0
    if _hash_ascii(tags, size, &value):
        return value
    return _pure_records.tag_code_of(PyBytes_FromStringAndSize(<const char *>tags, size))


def java_hash(text):
    """Java's String.hashCode: signed 32 bits over UTF-16 units."""
    cdef int32_t value = 0
    cdef Py_ssize_t size = 0
    cdef const char *raw
    if isinstance(text, bytes):
        raw, size = PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text)
    elif isinstance(text, str) and text.isascii():
        raw = PyUnicode_AsUTF8AndSize(text, &size)
    else:
        return _pure_records.java_hash(text)
    if _hash_ascii(<const uint8_t *>raw, size, &value):
        return value
    return _pure_records.java_hash(text)


def hash_keys(keys):
    """The index hash of each key: Java's hash without its sign, 0 if that cannot be."""
    cdef list hashes = []
    cdef bytes key
    cdef int32_t value = 0
    for key in keys:
        value = 0
        if not _hash_ascii(<const uint8_t *>PyBytes_AS_STRING(key), len(key), &value):
            value = _pure_records.java_hash(key)
        hashes.append(_unsigned(value))
    return hashes


cdef inline int32_t _unsigned(int32_t value) noexcept nogil:
    """Without its sign; what has no counterpart is 0."""
    return 0 if value == -2147483648 else (-value if value < 0 else value)


def find_property(bytes properties not None, bytes name not None):
    """The value of a property in its encoded string; the last one counts, as in Java."""
    cdef Py_ssize_t size = 0
    cdef const uint8_t *value
    if b"\x01" in name or b"\x02" in name:
        return _pure_records.find_property(properties, name)
    value = _find(
        <const uint8_t *>PyBytes_AS_STRING(properties), len(properties),
        PyBytes_AS_STRING(name), len(name), &size,
    )
    return PyBytes_FromStringAndSize(<const char *>value, size) if size else None


cpdef list index_keys(bytes properties):
    """The keys under which a message is indexed: its unique id, then each of its KEYS."""
    cdef list found = []
    cdef Py_ssize_t size = 0
    cdef const uint8_t *raw = <const uint8_t *>PyBytes_AS_STRING(properties)
    cdef const uint8_t *value = _find(raw, len(properties), b"UNIQ_KEY", 8, &size)
    cdef const uint8_t *end
    cdef const uint8_t *stop
    if size:
        found.append(PyBytes_FromStringAndSize(<const char *>value, size))
    size = 0
    value = _find(raw, len(properties), b"KEYS", 4, &size)
    end = value + size
    while value < end:
        stop = <const uint8_t *>memchr(value, 32, end - value)
        if stop == NULL:
            stop = end
        if stop > value:
            found.append(PyBytes_FromStringAndSize(<const char *>value, stop - value))
        value = stop + 1
    return found


def select_entries(entries, tag_codes, int64_t count_max, int64_t bytes_max, int64_t log_min):
    """Choose the records a pull returns; the first one is taken whatever its size."""
    cdef list runs = []
    cdef int64_t count = 0, scanned = 0, gone = 0, total = 0, run_at = -1, run_end = -1
    cdef int64_t position, size
    cdef const uint8_t *at
    cdef const uint8_t *end
    cdef bint filtered = tag_codes is not None
    cdef Py_buffer view
    PyObject_GetBuffer(entries, &view, PyBUF_SIMPLE)
    try:
        if view.len % ENTRY_BYTES:
            raise struct.error("queue entries must be a multiple of 20 bytes")
        at = <const uint8_t *>view.buf
        end = at + view.len
        while at < end:
            if filtered and not PySet_Contains(tag_codes, <int64_t>gq_load64(at + 12)):
                scanned += 1
                at += ENTRY_BYTES
                continue
            position, size = <int64_t>gq_load64(at), <int32_t>gq_load32(at + 8)
            at += ENTRY_BYTES
            if position < log_min or size == FILLER_SIZE:
                scanned += 1
                gone += 1
                continue
            if count and (count >= count_max or total + size > bytes_max):
                break
            if position == run_end:
                run_end += size
            else:
                if count:
                    runs.append((run_at, run_end - run_at))
                run_at, run_end = position, position + size
            count += 1
            total += size
            scanned += 1
    finally:
        PyBuffer_Release(&view)
    if count:
        runs.append((run_at, run_end - run_at))
    return Selected(runs, count, scanned, gone)
