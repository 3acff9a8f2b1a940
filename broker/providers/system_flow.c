#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/providers/system.h"

enum { FLOW_TEXT = 32768, SECTOR_BYTES = 512 /* whatever the disk's own: Documentation/block/stat.rst */ };

/* --- memory ----------------------------------------------------------------------------------------------------------- */

bool system_meminfo_bytes(const char *text, const char *key, uint64_t *out)
{
    size_t length = strlen(key);
    for (const char *at = text; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, key, length) != 0 || at[length] != ':')
            continue;
        char *end;
        unsigned long long kib = strtoull(at + length + 1, &end, 10);
        if (end == at + length + 1 || kib > UINT64_MAX / 1024)
            return false;
        *out = kib * 1024;
        return true;
    }
    return false;
}

/* used = total - rest, never below zero. */
static void sample_used(struct sample *sample, int metric, uint64_t total, uint64_t rest)
{
    if (rest > total)
        sample_unknown(sample, metric, REASON_IMPLAUSIBLE);
    else
        sample_u64(sample, metric, total - rest);
}

/* Kernels before 3.14 do not know MemAvailable: free memory and caches are close to it. */
static bool available_bytes(const char *text, uint64_t *out)
{
    uint64_t unused, buffers = 0, cached = 0;
    if (system_meminfo_bytes(text, "MemAvailable", out))
        return true;
    if (!system_meminfo_bytes(text, "MemFree", &unused))
        return false;
    (void)system_meminfo_bytes(text, "Buffers", &buffers);
    (void)system_meminfo_bytes(text, "Cached", &cached);
    *out = unused + buffers + cached;
    return true;
}

static void sample_meminfo(struct system_flow *flow, struct io *io, struct sample *sample)
{
    static const int mine[] = {HOST_METRIC_MEMORY_TOTAL, HOST_METRIC_MEMORY_USED, HOST_METRIC_MEMORY_AVAILABLE,
                               HOST_METRIC_SWAP_TOTAL,   HOST_METRIC_SWAP_USED,   HOST_METRIC_COMMIT_USED,
                               HOST_METRIC_COMMIT_LIMIT};
    char text[8192];
    long got = io_file_read(io, &flow->meminfo, text, sizeof text);
    for (size_t i = 0; got < 0 && i < sizeof mine / sizeof mine[0]; i++)
        sample_unknown(sample, mine[i], io_reason((int)got));
    if (got < 0)
        return;
    uint64_t total, rest, value;
    bool have_total = system_meminfo_bytes(text, "MemTotal", &total) && total > 0;
    bool have_rest = available_bytes(text, &rest);
    if (have_total)
        sample_u64(sample, HOST_METRIC_MEMORY_TOTAL, total);
    if (have_rest)
        sample_u64(sample, HOST_METRIC_MEMORY_AVAILABLE, rest);
    if (have_total && have_rest)
        sample_used(sample, HOST_METRIC_MEMORY_USED, total, rest);
    if (system_meminfo_bytes(text, "SwapTotal", &total)) {
        sample_u64(sample, HOST_METRIC_SWAP_TOTAL, total); /* zero is a fact: there is no swap */
        if (system_meminfo_bytes(text, "SwapFree", &rest))
            sample_used(sample, HOST_METRIC_SWAP_USED, total, rest);
    }
    if (system_meminfo_bytes(text, "Committed_AS", &value))
        sample_u64(sample, HOST_METRIC_COMMIT_USED, value);
    if (system_meminfo_bytes(text, "CommitLimit", &value))
        sample_u64(sample, HOST_METRIC_COMMIT_LIMIT, value);
}

/* --- counters that flow ----------------------------------------------------------------------------------------------- */

/* Adds what a device moved since the last turn; one that is new, or whose counter went back, starts at nothing. */
static void flow_add(struct flow *flow, struct flow_row *row, uint64_t in, uint64_t out, uint64_t steps[2])
{
    if (row->turn + 1 == flow->turn && in >= row->in && out >= row->out) {
        steps[0] += in - row->in;
        steps[1] += out - row->out;
    }
    row->turn = flow->turn;
    row->in = in;
    row->out = out;
}

/* The row of that name, *made if it is new; a device past the table's end takes a row of one that is gone, or NULL. */
static struct flow_row *flow_row(struct flow *flow, const char *name, size_t length, bool *made)
{
    struct flow_row *row = NULL;
    *made = false;
    for (int i = 0; i < flow->count; i++) {
        if (strncmp(flow->rows[i].name, name, length) == 0 && !flow->rows[i].name[length])
            return &flow->rows[i];
        if (flow->rows[i].turn + 1 < flow->turn)
            row = &flow->rows[i];
    }
    if (flow->count < FLOW_ROWS)
        row = &flow->rows[flow->count++];
    if (!row)
        return NULL;
    memset(row, 0, sizeof *row);
    memcpy(row->name, name, length);
    *made = true;
    return row;
}

/* Partitions have no folder in /sys/block. Loops, RAM disks, maps, RAIDs and volumes lie on other disks or on none, and would
 * count the same bytes again. */
static bool whole_disk(struct io *io, const char *name)
{
    static const char *const layered[] = {"loop", "ram", "zram", "dm-", "md", "sr", "fd", "zd", "bcache", "drbd"};
    for (size_t i = 0; i < sizeof layered / sizeof layered[0]; i++)
        if (strncmp(name, layered[i], strlen(layered[i])) == 0)
            return false;
    char path[64];
    (void)snprintf(path, sizeof path, "/sys/block/%.32s", name);
    for (char *at = path + strlen("/sys/block/"); *at; at++)
        if (*at == '/')
            *at = '!'; /* cciss/c0d0 */
    return io_exists(io, path);
}

/* "   8  0 sda reads merged SECTORS ms writes merged SECTORS ..." Returns true if a disk counted. */
static bool disk_line(struct flow *flow, struct io *io, const char *line, uint64_t steps[2])
{
    int start = 0, end = 0;
    unsigned long long read_sectors, written_sectors;
    if (sscanf(line, "%*u %*u %n%*31s%n %*u %*u %llu %*u %*u %*u %llu", &start, &end, &read_sectors, &written_sectors) != 2)
        return false;
    bool made;
    struct flow_row *row = flow_row(flow, line + start, (size_t)(end - start), &made);
    if (!row)
        return false;
    if (made)
        row->skipped = !whole_disk(io, row->name);
    flow_add(flow, row, read_sectors * SECTOR_BYTES, written_sectors * SECTOR_BYTES, steps);
    return !row->skipped;
}

/* "  eth0: BYTES packets errs drop fifo frame compressed multicast BYTES ..." */
static bool network_line(struct flow *flow, struct io *io, const char *line, uint64_t steps[2])
{
    (void)io;
    const char *name = line + strspn(line, " ");
    const char *colon = strchr(name, ':');
    unsigned long long received, sent;
    if (!colon || colon - name > 31 || memchr(name, '\n', (size_t)(colon - name)) ||
        sscanf(colon + 1, "%llu %*u %*u %*u %*u %*u %*u %*u %llu", &received, &sent) != 2)
        return false;
    bool made;
    struct flow_row *row = flow_row(flow, name, (size_t)(colon - name), &made);
    if (!row)
        return false;
    row->skipped = strcmp(row->name, "lo") == 0;
    flow_add(flow, row, received, sent, steps);
    return !row->skipped;
}

/* Reads the file, adds up what its devices moved, and writes both rates. */
static void sample_flow(struct flow *flow, struct io *io, uint64_t mono_ns, struct sample *sample, int in_metric, int out_metric,
                        bool (*take)(struct flow *, struct io *, const char *, uint64_t[2]))
{
    static char text[FLOW_TEXT];
    long got = io_file_read_all(io, &flow->file, text, sizeof text);
    unsigned reason = got < 0 ? io_reason((int)got) : REASON_NOT_SUPPORTED;
    double seconds = (double)(mono_ns - flow->mono_ns) / 1e9;
    bool first = flow->turn == 0 || mono_ns <= flow->mono_ns;
    uint64_t steps[2] = {0, 0};
    int devices = 0;
    flow->turn++;
    flow->mono_ns = mono_ns;
    for (const char *line = got < 0 ? NULL : text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        uint64_t moved[2] = {0, 0};
        if (take(flow, io, line, moved)) {
            steps[0] += moved[0];
            steps[1] += moved[1];
            devices++;
        }
    }
    if (devices && !first) {
        sample_f64(sample, in_metric, (double)steps[0] / seconds);
        sample_f64(sample, out_metric, (double)steps[1] / seconds);
        return;
    }
    sample_unknown(sample, in_metric, devices ? REASON_NOT_SAMPLED : reason);
    sample_unknown(sample, out_metric, devices ? REASON_NOT_SAMPLED : reason);
}

/* --- all of it -------------------------------------------------------------------------------------------------------- */

static void sample_load(struct system_flow *flow, struct io *io, struct sample *sample)
{
    char text[128];
    char *end = text;
    long got = io_file_read(io, &flow->loadavg, text, sizeof text);
    double load = got < 0 ? 0 : strtod(text, &end);
    if (got < 0)
        sample_unknown(sample, HOST_METRIC_LOAD1, io_reason((int)got));
    else if (end == text)
        sample_unknown(sample, HOST_METRIC_LOAD1, REASON_ERROR);
    else
        system_within(sample, HOST_METRIC_LOAD1, load, 0, 1e6);
}

static void sample_root_disk(struct io *io, struct sample *sample)
{
    uint64_t total = 0, unused = 0;
    int error = io->operations->stat_fs(io, "/", &total, &unused);
    if (error || total == 0) {
        sample_unknown(sample, HOST_METRIC_DISK_TOTAL, error ? io_reason(error) : REASON_NOT_SUPPORTED);
        sample_unknown(sample, HOST_METRIC_DISK_USED, error ? io_reason(error) : REASON_NOT_SUPPORTED);
        return;
    }
    sample_u64(sample, HOST_METRIC_DISK_TOTAL, total);
    sample_used(sample, HOST_METRIC_DISK_USED, total, unused);
}

void system_flow_init(struct system_flow *flow)
{
    memset(flow, 0, sizeof *flow);
    io_file_init(&flow->meminfo, "/proc/meminfo");
    io_file_init(&flow->loadavg, "/proc/loadavg");
    io_file_init(&flow->disks.file, "/proc/diskstats");
    io_file_init(&flow->network.file, "/proc/net/dev");
}

void system_flow_sample(struct system_flow *flow, struct io *io, uint64_t mono_ns, struct sample *sample)
{
    sample_meminfo(flow, io, sample);
    sample_load(flow, io, sample);
    sample_root_disk(io, sample);
    sample_flow(&flow->disks, io, mono_ns, sample, HOST_METRIC_DISK_READ, HOST_METRIC_DISK_WRITE, disk_line);
    sample_flow(&flow->network, io, mono_ns, sample, HOST_METRIC_NET_RX, HOST_METRIC_NET_TX, network_line);
}

void system_flow_close(struct system_flow *flow, struct io *io)
{
    io_file_close(io, &flow->meminfo);
    io_file_close(io, &flow->loadavg);
    io_file_close(io, &flow->disks.file);
    io_file_close(io, &flow->network.file);
}
