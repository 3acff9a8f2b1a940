/* The broker's workers: started, fed with ticks, listened to, and given up without ever being waited for. */
#ifndef GPUTAP_BROKER_POOL_H
#define GPUTAP_BROKER_POOL_H

#include <poll.h>
#include <sys/types.h>

#include "broker/options.h"
#include "broker/worker_protocol.h"

enum { POOL_MAX_WORKERS = 96 };

enum worker_state {
    WORKER_FREE,     /* slot unused */
    WORKER_WAITING,  /* to be started at respawn_ns */
    WORKER_STARTING, /* started, nothing listed yet */
    WORKER_IDLE,
    WORKER_BUSY /* serving a tick */
};

struct pool_worker {
    enum worker_state state;
    int provider;
    char only[48]; /* a device's own worker; "" = the provider's main one */
    pid_t pid;
    int socket;
    uint64_t started_ns;
    uint64_t busy_ns; /* since when it has been at work on the tick, or starting */
    uint64_t respawn_ns;
    uint64_t backoff_ns;
    uint64_t cpu_ns;       /* last reported */
    uint64_t discovery_ns; /* when it last was asked to look for devices */
    uint64_t rest_ns;      /* until then it has nothing to say */
    uint64_t took_ns;      /* its last tick */
    uint64_t tick;
    const struct worker_progress *progress;
    bool listed; /* its first list is in, or it is absent */
    bool absent; /* it said that nothing is here for it, and ends */
    int device_count;
    int pending_count; /* devices of a list still arriving */
    char ids[PROVIDER_MAX_DEVICES][48];
    char crashed_on[48];
};

/* What the pool tells the broker. `provider` is an index of providers[]. */
struct pool_events {
    void *context;
    void (*status)(void *context, int provider, uint32_t state, const char *message);
    /* One device of a worker's list; then `listed` with the ids that this provider's worker now has. */
    void (*device)(void *context, int provider, const struct layout_device *facts);
    void (*listed)(void *context, int provider, const char *only, const char (*ids)[48], int count, bool beyond);
    void (*host)(void *context, const struct layout_host *facts);
    void (*sample)(void *context, int provider, const char *id, int gone, const struct sample *sample);
    void (*processes)(void *context, int provider, const char *id, const struct layout_process_table *table);
    void (*host_sample)(void *context, const struct sample *sample);
    void (*hung)(void *context, int provider, const char *id);
};

struct pool {
    const struct options *options;
    struct pool_events events;
    struct pool_worker workers[POOL_MAX_WORKERS];
    int used;                        /* workers beyond were never taken: a look at each is a miss of the cache */
    pid_t zombies[POOL_MAX_WORKERS]; /* killed, not reaped yet */
    uint64_t killed_ns[POOL_MAX_WORKERS];
    uint64_t period_ns;
    bool at_work; /* see struct message_tick */
    uint64_t alive, restarts, killed, bad_messages, reaped_cpu_ns;
};

void pool_init(struct pool *pool, const struct options *options, const struct pool_events *events);
/* Gives every idle worker the tick; a busy one goes on with its old one. */
void pool_tick(struct pool *pool, uint64_t tick, uint64_t period_ns);
/* No worker is at work on a tick. */
bool pool_quiet(const struct pool *pool);
/* Every worker has told what it found, or has failed to. */
bool pool_all_listed(const struct pool *pool);
/* Fills poll entries, at most POOL_MAX_WORKERS; `owner[i]` is the worker of entries[i]. */
int pool_poll_entries(const struct pool *pool, struct pollfd *entries, int *owner);
/* Reads what a worker said. */
void pool_receive(struct pool *pool, int worker);
/* The same of all that are at work: of these only one is among the poll entries. */
void pool_receive_busy(struct pool *pool);
/* Collects ended processes; call on SIGCHLD. Never blocks. */
void pool_reap(struct pool *pool);
/* Looks for hung workers and starts those whose time has come. Call after receiving. */
void pool_watch(struct pool *pool, uint64_t now_ns);
/* The broker itself was away for so long: nobody is blamed for it. */
void pool_forgive(struct pool *pool, uint64_t away_ns);
/* When pool_watch should be called again. */
uint64_t pool_next_watch(const struct pool *pool, uint64_t now_ns);
uint64_t pool_cpu_ns(const struct pool *pool);
uint64_t pool_abandoned(const struct pool *pool, uint64_t now_ns);
/* Kills all. */
void pool_stop(struct pool *pool);

#endif
