# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: cdivision=True, embedsignature=True
"""The compiled twin of the modules beside it: the same names, bytes and values.

Those modules say what each function means; read them first. Here only the straight way is written
out in C. Whatever is odd (a header that does not add up, text that is not ASCII, a number too
large for its field) is handed to the pure twin, so that there is one place that rules on it.
"""

import os
import struct

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport (
    PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize,
)
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.set cimport PySet_Contains
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeASCII, PyUnicode_DecodeUTF8
from libc.stdint cimport (
    INT64_MAX, INT64_MIN, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t,
)
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memchr, memcmp, memcpy, memmove, memset

from gantrymq.base.errors import ProtocolError
from gantrymq.kernel import batches as _pure_batches
from gantrymq.kernel import dispatching as _pure_dispatching
from gantrymq.kernel import frames as _pure_frames
from gantrymq.kernel import records as _pure_records
from gantrymq.kernel import requests as _pure_requests
from gantrymq.kernel import sends as _pure_sends
from gantrymq.kernel import signing as _pure_signing
from gantrymq.kernel.batches import EncodedBatch, ItemSizes
from gantrymq.kernel.records import Selected, Walk
from gantrymq.model import TIMER_TOPIC, SendResult
from gantrymq.protocol.codes import LANGUAGE_CODES, LANGUAGES, VERSION_4_9_8
from gantrymq.protocol.command import Command, decode_header
from gantrymq.protocol.record import RecordHead

cdef extern from "_fast.h":
    uint32_t gq_load16(const uint8_t *p) noexcept nogil
    uint32_t gq_load32(const uint8_t *p) noexcept nogil
    uint64_t gq_load64(const uint8_t *p) noexcept nogil
    void gq_store16(uint8_t *p, uint32_t v) noexcept nogil
    void gq_store32(uint8_t *p, uint32_t v) noexcept nogil
    void gq_store64(uint8_t *p, uint64_t v) noexcept nogil
    void gq_prepare() noexcept nogil
    uint32_t gq_crc32(const uint8_t *p, size_t n) noexcept nogil

    int64_t gq_read_warm(int file, void *into, size_t size, int64_t at) noexcept nogil

    ctypedef struct gq_syncing:
        int requests
        int replies
    int gq_sync_start(gq_syncing *self) noexcept nogil
    void gq_sync_join(gq_syncing *self) noexcept nogil

gq_prepare()

# The numbers of protocol/record.py, as C constants.
cdef enum:
    V1_TOPIC_BYTES_MAX = 127
    MAGIC_V1 = -626843481
    MAGIC_V2 = -626843477
    MAGIC_BLANK = -875286124
    BORN_V6 = 0x10
    STORE_V6 = 0x20
    HOST_BITS = 0x30
    HEAD_BYTES = 88
    RECORD_BYTES_MIN = 91
    BLANK_BYTES = 8
    SECTOR = 512
    FILLER_SIZE = 0x7FFFFFFF
    ENTRY_BYTES = 20
    TRANSACTION_BITS = 0xC
    TRANSACTION_PREPARED = 0x4
    TRANSACTION_ROLLBACK = 0xC
    ANSWER_BYTES = 1024

include "_frames.pxi"
include "_json_headers.pxi"
include "_sends.pxi"
include "_records.pxi"
include "_pulled.pxi"
include "_signing.pxi"
include "_syncing.pxi"
include "_warm.pxi"
include "_batches.pxi"
include "_runs.pxi"
include "_dispatching.pxi"
include "_send_headers.pxi"
include "_send_runs.pxi"
include "_requests.pxi"
include "_responses.pxi"
