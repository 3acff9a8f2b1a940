/* The least that a sampler can cost: pread_floor PERIOD_MS SECONDS FILE...
 * Keeps the files open, reads each once a period, and prints its processor time a tick in nanoseconds. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FILES = 1024 };

static double cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    static char buffer[65536];
    int files[MAX_FILES], count = 0;
    if (argc < 4)
        return 2;
    long period = strtol(argv[1], NULL, 10), seconds = strtol(argv[2], NULL, 10);
    for (int i = 3; i < argc && count < MAX_FILES; i++)
        if ((files[count] = open(argv[i], O_RDONLY | O_CLOEXEC)) >= 0)
            count++;
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct timespec step = {period / 1000, period % 1000 * 1000000};
    struct itimerspec spec = {step, step};
    if (timer < 0 || period < 1 || seconds < 1 || timerfd_settime(timer, 0, &spec, NULL) != 0)
        return 1;
    long ticks = seconds * 1000 / period;
    double start = cpu_ns();
    for (long tick = 0; tick < ticks; tick++) {
        unsigned long long expirations;
        if (read(timer, &expirations, sizeof expirations) != sizeof expirations)
            return 1;
        for (int i = 0; i < count; i++)
            if (pread(files[i], buffer, sizeof buffer, 0) < 0)
                continue;
    }
    printf("%.0f\n", (cpu_ns() - start) / (double)ticks);
    return 0;
}
