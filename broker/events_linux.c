#include "broker/events.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

void events_open(struct events *events)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        abort();
    *events = (struct events){.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
                              .signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
    if (events->timer < 0 || events->signals < 0)
        abort();
}

static struct timespec timespec_of(uint64_t ns) { return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)}; }

void events_start_timer(struct events *events, uint64_t period_ns, uint64_t first_ns)
{
    struct itimerspec spec = {.it_interval = timespec_of(period_ns), .it_value = timespec_of(first_ns ? first_ns : 1)};
    if (timerfd_settime(events->timer, 0, &spec, NULL) != 0)
        abort();
}

static void read_signals(struct events *events)
{
    struct signalfd_siginfo info;
    while (read(events->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            events->child_ended = true;
        else
            events->stop = true;
    }
}

int events_wait(struct events *events, const struct pool *pool, struct control *control, uint64_t timeout_ns)
{
    struct pollfd entries[POOL_MAX_WORKERS + 2 + CONTROL_ENTRIES];
    int owner[POOL_MAX_WORKERS];
    int count = pool_poll_entries(pool, entries, owner);
    entries[count] = (struct pollfd){.fd = events->timer, .events = POLLIN};
    entries[count + 1] = (struct pollfd){.fd = events->signals, .events = POLLIN};
    struct pollfd *control_entries = &entries[count + 2];
    int controls = control_poll_entries(control, control_entries, clock_mono_ns());
    events->expirations = 0;
    events->child_ended = false;
    events->control_count = 0;
    struct timespec timeout = timespec_of(timeout_ns);
    int result = ppoll(entries, (nfds_t)count + 2 + (nfds_t)controls, &timeout, NULL);
    if (result <= 0)
        return 0; /* the time is up, or EINTR: the caller looks at the clock */
    int ready = 0;
    for (int i = 0; i < count; i++)
        if (entries[i].revents)
            events->ready[ready++] = owner[i];
    if (entries[count].revents &&
        read(events->timer, &events->expirations, sizeof events->expirations) != sizeof events->expirations)
        events->expirations = 0;
    if (entries[count + 1].revents)
        read_signals(events);
    memcpy(events->control, control_entries, (size_t)controls * sizeof *control_entries);
    events->control_count = controls;
    return ready;
}

uint64_t events_cpu_ns(void)
{
    struct timespec now;
    return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0 ? (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec : 0;
}
