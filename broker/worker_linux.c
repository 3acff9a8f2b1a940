#include "broker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/worker_protocol.h"
#include "shm/platform.h"

/* Samples wait this long for those of the next devices. */
static const uint64_t burst_ns = 5000000;
/* A device of which a provider knows nothing is asked so often, and not each tick; the broker keeps such a sample for at least two
 * seconds. */
static const uint64_t silence_ns = 1200000000;

struct worker {
    const struct provider *provider;
    struct provider_context context;
    struct layout_device devices[PROVIDER_MAX_DEVICES];
    int device_count;
    uint64_t cpu_ns; /* told with the samples of a tick */
    uint64_t flushed_ns;
    struct worker_progress *progress;
    struct message_sample outbox[PROVIDER_MAX_DEVICES];
    int outbox_count;
    uint64_t silent_ns[PROVIDER_MAX_DEVICES]; /* when it was last asked and had nothing to say; 0 = it had, or was not asked */
    char message[sizeof((struct provider_context *)0)->message];
};

size_t message_size(uint32_t type)
{
    switch (type) {
    case MESSAGE_TICK: return sizeof(struct message_tick);
    case MESSAGE_STATUS: return sizeof(struct message_status);
    case MESSAGE_DEVICE: return sizeof(struct message_device);
    case MESSAGE_DEVICES: return sizeof(struct message_devices);
    case MESSAGE_HOST: return sizeof(struct message_host);
    case MESSAGE_SAMPLE: return sizeof(struct message_sample);
    case MESSAGE_DONE: return sizeof(struct message_done);
    case MESSAGE_PROCESSES: return sizeof(struct message_processes);
    default: return 0;
    }
}

/* A broker that is gone ends the worker here. */
static void worker_send(const void *message)
{
    uint32_t type;
    memcpy(&type, message, sizeof type);
    for (;;) {
        ssize_t sent = send(WORKER_SOCKET, message, message_size(type), MSG_NOSIGNAL);
        if (sent >= 0)
            return;
        if (errno != EINTR)
            _exit(0);
    }
}

static void send_status(struct worker *worker, uint32_t state)
{
    struct message_status status = {.type = MESSAGE_STATUS, .state = state};
    provider_text(status.message, sizeof status.message, worker->context.message);
    memcpy(worker->message, worker->context.message, sizeof worker->message);
    worker_send(&status);
}

static void send_devices(struct worker *worker)
{
    for (int i = 0; i < worker->device_count; i++) {
        struct message_device device = {.type = MESSAGE_DEVICE, .index = i, .facts = worker->devices[i]};
        worker_send(&device);
    }
    struct message_devices end = {.type = MESSAGE_DEVICES, .count = worker->device_count, .beyond = worker->context.beyond};
    worker_send(&end);
}

static void discover_devices(struct worker *worker, bool first)
{
    static struct layout_device found[PROVIDER_MAX_DEVICES];
    memset(found, 0, sizeof found);
    int count = worker->provider->discover(&worker->context, found, PROVIDER_MAX_DEVICES);
    if (count == -EAGAIN && !first)
        return;
    if (count < 0)
        count = 0;
    bool same = count == worker->device_count && memcmp(found, worker->devices, (size_t)count * sizeof found[0]) == 0;
    memcpy(worker->devices, found, (size_t)count * sizeof found[0]);
    worker->device_count = count;
    if (!first && same)
        return;
    memset(worker->silent_ns, 0, sizeof worker->silent_ns);
    send_devices(worker);
}

static void discover_host(struct worker *worker, bool first)
{
    static struct layout_host last;
    struct message_host host = {.type = MESSAGE_HOST};
    if (!worker->provider->describe_host || worker->provider->describe_host(&worker->context, &host.facts) != 0)
        return;
    if (first || memcmp(&last, &host.facts, sizeof last) != 0)
        worker_send(&host);
    last = host.facts;
}

static void discover(struct worker *worker, bool first)
{
    if (worker->provider->host)
        discover_host(worker, first);
    else
        discover_devices(worker, first);
    if (first || memcmp(worker->message, worker->context.message, sizeof worker->message) != 0)
        send_status(worker, PROVIDER_RUNNING);
}

static void progress(struct worker *worker, uint64_t step)
{
    if (worker->progress) {
        word_poke(&worker->progress->since_ns, clock_mono_ns());
        word_set(&worker->progress->step, step);
    }
}

static void flush(struct worker *worker)
{
    struct mmsghdr headers[PROVIDER_MAX_DEVICES];
    struct iovec parts[PROVIDER_MAX_DEVICES];
    memset(headers, 0, (size_t)worker->outbox_count * sizeof headers[0]);
    for (int i = 0; i < worker->outbox_count; i++) {
        parts[i] = (struct iovec){&worker->outbox[i], sizeof worker->outbox[i]};
        headers[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
    }
    for (int sent = 0; sent < worker->outbox_count;) {
        int more = sendmmsg(WORKER_SOCKET, headers + sent, (unsigned)(worker->outbox_count - sent), MSG_NOSIGNAL);
        if (more < 0 && errno != EINTR)
            _exit(0);
        sent += more > 0 ? more : 0;
    }
    worker->outbox_count = 0;
}

/* Sent at once, and so before the samples of the same tick, after which nothing more is listened to. */
static void send_processes(struct worker *worker, uint64_t tick, int device)
{
    static struct message_processes message;
    message = (struct message_processes){.type = MESSAGE_PROCESSES, .device = device, .tick = tick};
    if (worker->provider->processes && worker->provider->processes(&worker->context, device, &message.table))
        worker_send(&message);
}

/* Nothing known, and for no reason but that this is not the provider for it. */
static bool is_silent(const struct message_sample *message)
{
    const struct sample *sample = &message->sample;
    if (message->gone || sample->state != DEVICE_OK || sample->valid[0] || sample->valid[1])
        return false;
    for (int i = 0; i < METRIC_COUNT; i++)
        if (sample->reasons[i] != REASON_NOT_SUPPORTED)
            return false;
    return true;
}

static void sample_one(struct worker *worker, uint64_t tick, int device, bool last)
{
    struct message_sample *message = &worker->outbox[worker->outbox_count++];
    *message =
        (struct message_sample){.type = MESSAGE_SAMPLE, .device = device, .last = last, .tick = tick, .cpu_ns = worker->cpu_ns};
    uint64_t start = clock_mono_ns();
    progress(worker, PROGRESS_DEVICE + (uint64_t)(device > 0 ? device : 0));
    sample_begin(&message->sample, start);
    int result = worker->provider->sample(&worker->context, device, &message->sample);
    if (result < 0) {
        message->gone = -result;
        sample_all_unknown(&message->sample, REASON_ERROR);
    } else {
        send_processes(worker, tick, device);
    }
    uint64_t now = clock_mono_ns();
    message->sample.cost_ns = now - start;
    if (device >= 0)
        worker->silent_ns[device] = is_silent(message) ? start : 0;
    if (last || worker->outbox_count == PROVIDER_MAX_DEVICES || now - worker->flushed_ns > burst_ns) {
        if (last)
            progress(worker, PROGRESS_IDLE);
        flush(worker);
        worker->flushed_ns = now;
    }
}

/* How long there is nothing to ask of a device. */
static uint64_t silent_for(const struct worker *worker, int device, uint64_t now_ns)
{
    uint64_t age_ns = now_ns - worker->silent_ns[device];
    return worker->silent_ns[device] == 0 || age_ns >= silence_ns ? 0 : silence_ns - age_ns;
}

/* 0, or how long there is nothing to ask of any device. */
static uint64_t sample_devices(struct worker *worker, uint64_t tick)
{
    int due[PROVIDER_MAX_DEVICES], count = 0;
    uint64_t now_ns = clock_mono_ns(), rest_ns = silence_ns;
    for (int i = 0; i < worker->device_count; i++) {
        uint64_t silent_ns = silent_for(worker, i, now_ns);
        if (silent_ns == 0)
            due[count++] = i;
        rest_ns = silent_ns < rest_ns ? silent_ns : rest_ns;
    }
    for (int i = 0; i < count; i++)
        sample_one(worker, tick, due[i], i + 1 == count);
    return count > 0 ? 0 : rest_ns;
}

static uint64_t cpu_time_ns(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return 0;
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
}

static void serve_tick(struct worker *worker, const struct message_tick *tick)
{
    worker->context.tick = tick->tick;
    worker->context.period_ns = tick->period_ns;
    worker->context.at_work = tick->at_work != 0;
    worker->cpu_ns = 0;
    worker->flushed_ns = clock_mono_ns();
    if (tick->discover) {
        progress(worker, PROGRESS_DISCOVERY);
        discover(worker, false);
        worker->cpu_ns = cpu_time_ns();
    }
    if (worker->provider->host) {
        sample_one(worker, tick->tick, PROVIDER_HOST_DEVICE, true);
        return;
    }
    uint64_t rest_ns = sample_devices(worker, tick->tick);
    if (rest_ns == 0)
        return;
    progress(worker, PROGRESS_IDLE);
    struct message_done done = {
        .type = MESSAGE_DONE, .rest_ms = (uint32_t)(rest_ns / 1000000), .tick = tick->tick, .cpu_ns = cpu_time_ns()};
    worker_send(&done);
}

/* The broker sends no tick before the last one is done. */
static bool receive_tick(struct message_tick *tick)
{
    for (;;) {
        ssize_t got = recv(WORKER_SOCKET, tick, sizeof *tick, 0);
        if (got == (ssize_t)sizeof *tick && tick->type == MESSAGE_TICK)
            return true;
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
    }
}

static void context_init(struct worker *worker, const struct options *options, struct io *io)
{
    io_init(io, options->root);
    worker->context = (struct provider_context){.io = io,
                                                .period_ns = options->period_ns,
                                                .simulate = options->simulate,
                                                .simulate_count = options->simulate_count,
                                                .sim_load = options->sim_load,
                                                .exclude = options->exclude,
                                                .exclude_count = options->exclude_count,
                                                .only = options->only};
}

/* As shown by ps and top; 15 characters are kept. */
static void name_process(const char *provider)
{
    char name[32];
    snprintf(name, sizeof name, "gputap-%s", provider);
    prctl(PR_SET_NAME, name);
}

/* Some 25 files a card are kept open, and a shell's soft limit is 1024. What is inherited is kept from a library's children. */
static void descriptors_init(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    (void)fcntl(WORKER_SOCKET, F_SETFD, FD_CLOEXEC);
    (void)fcntl(WORKER_PROGRESS, F_SETFD, FD_CLOEXEC);
}

int worker_run(const struct options *options)
{
    static struct worker worker;
    static struct io io;
    int index = provider_find(options->worker);
    if (index < 0) {
        fprintf(stderr, "gputapd: no provider %s\n", options->worker);
        return 2;
    }
    worker.provider = providers[index];
    name_process(worker.provider->name);
    descriptors_init();
    void *page = mmap(NULL, sizeof *worker.progress, PROT_READ | PROT_WRITE, MAP_SHARED, WORKER_PROGRESS, 0);
    worker.progress = page == MAP_FAILED ? NULL : page;
    context_init(&worker, options, &io);
    progress(&worker, PROGRESS_DISCOVERY);
    int result = worker.provider->start(&worker.context);
    if (result != 0) {
        send_status(&worker, PROVIDER_ABSENT);
        return 0;
    }
    discover(&worker, true);
    progress(&worker, PROGRESS_IDLE);
    struct message_tick tick = {0};
    while (receive_tick(&tick))
        serve_tick(&worker, &tick);
    worker.provider->stop(&worker.context);
    return 0;
}
