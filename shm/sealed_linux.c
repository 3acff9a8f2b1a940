/* Memory that a client writes and the broker reads. The broker makes it, so it has every page, and seals it, so that the client
 * can take none away; a hole that is punched into it reads as zeros. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shm/platform.h"

static int give_up(int file, int code)
{
    close(file);
    return code == ENOSPC || code == ENOMEM ? REGION_ENOSPC : REGION_ESYSTEM;
}

int sealed_create(size_t bytes, const void **memory, int *file)
{
    int fd = memfd_create("gputap-client", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return errno == ENOMEM ? REGION_ENOSPC : REGION_ESYSTEM;
    if (ftruncate(fd, (off_t)bytes) != 0 || fallocate(fd, 0, 0, (off_t)bytes) != 0)
        return give_up(fd, errno);
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return give_up(fd, errno);
    void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (map == MAP_FAILED)
        return give_up(fd, errno);
    *memory = map;
    *file = fd;
    return REGION_OK;
}

int sealed_map(int file, size_t bytes, void **memory)
{
    int seals = fcntl(file, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || lseek(file, 0, SEEK_END) < (off_t)bytes)
        return REGION_EUNTRUSTED; /* whoever sent it could take its pages away under us */
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    if (map == MAP_FAILED)
        return REGION_ESYSTEM;
    (void)madvise(map, bytes, MADV_DONTFORK);
    *memory = map;
    return REGION_OK;
}

void sealed_unmap(const void *memory, size_t bytes) { (void)munmap((void *)(uintptr_t)memory, bytes); }
