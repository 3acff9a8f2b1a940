/* The JSON documents that the bridge and `gputap get --json` share. Every function returns a new reference, or NULL when memory
 * ran out; a dead or absent broker is no failure, the document says so. */
#ifndef GPUTAP_CLIENT_JSON_DOCUMENT_H
#define GPUTAP_CLIENT_JSON_DOCUMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "gputap.h"

enum document_set { DOCUMENT_CAPSULE = 0, DOCUMENT_FULL = 1, DOCUMENT_HOST = 2, DOCUMENT_SETS = 3 };

/* What the newest samples say, read once and used for every document of a tick. */
struct document_moment {
    int status;     /* bits of gputap_status */
    bool attached;  /* a segment is mapped, be its broker alive or not */
    bool sampled;   /* at least the host or one device has a sample */
    uint64_t seq;   /* the broker's tick */
    int64_t t_ms;   /* Unix time of the newest sample, of now where there is none */
    int64_t age_ms; /* of the newest sample, -1 = there is none */
    uint8_t epoch[16];
};

/* gputap_status tells RESTARTED and CHANGED only once, so a caller that needs them hands its own status in. */
void document_moment_read(gputap *tap, int status, struct document_moment *moment);

/* Unix time now. hello, state and pong carry it, so that a client learns this clock; samples carry their own time. */
int64_t document_now_ms(void);

/* live, stale, dead or absent. */
const char *document_state_text(const struct document_moment *moment);
/* 32 hex digits, null while no segment is attached. */
json_t *document_epoch(const struct document_moment *moment);

/* GET /api/v1/snapshot. The first form asks gputap_status itself. */
json_t *document_snapshot(gputap *tap);
json_t *document_snapshot_at(gputap *tap, const struct document_moment *moment);

/* One element of the snapshot's "gpus", its "system", and the element of hello's "devices". */
json_t *document_device(gputap *tap, int device);
json_t *document_system(gputap *tap);
json_t *document_device_facts(gputap *tap, int device);
/* {"metric":"reason"} of what is unknown; device may be GPUTAP_HOST. */
json_t *document_unknown(gputap *tap, int device);

/* hello with the columns of a set. */
json_t *document_hello(gputap *tap, const struct document_moment *moment, enum document_set set, int period_ms);
const char *document_set_name(enum document_set set);
/* Index of a set's name, -1 if there is none. */
int document_set_find(const char *name);
/* The metrics of a set, in the order of the columns; device GPUTAP_HOST for the host's. Returns how many, at most `limit`. */
int document_set_metrics(enum document_set set, int device, int *metrics, int limit);

/* One answer to `history`; an empty one where nothing is known. */
json_t *document_history(gputap *tap, int device, enum document_set set, int seconds, int points);

/* What runs now: an array of the sessions, those of one user or, with uid -1, all. */
json_t *document_sessions(gputap *tap, int64_t uid);
/* {slot, generation, pid, uid, label, comm, since, dropped, lost, rejected, ended, gauges: [{gpu, allocated, reserved, dynamic}],
 * spans: [{id, parent, job, node, name, value, max, start, seconds, gpus, shared}]}. Times are Unix milliseconds; gpus null = all.
 */
json_t *document_session(const gputap_session *session, const gputap_span *spans, int count);
/* {type, t, session: "slot.generation", label, pid, uid, span, parent, gpus, job, node, name, value, max, seconds, abandoned,
 * recovered}, and `usage` in those of that type. */
json_t *document_event(const gputap_event *event);
/* begin, end, ...; "unknown" for a later broker's. */
const char *document_event_type(uint32_t type);
/* {gpu, seconds, energy, ..., samples, partial, estimated, shared, unified}. */
json_t *document_usage(const gputap_usage *usage);

/* {pid, uid, comm, container, start, vram, gtt, gfx_busy, compute_busy, copy_busy, encode_busy, decode_busy, media_busy, sharers,
 * kfd, partial}. */
json_t *document_process(const gputap_process *process);
/* Who holds a device: {gpu, rows: [a process each], others: {count, vram, gtt}, hidden, hidden_vram, partial, external}; all but
 * gpu are null where nobody looks. Of other users than `uid` (-1 = none) the processes are only counted, as hidden, with the VRAM
 * of those that could be read. */
json_t *document_process_gpu(gputap *tap, int device, int64_t uid);
/* An array of that: of one device, or with -1 of all. */
json_t *document_process_gpus(gputap *tap, int device, int64_t uid);
/* GET /api/v1/processes: {v, t, epoch, state, age_ms, gpus}. */
json_t *document_processes(gputap *tap, const struct document_moment *moment, int device, int64_t uid);

/* A metric's value: integers as they are, others rounded to one digit more than the metric prints; unknown is null. */
json_t *document_value(const gputap_snapshot *snapshot, int device, int metric);
json_t *document_number(double value, int decimals);
json_t *document_count(uint64_t value);
/* UINT64_MAX is unknown. */
json_t *document_bytes(uint64_t bytes);
/* A text as JSON: empty is null, bytes that are no UTF-8 become '?'. */
json_t *document_text(const char *text);
/* The document as compact text, to be freed; numbers with no more digits than they carry. */
char *document_print(const json_t *document);

/* Name of this machine, from the broker or else from the system. */
void document_hostname(gputap *tap, char *out, size_t size);
int document_system_hostname(char *out, size_t size);

#define DOCUMENT_MAX_MESSAGE 4096
#define DOCUMENT_MESSAGES_PER_SECOND 20
#define DOCUMENT_HISTORY_SECONDS 1020
#define DOCUMENT_HISTORY_POINTS 1000
#define DOCUMENT_PERIODS 6
extern const int document_periods[DOCUMENT_PERIODS];

#endif
