#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "broker/providers/process_scan.h"

/* A row being summed up. Its process owns the clients: of those who share one, the lowest pid. */
struct row {
    struct layout_process facts;
    double busy[FDINFO_ENGINES];
    bool known[FDINFO_ENGINES];
    double compute_busy; /* by the compute driver, NaN = not told */
};

static struct row *row_of(struct row **rows, int *count, uint32_t pid)
{
    for (int i = 0; i < *count; i++)
        if ((*rows)[i].facts.pid == pid)
            return &(*rows)[i];
    struct row *grown = realloc(*rows, (size_t)(*count + 1) * sizeof *grown);
    if (!grown)
        abort();
    *rows = grown;
    struct row *row = &grown[(*count)++];
    memset(row, 0, sizeof *row);
    row->facts.pid = pid;
    row->facts.uid = UINT32_MAX;
    row->facts.vram = row->facts.gtt = UINT64_MAX;
    row->compute_busy = (double)NAN;
    return row;
}

static void add_bytes(uint64_t *sum, bool known, uint64_t bytes)
{
    if (!known)
        return;
    uint64_t before = *sum == UINT64_MAX ? 0 : *sum;
    *sum = bytes < UINT64_MAX - 1 - before ? before + bytes : UINT64_MAX - 1;
}

static void add_client(struct row *row, const struct scan_client *client, uint32_t sharers)
{
    row->facts.sharers = row->facts.sharers > sharers ? row->facts.sharers : sharers;
    add_bytes(&row->facts.vram, client->info.has_vram, client->info.vram);
    add_bytes(&row->facts.gtt, client->info.has_gtt, client->info.gtt);
    for (int i = 0; i < FDINFO_ENGINES; i++)
        if (!isnan(client->busy[i])) {
            row->known[i] = true;
            row->busy[i] += client->busy[i];
        }
}

/* The compute driver counts what it has allotted, and a client's file may show the same bytes: the larger is the truth. */
static void add_compute(struct row *row, const struct scan_compute *compute)
{
    row->facts.flags |= PROCESS_KFD;
    if (compute->has_vram && (row->facts.vram == UINT64_MAX || row->facts.vram < compute->vram))
        row->facts.vram = compute->vram;
    row->compute_busy = compute->busy;
}

/* Of several engines of a kind the busiest, never more than all of one. */
static void busy_by_kind(const double *busy, const bool *known, double out[FDINFO_KINDS])
{
    for (int kind = 0; kind < FDINFO_KINDS; kind++)
        out[kind] = (double)NAN;
    for (int i = 0; i < FDINFO_ENGINES; i++) {
        double *kind = &out[fdinfo_engine_kind(i)];
        double share = busy[i] < 100 ? busy[i] : 100;
        if (known[i] && !(*kind >= share))
            *kind = share;
    }
}

static void finish_row(const struct process_scan *scan, struct row *row)
{
    double kinds[FDINFO_KINDS];
    const struct scan_process *process = scan_find(scan, row->facts.pid);
    busy_by_kind(row->busy, row->known, kinds);
    row->facts.gfx_busy = kinds[FDINFO_GFX];
    /* The zero of a client's file says nothing of compute jobs. */
    row->facts.compute_busy = row->facts.flags & PROCESS_KFD ? row->compute_busy : kinds[FDINFO_COMPUTE];
    row->facts.copy_busy = kinds[FDINFO_COPY];
    row->facts.encode_busy = kinds[FDINFO_ENCODE];
    row->facts.decode_busy = kinds[FDINFO_DECODE];
    row->facts.media_busy = kinds[FDINFO_MEDIA];
    if (!process)
        return;
    row->facts.uid = process->uid;
    row->facts.start_ms = process->start_ms;
    row->facts.flags |= process->hidden ? PROCESS_PARTIAL : 0;
    memcpy(row->facts.comm, process->comm, sizeof row->facts.comm);
    memcpy(row->facts.container, process->container, sizeof row->facts.container);
}

static uint64_t bytes_or_none(uint64_t bytes) { return bytes == UINT64_MAX ? 0 : bytes; }

static int compare_rows(const void *a, const void *b)
{
    const struct layout_process *left = &((const struct row *)a)->facts, *right = &((const struct row *)b)->facts;
    uint64_t keys[2][2] = {{bytes_or_none(left->vram), bytes_or_none(left->gtt)},
                           {bytes_or_none(right->vram), bytes_or_none(right->gtt)}};
    for (int i = 0; i < 2; i++)
        if (keys[0][i] != keys[1][i])
            return keys[0][i] < keys[1][i] ? 1 : -1;
    double busy = (left->gfx_busy > 0 ? left->gfx_busy : 0) - (right->gfx_busy > 0 ? right->gfx_busy : 0);
    return busy != 0 ? (busy < 0 ? 1 : -1) : (left->pid > right->pid) - (left->pid < right->pid);
}

static void put_rows(struct row *rows, int count, struct layout_process_table *table)
{
    if (count > 0)
        qsort(rows, (size_t)count, sizeof *rows, compare_rows);
    for (int i = 0; i < count; i++) {
        if (i < LAYOUT_PROCESS_ROWS) {
            table->rows[i] = rows[i].facts;
            table->count++;
            continue;
        }
        table->others++;
        add_bytes(&table->others_vram, rows[i].facts.vram != UINT64_MAX, rows[i].facts.vram);
        add_bytes(&table->others_gtt, rows[i].facts.gtt != UINT64_MAX, rows[i].facts.gtt);
    }
}

void process_table_fill(const struct process_scan *scan, int device, uint64_t now_ns, struct layout_process_table *table,
                        struct device_load *load)
{
    double busy[FDINFO_ENGINES] = {0};
    bool known[FDINFO_ENGINES] = {false};
    struct row *rows = NULL;
    int count = 0;
    memset(table, 0, sizeof *table);
    memset(load, 0, sizeof *load);
    for (int i = 0; i < scan->client_count; i++) {
        const struct scan_client *client = &scan->clients[i];
        if (!client->used || client->device != device || client->read_ns == 0 || client->owner == 0)
            continue;
        add_client(row_of(&rows, &count, client->owner), client, client->sharers);
        for (int engine = 0; engine < FDINFO_ENGINES; engine++)
            if (!isnan(client->busy[engine])) {
                known[engine] = true;
                busy[engine] += client->busy[engine];
            }
    }
    for (int i = 0; i < scan->compute_count; i++)
        if (scan->computes[i].device == device)
            add_compute(row_of(&rows, &count, scan->computes[i].pid), &scan->computes[i]);
    for (int i = 0; i < count; i++) {
        finish_row(scan, &rows[i]);
        load->vram_known = load->vram_known || rows[i].facts.vram != UINT64_MAX;
        load->vram += bytes_or_none(rows[i].facts.vram);
    }
    busy_by_kind(busy, known, load->busy);
    load->processes = (uint32_t)count;
    put_rows(rows, count, table);
    free(rows);
    table->updated_ns = now_ns;
    table->hidden = scan->hidden;
    table->flags = scan->hidden || scan->overflow || !scan->complete ? PROCESS_TABLE_PARTIAL : 0;
}
