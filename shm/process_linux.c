/* Forking. */
#include <sys/mman.h>
#include <unistd.h>

#include "shm/platform.h"

/* One page for the life of the process: the kernel wipes it in a child, whichever way that was made. */
static shm_word32 *canary_page(void)
{
    static shm_word page;
    uint64_t known = word_get(&page);
    if (known)
        return (shm_word32 *)(uintptr_t)known;
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *fresh = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        return NULL;
    if (madvise(fresh, bytes, MADV_WIPEONFORK) == 0 && word_replace(&page, &known, (uint64_t)(uintptr_t)fresh))
        return fresh;
    munmap(fresh, bytes);
    return (shm_word32 *)(uintptr_t)known; /* another thread's, or none */
}

const shm_word32 *fork_canary(uint32_t *mark)
{
    shm_word32 *canary = canary_page();
    uint32_t fresh = 0, seen = 0;
    if (!canary)
        return NULL;
    while (fresh == 0)
        platform_random(&fresh, sizeof fresh);
    *mark = word32_replace(canary, &seen, fresh) ? fresh : seen;
    return canary;
}
