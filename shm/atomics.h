/* Words that two processes share, and the few orders this project uses on them. No other header names a memory order; code
 * outside shm/ uses these helpers for its own cross-thread words.
 *
 * Policy: little-endian machines with lock-free 8-byte atomics. Anything else is refused at compile time, since a lock inside
 * a process cannot guard memory that another process maps read-only. */
#ifndef GPUTAP_SHM_ATOMICS_H
#define GPUTAP_SHM_ATOMICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#if ATOMIC_LLONG_LOCK_FREE != 2
#error "gputap needs lock-free 64-bit atomics"
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "gputap needs a little-endian machine"
#endif

#if defined(__SANITIZE_THREAD__)
#define SHM_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SHM_THREAD_SANITIZER 1
#endif
#endif

typedef _Atomic uint64_t shm_word;
typedef _Atomic uint32_t shm_word32;

static inline uint64_t word_get(const shm_word *word) { return atomic_load_explicit((shm_word *)word, memory_order_acquire); }
static inline uint64_t word_peek(const shm_word *word) { return atomic_load_explicit((shm_word *)word, memory_order_relaxed); }
static inline void word_set(shm_word *word, uint64_t value) { atomic_store_explicit(word, value, memory_order_release); }
static inline void word_poke(shm_word *word, uint64_t value) { atomic_store_explicit(word, value, memory_order_relaxed); }
static inline uint64_t word_add(shm_word *word, uint64_t value)
{
    return atomic_fetch_add_explicit(word, value, memory_order_acq_rel);
}
static inline uint64_t word_swap(shm_word *word, uint64_t value)
{
    return atomic_exchange_explicit(word, value, memory_order_acq_rel);
}
/* Compare and swap; on failure *expected is what was there. */
static inline bool word_replace(shm_word *word, uint64_t *expected, uint64_t value)
{
    return atomic_compare_exchange_strong_explicit(word, expected, value, memory_order_acq_rel, memory_order_acquire);
}

static inline uint32_t word32_get(const shm_word32 *word) { return atomic_load_explicit((shm_word32 *)word, memory_order_acquire); }
static inline void word32_set(shm_word32 *word, uint32_t value) { atomic_store_explicit(word, value, memory_order_release); }
static inline uint32_t word32_add(shm_word32 *word, uint32_t value)
{
    return atomic_fetch_add_explicit(word, value, memory_order_acq_rel);
}
static inline uint32_t word32_or(shm_word32 *word, uint32_t bits)
{
    return atomic_fetch_or_explicit(word, bits, memory_order_acq_rel);
}
static inline uint32_t word32_swap(shm_word32 *word, uint32_t value)
{
    return atomic_exchange_explicit(word, value, memory_order_acq_rel);
}
static inline bool word32_replace(shm_word32 *word, uint32_t *expected, uint32_t value)
{
    return atomic_compare_exchange_strong_explicit(word, expected, value, memory_order_acq_rel, memory_order_acquire);
}

/* Orders what was read before against what is read after; pairs with any release store. */
static inline void words_acquire_fence(void)
{
#ifndef SHM_THREAD_SANITIZER
    atomic_thread_fence(memory_order_acquire);
#endif
}

static inline void words_prefetch(const void *at, uint32_t bytes)
{
#if defined(__GNUC__)
    for (uint32_t offset = 0; offset < bytes; offset += 64)
        __builtin_prefetch((const char *)at + offset);
#else
    (void)at, (void)bytes;
#endif
}

#endif
