#include "broker/pool.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/log.h"
#include "broker/process_check.h"
#include "broker/spawn.h"
#include "shm/platform.h"
#include "shm/text.h"

#define MS UINT64_C(1000000)

/* A device that keeps its worker blocked for so long is hung. A worker that merely waits for a processor gets more time. */
static const uint64_t hang_ns = 250 * MS;
static const uint64_t hang_runnable_ns = 3000 * MS;
/* Loading a vendor's library and the first look for devices may take seconds. */
static const uint64_t start_limit_ns = 15000 * MS;
static const uint64_t backoff_first_ns = 100 * MS;
static const uint64_t backoff_limit_ns = 30000 * MS;
static const uint64_t backoff_hung_ns = 1000 * MS;
static const uint64_t healthy_ns = 10000 * MS;
static const uint64_t abandoned_after_ns = 1000 * MS;
static const uint64_t discovery_interval_ns = 3000 * MS;
static const uint64_t rest_limit_ms = 2000;

static struct pool_worker *free_worker(struct pool *pool)
{
    for (int i = 0; i < POOL_MAX_WORKERS; i++)
        if (pool->workers[i].state == WORKER_FREE)
            return &pool->workers[i];
    return NULL;
}

/* Why a provider gets no worker, or NULL. */
static const char *off_because(const struct options *options, const char *name)
{
    if (options_leave_out(options, name))
        return "switched off by --no-provider";
    return strcmp(name, "sim") == 0 && options->simulate_count == 0 ? "not asked for" : NULL;
}

static void add_worker(struct pool *pool, int provider, const char *only, uint64_t respawn_ns, uint64_t backoff_ns)
{
    struct pool_worker *worker = free_worker(pool);
    if (!worker) {
        log_line("no room for one more worker (%s)", providers[provider]->name);
        return;
    }
    memset(worker, 0, sizeof *worker);
    pool->used = worker - pool->workers < pool->used ? pool->used : (int)(worker - pool->workers) + 1;
    worker->state = WORKER_WAITING;
    worker->provider = provider;
    worker->socket = -1;
    worker->respawn_ns = respawn_ns;
    worker->backoff_ns = backoff_ns;
    if (only)
        provider_text(worker->only, sizeof worker->only, only);
}

void pool_init(struct pool *pool, const struct options *options, const struct pool_events *events)
{
    memset(pool, 0, sizeof *pool);
    pool->options = options;
    pool->events = *events;
    pool->period_ns = options->period_ns;
    for (int i = 0; i < provider_count; i++) {
        const char *why = off_because(options, providers[i]->name);
        if (why)
            events->status(events->context, i, PROVIDER_OFF, why);
        else
            add_worker(pool, i, NULL, 0, backoff_first_ns);
    }
}

/* Ids of this provider that have a worker of their own. */
static int isolated_ids(const struct pool *pool, int provider, const char **out)
{
    int count = 0;
    for (int i = 0; i < pool->used; i++) {
        const struct pool_worker *worker = &pool->workers[i];
        if (worker->state != WORKER_FREE && worker->provider == provider && worker->only[0] && count < OPTIONS_MAX_LIST)
            out[count++] = worker->only;
    }
    return count;
}

static void start_worker(struct pool *pool, struct pool_worker *worker, uint64_t now_ns)
{
    const char *exclude[OPTIONS_MAX_LIST];
    int excluded = worker->only[0] ? 0 : isolated_ids(pool, worker->provider, exclude);
    int fd = spawn_worker(pool->options, providers[worker->provider]->name, exclude, excluded, worker->only, &worker->pid,
                          &worker->progress);
    if (fd < 0) {
        log_line("cannot start a worker for %s: %s", providers[worker->provider]->name, strerror(-fd));
        worker->respawn_ns = now_ns + backoff_limit_ns;
        return;
    }
    if (worker->started_ns && !worker->absent)
        pool->restarts++;
    worker->socket = fd;
    worker->state = WORKER_STARTING;
    worker->started_ns = worker->busy_ns = worker->discovery_ns = now_ns;
    worker->device_count = worker->pending_count = 0;
    worker->rest_ns = 0;
    worker->absent = false;
    pool->alive++;
}

/* Forgets the process; it is reaped when the kernel lets it go. */
static void drop_process(struct pool *pool, struct pool_worker *worker)
{
    if (worker->socket >= 0)
        close(worker->socket);
    worker->socket = -1;
    spawn_release(worker->progress);
    worker->progress = NULL;
    pool->reaped_cpu_ns += worker->cpu_ns;
    worker->cpu_ns = 0;
    pool->alive--;
    bool gone = worker->pid == 0 || waitpid(worker->pid, NULL, WNOHANG) != 0; /* reaped before, or now */
    for (int i = 0; i < POOL_MAX_WORKERS && !gone; i++)
        if (pool->zombies[i] == 0) {
            pool->zombies[i] = worker->pid;
            pool->killed_ns[i] = clock_mono_ns();
            gone = true;
        }
    worker->pid = 0;
}

static void wait_backoff(struct pool_worker *worker, uint64_t now_ns)
{
    if (worker->started_ns && now_ns - worker->started_ns > healthy_ns)
        worker->backoff_ns = worker->only[0] ? backoff_hung_ns : backoff_first_ns;
    worker->state = WORKER_WAITING;
    worker->respawn_ns = now_ns + worker->backoff_ns;
    worker->backoff_ns = worker->backoff_ns * 2 < backoff_limit_ns ? worker->backoff_ns * 2 : backoff_limit_ns;
}

static void kill_worker(struct pool *pool, struct pool_worker *worker)
{
    if (worker->pid > 0)
        kill(worker->pid, SIGKILL);
    pool->killed++;
    drop_process(pool, worker);
}

/* Where a worker is by its own word: PROGRESS_..., and since when. Any word is safe. */
static uint64_t step_of(const struct pool_worker *worker, uint64_t now_ns, uint64_t *since_ns)
{
    *since_ns = worker->busy_ns;
    if (!worker->progress)
        return PROGRESS_IDLE;
    uint64_t step = word_get(&worker->progress->step), since = word_get(&worker->progress->since_ns);
    if (since > *since_ns && since <= now_ns)
        *since_ns = since;
    return step;
}

/* The device at which a worker is at work, or NULL. */
static const char *current_id(const struct pool_worker *worker)
{
    uint64_t since;
    uint64_t step = step_of(worker, UINT64_MAX, &since);
    if (worker->state != WORKER_BUSY || step < PROGRESS_DEVICE || step - PROGRESS_DEVICE >= (uint64_t)worker->device_count)
        return NULL;
    return worker->ids[step - PROGRESS_DEVICE];
}

/* The main worker goes on without the device, which gets a worker of its own. */
static void isolate(struct pool *pool, struct pool_worker *worker, const char *id, uint64_t now_ns)
{
    add_worker(pool, worker->provider, id, now_ns + backoff_hung_ns, 2 * backoff_hung_ns);
    worker->crashed_on[0] = '\0';
    worker->state = WORKER_WAITING;
    worker->respawn_ns = now_ns;
}

static void worker_hung(struct pool *pool, struct pool_worker *worker, uint64_t now_ns)
{
    const char *name = providers[worker->provider]->name;
    const char *at = current_id(worker);
    char id[48] = "";
    if (at)
        memcpy(id, at, sizeof id);
    kill_worker(pool, worker);
    if (!at) {
        log_line("%s: no answer while it is %s: restarting", name, worker->state == WORKER_STARTING ? "starting" : "at work");
        if (!worker->listed)
            pool->events.status(pool->events.context, worker->provider, PROVIDER_FAILED, "hangs while looking for devices");
        worker->listed = true;
        wait_backoff(worker, now_ns);
        return;
    }
    log_line("%s: device %s hangs", name, id);
    pool->events.hung(pool->events.context, worker->provider, id);
    if (worker->only[0])
        wait_backoff(worker, now_ns);
    else
        isolate(pool, worker, id, now_ns);
}

/* The socket's end: the process exited or crashed. */
static void worker_ended(struct pool *pool, struct pool_worker *worker, uint64_t now_ns)
{
    const char *name = providers[worker->provider]->name;
    const char *at = current_id(worker);
    char id[48] = "";
    if (at)
        memcpy(id, at, sizeof id);
    bool absent = worker->absent;
    bool again = at && strcmp(worker->crashed_on, id) == 0;
    drop_process(pool, worker);
    if (absent) {
        worker->state = WORKER_WAITING;
        worker->respawn_ns = now_ns + backoff_limit_ns;
        return;
    }
    if (worker->state == WORKER_STARTING)
        pool->events.status(pool->events.context, worker->provider, PROVIDER_FAILED, "worker ends while starting");
    worker->listed = true;
    log_line("%s: worker ended%s%s", name, at ? " while reading " : "", id);
    if (again && !worker->only[0]) {
        pool->events.hung(pool->events.context, worker->provider, id);
        isolate(pool, worker, id, now_ns);
        return;
    }
    memcpy(worker->crashed_on, id, sizeof id);
    wait_backoff(worker, now_ns);
}

void pool_tick(struct pool *pool, uint64_t tick, uint64_t period_ns)
{
    struct message_tick message = {.type = MESSAGE_TICK, .at_work = pool->at_work, .tick = tick, .period_ns = period_ns};
    uint64_t now_ns = clock_mono_ns();
    pool->period_ns = period_ns;
    for (int i = 0; i < pool->used; i++) {
        struct pool_worker *worker = &pool->workers[i];
        if (worker->state != WORKER_IDLE)
            continue;
        message.discover = now_ns - worker->discovery_ns >= discovery_interval_ns;
        if (now_ns < worker->rest_ns && !message.discover)
            continue; /* to wake it up would cost more than most of the others' reading */
        if (send(worker->socket, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof message)
            continue; /* its end shows at the next receive */
        worker->state = WORKER_BUSY;
        worker->tick = tick;
        worker->busy_ns = now_ns;
        if (message.discover)
            worker->discovery_ns = now_ns;
    }
}

bool pool_quiet(const struct pool *pool)
{
    for (int i = 0; i < pool->used; i++)
        if (pool->workers[i].state == WORKER_BUSY)
            return false;
    return true;
}

bool pool_all_listed(const struct pool *pool)
{
    for (int i = 0; i < pool->used; i++)
        if (pool->workers[i].state != WORKER_FREE && !pool->workers[i].listed)
            return false;
    return true;
}

/* The one whose answer probably comes last. */
static const struct pool_worker *slowest(const struct pool *pool)
{
    const struct pool_worker *found = NULL;
    for (int i = 0; i < pool->used; i++)
        if (pool->workers[i].state == WORKER_BUSY && (!found || pool->workers[i].took_ns > found->took_ns))
            found = &pool->workers[i];
    return found;
}

/* Tables of processes are large: with many devices they fill the socket, and the worker waits until it is read. */
static bool says_much(const struct pool_worker *worker)
{
    return providers[worker->provider]->processes && worker->device_count > 6;
}

/* Of those at work only the slowest wakes the broker: when it has answered, so have the others. */
int pool_poll_entries(const struct pool *pool, struct pollfd *entries, int *owner)
{
    int count = 0;
    const struct pool_worker *last = slowest(pool);
    for (int i = 0; i < pool->used; i++)
        if (pool->workers[i].socket >= 0 && pool->workers[i].state != WORKER_FREE &&
            (pool->workers[i].state != WORKER_BUSY || &pool->workers[i] == last || says_much(&pool->workers[i]))) {
            entries[count] = (struct pollfd){.fd = pool->workers[i].socket, .events = POLLIN};
            owner[count++] = i;
        }
    return count;
}

static void now_listed(struct pool_worker *worker)
{
    worker->listed = true;
    if (worker->state == WORKER_STARTING)
        worker->state = WORKER_IDLE;
}

static bool take_device(struct pool *pool, struct pool_worker *worker, struct message_device *message)
{
    if (message->index != worker->pending_count || message->index < 0 || message->index >= PROVIDER_MAX_DEVICES)
        return false;
    struct layout_device *facts = &message->facts;
    if (!text_valid(facts->id, sizeof facts->id) || facts->id[0] == '\0')
        return false;
    memcpy(worker->ids[worker->pending_count++], facts->id, sizeof facts->id);
    pool->events.device(pool->events.context, worker->provider, facts);
    return true;
}

static bool take_devices(struct pool *pool, struct pool_worker *worker, const struct message_devices *message)
{
    if (message->count != worker->pending_count)
        return false;
    worker->device_count = worker->pending_count;
    worker->pending_count = 0;
    pool->events.listed(pool->events.context, worker->provider, worker->only, (const char(*)[48])worker->ids, worker->device_count,
                        message->beyond != 0);
    now_listed(worker);
    return true;
}

static bool take_sample(struct pool *pool, struct pool_worker *worker, const struct message_sample *message)
{
    bool host = providers[worker->provider]->host;
    if (worker->state != WORKER_BUSY || message->tick != worker->tick)
        return false;
    if (host && message->device == PROVIDER_HOST_DEVICE)
        pool->events.host_sample(pool->events.context, &message->sample);
    else if (!host && message->device >= 0 && message->device < worker->device_count)
        pool->events.sample(pool->events.context, worker->provider, worker->ids[message->device], message->gone, &message->sample);
    else
        return false;
    if (message->cpu_ns)
        worker->cpu_ns = message->cpu_ns;
    if (message->last)
        worker->state = WORKER_IDLE;
    return true;
}

static bool take_processes(struct pool *pool, struct pool_worker *worker, struct message_processes *message)
{
    if (worker->state != WORKER_BUSY || message->tick != worker->tick || message->device < 0 ||
        message->device >= worker->device_count || !process_table_check(&message->table))
        return false;
    pool->events.processes(pool->events.context, worker->provider, worker->ids[message->device], &message->table);
    return true;
}

static bool take(struct pool *pool, struct pool_worker *worker, union message *message)
{
    switch (message->type) {
    case MESSAGE_STATUS:
        message->status.message[sizeof message->status.message - 1] = '\0';
        if (message->status.state == PROVIDER_ABSENT)
            worker->listed = worker->absent = true;
        else if (message->status.state != PROVIDER_RUNNING)
            return false;
        if (!worker->only[0])
            pool->events.status(pool->events.context, worker->provider, message->status.state, message->status.message);
        return true;
    case MESSAGE_DEVICE: return take_device(pool, worker, &message->device);
    case MESSAGE_DEVICES: return take_devices(pool, worker, &message->devices);
    case MESSAGE_HOST:
        if (!providers[worker->provider]->host)
            return false;
        pool->events.host(pool->events.context, &message->host.facts);
        now_listed(worker);
        return true;
    case MESSAGE_PROCESSES: return take_processes(pool, worker, &message->processes);
    case MESSAGE_SAMPLE: return take_sample(pool, worker, &message->sample);
    case MESSAGE_DONE:
        worker->cpu_ns = message->done.cpu_ns;
        worker->rest_ns = clock_mono_ns() + (message->done.rest_ms < rest_limit_ms ? message->done.rest_ms : rest_limit_ms) * MS;
        if (worker->state == WORKER_BUSY)
            worker->state = WORKER_IDLE;
        return true;
    default: return false;
    }
}

void pool_receive(struct pool *pool, int index)
{
    struct pool_worker *worker = &pool->workers[index];
    for (int budget = 3 * PROVIDER_MAX_DEVICES + 16; budget > 0 && worker->socket >= 0; budget--) {
        union message message;
        ssize_t got = recv(worker->socket, &message, sizeof message, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (got <= 0) {
            worker_ended(pool, worker, clock_mono_ns());
            return;
        }
        if (got < (ssize_t)sizeof message.type || (size_t)got != message_size(message.type) || !take(pool, worker, &message))
            pool->bad_messages++;
        else if (worker->state == WORKER_IDLE) {
            worker->took_ns = clock_mono_ns() - worker->busy_ns;
            return; /* it says nothing more until the next tick */
        }
    }
}

void pool_receive_busy(struct pool *pool)
{
    for (int i = 0; i < pool->used; i++)
        if (pool->workers[i].state == WORKER_BUSY)
            pool_receive(pool, i);
}

void pool_reap(struct pool *pool)
{
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        for (int i = 0; i < POOL_MAX_WORKERS; i++) {
            if (pool->zombies[i] == pid)
                pool->zombies[i] = 0;
            if (pool->workers[i].pid == pid)
                pool->workers[i].pid = 0; /* the number may be another process's from now on */
        }
    /* A process that ended by itself shows at its socket, which pool_receive reads to the end first. */
}

static bool stuck(const struct pool_worker *worker, uint64_t now_ns)
{
    uint64_t since_ns;
    uint64_t step = step_of(worker, now_ns, &since_ns);
    uint64_t age = now_ns > since_ns ? now_ns - since_ns : 0;
    if (worker->state == WORKER_STARTING)
        return age > start_limit_ns;
    if (worker->state != WORKER_BUSY || age < hang_ns)
        return false;
    if (step == PROGRESS_DISCOVERY)
        return age > start_limit_ns;
    return age > hang_runnable_ns || !spawn_runnable(worker->pid);
}

void pool_watch(struct pool *pool, uint64_t now_ns)
{
    for (int i = 0; i < pool->used; i++) {
        struct pool_worker *worker = &pool->workers[i];
        if (worker->state >= WORKER_STARTING && stuck(worker, now_ns))
            worker_hung(pool, worker, now_ns);
        if (worker->state == WORKER_WAITING && now_ns >= worker->respawn_ns)
            start_worker(pool, worker, now_ns);
    }
}

void pool_forgive(struct pool *pool, uint64_t away_ns)
{
    for (int i = 0; i < pool->used; i++)
        pool->workers[i].busy_ns += away_ns;
}

uint64_t pool_next_watch(const struct pool *pool, uint64_t now_ns)
{
    uint64_t next = now_ns + 1000 * MS;
    for (int i = 0; i < pool->used; i++) {
        const struct pool_worker *worker = &pool->workers[i];
        uint64_t at = UINT64_MAX;
        if (worker->state == WORKER_WAITING)
            at = worker->respawn_ns;
        else if (worker->state == WORKER_BUSY)
            at = worker->busy_ns + hang_ns > now_ns ? worker->busy_ns + hang_ns : now_ns + 50 * MS;
        if (at < next)
            next = at;
    }
    return next;
}

uint64_t pool_cpu_ns(const struct pool *pool)
{
    uint64_t sum = pool->reaped_cpu_ns;
    for (int i = 0; i < pool->used; i++)
        sum += pool->workers[i].cpu_ns;
    return sum;
}

uint64_t pool_abandoned(const struct pool *pool, uint64_t now_ns)
{
    uint64_t count = 0;
    for (int i = 0; i < POOL_MAX_WORKERS; i++)
        count += pool->zombies[i] != 0 && now_ns - pool->killed_ns[i] > abandoned_after_ns;
    return count;
}

void pool_stop(struct pool *pool)
{
    for (int i = 0; i < pool->used; i++)
        if (pool->workers[i].state >= WORKER_STARTING)
            kill_worker(pool, &pool->workers[i]);
    pool_reap(pool);
}
