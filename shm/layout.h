/* The bytes of the telemetry segment, and nothing else. Append-only within an ABI major: fields are added in reserved space or
 * at the end of a region's element, whose size and stride stand in the region table.
 *
 * Who writes: the broker alone, mapped read-write. Who reads: everybody else, mapped read-only, validating as segment_view.c does.
 * Order at start: the whole file is zero-filled for real, formatted, state := live, and only then renamed into place. Order of
 * a tick: device and host rings (ring slot, front, head), device entries, beat, tick, wake, then the wake-up call. A writer that
 * dies between any two of these leaves complete older records; see ring.h for a death inside a record. */
#ifndef GPUTAP_SHM_LAYOUT_H
#define GPUTAP_SHM_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "shm/atomics.h"
#include "shm/metrics.h"

#define LAYOUT_MAGIC "GPUTAP1\n"
enum {
    LAYOUT_ABI_MAJOR = 1,
    LAYOUT_ABI_MINOR = 2,
    LAYOUT_ENDIAN = 0x01020304,
    LAYOUT_HEADER_BYTES = 4096,
    LAYOUT_MAX_REGIONS = 64,
    LAYOUT_MAX_DEVICES = 1024,
    LAYOUT_RING_DEPTH = 1024,
    LAYOUT_COARSE_DEPTH = 1024,
    LAYOUT_SNAPSHOT_WORDS = 64,
    LAYOUT_SNAPSHOT_BYTES = 512,
    LAYOUT_METRIC_SLOTS = 51,
    LAYOUT_COARSE_SLOTS = 27,
    LAYOUT_COARSE_WORDS = 96,
    LAYOUT_ENTRY_DEPTH = 2,
    LAYOUT_MAX_PROVIDERS = 16,
    LAYOUT_SESSION_SLOTS = 64,
    LAYOUT_SESSION_SPANS = 32,
    LAYOUT_SESSION_GAUGES = 16,
    LAYOUT_SPAN_DEVICES = 64, /* a span's devices are a bit mask over the first slots */
    LAYOUT_EVENT_DEPTH = 8192,
    LAYOUT_PROCESS_ROWS = 64
};

/* States of a segment; the numbers are the layout's. */
enum segment_state { SEGMENT_INIT = 0, SEGMENT_LIVE = 1, SEGMENT_CLOSING = 2, SEGMENT_SUPERSEDED = 3, SEGMENT_DEAD = 0xDEAD };

enum region_type {
    REGION_HOST = 1,     /* one entry ring of struct layout_host */
    REGION_DEVICE = 2,   /* count entry rings of struct layout_device */
    REGION_FRONT = 3,    /* count front slots; index 0 devices, 1 host */
    REGION_RING = 4,     /* count rings of snapshots; index as above */
    REGION_COARSE = 5,   /* count rings of one-second records; index as above */
    REGION_STATS = 6,    /* one entry ring of struct layout_stats */
    REGION_SCHEMA = 7,   /* JSON text, element_size bytes */
    REGION_PROVIDER = 8, /* count entry rings of struct layout_provider */
    REGION_SESSION = 9,  /* since 1.1: count entry rings of struct layout_session */
    REGION_EVENT = 10,   /* since 1.1: one ring of struct layout_event */
    REGION_PROCESS = 11  /* since 1.2: one entry ring of struct layout_process_table a device slot */
};
enum region_index { REGION_OF_DEVICES = 0, REGION_OF_HOST = 1 };

/* `count` elements, `stride` bytes apart. For rings an element is a ring_header and `depth` slots of element_size bytes. */
struct layout_region {
    uint16_t type;
    uint16_t index;
    uint32_t count;
    uint64_t offset;
    uint32_t stride;
    uint32_t element_size;
    uint32_t depth; /* slots of a ring, 1 for a front, 0 for plain bytes */
    uint32_t reserved;
};
_Static_assert(sizeof(struct layout_region) == 32, "region layout");

struct layout_header {
    char magic[8]; /* its newline shows damage by text-mode copies */
    uint32_t endian;
    uint16_t abi_major;
    uint16_t abi_minor;
    uint32_t header_bytes;
    uint32_t word_bytes;
    uint64_t total_bytes;
    uint8_t epoch[16]; /* random, one a broker start */
    uint64_t start_mono_ns;
    uint64_t start_real_ns;
    uint32_t broker_pid;     /* to show only; liveness comes from the lock */
    uint32_t simulated;      /* 1 if simulated devices were asked for */
    uint64_t time_namespace; /* monotonic clocks compare only within one and the same boot; 0 = unknown */
    uint8_t boot_id[16];
    char version[32];
    uint64_t schema_hash;
    uint32_t region_count;
    uint32_t region_bytes;
    uint64_t reserved0[14];

    /* Written while running, each line by the broker only. */
    shm_word32 state;
    uint32_t pad_state;
    uint64_t line_state[7];
    shm_word beat;      /* grows with every turn of the broker's loop, at least once a period */
    shm_word period_ns; /* written before a change of period takes effect */
    uint64_t line_beat[6];
    shm_word32 wake; /* futex word */
    uint32_t pad_wake;
    shm_word tick;
    uint64_t line_wake[6];
    shm_word device_count; /* slots in use; grows only. Set after the slot's entry is readable */
    shm_word changes;      /* bumped after a device appears, goes, or changes state or facts */
    uint64_t line_devices[6];
    uint64_t reserved1[64];

    struct layout_region regions[LAYOUT_MAX_REGIONS];
    uint64_t reserved2[128];
};
_Static_assert(sizeof(struct layout_header) == LAYOUT_HEADER_BYTES, "header layout");
_Static_assert(offsetof(struct layout_header, total_bytes) == 24, "header layout");
_Static_assert(offsetof(struct layout_header, epoch) == 32, "header layout");
_Static_assert(offsetof(struct layout_header, version) == 96, "header layout");
_Static_assert(offsetof(struct layout_header, region_count) == 136, "header layout");
_Static_assert(offsetof(struct layout_header, state) == 256, "header layout");
_Static_assert(offsetof(struct layout_header, beat) == 320, "header layout");
_Static_assert(offsetof(struct layout_header, wake) == 384, "header layout");
_Static_assert(offsetof(struct layout_header, device_count) == 448, "header layout");
_Static_assert(offsetof(struct layout_header, regions) == 1024, "header layout");

/* Running sums, in every snapshot. They only grow within an epoch, so that what an interval cost is the difference of two
 * snapshots, whatever the period was and however many records lie between. */
enum accumulator {
    ACCUMULATE_ENERGY,    /* J, from the hardware's counter where there is one, else power times time */
    ACCUMULATE_BUSY,      /* s, gfx_busy / 100 times time */
    ACCUMULATE_THROTTLED, /* s with any throttle bit */
    ACCUMULATE_SAMPLED,   /* s that samples cover: a sleeping or hung device does not advance it */
    ACCUMULATE_VRAM,      /* byte seconds, of the unified pair on a unified pool */
    ACCUMULATE_COUNT
};

/* A snapshot: the payload of a front or ring slot (word 0 of the slot is the stamp). */
struct layout_snapshot {
    uint64_t tick;
    uint64_t mono_ns;
    uint64_t real_ns;
    uint64_t cost_ns;  /* what reading this device cost its worker */
    uint64_t valid[2]; /* bit m: metrics[m] is known */
    uint64_t state;    /* enum device_state in bits 0-7, generation in bits 32-63 */
    union metric_value metrics[LAYOUT_METRIC_SLOTS];
    double sums[ACCUMULATE_COUNT];
};
_Static_assert(sizeof(struct layout_snapshot) == LAYOUT_SNAPSHOT_BYTES - 8, "snapshot layout");
_Static_assert((int)METRIC_COUNT <= LAYOUT_METRIC_SLOTS && (int)HOST_METRIC_COUNT <= LAYOUT_METRIC_SLOTS, "snapshot slots");

/* One second: the payload of a coarse slot. Metrics by their place among those of the set HISTORY (metric_info.coarse). */
struct layout_coarse {
    uint64_t start_mono_ns;
    uint64_t end_mono_ns; /* of the last sample inside */
    uint64_t end_real_ns;
    uint64_t samples;
    uint64_t valid;    /* bit c: slot c is known in at least one sample */
    uint64_t state;    /* as in the last sample */
    uint64_t throttle; /* throttle bits seen */
    uint64_t reserved[2];
    double sums[ACCUMULATE_COUNT]; /* as of the last sample */
    double minimum[LAYOUT_COARSE_SLOTS];
    double mean[LAYOUT_COARSE_SLOTS];
    double maximum[LAYOUT_COARSE_SLOTS];
};
_Static_assert(sizeof(struct layout_coarse) == (LAYOUT_COARSE_WORDS - 1) * 8, "coarse layout");

enum device_limit {
    LIMIT_GFX_CLOCK_MAX,
    LIMIT_MEMORY_CLOCK_MAX,
    LIMIT_EDGE_CRITICAL,
    LIMIT_JUNCTION_CRITICAL,
    LIMIT_MEMORY_CRITICAL,
    LIMIT_SLOWDOWN,
    LIMIT_COUNT
};

/* What does not change at every tick. Strings are UTF-8, NUL-terminated and NUL-padded; empty = unknown. A limit or tgp of
 * zero or less is unknown. */
struct layout_device {
    char id[48];
    char pci[16];
    char uuid[48];
    char vendor[16];
    char name[96];
    char driver[24];
    char driver_version[40];
    char arch[16];
    char vram_type[16];
    uint32_t vendor_id, device_id, subvendor_id, subdevice_id;
    uint32_t revision;
    uint32_t pool;
    uint32_t simulated;
    uint32_t state;
    uint32_t generation;
    uint32_t compute_units;
    uint32_t vram_bus_bits;
    int32_t kfd_index;  /* -1 = none */
    int32_t nvml_index; /* -1 = none */
    uint32_t reserved0[3];
    double tgp; /* W */
    double limits[LIMIT_COUNT];
    uint8_t reasons[64]; /* enum reason by metric */
    uint8_t sources[64]; /* provider's place in REGION_PROVIDER by metric, 255 = none */
    double idle_watts;   /* since 1.1: power while nothing runs, as seen so far; 0 = unknown */
    uint64_t reserved1[15];
};
_Static_assert(sizeof(struct layout_device) % 8 == 0, "device layout");
_Static_assert(offsetof(struct layout_device, vendor_id) == 320, "device layout");
_Static_assert(offsetof(struct layout_device, tgp) == 384, "device layout");
_Static_assert(offsetof(struct layout_device, reasons) == 440, "device layout");

struct layout_host {
    char hostname[64];
    char cpu_name[96];
    char kernel[64];
    char os[64];
    uint32_t cpu_threads;
    uint32_t reserved0;
    uint8_t reasons[64]; /* of host metrics */
    uint64_t reserved1[16];
};
_Static_assert(sizeof(struct layout_host) % 8 == 0, "host layout");

enum provider_state { PROVIDER_STARTING, PROVIDER_RUNNING, PROVIDER_ABSENT, PROVIDER_FAILED, PROVIDER_OFF };

struct layout_provider {
    char name[16];
    uint32_t state;
    uint32_t devices;
    uint32_t restarts;
    uint32_t hung;     /* times a device hung */
    char message[144]; /* what it found, or why it is absent */
    uint64_t reserved[8];
};
_Static_assert(sizeof(struct layout_provider) % 8 == 0, "provider layout");

/* The broker's own cost and losses. */
struct layout_stats {
    uint64_t ticks;
    uint64_t missed_ticks; /* timer expirations that found the loop late */
    uint64_t late_samples; /* devices not in at the deadline of their tick */
    uint64_t publish_ns;   /* of the last tick, merge to wake-up */
    uint64_t broker_cpu_ns;
    uint64_t workers_cpu_ns; /* of workers alive and reaped */
    uint64_t workers_alive;
    uint64_t worker_restarts;
    uint64_t workers_killed;    /* for a hung device */
    uint64_t workers_abandoned; /* killed and still not gone */
    uint64_t bad_messages;      /* from workers */
    uint64_t recreated;         /* segment files re-created after somebody removed them */
    uint64_t sessions_open;     /* since 1.1 */
    uint64_t sessions_total;    /* granted */
    uint64_t sessions_refused;  /* no slot, quota, rate, another ABI, garbage */
    uint64_t events;            /* published */
    uint64_t events_lost;       /* overwritten by their client before they were read */
    uint64_t records_rejected;  /* of clients: made no sense */
    uint64_t reserved[14];
};

/* --- annotations (since 1.1) ------------------------------------------------------------------------------------------ */

/* A piece of work under way. Written by a client into its own memory (client_memory.h), checked and mirrored by the broker. Texts
 * are UTF-8, NUL-padded. */
struct layout_span {
    uint64_t id;       /* 1, 2, ... by the client's own count, never used twice; 0 = no span */
    uint64_t parent;   /* id of the span that it is part of, 0 = none */
    uint64_t start_ns; /* broker's monotonic clock */
    uint64_t devices;  /* bit s: device slot s; 0 = all */
    double value, max; /* progress; max <= 0 = none is known */
    uint64_t shared;   /* the broker's: bit s: a span of another session overlapped on slot s */
    uint64_t updated_ns;
    uint64_t flags; /* enum span_flag */
    char job[48];
    char node[32];
    char name[64];
    uint64_t reserved[4];
};
enum span_flag { SPAN_NO_DEVICE = 1 }; /* those it was begun with are no more */
_Static_assert(sizeof(struct layout_span) == 248, "span layout");

/* Bytes that a session's own allocator holds on a device; UINT64_MAX = unknown. */
struct layout_gauge {
    uint64_t updated_ns; /* 0 = never set */
    uint32_t device;     /* slot */
    uint32_t reserved0;
    uint64_t allocated, reserved, dynamic;
};
_Static_assert(sizeof(struct layout_gauge) == 40, "gauge layout");

enum session_state { SESSION_FREE = 0, SESSION_OPEN = 1 };

/* The broker's mirror of one client. A slot rests a second before another client gets it. */
struct layout_session {
    uint32_t state;
    uint32_t generation; /* of this slot: grows with every client */
    uint32_t pid, uid;   /* as the broker's kernel sees them */
    uint64_t since_mono_ns, since_real_ns;
    uint64_t updated_ns;
    uint64_t dropped;  /* by the client: spans beyond its 32, what it said while no broker was there */
    uint64_t lost;     /* events overwritten before the broker read them */
    uint64_t rejected; /* records that made no sense */
    uint64_t ended;    /* spans so far */
    uint32_t span_count, gauge_count;
    char label[48];
    char comm[16];
    uint64_t reserved[8];
    struct layout_gauge gauges[LAYOUT_SESSION_GAUGES];
    struct layout_span spans[LAYOUT_SESSION_SPANS]; /* in the order of their start */
};
_Static_assert(sizeof(struct layout_session) % 8 == 0, "session layout");

enum event_type {
    EVENT_ATTACH = 1,
    EVENT_DETACH = 2,
    EVENT_BEGIN = 3,
    EVENT_STEP = 4,
    EVENT_END = 5,
    EVENT_INSTANT = 6,
    EVENT_USAGE = 7, /* what an ended span took, one a device, after the sample that follows its end */
    EVENT_TYPE_COUNT
};
enum event_flag {
    EVENT_ABANDONED = 1, /* END: its client went away without ending it */
    EVENT_RECOVERED = 2, /* BEGIN, END: events were lost, and this one was concluded from the state that the client keeps */
    EVENT_NO_DEVICE = 8  /* its span has SPAN_NO_DEVICE: devices 0 does not mean all */
};

/* Numbers of one device over an interval; NaN = unknown. See usage.h. */
struct layout_usage {
    uint32_t device; /* slot */
    uint32_t flags;  /* enum usage_flag */
    uint64_t samples;
    double seconds, sampled_seconds;
    double energy, net_energy;   /* J */
    double busy_mean, busy_peak; /* % */
    double throttled_seconds;
    double vram_mean, vram_peak, unified_peak, own_vram_peak; /* bytes */
    double temperature_peak;                                  /* degrees C */
};
_Static_assert(sizeof(struct layout_usage) == 112, "usage layout");

struct layout_event {
    uint64_t mono_ns, real_ns;
    uint32_t type, flags;
    uint32_t slot, generation; /* of the session */
    uint32_t pid, uid;
    uint64_t span, parent, devices;
    union {
        struct { /* all but USAGE; ATTACH and DETACH have the label as name */
            double value, max;
            uint64_t start_ns;
            char job[48];
            char node[32];
            char name[64];
            uint64_t reserved[2];
        };
        struct {                 /* USAGE */
            uint64_t end_ticket; /* of the span's END in this ring: it has the texts */
            struct layout_usage usage;
            uint64_t unused[8];
        };
    };
};
_Static_assert(sizeof(struct layout_event) == 248, "event layout");

/* --- processes (since 1.2) -------------------------------------------------------------------------------------------- */

/* A process that holds a device. Never a command line: comm and numbers only. */
struct layout_process {
    uint32_t pid, uid;
    uint32_t flags;     /* enum process_flag */
    uint32_t sharers;   /* other processes that hold the same allocations (after a fork); they have no row for these */
    uint64_t start_ms;  /* Unix milliseconds: tells two users of one pid apart; 0 = unknown */
    uint64_t vram, gtt; /* bytes; UINT64_MAX = unknown */
    double gfx_busy, compute_busy, copy_busy, encode_busy, decode_busy, media_busy; /* % of one engine; NaN = unknown */
    char comm[16];
    char container[16]; /* first 12 digits of the container's id, or a short name; empty = none */
    uint64_t reserved[1];
};
enum process_flag {
    PROCESS_KFD = 1,    /* known to the compute driver */
    PROCESS_PARTIAL = 2 /* not all of it could be read: the numbers are at least so much */
};
_Static_assert(sizeof(struct layout_process) == 128, "process layout");

/* The processes of one device: the largest by VRAM, then GTT, then busy; the rest summed up. Published when it changes, at most
 * once a tick. */
struct layout_process_table {
    uint64_t updated_ns; /* monotonic, of the scan; 0 = never */
    uint32_t count;      /* rows that follow */
    uint32_t others;     /* processes beyond them */
    uint64_t others_vram, others_gtt;
    uint32_t flags;  /* enum process_table_flag */
    uint32_t hidden; /* processes of other users whose files may not be read */
    uint64_t reserved[11];
    struct layout_process rows[LAYOUT_PROCESS_ROWS];
};
enum process_table_flag { PROCESS_TABLE_PARTIAL = 1 /* processes may be missing */ };
_Static_assert(sizeof(struct layout_process_table) == 128 + LAYOUT_PROCESS_ROWS * sizeof(struct layout_process), "table layout");

/* Bytes of a ring slot that holds `payload` bytes and a stamp, rounded up to whole lines. */
#define LAYOUT_SLOT_BYTES(payload) ((uint32_t)(((payload) + 8 + 63) / 64 * 64))
#define LAYOUT_WORDS(payload) ((uint32_t)((payload) / 8 + 1))

#endif
