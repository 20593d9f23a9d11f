/* HMAC-SHA1 with the processor's own instructions for SHA-1, for the signature of every request.

   hashlib is as quick over the bytes, but a signature is four of its objects and eight calls, which
   cost more than the hash of 1 KiB. Without these instructions the pure twin serves: hashlib's code
   is quicker than any plain C here. */
#ifndef GANTRYMQ_SHA1_H
#define GANTRYMQ_SHA1_H

#include <stdint.h>
#include <string.h>

enum { GQ_SHA1_BLOCK = 64, GQ_SHA1_WORDS = 5 };

/* A hash under way: its words, how many bytes it has seen, and the begun block. */
typedef struct {
    uint32_t words[GQ_SHA1_WORDS];
    uint64_t size;
    uint8_t block[GQ_SHA1_BLOCK];
} gq_sha1;

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>

static int gq_has_sha1(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1)) return 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

/* Four rounds: `g` is the group of rounds, `k` chooses its function and constant. w[] holds the
   last sixteen words of the schedule; from group 4 on they follow from the sixteen before. */
#define GQ_FOUR_ROUNDS(g, k) do { \
        if (g >= 4) \
            w[g & 3] = _mm_sha1msg2_epu32( \
                _mm_xor_si128(_mm_sha1msg1_epu32(w[g & 3], w[(g + 1) & 3]), w[(g + 2) & 3]), \
                w[(g + 3) & 3]); \
        e = g ? _mm_sha1nexte_epu32(before, w[g & 3]) : _mm_add_epi32(e, w[0]); \
        before = abcd; \
        abcd = _mm_sha1rnds4_epu32(abcd, e, k); \
    } while (0)

__attribute__((target("sha,ssse3,sse4.1")))
static void gq_sha1_blocks(uint32_t *words, const uint8_t *p, size_t count) {
    const __m128i big_endian = _mm_set_epi64x(0x0001020304050607LL, 0x08090A0B0C0D0E0FLL);
    __m128i abcd = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)words), 0x1B);
    __m128i e = _mm_set_epi32((int)words[4], 0, 0, 0);
    for (; count; count--, p += GQ_SHA1_BLOCK) {
        const __m128i abcd_was = abcd, e_was = e;
        __m128i before = abcd, w[4];
        for (int i = 0; i < 4; i++)
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)p + i), big_endian);
        GQ_FOUR_ROUNDS(0, 0); GQ_FOUR_ROUNDS(1, 0); GQ_FOUR_ROUNDS(2, 0);
        GQ_FOUR_ROUNDS(3, 0); GQ_FOUR_ROUNDS(4, 0);
        GQ_FOUR_ROUNDS(5, 1); GQ_FOUR_ROUNDS(6, 1); GQ_FOUR_ROUNDS(7, 1);
        GQ_FOUR_ROUNDS(8, 1); GQ_FOUR_ROUNDS(9, 1);
        GQ_FOUR_ROUNDS(10, 2); GQ_FOUR_ROUNDS(11, 2); GQ_FOUR_ROUNDS(12, 2);
        GQ_FOUR_ROUNDS(13, 2); GQ_FOUR_ROUNDS(14, 2);
        GQ_FOUR_ROUNDS(15, 3); GQ_FOUR_ROUNDS(16, 3); GQ_FOUR_ROUNDS(17, 3);
        GQ_FOUR_ROUNDS(18, 3); GQ_FOUR_ROUNDS(19, 3);
        e = _mm_sha1nexte_epu32(before, e_was);
        abcd = _mm_add_epi32(abcd, abcd_was);
    }
    _mm_storeu_si128((__m128i *)words, _mm_shuffle_epi32(abcd, 0x1B));
    words[4] = (uint32_t)_mm_extract_epi32(e, 3);
}
#undef GQ_FOUR_ROUNDS
#else
static int gq_has_sha1(void) { return 0; }
static void gq_sha1_blocks(uint32_t *words, const uint8_t *p, size_t count) {
    (void)words; (void)p; (void)count; /* never called: gq_has_sha1 says no */
}
#endif

static void gq_sha1_begin(gq_sha1 *self) {
    static const uint32_t first[GQ_SHA1_WORDS] = {
        0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
    memcpy(self->words, first, sizeof first);
    self->size = 0;
}

static void gq_sha1_add(gq_sha1 *self, const uint8_t *p, size_t n) {
    size_t held = self->size % GQ_SHA1_BLOCK;
    self->size += n;
    if (held) {
        size_t wanted = GQ_SHA1_BLOCK - held;
        if (n < wanted) {
            memcpy(self->block + held, p, n);
            return;
        }
        memcpy(self->block + held, p, wanted);
        gq_sha1_blocks(self->words, self->block, 1);
        p += wanted;
        n -= wanted;
    }
    if (n >= GQ_SHA1_BLOCK) gq_sha1_blocks(self->words, p, n / GQ_SHA1_BLOCK);
    memcpy(self->block, p + n / GQ_SHA1_BLOCK * GQ_SHA1_BLOCK, n % GQ_SHA1_BLOCK);
}

/* Close the hash with a one bit, zeros and the size in bits; 20 bytes go to `digest`. */
static void gq_sha1_end(gq_sha1 *self, uint8_t *digest) {
    size_t held = self->size % GQ_SHA1_BLOCK;
    uint64_t bits = self->size * 8;
    self->block[held++] = 0x80;
    if (held > GQ_SHA1_BLOCK - 8) {
        memset(self->block + held, 0, GQ_SHA1_BLOCK - held);
        gq_sha1_blocks(self->words, self->block, 1);
        held = 0;
    }
    memset(self->block + held, 0, GQ_SHA1_BLOCK - 8 - held);
    for (int i = 0; i < 8; i++) self->block[GQ_SHA1_BLOCK - 8 + i] = (uint8_t)(bits >> (56 - 8 * i));
    gq_sha1_blocks(self->words, self->block, 1);
    for (int i = 0; i < 20; i++) digest[i] = (uint8_t)(self->words[i / 4] >> (24 - i % 4 * 8));
}
#endif
