/* Bytes in network order and CRC-32, for the compiled kernel. */
#ifndef GANTRYMQ_FAST_H
#define GANTRYMQ_FAST_H

#include <stdint.h>
#include <string.h>

static inline uint32_t gq_load16(const uint8_t *p) { return (uint32_t)p[0] << 8 | p[1]; }
static inline uint32_t gq_load32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}
static inline uint64_t gq_load64(const uint8_t *p) {
    return (uint64_t)gq_load32(p) << 32 | gq_load32(p + 4);
}
static inline void gq_store16(uint8_t *p, uint32_t v) { p[0] = v >> 8; p[1] = v; }
static inline void gq_store32(uint8_t *p, uint32_t v) {
    p[0] = v >> 24; p[1] = v >> 16; p[2] = v >> 8; p[3] = v;
}
static inline void gq_store64(uint8_t *p, uint64_t v) {
    gq_store32(p, v >> 32); gq_store32(p + 4, (uint32_t)v);
}

/* CRC-32 as in zlib, eight bytes a step ("slicing by 8"): no library to link. */
static uint32_t gq_crc_table[8][256];

static void gq_crc_prepare(void) {
    for (uint32_t n = 0; n < 256; n++) {
        uint32_t c = n;
        for (int k = 0; k < 8; k++) c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
        gq_crc_table[0][n] = c;
    }
    for (uint32_t n = 0; n < 256; n++)
        for (int k = 1; k < 8; k++) {
            uint32_t c = gq_crc_table[k - 1][n];
            gq_crc_table[k][n] = gq_crc_table[0][c & 0xFF] ^ (c >> 8);
        }
}

static uint32_t gq_crc_tables(uint32_t c, const uint8_t *p, size_t n) {
    for (; n >= 8; n -= 8, p += 8) {
        uint32_t a = c ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16
                          | (uint32_t)p[3] << 24);
        c = gq_crc_table[7][a & 0xFF] ^ gq_crc_table[6][a >> 8 & 0xFF]
            ^ gq_crc_table[5][a >> 16 & 0xFF] ^ gq_crc_table[4][a >> 24]
            ^ gq_crc_table[3][p[4]] ^ gq_crc_table[2][p[5]]
            ^ gq_crc_table[1][p[6]] ^ gq_crc_table[0][p[7]];
    }
    while (n--) c = gq_crc_table[0][(c ^ *p++) & 0xFF] ^ (c >> 8);
    return c;
}

#if defined(__x86_64__) && defined(__GNUC__)
/* The same by carry-less multiplication, 64 bytes a step, where the processor has it. The
   constants are powers of x modulo the polynomial, bits reversed, as published by Intel in
   "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ". */
#include <immintrin.h>
static int gq_has_clmul;

__attribute__((target("pclmul,sse4.1")))
static __m128i gq_fold(__m128i x, __m128i k, __m128i next) {
    return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00),
                                       _mm_clmulepi64_si128(x, k, 0x11)), next);
}

__attribute__((target("pclmul,sse4.1")))
static uint32_t gq_crc_clmul(uint32_t c, const uint8_t *p, size_t n) {
    const __m128i k12 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
    const __m128i k34 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
    const __m128i k5 = _mm_set_epi64x(0, 0x0163cd6124);
    const __m128i poly = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    const __m128i low32 = _mm_setr_epi32(~0, 0, ~0, 0);
    const __m128i *q = (const __m128i *)p;
    __m128i a = _mm_xor_si128(_mm_loadu_si128(q), _mm_cvtsi32_si128((int)c));
    __m128i b = _mm_loadu_si128(q + 1), d = _mm_loadu_si128(q + 2);
    __m128i e = _mm_loadu_si128(q + 3);
    for (q += 4, n -= 64; n >= 64; q += 4, n -= 64) {
        a = gq_fold(a, k12, _mm_loadu_si128(q));
        b = gq_fold(b, k12, _mm_loadu_si128(q + 1));
        d = gq_fold(d, k12, _mm_loadu_si128(q + 2));
        e = gq_fold(e, k12, _mm_loadu_si128(q + 3));
    }
    a = gq_fold(a, k34, b);
    a = gq_fold(a, k34, d);
    a = gq_fold(a, k34, e);
    for (; n >= 16; q++, n -= 16) a = gq_fold(a, k34, _mm_loadu_si128(q));
    a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, k34, 0x10));
    b = _mm_clmulepi64_si128(_mm_and_si128(a, low32), k5, 0x00);
    a = _mm_xor_si128(_mm_srli_si128(a, 4), b);
    b = _mm_clmulepi64_si128(_mm_and_si128(a, low32), poly, 0x10);
    b = _mm_clmulepi64_si128(_mm_and_si128(b, low32), poly, 0x00);
    c = (uint32_t)_mm_extract_epi32(_mm_xor_si128(a, b), 1);
    return gq_crc_tables(c, (const uint8_t *)q, n);
}

static void gq_prepare(void) {
    gq_crc_prepare();
    __builtin_cpu_init();
    gq_has_clmul = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

static uint32_t gq_crc32(const uint8_t *p, size_t n) {
    if (n >= 64 && gq_has_clmul) return ~gq_crc_clmul(0xFFFFFFFFu, p, n);
    return ~gq_crc_tables(0xFFFFFFFFu, p, n);
}
#else
static void gq_prepare(void) { gq_crc_prepare(); }
static uint32_t gq_crc32(const uint8_t *p, size_t n) {
    return ~gq_crc_tables(0xFFFFFFFFu, p, n);
}
#endif

/* Reading what is in memory, without waiting for a disk: see warm.py. */
#include <sys/types.h>
#include <sys/uio.h>

static int64_t gq_read_warm(int file, void *into, size_t size, int64_t at) {
#ifdef RWF_NOWAIT
    struct iovec part = {into, size};
    return preadv2(file, &part, 1, at, RWF_NOWAIT);
#else
    (void)file; (void)into; (void)size; (void)at;
    return -1;
#endif
}

/* Syncing files on a thread that never needs the interpreter: see syncing.py. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#define GQ_SYNC_FILES_MAX 64

typedef struct {
    int64_t ticket;
    int32_t count;
    int32_t files[GQ_SYNC_FILES_MAX];
    int32_t unused;
} gq_sync_request;

typedef struct {
    int64_t ticket;
    int32_t error;
    int32_t unused;
} gq_sync_reply;

typedef struct {
    pthread_t thread;
    int requests;
    int replies;
} gq_syncing;

static int gq_sync_one(int file) {
#ifdef __linux__
    return fdatasync(file) == 0 ? 0 : errno;
#else
    return fsync(file) == 0 ? 0 : errno;
#endif
}

/* Serve until the other end of `requests` is closed. A message is shorter than PIPE_BUF, so it
   arrives whole or not at all. */
static void *gq_sync_serve(void *argument) {
    gq_syncing *self = argument;
    gq_sync_request request;
    while (read(self->requests, &request, sizeof request) == (ssize_t)sizeof request) {
        gq_sync_reply reply = {request.ticket, 0, 0};
        for (int32_t at = 0; at < request.count && at < GQ_SYNC_FILES_MAX; at++) {
            int error = gq_sync_one(request.files[at]);
            if (error != 0 && reply.error == 0) reply.error = error;
            close(request.files[at]);
        }
        if (write(self->replies, &reply, sizeof reply) != (ssize_t)sizeof reply) break;
    }
    return NULL;
}

static int gq_sync_start(gq_syncing *self) {
    sigset_t all, before;
    sigfillset(&all);  /* signals are for the interpreter's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&self->thread, NULL, gq_sync_serve, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

static void gq_sync_join(gq_syncing *self) { pthread_join(self->thread, NULL); }

#endif
