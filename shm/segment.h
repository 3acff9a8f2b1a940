/* The telemetry segment as its writer and its readers hold it. */
#ifndef GPUTAP_SHM_SEGMENT_H
#define GPUTAP_SHM_SEGMENT_H

#include "shm/layout.h"
#include "shm/platform.h"
#include "shm/ring.h"

/* Front, ring and coarse ring of one device or of the host. */
struct series {
    struct ring ring; /* ring.front is set */
    struct ring coarse;
};

/* --- writer (the broker) ------------------------------------------------------------------------------------------------ */
struct segment_config {
    uint32_t device_slots;
    uint32_t provider_slots;
    uint64_t period_ns;
    bool simulated;
    unsigned mode; /* of the file: 0644 or 0640 */
    int64_t group; /* -1 = leave */
    const char *version;
};

struct segment_writer {
    struct region region;
    struct layout_header *header;
    uint32_t device_slots;
    uint32_t provider_slots;
    uint64_t first; /* of every ring in it */
};

/* Bytes that a segment of this shape takes. */
size_t segment_bytes(const struct segment_config *config);
/* Builds a segment in directory: allocated, formatted, live, and only then renamed into place; a predecessor there is marked
 * superseded and its waiters are woken. */
int segment_create(struct segment_writer *writer, const struct segment_config *config, const char *directory, char *message,
                   size_t message_size);
/* Writer's views. `device` < device_slots. */
void segment_device_series(const struct segment_writer *writer, uint32_t device, struct series *out);
void segment_host_series(const struct segment_writer *writer, struct series *out);
void segment_entry(const struct segment_writer *writer, enum region_type type, uint32_t index, struct ring *out);
void segment_set_period(struct segment_writer *writer, uint64_t period_ns);
/* After all rings of a tick: beat, tick number, wake word, wake-up. */
void segment_announce(struct segment_writer *writer, uint64_t tick);
/* After a merge of annotations between ticks: wake word and wake-up. */
void segment_wake(struct segment_writer *writer);
/* A sign of life between ticks. */
void segment_beat(struct segment_writer *writer);
void segment_set_devices(struct segment_writer *writer, uint32_t count);
void segment_bump_changes(struct segment_writer *writer);
/* Is the file of that name still this one? A swept or renamed one is replaced by a fresh segment_create. */
bool segment_in_place(const struct segment_writer *writer, const char *directory);
/* Marks it (closing, dead, superseded), wakes everybody. */
void segment_mark(struct segment_writer *writer, enum segment_state state);
/* Unmaps. The file stays: the last numbers of a dead broker are readable until the next start replaces them. */
void segment_close(struct segment_writer *writer);

/* --- reader ------------------------------------------------------------------------------------------------------------- */
/* What a reader learnt from the header, once, checked against the mapping. Nothing here is read again from shared memory. */
struct segment_view {
    const struct layout_header *header;
    uint8_t *memory;
    size_t bytes;      /* mapped */
    size_t used_bytes; /* of them the segment's */
    uint8_t epoch[16];
    uint64_t start_mono_ns;
    uint64_t time_namespace;
    uint8_t boot_id[16];
    uint32_t broker_pid;
    bool simulated;
    char version[32];
    uint64_t schema_hash;
    uint32_t device_slots;
    uint32_t provider_slots;
    struct layout_region device, device_front, device_ring, device_coarse;
    struct layout_region host, host_front, host_ring, host_coarse;
    struct layout_region stats, schema, provider;
    struct layout_region session, event; /* count 0 in a segment of ABI 1.0 */
    struct layout_region process;        /* count 0 before ABI 1.2 */
};

enum view_error { VIEW_OK = 0, VIEW_EVERSION = -1, VIEW_ECORRUPT = -2, VIEW_EINIT = -3 };

/* Checks a mapped segment. Every region that this ABI knows must be there, inside the file, aligned, of at least the known
 * element size; unknown regions and longer elements are ignored. Any bytes are safe to pass. */
int segment_view(struct segment_view *view, void *memory, size_t bytes, char *message, size_t message_size);

/* Readers' ring views; `device` < device_slots. They hold pointers only, cheap to make. */
void view_device_series(const struct segment_view *view, uint32_t device, struct series *out);
void view_host_series(const struct segment_view *view, struct series *out);
/* `index` below the region's count. REGION_EVENT's one element is a ring of many records rather than an entry. */
void view_entry(const struct segment_view *view, enum region_type type, uint32_t index, struct ring *out);
/* Devices in use, never above device_slots. */
uint32_t view_device_count(const struct segment_view *view);

#endif
