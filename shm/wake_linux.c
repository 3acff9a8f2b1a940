/* Waking by futex. No PRIVATE flag: waiters are other processes, and theirs is a read-only mapping, on which FUTEX_WAIT works for
 * file-backed shared pages (kernel/futex/core.c, get_futex_key). Anybody who can map the word may also wake it, so a waiter always
 * looks again. */
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shm/platform.h"

void wake_all(shm_word32 *word) { (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0); }

void wake_wait(const shm_word32 *word, uint32_t expected, uint64_t timeout_ns)
{
    struct timespec timeout = {(time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u)};
    (void)syscall(SYS_futex, word, FUTEX_WAIT, expected, &timeout, NULL, 0);
}
