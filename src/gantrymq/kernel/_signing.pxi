# Signatures of requests: the compiled twin of signing.py. Included by _fast.pyx.

cdef extern from "_sha1.h":
    ctypedef struct gq_sha1:
        pass
    int gq_has_sha1() noexcept nogil
    void gq_sha1_begin(gq_sha1 *self) noexcept nogil
    void gq_sha1_add(gq_sha1 *self, const uint8_t *p, size_t n) noexcept nogil
    void gq_sha1_end(gq_sha1 *self, uint8_t *digest) noexcept nogil
    void gq_sha1_add_both(
        gq_sha1 *one, const uint8_t *p, size_t n, gq_sha1 *two, const uint8_t *q, size_t m
    ) noexcept nogil
    void gq_sha1_end_both(
        gq_sha1 *one, uint8_t *digest, gq_sha1 *two, uint8_t *other_digest
    ) noexcept nogil

cdef enum:
    DIGEST_BYTES = 20
    SIGNATURE_BYTES = 28

cdef const char *BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


cdef void _begin_with(gq_sha1 *hash_, const uint8_t *key, uint8_t mask) noexcept nogil:
    """A hash that has seen the key, each byte of it changed by the mask."""
    cdef uint8_t block[64]
    cdef int at
    for at in range(64):
        block[at] = key[at] ^ mask
    gq_sha1_begin(hash_)
    gq_sha1_add(hash_, block, 64)


cdef struct Signed:
    # What a signature covers: the values of the fields, in the order of their names, and the body.
    const uint8_t *fields
    Py_ssize_t fields_size
    const uint8_t *body
    Py_ssize_t body_size


cdef void _in_base64(uint8_t *digest, char *made) noexcept nogil:
    """28 characters; one byte behind the digest is overwritten."""
    cdef uint32_t group
    cdef int at
    digest[DIGEST_BYTES] = 0
    for at in range(7):
        group = digest[3 * at] << 16 | digest[3 * at + 1] << 8 | digest[3 * at + 2]
        made[4 * at] = BASE64[group >> 18]
        made[4 * at + 1] = BASE64[group >> 12 & 63]
        made[4 * at + 2] = BASE64[group >> 6 & 63]
        made[4 * at + 3] = BASE64[group & 63]
    made[SIGNATURE_BYTES - 1] = b"="


cdef bint _is_signature(const char *made, const char *said, Py_ssize_t size) noexcept nogil:
    """Whether both are the same; it takes as long for every wrong one."""
    cdef uint8_t differs = 0
    cdef int at
    if size != SIGNATURE_BYTES:
        return False
    for at in range(SIGNATURE_BYTES):
        differs |= <uint8_t>made[at] ^ <uint8_t>said[at]
    return differs == 0


cdef class _HmacSha1:
    """A secret key that is ready to sign; see `signing.HmacSha1`."""

    cdef gq_sha1 inner
    cdef gq_sha1 outer

    def __init__(self, bytes secret not None):
        cdef uint8_t key[64]
        cdef gq_sha1 hash_
        cdef Py_ssize_t size = len(secret)
        memset(key, 0, 64)
        if size > 64:
            gq_sha1_begin(&hash_)
            gq_sha1_add(&hash_, <const uint8_t *>PyBytes_AS_STRING(secret), size)
            gq_sha1_end(&hash_, key)
        else:
            memcpy(key, PyBytes_AS_STRING(secret), size)
        _begin_with(&self.inner, key, 0x36)
        _begin_with(&self.outer, key, 0x5C)

    def __repr__(self):
        return "HmacSha1(<hidden>)"

    cdef int _sign(self, dict fields, tuple names, bytes body, char *made) except -1:
        """Write the signature, 28 characters."""
        cdef gq_sha1 hash_ = self.inner
        cdef Py_ssize_t size = 0
        cdef const char *text
        try:
            for name in names:
                text = PyUnicode_AsUTF8AndSize(fields[name], &size)
                gq_sha1_add(&hash_, <const uint8_t *>text, size)
        except UnicodeEncodeError:
            for name in names:
                fields[name]  # the twin finds a missing field first
            raise
        gq_sha1_add(&hash_, <const uint8_t *>PyBytes_AS_STRING(body), len(body))
        self.finish(&hash_, made)
        return 0

    cdef void finish(self, gq_sha1 *inner, char *made) noexcept nogil:
        """The signature of what an inner hash has seen."""
        cdef gq_sha1 hash_ = self.outer
        cdef uint8_t digest[21]
        gq_sha1_end(inner, digest)
        gq_sha1_add(&hash_, digest, DIGEST_BYTES)
        gq_sha1_end(&hash_, digest)
        _in_base64(digest, made)

    cdef void sign(self, const Signed *what, char *made) noexcept nogil:
        cdef gq_sha1 hash_ = self.inner
        gq_sha1_add(&hash_, what.fields, what.fields_size)
        gq_sha1_add(&hash_, what.body, what.body_size)
        self.finish(&hash_, made)

    cdef void sign_both(
        self, const Signed *one, char *made, const Signed *two, char *other_made
    ) noexcept nogil:
        """The same for two requests, in little more time than for one."""
        cdef gq_sha1 first = self.inner, second = self.inner
        cdef uint8_t digest[21]
        cdef uint8_t other[21]
        gq_sha1_add_both(&first, one.fields, one.fields_size, &second, two.fields, two.fields_size)
        gq_sha1_add_both(&first, one.body, one.body_size, &second, two.body, two.body_size)
        gq_sha1_end_both(&first, digest, &second, other)
        first = second = self.outer
        gq_sha1_add_both(&first, digest, DIGEST_BYTES, &second, other, DIGEST_BYTES)
        gq_sha1_end_both(&first, digest, &second, other)
        _in_base64(digest, made)
        _in_base64(other, other_made)

    def signature(self, dict fields not None, tuple names not None, bytes body not None):
        """The signature in base64; see `signing.HmacSha1.signature`."""
        cdef char made[SIGNATURE_BYTES]
        self._sign(fields, names, body, made)
        return PyBytes_FromStringAndSize(made, SIGNATURE_BYTES)

    def matches(
        self, dict fields not None, tuple names not None, bytes body not None, str said not None
    ):
        """Whether `said` is the signature, compared in constant time."""
        cdef char made[SIGNATURE_BYTES]
        cdef Py_ssize_t size = 0
        cdef const char *text
        self._sign(fields, names, body, made)
        text = PyUnicode_AsUTF8AndSize(said, &size)
        return _is_signature(made, text, size)


HmacSha1 = _HmacSha1 if gq_has_sha1() else _pure_signing.HmacSha1
