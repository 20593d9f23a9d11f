# Plain sends of one read: the compiled twin of send_runs.py. Included by _fast.pyx.

cdef struct Plain:
    Py_ssize_t frame, body  # where they begin in the frames of the run
    Py_ssize_t text, unique  # where properties and message id begin in its texts
    int32_t body_size, text_size, unique_size, size
    int32_t signed_size  # of the signed fields, which stand behind the properties in the texts
    int32_t queue_id, flag, sys_flag, again, topic
    int64_t opaque, born_ms, queue_offset, position
    uint8_t codec
    bint is_oneway


cdef enum:
    BOUNDS_MAX = 16

cdef str NOT_PLAIN = TIMER_TOPIC


cdef class SendRun:
    """Plain sends that follow each other; see `send_runs.SendRun`."""

    cdef public object connection, reply, status
    cdef public str error
    cdef readonly Py_ssize_t size, asked
    cdef Plain *sends
    cdef char *texts
    cdef Py_ssize_t count, room, texts_size, texts_room, end
    cdef bytes frames, born_host, tail, store_host
    cdef list topics, topic_bytes, queues
    cdef dict known
    cdef bint is_guarded
    cdef bytes access_key
    cdef _HmacSha1 key
    cdef set allowed
    cdef Py_ssize_t topic_limit, properties_max, body_max, record_max

    wait = True

    def __cinit__(self, rules, bytes born_host not None, access=None):
        cdef tuple fields = <tuple>rules  # which is a named one
        self.error = ""
        self.is_guarded = access is not None
        if self.is_guarded:
            self.access_key, self.allowed = access.access_key, access.topics
            self.key = access.key if isinstance(access.key, _HmacSha1) else None
        self.known, self.tail, self.store_host = fields[0], fields[1], fields[2]
        self.properties_max, self.body_max, self.record_max = fields[3], fields[4], fields[5]
        self.born_host = born_host
        self.topics, self.topic_bytes = [], []

    def __dealloc__(self):
        free(self.sends)
        free(self.texts)

    def __len__(self):
        return self.count

    # cutting

    cdef int make_room(self, Py_ssize_t texts) except -1:
        """For one more send, with so many bytes of properties."""
        cdef Py_ssize_t room
        cdef void *moved
        if self.count == self.room:
            room = max(4, 4 * self.room)
            moved = realloc(self.sends, room * sizeof(Plain))
            if moved == NULL:
                raise MemoryError
            self.sends, self.room = <Plain *>moved, room
        if self.texts_size + texts > self.texts_room:
            room = max(1024, 4 * (self.texts_size + texts))
            moved = realloc(self.texts, room)
            if moved == NULL:
                raise MemoryError
            self.texts, self.texts_room = <char *>moved, room
        return 0

    cdef bint take(
        self, uint32_t codec, const uint8_t *data, Py_ssize_t at, Py_ssize_t header_size,
        Py_ssize_t frame_size,
    ) except -1:
        """Add the send whose frame begins at `at`; False if it is not plain."""
        cdef SendHeader header
        cdef Plain *plain
        cdef const Span *topic
        if not _read_header(codec, data + at + 8, header_size, &header):
            return False
        if header.code != SEND_CODE or header.flag & 1:
            return False
        self.make_room((4 if self.is_guarded else 2) * header_size + 2)
        plain = self.sends + self.count
        if not _read_numbers(&header, plain) or not self.take_properties(&header, plain):
            return False
        if header.fields[BATCH].size == 4 and memcmp(header.fields[BATCH].at, b"true", 4) == 0:
            return False
        topic = &header.fields[TOPIC]
        if not self.is_topic(topic) or plain.queue_id >= self.topic_limit:
            return False
        plain.topic = len(self.topics) - 1
        plain.body_size = frame_size - 8 - header_size
        plain.size = (
            HEAD_BYTES - 16 + _host_size(self.born_host) + _host_size(self.store_host)
            + plain.body_size + (1 if topic.size <= V1_TOPIC_BYTES_MAX else 2) + topic.size
            + 2 + plain.text_size + len(self.tail)
        )
        if plain.body_size > self.body_max or plain.size > self.record_max:
            return False
        plain.signed_size = 0
        if self.is_guarded and not self.take_signed(&header, plain, header_size):
            return False
        plain.frame, plain.body = at, at + 8 + header_size
        plain.opaque, plain.codec = header.opaque, codec
        plain.is_oneway = (header.flag & 2) != 0
        plain.queue_offset = plain.position = 0
        self.texts_size += plain.text_size
        if self.is_guarded:
            self.texts_size += plain.signed_size + SIGNATURE_BYTES
        self.size += plain.size
        self.asked += not plain.is_oneway
        self.count += 1
        return True

    cdef bint take_signed(
        self, const SendHeader *header, Plain *plain, Py_ssize_t header_size
    ) noexcept:
        """Write what was signed, and the signature, behind the properties; False if another key
        signed, or other fields are signed, too."""
        cdef char *start = self.texts + self.texts_size + 2 * header_size + 2
        cdef char *at = start
        cdef const Span *field
        cdef Py_ssize_t size = len(self.access_key)
        cdef int letter
        if self.key is None or header.has_others or header.access_key.size != size:
            return False
        if memcmp(header.access_key.at, PyBytes_AS_STRING(self.access_key), size) != 0:
            return False
        if header.signature.size != SIGNATURE_BYTES:
            return False
        memcpy(at, header.access_key.at, size)
        at += size
        for letter in range(26):
            field = &header.fields[letter]
            if field.size:
                memcpy(at, field.at, field.size)
                at += field.size
        plain.signed_size = at - start
        memcpy(at, header.signature.at, SIGNATURE_BYTES)
        # Unescaped properties lay in between until now.
        memmove(
            self.texts + plain.text + plain.text_size, start, plain.signed_size + SIGNATURE_BYTES
        )
        return True

    cdef bint is_signed(self) noexcept:
        """Whether all signatures are right, once the frames are kept."""
        cdef Py_ssize_t number
        cdef Signed what[2]
        cdef char made[2][SIGNATURE_BYTES]
        cdef const char *said[2]
        cdef bint is_right = True
        for number in range(self.count):
            self.fill_signed(number, &what[number & 1], &said[number & 1])
            if number & 1:
                self.key.sign_both(&what[0], made[0], &what[1], made[1])
                is_right &= _is_signature(made[0], said[0], SIGNATURE_BYTES)
                is_right &= _is_signature(made[1], said[1], SIGNATURE_BYTES)
        if self.count & 1:
            self.key.sign(&what[0], made[0])
            is_right &= _is_signature(made[0], said[0], SIGNATURE_BYTES)
        return is_right

    cdef void fill_signed(self, Py_ssize_t number, Signed *what, const char **said) noexcept:
        cdef const Plain *plain = &self.sends[number]
        what.fields = <const uint8_t *>self.texts + plain.text + plain.text_size
        what.fields_size = plain.signed_size
        what.body = <const uint8_t *>PyBytes_AS_STRING(self.frames) + plain.body
        what.body_size = plain.body_size
        said[0] = <const char *>what.fields + plain.signed_size

    cdef bint take_properties(self, SendHeader *header, Plain *plain) noexcept:
        """Write the properties into the texts, as they are stored; False if they are not plain."""
        cdef Span *raw = &header.fields[PROPERTIES]
        cdef const char *text = raw.at
        cdef Py_ssize_t size = raw.size
        cdef Stored stored
        cdef Out out
        if header.is_escaped:
            # Behind the place where they are stored, which takes at most one byte more.
            text = self.texts + self.texts_size + raw.size + 1
            size = _unescape(raw, <char *>text)
            raw.at, raw.size = text, max(size, 0)
        if size <= 0 or memchr(text, 0, size) != NULL or _is_careful(text, size):
            return False
        out.start = out.at = self.texts + self.texts_size
        _put_entries(&out, text, size, &stored)
        if not stored.waits or not _is_word(stored.unique, stored.unique_size):
            return False
        plain.text, plain.text_size = self.texts_size, out.at - out.start
        plain.unique, plain.unique_size = stored.unique - self.texts, stored.unique_size
        return plain.text_size + len(self.tail) <= self.properties_max

    cdef bint is_topic(self, const Span *name) except -1:
        """Whether sends may go to a topic; it is the last one of `topics` then."""
        cdef Py_ssize_t last = len(self.topics) - 1, readable
        cdef bytes raw
        if last >= 0:
            raw = self.topic_bytes[last]
            if len(raw) == name.size and memcmp(PyBytes_AS_STRING(raw), name.at, name.size) == 0:
                return True
        if name.at == NULL or not _is_name(name.at, name.size):
            return False
        topic = PyUnicode_DecodeASCII(name.at, name.size, NULL)
        config = self.known.get(topic)
        if config is None or topic == NOT_PLAIN:
            return False
        if self.is_guarded and topic not in self.allowed:
            return False
        self.topic_limit, readable = config.write_queue_nums, config.read_queue_nums
        self.topic_limit = max(self.topic_limit, readable)
        self.topics.append(topic)
        self.topic_bytes.append(PyBytes_FromStringAndSize(name.at, name.size))
        return True

    cdef int close(
        self, buffer, const uint8_t *data, Py_ssize_t end, list requests
    ) except -1:
        """Join the requests; one by one if a signature is wrong."""
        self.keep_frames(buffer, data, end)
        if self.is_guarded and not self.is_signed():
            requests.extend(self.commands())
        else:
            requests.append(self)
        return 0

    cdef int keep_frames(self, buffer, const uint8_t *data, Py_ssize_t end) except -1:
        """Keep the bytes of the frames, which end at `end`: the buffer, if that wastes little."""
        cdef Py_ssize_t start = self.sends[0].frame, number
        if type(buffer) is bytes and 2 * (end - start) >= len(<bytes>buffer):
            self.frames, self.end = buffer, end
            return 0
        self.frames = PyBytes_FromStringAndSize(<const char *>data + start, end - start)
        self.end = end - start
        for number in range(self.count):
            self.sends[number].frame -= start
            self.sends[number].body -= start
        return 0

    def commands(self):
        cdef Py_ssize_t start = self.sends[0].frame if self.count else 0
        commands, _, _ = cut_commands(self.frames[start : self.end], 1 << 32, self.count)
        return commands

    def split(self, Py_ssize_t bytes_max):
        cdef Py_ssize_t number = 0, total = 0
        cdef SendRun front
        while number < self.count and total + self.sends[number].size <= bytes_max:
            total += self.sends[number].size
            number += 1
        if not number:
            return None
        rules = self.known, self.tail, self.store_host, 0, 0, 0
        front = SendRun.__new__(SendRun, rules, self.born_host)
        front.connection, front.reply = self.connection, self.reply
        front.frames, front.topics, front.topic_bytes = self.frames, self.topics, self.topic_bytes
        front.count = front.room = number
        front.texts_size = front.texts_room = self.texts_size
        front.sends = <Plain *>malloc(number * sizeof(Plain))
        front.texts = <char *>malloc(self.texts_size)
        if front.sends == NULL or front.texts == NULL:
            raise MemoryError
        memcpy(front.sends, self.sends, number * sizeof(Plain))
        memcpy(front.texts, self.texts, self.texts_size)
        front.end = self.sends[number].frame if number < self.count else self.end
        front.size = total
        front.asked = _asked(front.sends, number)
        self.count -= number
        memmove(self.sends, self.sends + number, self.count * sizeof(Plain))
        self.size -= total
        self.asked -= front.asked
        return front

    # in the store

    def place(self, dict queues not None, open_queue):
        cdef Py_ssize_t number
        cdef Plain *plain
        cdef int64_t last_id = -1
        cdef int32_t last_topic = -1
        cdef QueueTail queue = None
        self.queues = []
        for number in range(self.count):
            plain = self.sends + number
            if plain.topic != last_topic or plain.queue_id != last_id:
                last_topic, last_id = plain.topic, plain.queue_id
                key = self.topics[last_topic], plain.queue_id
                found = queues.get(key)
                if found is None:
                    found = open_queue(self.topics[last_topic], plain.queue_id)
                queue = <QueueTail?>found
            self.queues.append(queue)
            plain.queue_offset = queue.next
            queue.next += 1

    def take_back(self):
        cdef Py_ssize_t number
        for number in range(self.count - 1, -1, -1):
            (<QueueTail>self.queues[number]).next = self.sends[number].queue_offset

    cdef Py_ssize_t encode(
        self, uint8_t *to, int64_t position, int64_t store_ms, bytes store_host
    ) except -1:
        """Lay the records back to back from log offset `position`; returns their size."""
        cdef const char *frames = PyBytes_AS_STRING(self.frames)
        cdef uint8_t *at = to
        cdef Py_ssize_t number
        cdef Plain *plain
        cdef Record record
        record.store_ms, record.prepared = store_ms, 0
        record.tail, record.tail_size = PyBytes_AS_STRING(self.tail), len(self.tail)
        for number in range(self.count):
            plain = self.sends + number
            plain.position = position + (at - to)
            record.queue_id, record.flag, record.sys_flag = plain.queue_id, plain.flag, plain.sys_flag
            record.again, record.born_ms = plain.again, plain.born_ms
            record.queue_offset, record.position = plain.queue_offset, plain.position
            record.body, record.body_size = frames + plain.body, plain.body_size
            record.properties, record.properties_size = self.texts + plain.text, plain.text_size
            at += _put_record(
                at, &record, <bytes>self.topic_bytes[plain.topic], self.born_host, store_host
            )
        return at - to

    # when they are stored

    def answers(self, int64_t code):
        cdef char id_text[56]
        cdef Py_ssize_t number, id_size = 2 * len(self.store_host) + 16
        cdef Plain *plain
        cdef Out out
        if not -32768 <= code <= 32767 or id_size > 56:
            raise ProtocolError("an answer that does not fit into its frame")
        if not self.asked:
            return b""
        out.start = out.at = <char *>malloc(self.asked * ANSWER_BYTES)
        if out.start == NULL:
            raise MemoryError
        try:
            for number in range(self.count):
                plain = self.sends + number
                if not plain.is_oneway:
                    _put_id(id_text, self.store_host, plain.position)
                    _put_send_answer(
                        &out, plain.codec, code, plain.opaque, id_text, id_size, plain.queue_id,
                        plain.queue_offset, self.texts + plain.unique, plain.unique_size,
                    )
            return PyBytes_FromStringAndSize(out.start, out.at - out.start)
        finally:
            free(out.start)

    def counts(self, tuple bounds not None):
        cdef list found = []
        cdef int64_t limits[BOUNDS_MAX]
        cdef int64_t classes[BOUNDS_MAX]
        cdef Py_ssize_t number, class_of, start = 0, used = len(bounds)
        cdef int64_t total = 0
        if used > BOUNDS_MAX:
            raise ValueError("too many bounds")
        for number in range(used):
            limits[number], classes[number] = bounds[number], 0
        for number in range(self.count):
            total += self.sends[number].size
            class_of = -1
            while class_of + 1 < used and self.sends[number].size > limits[class_of + 1]:
                class_of += 1
            if class_of >= 0:
                classes[class_of] += 1
            if number + 1 < self.count and self.sends[number + 1].topic == self.sends[start].topic:
                continue
            larger = [(at, classes[at]) for at in range(used) if classes[at]]
            found.append((self.topics[self.sends[start].topic], number + 1 - start, total, larger))
            memset(classes, 0, sizeof(classes))
            start, total = number + 1, 0
        return found


cdef Py_ssize_t _asked(const Plain *sends, Py_ssize_t count) noexcept nogil:
    """How many senders want an answer."""
    cdef Py_ssize_t number, asked = 0
    for number in range(count):
        asked += not sends[number].is_oneway
    return asked


def cut_requests(buffer, size_max, count_max, rules, bytes born_host not None, access=None):
    """Cut frames, and gather plain sends; see `send_runs.cut_requests`."""
    cdef list requests = []
    cdef Py_ssize_t at = 0, start
    cdef int64_t limit = size_max, left = count_max
    cdef int64_t size, header_size
    cdef uint32_t mark
    cdef const uint8_t *data
    cdef Py_buffer view
    cdef SendRun run = None
    error = None
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        data = <const uint8_t *>view.buf
        while view.len - at >= 8 and left > 0:
            size = 4 + <int64_t>gq_load32(data + at)
            mark = gq_load32(data + at + 4)
            header_size = mark & 0xFFFFFF
            if size > limit:
                error = ProtocolError(f"frame of {size} bytes is over the limit of {size_max}")
                break
            if 8 + header_size > size:
                error = ProtocolError(f"header of {header_size} bytes in {size}")
                break
            if at + size > view.len:
                break
            start, at = at, at + size
            if rules is not None and _may_be_send(mark >> 24, data + start + 8, header_size):
                if run is None:
                    run = SendRun.__new__(SendRun, rules, born_host, access)
                if run.take(mark >> 24, data, start, header_size, size):
                    left -= 1
                    continue
            if run is not None and run.count:
                run.close(buffer, data, start, requests)
                run = None
            try:
                command = _decode(mark >> 24, data + start + 8, header_size)
            except ProtocolError as bad:
                error, at = bad, start
                break
            command.body = PyBytes_FromStringAndSize(
                <const char *>data + start + 8 + header_size, size - 8 - header_size
            )
            requests.append(command)
            left -= 1
        if run is not None and run.count:
            run.close(buffer, data, at, requests)
    finally:
        PyBuffer_Release(&view)
    return requests, count_max - left, at, error
