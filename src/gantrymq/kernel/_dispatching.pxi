# Queue entries and index rows: the compiled twin of dispatching.py and keys.py. Included by _fast.pyx.

cdef class QueueTail:
    """The newest entries of a queue; see `dispatching.QueueTail`."""

    cdef public int64_t next, stop
    cdef public bytearray tail
    cdef public object end
    cdef int64_t round  # the call that added entries last

    def publish(self):
        if self.next < self.stop:
            self.next = self.stop
        self.end.advance(self.stop)


cdef class KeyRows:
    """Rows of the key index; see `keys.KeyRows`."""

    cdef int32_t *hashes
    cdef int64_t *offsets
    cdef int64_t *times
    cdef Py_ssize_t count, room

    def __dealloc__(self):
        free(self.hashes)
        free(self.offsets)
        free(self.times)

    def __len__(self):
        return self.count

    cdef int put(self, int32_t hashed, int64_t offset, int64_t ms) except -1:
        if self.count == self.room:
            self.grow()
        self.hashes[self.count], self.offsets[self.count] = hashed, offset
        self.times[self.count] = ms
        self.count += 1
        return 0

    cdef int grow(self) except -1:
        cdef Py_ssize_t room = max(64, 2 * self.room)
        cdef void *moved = realloc(self.hashes, room * sizeof(int32_t))
        if moved == NULL:
            raise MemoryError
        self.hashes = <int32_t *>moved
        moved = realloc(self.offsets, room * sizeof(int64_t))
        if moved == NULL:
            raise MemoryError
        self.offsets = <int64_t *>moved
        moved = realloc(self.times, room * sizeof(int64_t))
        if moved == NULL:
            raise MemoryError
        self.times, self.room = <int64_t *>moved, room
        return 0

    cdef int put_keys(
        self, bytes topic, const uint8_t *properties, Py_ssize_t size, int64_t offset, int64_t ms
    ) except -1:
        """A row for the unique id, then one for each of KEYS."""
        cdef Py_ssize_t found = 0
        cdef const uint8_t *value = _find(properties, size, b"UNIQ_KEY", 8, &found)
        cdef const uint8_t *end
        cdef const uint8_t *stop
        if found:
            self.put(_key_hash(topic, value, found), offset, ms)
        found = 0
        value = _find(properties, size, b"KEYS", 4, &found)
        end = value + found
        while value < end:
            stop = <const uint8_t *>memchr(value, 32, end - value)
            if stop == NULL:
                stop = end
            if stop > value:
                self.put(_key_hash(topic, value, stop - value), offset, ms)
            value = stop + 1
        return 0

    def add(self, records):
        cdef tuple record
        cdef bytes properties
        for record in records:
            properties = record[8]
            self.put_keys(
                record[0], <const uint8_t *>PyBytes_AS_STRING(properties), len(properties),
                record[3], record[7],
            )

    def columns(self, Py_ssize_t count):
        if count < 0 or count > self.count:
            count = self.count
        return (
            PyBytes_FromStringAndSize(<const char *>self.hashes, count * sizeof(int32_t)),
            PyBytes_FromStringAndSize(<const char *>self.offsets, count * sizeof(int64_t)),
            PyBytes_FromStringAndSize(<const char *>self.times, count * sizeof(int64_t)),
        )

    def drop(self, Py_ssize_t count):
        if count < 0 or count > self.count:
            count = self.count
        self.count -= count
        memmove(self.hashes, self.hashes + count, self.count * sizeof(int32_t))
        memmove(self.offsets, self.offsets + count, self.count * sizeof(int64_t))
        memmove(self.times, self.times + count, self.count * sizeof(int64_t))


cdef int32_t _key_hash(bytes topic, const uint8_t *key, Py_ssize_t size):
    """The hash of TOPIC#KEY without its sign."""
    cdef int32_t value = 0
    cdef bint is_ascii = _hash_ascii(
        <const uint8_t *>PyBytes_AS_STRING(topic), len(topic), &value
    )
    _hash_ascii(<const uint8_t *>b"#", 1, &value)
    if not _hash_ascii(key, size, &value) or not is_ascii:
        text = PyBytes_FromStringAndSize(<const char *>key, size)
        value = _pure_records.java_hash(b"%b#%b" % (topic, text))
    return _unsigned(value)


cdef int64_t dispatch_rounds = 0
cdef bytes DELAYED = _pure_dispatching.DELAYED


def dispatch_records(
    bytes data not None, int64_t base, dict queues not None, KeyRows rows, int64_t rows_from
):
    """Add the entries of plain records; see `dispatching.dispatch_records`."""
    global dispatch_rounds
    cdef list touched = []
    cdef const uint8_t *record = <const uint8_t *>PyBytes_AS_STRING(data)
    cdef const uint8_t *end = record + len(data)
    cdef bytes topic = b""
    cdef QueueTail queue = None
    cdef int64_t last_id = -1, last_ms = 0, reached = base
    cdef Parts parts
    dispatch_rounds += 1
    while _read_parts(record, end - record, reached, &parts):
        if parts.kind == TRANSACTION_PREPARED or parts.kind == TRANSACTION_ROLLBACK:
            break
        if (
            queue is None or parts.queue_id != last_id or parts.topic_size != len(topic)
            or memcmp(parts.topic, PyBytes_AS_STRING(topic), parts.topic_size) != 0
        ):
            topic = PyBytes_FromStringAndSize(<const char *>parts.topic, parts.topic_size)
            last_id = parts.queue_id
            found = queues.get((topic, last_id))
            if found is None or topic == DELAYED:
                break
            queue = <QueueTail?>found
        if queue.stop != parts.queue_offset:
            break
        _put_entry(queue, &parts, reached)
        if queue.round != dispatch_rounds:
            queue.round = dispatch_rounds
            touched.append(queue)
        if rows is not None and reached > rows_from:
            rows.put_keys(topic, parts.properties, parts.properties_size, reached, parts.store_ms)
        last_ms = parts.store_ms
        reached += parts.size
        record += parts.size
    return reached, touched, last_ms


cdef struct Parts:
    const uint8_t *topic
    const uint8_t *properties
    int64_t topic_size, properties_size, size, queue_id, queue_offset, store_ms
    int32_t kind


cdef bint _read_parts(
    const uint8_t *record, int64_t room, int64_t position, Parts *parts
) noexcept nogil:
    """What a queue and the index take from the record at log offset `position`; False if no whole
    record is there."""
    cdef int32_t sys_flag
    cdef int64_t born_size, body_at, body_size, topic_at
    cdef uint32_t magic
    if room < RECORD_BYTES_MIN:
        return False
    parts.size, magic = <int32_t>gq_load32(record), gq_load32(record + 4)
    if <int32_t>magic != MAGIC_V1 and <int32_t>magic != MAGIC_V2:
        return False
    if parts.size < RECORD_BYTES_MIN or parts.size > room:
        return False
    if <int64_t>gq_load64(record + 28) != position:
        return False
    sys_flag = <int32_t>gq_load32(record + 36)
    born_size = 20 if sys_flag & BORN_V6 else 8
    body_at = HEAD_BYTES - 16 + born_size + (20 if sys_flag & STORE_V6 else 8)
    if body_at + 3 > parts.size:
        return False
    body_size = <int32_t>gq_load32(record + body_at - 4)
    if body_size < 0 or body_size > parts.size - body_at - 3:
        return False
    topic_at = body_at + body_size + 1
    parts.topic_size = record[topic_at - 1]
    if <int32_t>magic == MAGIC_V2:
        parts.topic_size = parts.topic_size << 8 | record[topic_at]
        topic_at += 1
    parts.properties_size = parts.size - topic_at - parts.topic_size - 2
    if parts.topic_size == 0 or parts.properties_size < 0:
        return False
    parts.topic, parts.properties = record + topic_at, record + topic_at + parts.topic_size + 2
    if <int16_t>gq_load16(parts.properties - 2) != parts.properties_size:
        return False
    parts.queue_id = <int32_t>gq_load32(record + 12)
    parts.queue_offset = <int64_t>gq_load64(record + 20)
    parts.store_ms = <int64_t>gq_load64(record + 48 + born_size)
    parts.kind = sys_flag & TRANSACTION_BITS
    return True


cdef int _put_entry(QueueTail queue, const Parts *parts, int64_t position) except -1:
    cdef Py_ssize_t size = PyByteArray_GET_SIZE(queue.tail)
    cdef int64_t code = _tag_code(parts.properties, parts.properties_size)
    cdef uint8_t *to
    PyByteArray_Resize(queue.tail, size + ENTRY_BYTES)
    to = <uint8_t *>PyByteArray_AS_STRING(queue.tail) + size
    gq_store64(to, <uint64_t>position)
    gq_store32(to + 8, <uint32_t>parts.size)
    gq_store64(to + 12, <uint64_t>code)
    queue.stop = parts.queue_offset + 1
    return 0


def publish_queues(list queues not None, Py_ssize_t tail_bytes_max):
    """Make new entries visible; see `dispatching.publish_queues`."""
    cdef list large = []
    cdef QueueTail queue
    for queue in queues:
        if queue.next < queue.stop:
            queue.next = queue.stop
        queue.end.advance(queue.stop)
        if PyByteArray_GET_SIZE(queue.tail) > tail_bytes_max:
            large.append(queue)
    return large
