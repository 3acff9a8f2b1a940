/* The broker's tables of who holds a device. Its rows come from files that processes can shape, so texts are cleaned and numbers
 * out of their range are unknown. */
#include <math.h>
#include <string.h>

#include "client/sessions.h"
#include "shm/text.h"

union table_words {
    struct layout_process_table table;
    uint64_t words[sizeof(struct layout_process_table) / 8];
};

static double percent(double value) { return value >= 0 && value <= 100 ? value : (double)NAN; }

static void row_public(const struct layout_process *from, gputap_process *out)
{
    memset(out, 0, sizeof *out);
    out->pid = from->pid;
    out->uid = from->uid;
    out->flags = from->flags & (PROCESS_KFD | PROCESS_PARTIAL);
    out->sharers = from->sharers;
    out->start_ms = from->start_ms <= INT64_MAX ? (int64_t)from->start_ms : 0;
    out->vram = from->vram;
    out->gtt = from->gtt;
    out->gfx_busy = percent(from->gfx_busy);
    out->compute_busy = percent(from->compute_busy);
    out->copy_busy = percent(from->copy_busy);
    out->encode_busy = percent(from->encode_busy);
    out->decode_busy = percent(from->decode_busy);
    out->media_busy = percent(from->media_busy);
    text_copy(out->comm, sizeof out->comm, from->comm, sizeof from->comm);
    text_copy(out->container, sizeof out->container, from->container, sizeof from->container);
}

static uint32_t row_count(const struct layout_process_table *table)
{
    return table->count < LAYOUT_PROCESS_ROWS ? table->count : (uint32_t)LAYOUT_PROCESS_ROWS;
}

static uint64_t age_of(uint64_t then, uint64_t now)
{
    if (now == 0)
        return UINT64_MAX;
    return now > then ? now - then : 0;
}

static void table_public(const struct layout_process_table *from, uint64_t now, gputap_process_table *out)
{
    memset(out, 0, sizeof *out);
    out->count = row_count(from);
    out->others = from->others;
    out->hidden = from->hidden;
    out->partial = (from->flags & PROCESS_TABLE_PARTIAL) != 0;
    out->others_vram = from->others_vram;
    out->others_gtt = from->others_gtt;
    out->age_ns = age_of(from->updated_ns, now);
}

/* A slot whose table nobody ever wrote is empty, as is a segment without tables. */
static int read_table(gputap *tap, const struct pass *pass, int device, union table_words *out)
{
    struct ring ring;
    uint64_t last = 0;
    int slot = device_slot(tap, pass->mapping, device);
    if (slot < 0)
        return slot;
    if ((uint32_t)slot >= pass->mapping->view.process.count)
        return GPUTAP_EEMPTY;
    view_entry(&pass->mapping->view, REGION_PROCESS, (uint32_t)slot, &ring);
    switch (ring_latest_words(&ring, out->words, sizeof out->words / 8, &last, 0)) {
    case RING_OK: return out->table.updated_ns > 0 ? GPUTAP_OK : GPUTAP_EEMPTY;
    case RING_EMPTY: return GPUTAP_EEMPTY;
    default: return GPUTAP_EAGAIN;
    }
}

static uint64_t external_vram(gputap *tap, int device)
{
    gputap_snapshot sample = GPUTAP_SNAPSHOT_INIT;
    if (gputap_latest(tap, device, &sample) != GPUTAP_OK || isnan(gputap_snapshot_value(&sample, 0, GPUTAP_EXTERNAL_VRAM)))
        return UINT64_MAX;
    return sample.values[GPUTAP_EXTERNAL_VRAM].u64;
}

static int fail(gputap *tap, int result, int device)
{
    switch (result) {
    case GPUTAP_EAGAIN: return client_fail_busy(tap);
    case GPUTAP_EEMPTY: return client_fail(tap, result, "nobody looks for the processes of device %d here", device);
    default: return client_fail_device(tap, result, device);
    }
}

int gputap_processes(gputap *tap, int device, gputap_process_table *out, gputap_process *rows, int capacity)
{
    union table_words raw;
    int result = GPUTAP_EAGAIN;
    uint64_t now = 0;
    if (!tap || !out || capacity < 0)
        return GPUTAP_EINVAL;
    handle_tick(tap, clock_mono_coarse_ns());
    for (int attempt = 0; result == GPUTAP_EAGAIN && attempt < HANDLE_RETRIES; attempt++) {
        struct pass pass;
        pass_begin(tap, &pass);
        if (!pass.mapping)
            return client_fail_absent(tap);
        result = read_table(tap, &pass, device, &raw);
        now = pass_now(&pass);
        if (!pass_held(tap, &pass))
            result = GPUTAP_EAGAIN;
    }
    if (result != GPUTAP_OK)
        return fail(tap, result, device);
    gputap_process_table known;
    table_public(&raw.table, now, &known);
    known.external_vram = external_vram(tap, device);
    result = client_copy_sized(tap, out, out->size, &known, sizeof known);
    int filled = 0;
    for (uint32_t i = 0; result == GPUTAP_OK && rows && i < row_count(&raw.table) && filled < capacity; i++)
        row_public(&raw.table.rows[i], &rows[filled++]);
    return result == GPUTAP_OK ? filled : result;
}
