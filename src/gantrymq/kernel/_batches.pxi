# Batches in and out: the compiled twin of batches.py. Included by _fast.pyx.

cdef enum:
    ITEM_HEAD_BYTES = 20
    ITEM_BYTES = 22
    PROPERTIES_BYTES_MAX = 32767

cdef inline bint _is_plain(object message) except -1:
    return (
        message.delay_level == 0 and message.deliver_at is None and message.delay is None
        and message.wait_store_ok is True and message.sharding_key is None
    )


cdef Py_ssize_t _put_property(
    char *to, Py_ssize_t room, const char *name, Py_ssize_t name_size, str value
) except -2:
    """Write one property; -1 if there is no room for it."""
    cdef Py_ssize_t size = 0
    cdef const char *text = PyUnicode_AsUTF8AndSize(value, &size)
    if name_size + size + 2 > room:
        return -1
    memcpy(to, name, name_size)
    to[name_size] = 1
    memcpy(to + name_size + 1, text, size)
    to[name_size + 1 + size] = 2
    return name_size + size + 2


cdef Py_ssize_t _put_plain(char *to, Py_ssize_t room, object message, str msg_id) except -2:
    """The properties of a message that has none of its own; -1 if there is no room for them."""
    cdef Py_ssize_t used, more
    tags, keys = message.tags, message.keys
    used = _put_property(to, room, b"UNIQ_KEY", 8, msg_id)
    if used >= 0 and tags:
        more = _put_property(to + used, room - used, b"TAGS", 4, tags)
        used = -1 if more < 0 else used + more
    if used >= 0 and keys:
        more = _put_property(to + used, room - used, b"KEYS", 4, " ".join(keys))
        used = -1 if more < 0 else used + more
    return used


def encode_batch(list messages not None, Py_ssize_t start, str stem not None, counter, limits, own):
    """Encode the plain messages of one topic that stand next to each other; see `batches`."""
    cdef Py_ssize_t count_max = limits.messages, room = limits.bytes, body_max = limits.body_bytes
    cdef Py_ssize_t at, used = 0, size, stem_size = 0, properties_room
    cdef Py_ssize_t end = min(len(messages), start + count_max)
    cdef uint32_t number = counter & 0xFFFF
    cdef const char *stem_text = PyUnicode_AsUTF8AndSize(stem, &stem_size)
    cdef char id_text[64]
    cdef char *item
    cdef bytes body
    cdef list ids = []
    cdef str msg_id
    cdef int digit
    if stem_size > 60:
        return _pure_batches.encode_batch(messages, start, stem, counter, limits, own)
    memcpy(id_text, stem_text, stem_size)
    topic = messages[start].topic
    space = PyBytes_FromStringAndSize(NULL, max(room, 0))
    for at in range(start, end):
        message = messages[at]
        if message.topic != topic or not _is_plain(message):
            break
        for digit in range(4):
            id_text[stem_size + digit] = HEX[number >> (12 - 4 * digit) & 15]
        msg_id = PyUnicode_DecodeUTF8(id_text, stem_size + 4, NULL)
        body = message.body
        made = None
        if message.properties:
            made = own(message, msg_id)
            if made is None:
                break
            msg_id = <str?>made[1]
        if len(body) > body_max or used + ITEM_BYTES + len(body) > room:
            break
        item = PyBytes_AS_STRING(space) + used
        properties_room = min(room - used - ITEM_BYTES - len(body), PROPERTIES_BYTES_MAX)
        if made is None:
            size = _put_plain(item + ITEM_BYTES + len(body), properties_room, message, msg_id)
        else:
            size = _put_text(item + ITEM_BYTES + len(body), properties_room, made[0])
        if size < 0:
            break
        gq_store32(<uint8_t *>item, <uint32_t>(ITEM_BYTES + len(body) + size))
        memset(item + 4, 0, 8)
        gq_store32(<uint8_t *>item + 12, <uint32_t><int32_t>message.flag)
        gq_store32(<uint8_t *>item + 16, <uint32_t>len(body))
        memcpy(item + ITEM_HEAD_BYTES, PyBytes_AS_STRING(body), len(body))
        gq_store16(<uint8_t *>item + ITEM_HEAD_BYTES + len(body), <uint32_t>size)
        used += ITEM_BYTES + len(body) + size
        ids.append(msg_id)
        number = number + 1 & 0xFFFF
    return EncodedBatch(space[:used], ",".join(ids), len(ids))


cdef Py_ssize_t _put_text(char *to, Py_ssize_t room, str text) except -2:
    cdef Py_ssize_t size = 0
    cdef const char *raw = PyUnicode_AsUTF8AndSize(text, &size)
    if size > room:
        return -1
    memcpy(to, raw, size)
    return size


def batch_items(bytes body not None, bytes tail not None, int64_t count_max):
    """The messages of a batch, their properties as they are stored; see `batches`."""
    cdef list items = []
    cdef int64_t at = 0, length = len(body), total, body_size, body_end, properties_size, end
    cdef const char *data = PyBytes_AS_STRING(body)
    cdef const char *properties
    cdef bint is_open
    cdef bytes stored
    cdef char *to
    while at < length and len(items) <= count_max:
        if length - at < ITEM_HEAD_BYTES:
            return _pure_batches.batch_items(body, tail, count_max)
        total = <int32_t>gq_load32(<const uint8_t *>data + at)
        body_size = <int32_t>gq_load32(<const uint8_t *>data + at + 16)
        body_end = at + ITEM_HEAD_BYTES + body_size
        if body_size < 0 or body_end + 2 > length:
            return _pure_batches.batch_items(body, tail, count_max)
        properties_size = <int16_t>gq_load16(<const uint8_t *>data + body_end)
        end = body_end + 2 + properties_size
        if properties_size < 0 or end - at != total or end > length:
            return _pure_batches.batch_items(body, tail, count_max)
        properties = data + body_end + 2
        if _has_receipt(properties, properties_size):
            props = _pure_batches.stored_form(properties[:properties_size]) + tail
        else:
            is_open = properties_size > 0 and properties[properties_size - 1] != 2
            stored = PyBytes_FromStringAndSize(NULL, properties_size + is_open + len(tail))
            to = PyBytes_AS_STRING(stored)
            memcpy(to, properties, properties_size)
            if is_open:
                to[properties_size] = 2
            memcpy(to + properties_size + is_open, PyBytes_AS_STRING(tail), len(tail))
            props = stored
        items.append((
            <int32_t>gq_load32(<const uint8_t *>data + at + 12),
            PyBytes_FromStringAndSize(data + at + ITEM_HEAD_BYTES, body_size),
            props,
        ))
        at = end
    return items


cdef bint _has_receipt(const char *text, Py_ssize_t size) noexcept nogil:
    """Whether a property POP_CK, or one whose name ends so, is there."""
    cdef const char *at = text
    cdef const char *end = text + size
    while end - at >= 7:
        at = <const char *>memchr(at, 80, end - at)
        if at == NULL or end - at < 7:
            return False
        if memcmp(at, b"POP_CK\x01", 7) == 0:
            return True
        at += 1
    return False


def measure_items(items):
    """Sizes of the messages of a batch; see `batches`."""
    cdef Py_ssize_t total = 0, body_max = 0, properties_max = 0
    cdef tuple item
    cdef bytes body, properties
    cdef bint has_zero = False
    for item in items:
        body, properties = item[1], item[2]
        total += len(body) + len(properties)
        body_max = max(body_max, len(body))
        properties_max = max(properties_max, len(properties))
        if not has_zero:
            has_zero = memchr(PyBytes_AS_STRING(properties), 0, len(properties)) != NULL
    return ItemSizes(total, body_max, properties_max, has_zero)
