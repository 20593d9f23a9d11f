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

/* What one stream of blocks has under way: w[] are the last sixteen words of the schedule. */
typedef struct {
    __m128i abcd, e, before, w[4];
} gq_sha1_lane;

/* Four rounds: `g` is the group of rounds, `k` chooses its function and constant; from group 4 on
   words follow from the sixteen before. */
#define GQ_FOUR_ROUNDS(l, g, k) do { \
        if (g >= 4) \
            l.w[g & 3] = _mm_sha1msg2_epu32( \
                _mm_xor_si128( \
                    _mm_sha1msg1_epu32(l.w[g & 3], l.w[(g + 1) & 3]), l.w[(g + 2) & 3]), \
                l.w[(g + 3) & 3]); \
        l.e = g ? _mm_sha1nexte_epu32(l.before, l.w[g & 3]) : _mm_add_epi32(l.e, l.w[0]); \
        l.before = l.abcd; \
        l.abcd = _mm_sha1rnds4_epu32(l.abcd, l.e, k); \
    } while (0)

#define GQ_ALL_ROUNDS(FOUR) do { \
        FOUR(0, 0); FOUR(1, 0); FOUR(2, 0); FOUR(3, 0); FOUR(4, 0); \
        FOUR(5, 1); FOUR(6, 1); FOUR(7, 1); FOUR(8, 1); FOUR(9, 1); \
        FOUR(10, 2); FOUR(11, 2); FOUR(12, 2); FOUR(13, 2); FOUR(14, 2); \
        FOUR(15, 3); FOUR(16, 3); FOUR(17, 3); FOUR(18, 3); FOUR(19, 3); \
    } while (0)

#define GQ_SHA1_TARGET __attribute__((target("sha,ssse3,sse4.1"), always_inline)) static inline

GQ_SHA1_TARGET void gq_sha1_load(gq_sha1_lane *lane, const uint32_t *words) {
    lane->abcd = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)words), 0x1B);
    lane->e = _mm_set_epi32((int)words[4], 0, 0, 0);
}

GQ_SHA1_TARGET void gq_sha1_block(gq_sha1_lane *lane, const uint8_t *p) {
    const __m128i big_endian = _mm_set_epi64x(0x0001020304050607LL, 0x08090A0B0C0D0E0FLL);
    for (int i = 0; i < 4; i++)
        lane->w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)p + i), big_endian);
    lane->before = lane->abcd;
}

GQ_SHA1_TARGET void gq_sha1_sum(gq_sha1_lane *lane, __m128i abcd, __m128i e) {
    lane->e = _mm_sha1nexte_epu32(lane->before, e);
    lane->abcd = _mm_add_epi32(lane->abcd, abcd);
}

GQ_SHA1_TARGET void gq_sha1_store(const gq_sha1_lane *lane, uint32_t *words) {
    _mm_storeu_si128((__m128i *)words, _mm_shuffle_epi32(lane->abcd, 0x1B));
    words[4] = (uint32_t)_mm_extract_epi32(lane->e, 3);
}

__attribute__((target("sha,ssse3,sse4.1")))
static void gq_sha1_blocks(uint32_t *words, const uint8_t *p, size_t count) {
    gq_sha1_lane lane;
    gq_sha1_load(&lane, words);
    for (; count; count--, p += GQ_SHA1_BLOCK) {
        const __m128i abcd = lane.abcd, e = lane.e;
        gq_sha1_block(&lane, p);
#define GQ_ONE(g, k) GQ_FOUR_ROUNDS(lane, g, k)
        GQ_ALL_ROUNDS(GQ_ONE);
        gq_sha1_sum(&lane, abcd, e);
    }
    gq_sha1_store(&lane, words);
}

/* Blocks of two streams at once: each round waits for the one before, so the rounds of another
   stream fit in between. */
__attribute__((target("sha,ssse3,sse4.1")))
static void gq_sha1_blocks_both(
    uint32_t *words, const uint8_t *p, uint32_t *other_words, const uint8_t *q, size_t count) {
    gq_sha1_lane one, two;
    gq_sha1_load(&one, words);
    gq_sha1_load(&two, other_words);
    for (; count; count--, p += GQ_SHA1_BLOCK, q += GQ_SHA1_BLOCK) {
        const __m128i abcd = one.abcd, e = one.e, other_abcd = two.abcd, other_e = two.e;
        gq_sha1_block(&one, p);
        gq_sha1_block(&two, q);
#define GQ_BOTH(g, k) do { GQ_FOUR_ROUNDS(one, g, k); GQ_FOUR_ROUNDS(two, g, k); } while (0)
        GQ_ALL_ROUNDS(GQ_BOTH);
        gq_sha1_sum(&one, abcd, e);
        gq_sha1_sum(&two, other_abcd, other_e);
    }
    gq_sha1_store(&one, words);
    gq_sha1_store(&two, other_words);
}
#undef GQ_ONE
#undef GQ_BOTH
#undef GQ_ALL_ROUNDS
#undef GQ_SHA1_TARGET
#undef GQ_FOUR_ROUNDS
#else
static int gq_has_sha1(void) { return 0; }
static void gq_sha1_blocks(uint32_t *words, const uint8_t *p, size_t count) {
    (void)words; (void)p; (void)count; /* never called: gq_has_sha1 says no */
}
static void gq_sha1_blocks_both(
    uint32_t *words, const uint8_t *p, uint32_t *other_words, const uint8_t *q, size_t count) {
    gq_sha1_blocks(words, p, count);
    gq_sha1_blocks(other_words, q, count);
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

/* Add to two hashes; as `gq_sha1_add` to each, in half the time if they are alike in size. */
static void gq_sha1_add_both(
    gq_sha1 *one, const uint8_t *p, size_t n, gq_sha1 *two, const uint8_t *q, size_t m) {
    size_t held = one->size % GQ_SHA1_BLOCK, other_held = two->size % GQ_SHA1_BLOCK, common;
    if (held + n >= GQ_SHA1_BLOCK && other_held + m >= GQ_SHA1_BLOCK) {
        size_t wanted = GQ_SHA1_BLOCK - held, other_wanted = GQ_SHA1_BLOCK - other_held;
        memcpy(one->block + held, p, wanted);
        memcpy(two->block + other_held, q, other_wanted);
        gq_sha1_blocks_both(one->words, one->block, two->words, two->block, 1);
        one->size += wanted; p += wanted; n -= wanted;
        two->size += other_wanted; q += other_wanted; m -= other_wanted;
        common = (n < m ? n : m) / GQ_SHA1_BLOCK;
        gq_sha1_blocks_both(one->words, p, two->words, q, common);
        common *= GQ_SHA1_BLOCK;
        one->size += common; p += common; n -= common;
        two->size += common; q += common; m -= common;
    }
    gq_sha1_add(one, p, n);
    gq_sha1_add(two, q, m);
}

/* The bytes that close a hash: a one bit, zeros and the size in bits; returns how many. */
static size_t gq_sha1_closing(const gq_sha1 *self, uint8_t *bytes) {
    size_t held = self->size % GQ_SHA1_BLOCK, count = (held < 56 ? 64 : 128) - held;
    uint64_t bits = self->size * 8;
    memset(bytes, 0, count);
    bytes[0] = 0x80;
    for (int i = 0; i < 8; i++) bytes[count - 8 + i] = (uint8_t)(bits >> (56 - 8 * i));
    return count;
}

static void gq_sha1_digest(const gq_sha1 *self, uint8_t *digest) {
    for (int i = 0; i < 20; i++) digest[i] = (uint8_t)(self->words[i / 4] >> (24 - i % 4 * 8));
}

/* Close the hash; 20 bytes go to `digest`. */
static void gq_sha1_end(gq_sha1 *self, uint8_t *digest) {
    uint8_t bytes[2 * GQ_SHA1_BLOCK];
    size_t count = gq_sha1_closing(self, bytes);
    gq_sha1_add(self, bytes, count);
    gq_sha1_digest(self, digest);
}

static void gq_sha1_end_both(gq_sha1 *one, uint8_t *digest, gq_sha1 *two, uint8_t *other_digest) {
    uint8_t bytes[2 * GQ_SHA1_BLOCK], other_bytes[2 * GQ_SHA1_BLOCK];
    size_t count = gq_sha1_closing(one, bytes), other_count = gq_sha1_closing(two, other_bytes);
    gq_sha1_add_both(one, bytes, count, two, other_bytes, other_count);
    gq_sha1_digest(one, digest);
    gq_sha1_digest(two, other_digest);
}
#endif
