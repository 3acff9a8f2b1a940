#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shm/platform.h"

static uint64_t clock_read(clockid_t id)
{
    struct timespec now;
    if (clock_gettime(id, &now) != 0)
        abort();
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_mono_ns(void) { return clock_read(CLOCK_MONOTONIC); }
uint64_t clock_real_ns(void) { return clock_read(CLOCK_REALTIME); }

uint64_t clock_mono_coarse_ns(void)
{
#ifdef CLOCK_MONOTONIC_COARSE
    return clock_read(CLOCK_MONOTONIC_COARSE);
#else
    return clock_read(CLOCK_MONOTONIC);
#endif
}

uint64_t clock_namespace(void)
{
    struct stat info;
    return stat("/proc/self/ns/time", &info) == 0 ? (uint64_t)info.st_ino : 0;
}

void clock_boot_id(uint8_t out[16])
{
    memset(out, 0, 16);
    char text[64] = {0};
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    int digits = 0;
    for (ssize_t i = 0; i < got && digits < 32; i++) {
        char c = text[i];
        int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (value < 0)
            continue;
        out[digits / 2] = (uint8_t)(out[digits / 2] | (digits % 2 ? value : value << 4));
        digits++;
    }
}

void platform_random(void *out, size_t size)
{
    char *at = out;
    while (size > 0) {
        ssize_t got = getrandom(at, size < 256 ? size : 256, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            abort();
        at += got;
        size -= (size_t)got;
    }
}
