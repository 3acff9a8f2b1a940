/* libgputap: read this machine's GPU telemetry in-process.
 *
 * One broker (gputapd) samples every GPU and the host, and puts the numbers into shared memory that this library maps
 * read-only. Reading needs no rights on any device, makes no system call on the hot path, never blocks (only gputap_wait
 * does), and cannot disturb the broker or another reader.
 *
 *     gputap *tap;
 *     if (gputap_open(&tap, NULL, 0) == 0) {
 *         int metric = GPUTAP_GFX_BUSY;
 *         double busy;
 *         gputap_read(tap, 0, &metric, 1, &busy);   // NaN = unknown
 *         gputap_close(tap);
 *     }
 *
 * Results: 0 (or a count, an index) on success, a negative GPUTAP_E... on failure; gputap_message() has the details of the
 * last failure. What is unknown is never 0: it is NaN, or its valid bit is clear, and gputap_reason() says why.
 *
 * Threads: every function may be called from any thread on one handle, except gputap_close, which must be the last. After fork
 * the child may go on reading with the same handle; a child of a program whose other threads use the handle at that moment should
 * open one of its own, since a re-attachment under way is not finished in it.
 *
 * Trust: a broker is only read where root or the caller owns its folder; whoever sets GPUTAP_DIR vouches for the folder that it
 * names. All bytes are checked, so that a wrong or hostile writer can tell lies but not crash a reader, with one exception that
 * no reader can help: the owner of the file may truncate it, and touching what is gone is SIGBUS.
 *
 * Restarts: a handle follows its instance. When the broker is restarted, the next call attaches to the new segment by itself
 * and GPUTAP_STATUS_RESTARTED is seen once. Device numbers belong to the handle and stay bound to the device's id for its
 * life; a device that is no more answers GPUTAP_ENODEV. */
#ifndef GPUTAP_H
#define GPUTAP_H

#include <stddef.h>
#include <stdint.h>

#include "gputap_metrics.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(GPUTAP_STATIC)
#define GPUTAP_API
#elif defined(_WIN32)
#ifdef GPUTAP_BUILD
#define GPUTAP_API __declspec(dllexport)
#else
#define GPUTAP_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define GPUTAP_API __attribute__((visibility("default")))
#else
#define GPUTAP_API
#endif

#define GPUTAP_VERSION "0.1.0"

typedef struct gputap gputap;

enum gputap_error {
    GPUTAP_OK = 0,
    GPUTAP_EINVAL = -1,    /* an argument is out of its range */
    GPUTAP_ENOBROKER = -2, /* no broker and no segment of one was found */
    GPUTAP_ENODEV = -3,    /* no such device, or it is no more */
    GPUTAP_EPERM = -4,     /* found, but may not be opened */
    GPUTAP_EVERSION = -5,  /* the segment is of another ABI major */
    GPUTAP_ECORRUPT = -6,  /* the segment is truncated or garbage */
    GPUTAP_EAGAIN = -7,    /* overwritten while it was read, eight times; try again */
    GPUTAP_EEMPTY = -8,    /* nothing was sampled yet */
    GPUTAP_ETIMEDOUT = -9, /* gputap_wait: nothing new in time */
    GPUTAP_ENOMEM = -10,
    GPUTAP_ESYSTEM = -11,   /* a system call failed; see gputap_message */
    GPUTAP_ESIZE = -12,     /* a buffer or a sized struct is too small */
    GPUTAP_EFORKED = -13,   /* annotating with what the parent process attached; gputap_attach again */
    GPUTAP_EDETACHED = -14, /* annotating before gputap_attach */
    GPUTAP_EFULL = -15      /* 32 spans are open: this one is counted as dropped */
};

/* Bits of gputap_status. RESTARTED and CHANGED are told once: the call that returns them clears them. */
enum gputap_status_bits {
    GPUTAP_STATUS_RUNNING = 1,    /* a broker lives and its beat moves */
    GPUTAP_STATUS_STALE = 2,      /* it lives, but its beat stands still for 2.5 periods + 100 ms of the reader's clock */
    GPUTAP_STATUS_DEAD = 4,       /* no broker holds the lock; the last numbers, if any, stay readable */
    GPUTAP_STATUS_SUPERSEDED = 8, /* this segment was replaced and the new one could not be attached yet */
    GPUTAP_STATUS_RESTARTED = 16, /* attached to another segment since the last call */
    GPUTAP_STATUS_CHANGED = 32,   /* a device appeared, went, or changed its state or facts since the last call */
    GPUTAP_STATUS_NOPERM = 64,    /* a segment is there but may not be read */
    GPUTAP_STATUS_SIMULATED = 128 /* simulated devices were asked for */
};

enum gputap_reason {
    GPUTAP_REASON_NONE = 0,
    GPUTAP_REASON_NOT_SAMPLED = 1,
    GPUTAP_REASON_NOT_SUPPORTED = 2,
    GPUTAP_REASON_NO_PERMISSION = 3,
    GPUTAP_REASON_ASLEEP = 4,
    GPUTAP_REASON_LETTING_SLEEP = 5,
    GPUTAP_REASON_ERROR = 6,
    GPUTAP_REASON_IMPLAUSIBLE = 7,
    GPUTAP_REASON_STALE = 8
};

enum gputap_device_state {
    GPUTAP_DEVICE_OK = 0,
    GPUTAP_DEVICE_ASLEEP = 1,
    GPUTAP_DEVICE_SETTLING = 2, /* just woken: the firmware's first numbers are not to be trusted */
    GPUTAP_DEVICE_HUNG = 3,
    GPUTAP_DEVICE_GONE = 4
};

enum gputap_pool { GPUTAP_POOL_UNKNOWN = 0, GPUTAP_POOL_DISCRETE = 1, GPUTAP_POOL_UNIFIED = 2 };

/* In place of a device number: the machine itself, with metrics of enum gputap_host_metric. */
#define GPUTAP_HOST (-1)

/* A 64-bit value; gputap_metric_info() says which member. */
typedef union gputap_value {
    uint64_t u64;
    int64_t i64;
    double f64;
} gputap_value;

/* Running sums since the broker's start. The difference of two snapshots of one epoch is what the interval between them cost,
 * right across gaps and changes of period; divide busy_seconds by sampled_seconds for a mean. */
typedef struct gputap_sums {
    double energy_joules;
    double busy_seconds;
    double throttled_seconds;
    double sampled_seconds;
    double vram_byte_seconds;
} gputap_sums;

#define GPUTAP_METRIC_SLOTS 51

/* One consistent sample of one device. Set `size` to sizeof(gputap_snapshot) before the call (GPUTAP_SNAPSHOT_INIT does);
 * a library that knows more members leaves them out, one that knows fewer zeroes the rest. */
typedef struct gputap_snapshot {
    uint32_t size;
    uint32_t state;      /* enum gputap_device_state */
    uint32_t generation; /* grows when the device was away and came back */
    uint32_t reserved;
    uint64_t sequence; /* 1 for the first sample of the epoch */
    uint64_t tick;
    uint64_t mono_ns; /* the broker's CLOCK_MONOTONIC */
    uint64_t real_ns; /* Unix time */
    uint64_t age_ns;  /* how old it is by now */
    uint64_t cost_ns; /* what reading the device cost */
    uint64_t valid[2];
    gputap_value values[GPUTAP_METRIC_SLOTS];
    gputap_sums sums;
} gputap_snapshot;
#define GPUTAP_SNAPSHOT_INIT                                                                                                       \
    {                                                                                                                              \
        .size = sizeof(gputap_snapshot)                                                                                            \
    }

/* What does not change at every sample. Texts are UTF-8; empty = unknown. Numbers <= 0 are unknown where 0 makes no sense. */
typedef struct gputap_device {
    uint32_t size;
    uint32_t state;
    uint32_t generation;
    uint32_t pool;
    uint32_t simulated;
    uint32_t vendor_id, device_id, subvendor_id, subdevice_id, revision;
    uint32_t compute_units;
    uint32_t vram_bus_bits;
    int32_t kfd_index;  /* -1 = none */
    int32_t nvml_index; /* -1 = none */
    char id[48];        /* 0000:c5:00.0, .../xcp3, .../mig-<uuid>, platform:<name>, sim:<model>:<n> */
    char pci[16];
    char uuid[48];
    char vendor[16]; /* amd, nvidia, intel, other */
    char name[96];
    char driver[24];
    char driver_version[40];
    char arch[16];
    char vram_type[16];
    double tgp_watts;
    double gfx_clock_max, memory_clock_max;                                                       /* MHz */
    double temperature_edge_critical, temperature_junction_critical, temperature_memory_critical; /* degrees C */
    double temperature_slowdown;
    double idle_watts; /* power while nothing runs, as seen so far */
} gputap_device;
#define GPUTAP_DEVICE_INIT                                                                                                         \
    {                                                                                                                              \
        .size = sizeof(gputap_device)                                                                                              \
    }

typedef struct gputap_host {
    uint32_t size;
    uint32_t cpu_threads;
    char hostname[64];
    char cpu_name[96];
    char kernel[64];
    char os[64];
    char broker_version[32];
    uint32_t broker_pid; /* to show only */
    uint32_t reserved;
    char boot_id[37]; /* as text; empty = unknown */
} gputap_host;
#define GPUTAP_HOST_INIT                                                                                                           \
    {                                                                                                                              \
        .size = sizeof(gputap_host)                                                                                                \
    }

typedef enum gputap_type { GPUTAP_F64 = 0, GPUTAP_U64 = 1, GPUTAP_I64 = 2 } gputap_type;
typedef enum gputap_semantics { GPUTAP_GAUGE = 0, GPUTAP_COUNTER = 1, GPUTAP_BITS = 2 } gputap_semantics;

typedef struct gputap_metric {
    const char *name; /* vram_used */
    const char *unit; /* B, %, MHz, W, J, ... or empty */
    const char *help;
    gputap_type type;
    gputap_semantics semantics;
    int decimals;
    int capsule; /* 1: belongs to the set "capsule" */
    int history; /* 1: kept second by second beyond the ring */
} gputap_metric;

/* What a provider of the broker found. */
typedef struct gputap_provider {
    uint32_t size;
    uint32_t state; /* 0 starting, 1 running, 2 absent, 3 failed, 4 off */
    uint32_t devices;
    uint32_t restarts;
    uint32_t hung;
    uint32_t reserved;
    char name[16];
    char message[144];
} gputap_provider;
#define GPUTAP_PROVIDER_INIT                                                                                                       \
    {                                                                                                                              \
        .size = sizeof(gputap_provider)                                                                                            \
    }

/* The broker's own cost and losses since its start. */
typedef struct gputap_stats {
    uint32_t size;
    uint32_t reserved;
    uint64_t ticks, missed_ticks, late_samples;
    uint64_t publish_ns, broker_cpu_ns, workers_cpu_ns;
    uint64_t workers_alive, worker_restarts, workers_killed, workers_abandoned;
    uint64_t bad_messages, recreated;
    uint64_t sessions_open, sessions_total, sessions_refused;
    uint64_t events, events_lost, records_rejected;
} gputap_stats;
#define GPUTAP_STATS_INIT                                                                                                          \
    {                                                                                                                              \
        .size = sizeof(gputap_stats)                                                                                               \
    }

enum gputap_open_flags {
    GPUTAP_OPEN_DETACHED = 1 /* succeed even where there is no broker; the handle attaches when one comes */
};

/* Opens `instance` (NULL: $GPUTAP_INSTANCE, else "default"; 1 to 64 of [A-Za-z0-9._-], not starting with '.'). Looks in
 * $GPUTAP_DIR alone where that is set (an absolute path), else in the user's own place, then the system's: the first whose broker
 * lives wins, else the newest dead one.
 * Errors: GPUTAP_EINVAL, ENOBROKER, EPERM, EVERSION, ECORRUPT, ENOMEM, ESYSTEM. On failure *out is NULL. */
GPUTAP_API int gputap_open(gputap **out, const char *instance, unsigned flags);
/* Ends the handle; NULL is allowed. No other thread may be inside a call with it. */
GPUTAP_API void gputap_close(gputap *tap);

/* Status bits, never negative for a valid handle. Makes system calls (file and lock are looked at), so call it once a tick
 * rather than once a read. */
GPUTAP_API int gputap_status(gputap *tap);
/* 16 bytes that name one start of the broker. GPUTAP_ENOBROKER while not attached. */
GPUTAP_API int gputap_epoch(gputap *tap, uint8_t out[16]);
/* Sampling period in nanoseconds now in force; 0 while not attached. */
GPUTAP_API uint64_t gputap_period(gputap *tap);
/* The broker's last tick number; 0 while not attached. */
GPUTAP_API uint64_t gputap_tick(gputap *tap);

/* How many device numbers this handle has given out (0 .. count-1). */
GPUTAP_API int gputap_device_count(gputap *tap);
GPUTAP_API int gputap_device_info(gputap *tap, int device, gputap_device *out);
/* Number of the device with this id, PCI address or uuid; GPUTAP_ENODEV. */
GPUTAP_API int gputap_find(gputap *tap, const char *id);
GPUTAP_API int gputap_host_info(gputap *tap, gputap_host *out);

/* The newest sample of a device or of GPUTAP_HOST, consistent in itself, never older than one returned before.
 * Errors: EINVAL, ENOBROKER, ENODEV, EEMPTY, EAGAIN. */
GPUTAP_API int gputap_latest(gputap *tap, int device, gputap_snapshot *out);
GPUTAP_API int gputap_host_latest(gputap *tap, gputap_snapshot *out);
/* `count` (1..64) metrics of the newest sample as doubles, all of the same sample; NaN = unknown. Cheaper than gputap_latest. */
GPUTAP_API int gputap_read(gputap *tap, int device, const int *metrics, int count, double *out);
/* A metric of a snapshot as a double, NaN where unknown. `host` 1 for a snapshot of GPUTAP_HOST. */
GPUTAP_API double gputap_snapshot_value(const gputap_snapshot *snapshot, int host, int metric);

/* Why a metric of a device is unknown (enum gputap_reason), 0 if it is known. */
GPUTAP_API int gputap_reason(gputap *tap, int device, int metric);
/* Name of the provider that a device's metric comes from; empty where it is unknown. `size` at least 16. */
GPUTAP_API int gputap_source(gputap *tap, int device, int metric, char *out, size_t size);

/* A metric of the device table, or with GPUTAP_HOST of the host table. NULL out of range. Static data. */
GPUTAP_API const gputap_metric *gputap_metric_info(int device, int metric);
/* Index of a metric name in the device table (or the host's), GPUTAP_EINVAL if there is none. */
GPUTAP_API int gputap_metric_find(int device, const char *name);

/* Waits until the broker's tick is another than `*tick`, stores the new one. timeout_ms < 0 waits for ever. Returns 0,
 * GPUTAP_ETIMEDOUT, or GPUTAP_ENOBROKER at once when there is nothing to wait on and timeout_ms is 0. Follows restarts. */
GPUTAP_API int gputap_wait(gputap *tap, uint64_t *tick, int timeout_ms);

/* A position in a device's ring. Plain data: copy it, put it anywhere, no need to close it. */
typedef struct gputap_cursor {
    int32_t device;
    uint32_t restarts; /* epochs entered after the first */
    uint64_t got;      /* samples returned in this epoch */
    uint64_t lost;     /* samples overwritten before they were read, exact: got + lost == samples passed */
    uint64_t next;     /* private */
    uint64_t attach;   /* private */
} gputap_cursor;
enum gputap_cursor_start { GPUTAP_FROM_NEWEST = 0, GPUTAP_FROM_OLDEST = 1 };

/* Positions a cursor on a device or GPUTAP_HOST: at what comes next, or at the oldest record still there. */
GPUTAP_API int gputap_cursor_init(gputap *tap, gputap_cursor *cursor, int device, int start);
/* The next sample: 1 and *out, 0 if there is none yet, negative on error. A lapped cursor counts what it lost and goes on half a
 * ring behind the head. */
GPUTAP_API int gputap_next(gputap *tap, gputap_cursor *cursor, gputap_snapshot *out);

/* The last `seconds` (1..3600), as at most `points` (1..4096) rows, oldest first. A row is the mean over its slice of time (bits
 * are joined, counters give the last value), its time that of its last sample; a slice without samples is left out. times_ms gets
 * `points` Unix milliseconds, rows points * count doubles (NaN = unknown). Returns the number of rows. From the ring where it
 * reaches far enough, else from the one-second ring (metrics without history are NaN there). */
GPUTAP_API int gputap_history(gputap *tap, int device, const int *metrics, int count, int seconds, int points, int64_t *times_ms,
                              double *rows);

/* Waits until anything is new: a tick, or an annotation merged between two. *change is opaque; begin with 0, which returns at once.
 * Otherwise like gputap_wait. */
GPUTAP_API int gputap_wait_change(gputap *tap, uint64_t *change, int timeout_ms);

/* --- annotations ------------------------------------------------------------------------------------------------------------
 * A process says what it does, and gets back what that took. Every call returns at once, whether a broker runs, is stopped, or is
 * not there: then calls succeed all the same, what is open is told to the next broker, and what was over by then is counted as
 * dropped. A handle has one session; any thread may call. After fork the child's session is disabled (GPUTAP_EFORKED) until it
 * attaches one of its own. Connecting is done by these calls as they come by, at most every 250 ms, by no thread of its own: a
 * caller that says nothing for long calls gputap_poll now and then.
 *
 * Texts are UTF-8 and are cut at a whole character: label 47 bytes, job 47, node 31, name 63. NULL is the empty text,
 * which a label must not be. */

enum { GPUTAP_MAX_SPANS = 32, GPUTAP_MAX_GAUGES = 16, GPUTAP_SPAN_DEVICES = 64 };

/* Flags of a usage. */
enum gputap_usage_flags {
    GPUTAP_USAGE_PARTIAL = 1,   /* the records of the start are gone: seconds are right, sums and peaks cover the rest */
    GPUTAP_USAGE_ESTIMATED = 2, /* no sample inside, or none in its later half, or none after the end yet: neighbours had to do */
    GPUTAP_USAGE_SHARED = 4,    /* another session's span overlapped: the numbers are the device's, not the process's */
    GPUTAP_USAGE_UNIFIED = 8    /* vram_mean is of the unified pair of an APU */
};

/* What an interval took on one device. NaN = unknown. */
typedef struct gputap_usage {
    int32_t device;   /* number of the handle, -1 = it has none */
    uint32_t flags;   /* enum gputap_usage_flags */
    uint64_t samples; /* inside the interval */
    double seconds;
    double sampled_seconds;      /* of them, while the device was awake and read */
    double energy;               /* J */
    double net_energy;           /* J above what the device draws while idle */
    double busy_mean, busy_peak; /* % */
    double throttled_seconds;
    double vram_mean, vram_peak; /* bytes of the device, all processes */
    double unified_peak;         /* bytes, on a unified pool */
    double own_vram_peak;        /* bytes: the largest `reserved` that the session's gauge told */
    double temperature_peak;     /* degrees C, edge, else junction */
    double reserved[4];
} gputap_usage;

/* What the device took between two times of the broker's monotonic clock (gputap_snapshot.mono_ns, gputap_now). An end of 0 is
 * now. Errors: EINVAL, ENOBROKER, ENODEV, EEMPTY, EAGAIN. */
GPUTAP_API int gputap_usage_between(gputap *tap, int device, uint64_t start_ns, uint64_t end_ns, gputap_usage *out);
/* The broker's monotonic clock now, right also where this process has another (time namespaces); 0 while not attached. */
GPUTAP_API uint64_t gputap_now(gputap *tap);

/* Opens this handle's session under a label. 0 also where no broker is. Attaching again changes the label and ends what is open.
 * Errors: EINVAL, ENOMEM. */
GPUTAP_API int gputap_attach(gputap *tap, const char *label);
/* Ends it, open spans as abandoned. gputap_close does the same. */
GPUTAP_API int gputap_detach(gputap *tap);
/* Connects, re-connects and tells what is open, as far as that is due. 1 while the broker has the session (or the wish for a
 * period), 0 while it does not (then gputap_message says why), or negative. */
GPUTAP_API int gputap_poll(gputap *tap);
/* Asks the broker to sample at least every period_ms (1..60000; 0 takes the wish back), for as long as the handle is open. The
 * fastest wish of all clients is in force, never under the broker's --min-period. Needs no session. */
GPUTAP_API int gputap_request_period(gputap *tap, int period_ms);

/* Begins a piece of work: job (which run it belongs to), node (its number or name there), name (what it is). parent: id of the
 * span that it is part of, or 0; shown as given. devices: count numbers of devices that it uses, count 0 = all. *span is its id,
 * never 0 and never used twice. Errors: EINVAL, ENODEV (also beyond the first 64 devices), EFULL, EDETACHED, EFORKED; *span is
 * then 0, which step and end accept and ignore. */
GPUTAP_API int gputap_span_begin(gputap *tap, const char *job, const char *node, const char *name, uint64_t parent,
                                 const int *devices, int count, uint64_t *span);
/* Progress: value of max; max <= 0 = how much is not known. Rings no bell: costs tens of nanoseconds. */
GPUTAP_API int gputap_span_step(gputap *tap, uint64_t span, double value, double max);
/* Ends it. usage (may be NULL) gets one element a device of the span, at most `capacity`, as known now: mostly `estimated`, since
 * the sample that closes the span is still to come. Returns how many. The final numbers are in the event GPUTAP_EVENT_USAGE.
 * Children that are open stay open. An unknown id is EINVAL. */
GPUTAP_API int gputap_span_end(gputap *tap, uint64_t span, gputap_usage *usage, int capacity);
/* Something that happened, without length. */
GPUTAP_API int gputap_instant(gputap *tap, const char *job, const char *node, const char *name);
/* What the session's own allocator holds on a device, in bytes; UINT64_MAX = unknown. For 16 devices at most. */
GPUTAP_API int gputap_gauge(gputap *tap, int device, uint64_t allocated, uint64_t reserved, uint64_t dynamic);

typedef struct gputap_annotator {
    uint32_t size;
    uint32_t connected;  /* the broker has the session */
    int32_t slot;        /* in gputap_session_info; -1 while not connected */
    uint32_t generation; /* of that slot */
    uint64_t dropped;    /* spans beyond 32, and events that no broker has heard */
    uint32_t open_spans;
    uint32_t connects; /* how often a broker has granted it */
} gputap_annotator;
#define GPUTAP_ANNOTATOR_INIT                                                                                                      \
    {                                                                                                                              \
        .size = sizeof(gputap_annotator)                                                                                           \
    }
GPUTAP_API int gputap_annotator_info(gputap *tap, gputap_annotator *out);

/* --- what the sessions of this machine say -------------------------------------------------------------------------------------
 */

typedef struct gputap_span {
    uint64_t id, parent;
    uint64_t start_ns;    /* broker's monotonic clock */
    int64_t start_ms;     /* Unix milliseconds */
    double seconds;       /* so far */
    double value, max;    /* progress; max <= 0 = unknown */
    uint32_t shared;      /* 1: another session's span overlaps on one of the devices */
    int32_t device_count; /* 0 = all, -1 = none that this handle knows (any more) */
    int16_t devices[GPUTAP_SPAN_DEVICES];
    char job[48];
    char node[32];
    char name[64];
} gputap_span;

typedef struct gputap_gauge_value {
    int32_t device;
    uint32_t reserved0;
    uint64_t allocated, reserved, dynamic; /* bytes, UINT64_MAX = unknown */
} gputap_gauge_value;

typedef struct gputap_session {
    uint32_t size;
    int32_t slot;
    uint32_t generation; /* of the slot: names the session together with it, within an epoch */
    uint32_t pid, uid;   /* as the broker sees them */
    uint32_t mine;       /* 1: this handle's */
    int64_t since_ms;    /* Unix milliseconds */
    uint64_t dropped;    /* by the client */
    uint64_t lost;       /* events that came faster than they were read */
    uint64_t rejected;   /* records that made no sense */
    uint64_t ended;      /* spans so far */
    uint32_t span_count, gauge_count;
    char label[48];
    char comm[16]; /* name of the process */
    gputap_gauge_value gauges[GPUTAP_MAX_GAUGES];
} gputap_session;
#define GPUTAP_SESSION_INIT                                                                                                        \
    {                                                                                                                              \
        .size = sizeof(gputap_session)                                                                                             \
    }

/* How many slots there are (0 with a broker of before 0.2). */
GPUTAP_API int gputap_session_slots(gputap *tap);
/* The session in a slot, and its open spans in the order of their start, at most `capacity` of them (spans may be NULL): one
 * consistent copy. Returns the number of spans filled in, GPUTAP_EEMPTY for a free slot. */
GPUTAP_API int gputap_session_info(gputap *tap, int slot, gputap_session *out, gputap_span *spans, int capacity);

enum gputap_event_type {
    GPUTAP_EVENT_ATTACH = 1,
    GPUTAP_EVENT_DETACH = 2,
    GPUTAP_EVENT_BEGIN = 3,
    GPUTAP_EVENT_STEP = 4, /* at most ten a second and span */
    GPUTAP_EVENT_END = 5,
    GPUTAP_EVENT_INSTANT = 6,
    GPUTAP_EVENT_USAGE = 7 /* final numbers of an ended span, one a device, after the sample that follows its end */
};
enum gputap_event_flags {
    GPUTAP_EVENT_ABANDONED = 1, /* END: the client went away without ending it */
    GPUTAP_EVENT_RECOVERED = 2, /* BEGIN, END: concluded from what the client has open, since events were lost */
    GPUTAP_EVENT_NO_TEXTS = 4   /* USAGE: the span's END is overwritten already */
};

typedef struct gputap_event {
    uint32_t size;
    uint32_t type;  /* enum gputap_event_type */
    uint32_t flags; /* enum gputap_event_flags */
    int32_t slot;   /* of the session */
    uint32_t generation;
    uint32_t pid, uid;
    int32_t device_count; /* as in gputap_span */
    int16_t devices[GPUTAP_SPAN_DEVICES];
    uint64_t span, parent;
    uint64_t mono_ns;  /* broker's monotonic clock */
    int64_t real_ms;   /* Unix milliseconds */
    double value, max; /* progress */
    double seconds;    /* END, STEP: since the begin; else NaN */
    char job[48];
    char node[32];
    char name[64];      /* ATTACH, DETACH: the label */
    char label[48];     /* of the session, where its slot is still its own */
    gputap_usage usage; /* USAGE */
} gputap_event;
#define GPUTAP_EVENT_INIT                                                                                                          \
    {                                                                                                                              \
        .size = sizeof(gputap_event)                                                                                               \
    }

/* Positions a cursor (its member device is unused) on the events of all sessions; gputap_next_event is to it what gputap_next is to
 * samples. The last 8192 events are kept. */
GPUTAP_API int gputap_event_cursor_init(gputap *tap, gputap_cursor *cursor, int start);
GPUTAP_API int gputap_next_event(gputap *tap, gputap_cursor *cursor, gputap_event *out);

/* --- who holds a device --------------------------------------------------------------------------------------------------------
 */

enum { GPUTAP_MAX_PROCESSES = 64 }; /* rows of a device */

enum gputap_process_flags {
    GPUTAP_PROCESS_KFD = 1,    /* known to AMD's compute driver */
    GPUTAP_PROCESS_PARTIAL = 2 /* not all of it could be read: its bytes are at least so many */
};

/* A process that holds a device. From DRM's fdinfo and the compute driver's own files, never from a command line. */
typedef struct gputap_process {
    uint32_t pid, uid;  /* as the broker sees them */
    uint32_t flags;     /* enum gputap_process_flags */
    uint32_t sharers;   /* other processes with the same allocations (after a fork); they have no row for these */
    int64_t start_ms;   /* Unix milliseconds: tells two users of one pid apart; 0 = unknown */
    uint64_t vram, gtt; /* bytes, UINT64_MAX = unknown */
    /* 0 to 100 % of one engine, NaN = unknown */
    double gfx_busy, compute_busy, copy_busy, encode_busy, decode_busy, media_busy;
    char comm[16];      /* name of the process */
    char container[16]; /* first digits of the id of its container, or its name; empty = none */
    uint64_t reserved[4];
} gputap_process;

/* What is to be said of all of a device's processes. Set `size` before the call (GPUTAP_PROCESS_TABLE_INIT). */
typedef struct gputap_process_table {
    uint32_t size;
    uint32_t count;                   /* processes with a row, 0 to GPUTAP_MAX_PROCESSES */
    uint32_t others;                  /* processes beyond them */
    uint32_t hidden;                  /* processes of other users that the broker may not look into */
    uint32_t partial;                 /* 1: processes may be missing */
    uint32_t reserved;                /* 0 */
    uint64_t others_vram, others_gtt; /* bytes that those beyond the rows hold, UINT64_MAX = unknown */
    uint64_t external_vram;           /* bytes of VRAM in use that no process is known to hold, UINT64_MAX = unknown */
    uint64_t age_ns;                  /* since the scan that it is of, UINT64_MAX = unknown */
} gputap_process_table;
#define GPUTAP_PROCESS_TABLE_INIT                                                                                                  \
    {                                                                                                                              \
        .size = sizeof(gputap_process_table)                                                                                       \
    }

/* Who holds a device, one consistent copy: the largest by VRAM, then GTT, then busy, at most `capacity` of them (rows may be NULL).
 * external_vram is of the newest sample. Returns the number of rows filled in; GPUTAP_EEMPTY where nobody looks for processes: no
 * scan on this system, or none yet, or a broker of before ABI 1.2. Errors: EINVAL, ENOBROKER, ENODEV, EEMPTY, EAGAIN, ESIZE. */
GPUTAP_API int gputap_processes(gputap *tap, int device, gputap_process_table *out, gputap_process *rows, int capacity);

/* --- answers ---------------------------------------------------------------------------------------------------------------------
 */

/* How much memory there really is for work on a device, in bytes; UINT64_MAX = unknown. */
typedef struct gputap_memory_info {
    uint32_t size;
    uint32_t pool; /* enum gputap_pool */
    uint64_t vram_total, vram_used, vram_free;
    uint64_t gtt_total, gtt_used, gtt_free;
    uint64_t host_total, host_available;
    uint64_t effective_free; /* discrete: VRAM free; unified: VRAM free plus the smaller of GTT free and host available */
    uint64_t own;            /* share of the process whose session the handle has: as the driver counts it (VRAM, on a unified pool
                                with GTT), where that is not known what the session's gauge told as reserved */
    uint64_t others;         /* the rest of what is used */
    uint64_t age_ns;
} gputap_memory_info;
#define GPUTAP_MEMORY_INIT                                                                                                         \
    {                                                                                                                              \
        .size = sizeof(gputap_memory_info)                                                                                         \
    }
GPUTAP_API int gputap_memory(gputap *tap, int device, gputap_memory_info *out);
/* Do `bytes` more fit? 1 yes, 0 no, negative where that is not known, as when a broker that died said it more than 5 s ago. *margin
 * (may be NULL): what is left over, or negative, what is missing. */
GPUTAP_API int gputap_fits(gputap *tap, int device, uint64_t bytes, int64_t *margin);
/* For the log after an allocation failed: pools, who holds what by the drivers and by the sessions, the last seconds. Returns the
 * text's length without its NUL; writes at most size bytes. */
GPUTAP_API int gputap_oom_report(gputap *tap, int device, char *out, size_t size);

/* How to run inference on an architecture. Advice from a table of this library, no measurement. */
typedef struct gputap_tuning_info {
    uint32_t size;
    uint32_t unified;           /* 1: an APU */
    int32_t tile_min, tile_max; /* pixels, for tiled VAE work */
    int32_t batch_cap;
    uint32_t known; /* 0: the vendor's default row */
    char arch[16];
    char family[24];   /* rdna3_5, cdna, ampere, xe_hpg, ... */
    char precision[8]; /* fp16, bf16 or fp32 */
} gputap_tuning_info;
#define GPUTAP_TUNING_INIT                                                                                                         \
    {                                                                                                                              \
        .size = sizeof(gputap_tuning_info)                                                                                         \
    }
/* By name of architecture: gfx1151 (what follows a ':' is ignored), sm_86 or 8.6, ... Needs no broker. */
GPUTAP_API int gputap_tuning(const char *arch, gputap_tuning_info *out);
/* Of a device, by its arch, vendor and pool. */
GPUTAP_API int gputap_device_tuning(gputap *tap, int device, gputap_tuning_info *out);

GPUTAP_API int gputap_provider_count(gputap *tap);
GPUTAP_API int gputap_provider_info(gputap *tap, int provider, gputap_provider *out);
GPUTAP_API int gputap_broker_stats(gputap *tap, gputap_stats *out);
/* The metric table as JSON text as the broker published it. Returns its length; writes at most size bytes with a final NUL. */
GPUTAP_API int gputap_schema(gputap *tap, char *out, size_t size);

/* Folder of the instance that the handle reads (or would read), with no final slash. */
GPUTAP_API int gputap_directory(gputap *tap, char *out, size_t size);
/* Text of a reason, of a state, of a pool, of an error. Static. */
GPUTAP_API const char *gputap_reason_text(int reason);
GPUTAP_API const char *gputap_state_text(int state);
GPUTAP_API const char *gputap_pool_text(int pool);
GPUTAP_API const char *gputap_strerror(int error);
/* Details of this thread's last failure with this handle, with NULL of its last failed gputap_open; empty if there was none.
 * Valid until this thread's next call. */
GPUTAP_API const char *gputap_message(const gputap *tap);
GPUTAP_API const char *gputap_version(void);

#ifdef __cplusplus
}
#endif
#endif
