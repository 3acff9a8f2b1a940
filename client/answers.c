/* How much memory there really is for work, and what to write into a log when it was not enough. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/handle.h"

static const uint64_t unknown = UINT64_MAX;

static uint64_t level(const gputap_snapshot *snapshot, int host, int metric)
{
    double value = gputap_snapshot_value(snapshot, host, metric);
    return isnan(value) ? unknown : snapshot->values[metric].u64;
}

static uint64_t less(uint64_t total, uint64_t used)
{
    if (total == unknown || used == unknown)
        return unknown;
    return total > used ? total - used : 0;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    if (a == unknown || b == unknown)
        return unknown;
    return a < unknown - 1 - b ? a + b : unknown - 1;
}

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; } /* of one that is unknown, the other */

/* A unified pool without a carve-out has only what the host has. */
static uint64_t effective_free(const gputap_memory_info *m)
{
    if (m->pool != GPUTAP_POOL_UNIFIED)
        return m->vram_free;
    uint64_t mapped = smaller(m->gtt_free, m->host_available);
    return m->vram_free == unknown ? mapped : plus(m->vram_free, mapped);
}

static uint64_t all_used(const gputap_memory_info *m)
{
    if (m->pool != GPUTAP_POOL_UNIFIED || m->gtt_used == unknown)
        return m->vram_used;
    return m->vram_used == unknown ? m->gtt_used : plus(m->vram_used, m->gtt_used);
}

/* What the drivers say; count -1 where nobody looks. */
struct holders {
    gputap_process_table table;
    int count;
    gputap_process rows[GPUTAP_MAX_PROCESSES];
};

static void read_holders(gputap *tap, int device, struct holders *out)
{
    out->table = (gputap_process_table)GPUTAP_PROCESS_TABLE_INIT;
    out->count = gputap_processes(tap, device, &out->table, out->rows, GPUTAP_MAX_PROCESSES);
    out->count = out->count < 0 ? -1 : out->count;
}

/* The handle's own session, while a broker has it. */
static bool own_session(gputap *tap, gputap_session *out)
{
    uint32_t generation = 0;
    int slot = annotator_slot(tap, &generation);
    *out = (gputap_session)GPUTAP_SESSION_INIT;
    return slot >= 0 && gputap_session_info(tap, slot, out, NULL, 0) >= 0 && out->generation == generation;
}

/* As the driver counts what a process holds. */
static uint64_t held_by(const struct holders *holders, uint32_t pid, uint32_t pool)
{
    for (int i = 0; i < holders->count; i++) {
        const gputap_process *row = &holders->rows[i];
        if (row->pid != pid || pid == 0 || row->flags & GPUTAP_PROCESS_PARTIAL)
            continue;
        return pool == GPUTAP_POOL_UNIFIED ? plus(row->vram, row->gtt) : row->vram;
    }
    return unknown;
}

/* The process's number is that which the broker's kernel gave to its session: its own may be of another namespace. */
static uint64_t own_share(gputap *tap, int device, uint32_t pool)
{
    gputap_session session;
    struct holders holders;
    if (!own_session(tap, &session))
        return unknown;
    read_holders(tap, device, &holders);
    uint64_t held = held_by(&holders, session.pid, pool);
    for (uint32_t i = 0; held == unknown && i < session.gauge_count; i++)
        if (session.gauges[i].device == device)
            held = session.gauges[i].reserved;
    return held;
}

static int read_memory(gputap *tap, int device, gputap_memory_info *out)
{
    gputap_snapshot gpu = GPUTAP_SNAPSHOT_INIT, host = GPUTAP_SNAPSHOT_INIT;
    gputap_device facts = GPUTAP_DEVICE_INIT;
    if (device < 0)
        return client_fail_device(tap, GPUTAP_EINVAL, device);
    int result = gputap_device_info(tap, device, &facts);
    if (result == GPUTAP_OK)
        result = gputap_latest(tap, device, &gpu);
    if (result != GPUTAP_OK)
        return result;
    if (gputap_host_latest(tap, &host) != GPUTAP_OK)
        host = (gputap_snapshot)GPUTAP_SNAPSHOT_INIT; /* nothing in it is valid */
    memset(out, 0, sizeof *out);
    out->pool = facts.pool;
    out->vram_total = level(&gpu, 0, GPUTAP_VRAM_TOTAL);
    out->vram_used = level(&gpu, 0, GPUTAP_VRAM_USED);
    out->vram_free = less(out->vram_total, out->vram_used);
    out->gtt_total = level(&gpu, 0, GPUTAP_GTT_TOTAL);
    out->gtt_used = level(&gpu, 0, GPUTAP_GTT_USED);
    out->gtt_free = less(out->gtt_total, out->gtt_used);
    out->host_total = level(&host, 1, GPUTAP_HOST_MEMORY_TOTAL);
    out->host_available = level(&host, 1, GPUTAP_HOST_MEMORY_AVAILABLE);
    out->effective_free = effective_free(out);
    out->own = own_share(tap, device, facts.pool);
    out->others = less(all_used(out), out->own);
    out->age_ns = gpu.age_ns;
    return GPUTAP_OK;
}

int gputap_memory(gputap *tap, int device, gputap_memory_info *out)
{
    gputap_memory_info known = {0};
    if (!tap || !out)
        return GPUTAP_EINVAL;
    int result = read_memory(tap, device, &known);
    return result == GPUTAP_OK ? client_copy_sized(tap, out, out->size, &known, sizeof known) : result;
}

static const uint64_t old_ns = 5000000000; /* beside three periods */

int gputap_fits(gputap *tap, int device, uint64_t bytes, int64_t *margin)
{
    gputap_memory_info memory = {0};
    if (!tap)
        return GPUTAP_EINVAL;
    int result = read_memory(tap, device, &memory);
    if (result != GPUTAP_OK)
        return result;
    uint64_t patience = 3 * gputap_period(tap) + old_ns;
    if (memory.age_ns > patience)
        return client_fail(tap, GPUTAP_ENOBROKER, "the broker is gone or stands still: what it last said is %.1f s old",
                           (double)memory.age_ns / 1e9);
    uint64_t there = memory.effective_free;
    if (there == unknown)
        return client_fail(tap, GPUTAP_EEMPTY, "how much memory device %d has free is not known", device);
    uint64_t distance = there >= bytes ? there - bytes : bytes - there;
    int64_t bounded = distance <= INT64_MAX ? (int64_t)distance : INT64_MAX;
    if (margin)
        *margin = there >= bytes ? bounded : -bounded;
    return there >= bytes;
}

/* --- the report ------------------------------------------------------------------------------------------------------- */

/* A text that may be longer than its place; `length` counts all of it. */
struct report {
    char *out;
    size_t size, length;
};

static void add(struct report *report, const char *format, ...) CLIENT_PRINTF(2);
static void add(struct report *report, const char *format, ...)
{
    size_t left = report->length < report->size ? report->size - report->length : 0;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(left ? report->out + report->length : NULL, left, format, args);
    va_end(args);
    report->length += length > 0 ? (size_t)length : 0;
}

static void add_bytes(struct report *report, const char *before, uint64_t bytes)
{
    if (bytes == unknown)
        add(report, "%sunknown", before);
    else
        add(report, "%s%.2f GiB", before, (double)bytes / 1073741824.0);
}

static void add_pool(struct report *report, const char *name, uint64_t total, uint64_t used, uint64_t left)
{
    if (total == unknown && used == unknown && left == unknown)
        return;
    add(report, "  %-10s", name);
    add_bytes(report, " total ", total);
    add_bytes(report, ", used ", used);
    add_bytes(report, ", free ", left);
    add(report, "\n");
}

static void add_pools(struct report *report, const gputap_memory_info *m)
{
    add_pool(report, "VRAM", m->vram_total, m->vram_used, m->vram_free);
    add_pool(report, "GTT", m->gtt_total, m->gtt_used, m->gtt_free);
    add_pool(report, "host", m->host_total, less(m->host_total, m->host_available), m->host_available);
    add_bytes(report, "  free for work on it: ", m->effective_free);
    add(report, " (%s pool), %.1f s ago\n", gputap_pool_text((int)m->pool), (double)m->age_ns / 1e9);
}

static void add_gauge(struct report *report, const gputap_session *session, const gputap_gauge_value *gauge)
{
    add(report, "  %s (%s, pid %u%s):", session->label[0] ? session->label : "?", session->comm[0] ? session->comm : "?",
        session->pid, session->mine ? ", this process" : "");
    add_bytes(report, " allocated ", gauge->allocated);
    add_bytes(report, ", reserved ", gauge->reserved);
    if (gauge->dynamic != unknown)
        add_bytes(report, ", dynamic ", gauge->dynamic);
    add(report, "\n");
}

static void add_process(struct report *report, const gputap_process *row)
{
    add(report, "  %s (pid %u, user %u%s%s):%s", row->comm[0] ? row->comm : "?", row->pid, row->uid,
        row->container[0] ? ", container " : "", row->container, row->flags & GPUTAP_PROCESS_PARTIAL ? " at least" : "");
    add_bytes(report, " VRAM ", row->vram);
    add_bytes(report, ", GTT ", row->gtt);
    if (row->sharers > 0)
        add(report, ", shared with %u more", row->sharers);
    add(report, "\n");
}

static void add_processes(struct report *report, gputap *tap, int device)
{
    enum { SHOWN = 16 };
    struct holders holders;
    read_holders(tap, device, &holders);
    if (holders.count < 0)
        return;
    add(report, "held, as the drivers tell:\n");
    for (int i = 0; i < holders.count && i < SHOWN; i++)
        add_process(report, &holders.rows[i]);
    uint64_t more = (uint64_t)(holders.count > SHOWN ? holders.count - SHOWN : 0) + holders.table.others;
    if (more > 0)
        add(report, "  %llu more processes, which hold less\n", (unsigned long long)more);
    if (holders.table.hidden > 0)
        add(report, "  %u processes of other users, which could not be read\n", holders.table.hidden);
    if (holders.table.external_vram != unknown) {
        add_bytes(report, "  nobody known: VRAM ", holders.table.external_vram);
        add(report, "\n");
    } else if (holders.count == 0 && more == 0 && holders.table.hidden == 0) {
        add(report, "  no process\n");
    }
}

static void add_holders(struct report *report, gputap *tap, int device, const gputap_memory_info *m)
{
    int slots = gputap_session_slots(tap);
    add(report, "held, as sessions tell:\n");
    size_t before = report->length;
    for (int slot = 0; slot < slots; slot++) {
        gputap_session session = GPUTAP_SESSION_INIT;
        if (gputap_session_info(tap, slot, &session, NULL, 0) < 0)
            continue;
        for (uint32_t i = 0; i < session.gauge_count; i++)
            if (session.gauges[i].device == device)
                add_gauge(report, &session, &session.gauges[i]);
    }
    if (report->length == before)
        add(report, "  nobody told\n");
    if (m->own != unknown) {
        add_bytes(report, "  in use by others: ", m->others);
        add(report, "\n");
    }
}

static void add_number(struct report *report, double value, double scale, int decimals, const char *unit)
{
    if (isnan(value))
        add(report, "  - %s", unit);
    else
        add(report, "  %.*f %s", decimals, value / scale, unit);
}

static void add_last_seconds(struct report *report, gputap *tap, int device, const gputap_memory_info *m)
{
    enum { SECONDS = 10, COLUMNS = 3 };
    int memory = m->pool == GPUTAP_POOL_UNIFIED ? GPUTAP_UNIFIED_USED : GPUTAP_VRAM_USED;
    int metrics[COLUMNS] = {memory, GPUTAP_GFX_BUSY, GPUTAP_POWER_NOW};
    int64_t times[SECONDS];
    double rows[SECONDS * COLUMNS];
    int count = gputap_history(tap, device, metrics, COLUMNS, SECONDS, SECONDS, times, rows);
    if (count > 0)
        add(report, "the last seconds:\n");
    for (int i = 0; i < count; i++) {
        add(report, "  %5.1f s", (double)(times[i] - times[count - 1]) / 1e3);
        add_number(report, rows[i * COLUMNS], 1073741824.0, 2, "GiB");
        add_number(report, rows[i * COLUMNS + 1], 1, 0, "% busy");
        add_number(report, rows[i * COLUMNS + 2], 1, 0, "W");
        add(report, "\n");
    }
}

int gputap_oom_report(gputap *tap, int device, char *out, size_t size)
{
    struct report report = {.out = out, .size = size};
    gputap_memory_info memory = {0};
    gputap_device facts = GPUTAP_DEVICE_INIT;
    if (!tap || (!out && size > 0))
        return GPUTAP_EINVAL;
    int result = read_memory(tap, device, &memory);
    if (result == GPUTAP_OK)
        result = gputap_device_info(tap, device, &facts);
    if (result != GPUTAP_OK)
        return result;
    add(&report, "GPU %d  %s%s%s  %s%s\n", device, facts.name[0] ? facts.name : facts.id, facts.arch[0] ? ", " : "", facts.arch,
        facts.id, facts.simulated ? "  SIMULATED" : "");
    add_pools(&report, &memory);
    add_processes(&report, tap, device);
    add_holders(&report, tap, device, &memory);
    add_last_seconds(&report, tap, device, &memory);
    return report.length <= INT32_MAX ? (int)report.length : INT32_MAX;
}
