#include "broker/providers/process_scan.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)
static const uint64_t LIST_NS = SECOND;
static const uint64_t LOOK_AGAIN_NS = 10 * SECOND;

void scan_init(struct process_scan *scan, struct io *io)
{
    memset(scan, 0, sizeof *scan);
    scan->io = io;
}

bool scan_grow(void **array, int *capacity, int count, int most, size_t size)
{
    if (count < *capacity)
        return true;
    if (count >= most)
        return false;
    int larger = *capacity ? *capacity * 2 : 64;
    void *grown = realloc(*array, (size_t)(larger < most ? larger : most) * size);
    if (!grown)
        abort();
    *array = grown;
    *capacity = larger < most ? larger : most;
    return true;
}

/* --- clients -------------------------------------------------------------------------------------------------------------- */

static void client_close(struct process_scan *scan, struct scan_client *client)
{
    if (client->used)
        io_file_close(scan->io, &client->file);
    client->used = false;
}

void scan_free(struct process_scan *scan)
{
    for (int i = 0; i < scan->client_count; i++)
        client_close(scan, &scan->clients[i]);
    free(scan->processes);
    free(scan->holders);
    free(scan->clients);
    free(scan->computes);
    scan_init(scan, scan->io);
}

void scan_set_devices(struct process_scan *scan, const struct scan_device *devices, int count)
{
    uint32_t own_parent = scan->own_parent;
    scan_free(scan);
    scan->own_parent = own_parent;
    scan->devices = devices;
    scan->device_count = count;
}

static struct scan_client *client_free_slot(struct process_scan *scan)
{
    for (int i = 0; i < scan->client_count; i++)
        if (!scan->clients[i].used)
            return &scan->clients[i];
    if (!scan_grow((void **)&scan->clients, &scan->client_capacity, scan->client_count, SCAN_MOST_CLIENTS, sizeof *scan->clients))
        return NULL;
    return &scan->clients[scan->client_count++];
}

/* A client's number is unique on its device. Where a driver tells none, each descriptor is a client of its own. */
static int client_find(struct process_scan *scan, int device, uint64_t id)
{
    for (int i = 0; i < scan->client_count; i++)
        if (scan->clients[i].used && scan->clients[i].device == device && scan->clients[i].id == id)
            return i;
    struct scan_client *client = client_free_slot(scan);
    if (!client) {
        scan->overflow = true;
        return -1;
    }
    memset(client, 0, sizeof *client);
    client->used = true;
    client->device = device;
    client->id = id;
    for (int i = 0; i < FDINFO_ENGINES; i++)
        client->busy[i] = (double)NAN;
    io_file_init(&client->file, "%s", "");
    return (int)(client - scan->clients);
}

/* Share of the time since the last read. Times of an engine may go back for a while: until they have caught up, nothing has
 * happened (drm-usage-stats.rst). */
static void engine_busy(struct scan_client *client, int engine, double elapsed_ns)
{
    const struct fdinfo_engine *now = &client->info.engines[engine];
    double capacity = now->capacity > 0 ? now->capacity : 1, *busy = &client->busy[engine];
    if (!now->has_time && !now->has_cycles) {
        *busy = now->has_share ? now->share : (double)NAN;
        return;
    }
    uint64_t counter = now->has_cycles ? now->cycles : now->time_ns, total = now->total_cycles;
    uint64_t before = client->base[engine], total_before = client->total_base[engine];
    bool first = !client->based[engine];
    client->based[engine] = true;
    client->base[engine] = first || counter > before ? counter : before;
    client->total_base[engine] = first || total > total_before ? total : total_before;
    if (first) {
        *busy = (double)NAN;
        return;
    }
    double used = counter > before ? (double)(counter - before) : 0;
    double possible = now->has_cycles ? (total > total_before ? (double)(total - total_before) : 0) : elapsed_ns;
    double share = possible > 0 ? 100 * used / possible / capacity : 0;
    *busy = share < 100 ? share : 100;
}

/* An engine that was busy before and is not listed now has done nothing since: amdgpu leaves out those at zero only. */
static void client_measure(struct scan_client *client, uint64_t now_ns)
{
    double elapsed = client->read_ns && now_ns > client->read_ns ? (double)(now_ns - client->read_ns) : 0;
    for (int i = 0; i < FDINFO_ENGINES; i++)
        engine_busy(client, i, elapsed);
    client->read_ns = now_ns;
}

/* A file in which the driver printed nothing is a sample that is missing (the root's lock was held). */
static int client_read(struct process_scan *scan, struct scan_client *client, uint64_t now_ns)
{
    char text[8192];
    struct fdinfo info;
    long got = io_file_read_all(scan->io, &client->file, text, sizeof text);
    if (got < 0)
        return (int)got;
    if (!fdinfo_parse(text, &info) || (info.has_client && info.client != client->id))
        return -ENOENT; /* the descriptor is another file's now */
    client->info = info;
    client->fresh = true;
    client_measure(client, now_ns);
    return 0;
}

/* --- holders -------------------------------------------------------------------------------------------------------------- */

static void holders_forget(struct process_scan *scan, uint32_t pid)
{
    int kept = 0;
    for (int i = 0; i < scan->holder_count; i++)
        if (scan->holders[i].pid != pid)
            scan->holders[kept++] = scan->holders[i];
    scan->holder_count = kept;
}

static void holder_add(struct process_scan *scan, uint32_t pid, uint32_t fd, int client)
{
    if (!scan_grow((void **)&scan->holders, &scan->holder_capacity, scan->holder_count, SCAN_MOST_HOLDERS, sizeof *scan->holders)) {
        scan->overflow = true;
        return;
    }
    scan->holders[scan->holder_count++] = (struct scan_holder){.pid = pid, .fd = fd, .client = client};
}

/* Reads the client through any descriptor that still is its own; one that nobody holds is dropped. */
static void client_follow(struct process_scan *scan, int index, uint64_t now_ns)
{
    struct scan_client *client = &scan->clients[index];
    client->fresh = false;
    if (client->file.path[0] && client_read(scan, client, now_ns) == 0)
        return;
    bool held = false;
    for (int i = 0; i < scan->holder_count; i++) {
        const struct scan_holder *holder = &scan->holders[i];
        if (holder->client != index)
            continue;
        held = true;
        io_file_close(scan->io, &client->file);
        io_file_init(&client->file, "/proc/%u/fdinfo/%u", holder->pid, holder->fd);
        if (client_read(scan, client, now_ns) == 0)
            return;
    }
    if (!held)
        client_close(scan, client);
}

/* --- looking into a process ------------------------------------------------------------------------------------------------ */

struct look {
    struct process_scan *scan;
    struct scan_process *process;
    uint64_t now_ns;
};

/* "/dev/dri/renderD128" is 128, "/dev/dri/card0" is 0; -1 for another file. */
static int minor_of(const char *target)
{
    static const char *const nodes[] = {"/dev/dri/renderD", "/dev/dri/card"};
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        const char *number = target + strlen(nodes[i]);
        if (strncmp(target, nodes[i], strlen(nodes[i])) == 0 && isdigit((unsigned char)*number))
            return (int)strtoul(number, NULL, 10);
    }
    return -1;
}

/* By the address that the driver tells, else by the node. */
static int device_of(const struct process_scan *scan, const struct fdinfo *info, int minor)
{
    for (int i = 0; info->pdev[0] && i < scan->device_count; i++)
        if (strcmp(scan->devices[i].id, info->pdev) == 0)
            return i;
    for (int i = 0; !info->pdev[0] && i < scan->device_count; i++)
        if (scan->devices[i].minors[0] == minor || scan->devices[i].minors[1] == minor)
            return i;
    return -1;
}

static void look_at_node(struct look *look, uint32_t fd, int minor)
{
    struct process_scan *scan = look->scan;
    char path[80], text[8192];
    struct fdinfo info;
    (void)snprintf(path, sizeof path, "/proc/%u/fdinfo/%u", look->process->pid, fd);
    long got = io_read_text(scan->io, path, text, sizeof text);
    look->process->hidden = look->process->hidden || got == -EACCES || got == -EPERM;
    int device = got > 0 && fdinfo_parse(text, &info) ? device_of(scan, &info, minor) : -1;
    if (device < 0)
        return;
    uint64_t alone = UINT64_C(1) << 63 | (uint64_t)look->process->pid << 24 | (fd & 0xffffff);
    int client = client_find(scan, device, info.has_client ? info.client : alone);
    if (client < 0)
        return;
    holder_add(scan, look->process->pid, fd, client);
    if (!scan->clients[client].fresh && !scan->clients[client].file.path[0])
        client_follow(scan, client, look->now_ns);
}

static bool look_at_fd(void *context, const char *name)
{
    struct look *look = context;
    char path[80], target[64], *end;
    unsigned long fd = strtoul(name, &end, 10);
    if (!isdigit((unsigned char)name[0]) || *end || fd > UINT32_MAX)
        return true;
    (void)snprintf(path, sizeof path, "/proc/%u/fd/%lu", look->process->pid, fd);
    if (look->scan->io->operations->readlink(look->scan->io, path, target, sizeof target) < 0)
        return true;
    int minor = minor_of(target);
    if (minor >= 0)
        look_at_node(look, (uint32_t)fd, minor);
    return true;
}

static bool holds_any(const struct process_scan *scan, uint32_t pid)
{
    for (int i = 0; i < scan->holder_count; i++)
        if (scan->holders[i].pid == pid)
            return true;
    return false;
}

static void look_into(struct process_scan *scan, struct scan_process *process, uint64_t now_ns)
{
    struct look look = {.scan = scan, .process = process, .now_ns = now_ns};
    char path[64];
    struct process_birth birth;
    holders_forget(scan, process->pid);
    process->hidden = false;
    (void)snprintf(path, sizeof path, "/proc/%u/fd", process->pid);
    int result = scan->io->operations->list(scan->io, path, look_at_fd, &look);
    process->hidden = process->hidden || result == -EACCES || result == -EPERM;
    if (process->hidden && process_birth(scan->io, process->pid, &birth) == 0 && birth.kernel_thread)
        process->hidden = false;
    if (holds_any(scan, process->pid) && process_facts(scan->io, scan->boot_ms, process) && scan->own_parent != 0 &&
        process->parent == scan->own_parent)
        holders_forget(scan, process->pid); /* another worker, with a node open for a question */
    process->looked = true;
    process->looked_ns = now_ns;
}

/* --- the list of processes --------------------------------------------------------------------------------------------------- */

struct pid_list {
    uint32_t *pids;
    int count, capacity;
    bool overflow;
};

static bool take_pid(void *context, const char *name)
{
    struct pid_list *list = context;
    char *end;
    unsigned long pid = strtoul(name, &end, 10);
    if (!isdigit((unsigned char)name[0]) || *end || pid == 0 || pid > INT32_MAX)
        return true;
    if (!scan_grow((void **)&list->pids, &list->capacity, list->count, SCAN_MOST_PROCESSES, sizeof *list->pids)) {
        list->overflow = true;
        return false;
    }
    list->pids[list->count++] = (uint32_t)pid;
    return true;
}

static int compare_pids(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

/* A pid that was given to another process since: known by its start. Only those that hold a GPU are asked. */
static bool same_process(struct process_scan *scan, const struct scan_process *process)
{
    struct process_birth birth;
    return !process->known || (process_birth(scan->io, process->pid, &birth) == 0 && birth.ticks == process->start_ticks);
}

/* The old list and the new one, both by pid: what is in both stays. */
static void merge_pids(struct process_scan *scan, const struct pid_list *list)
{
    struct scan_process *merged = calloc((size_t)list->count + 1, sizeof *merged);
    int old = 0;
    if (!merged)
        abort();
    for (int i = 0; i < list->count; i++) {
        while (old < scan->process_count && scan->processes[old].pid < list->pids[i])
            holders_forget(scan, scan->processes[old++].pid);
        merged[i].pid = list->pids[i];
        if (old < scan->process_count && scan->processes[old].pid == list->pids[i]) {
            if (same_process(scan, &scan->processes[old]))
                merged[i] = scan->processes[old];
            else
                holders_forget(scan, list->pids[i]);
            old++;
        }
    }
    while (old < scan->process_count)
        holders_forget(scan, scan->processes[old++].pid);
    free(scan->processes);
    scan->processes = merged;
    scan->process_count = list->count;
    scan->process_capacity = list->count + 1;
}

static void list_processes(struct process_scan *scan, uint64_t now_ns)
{
    struct pid_list list = {0};
    if (scan->boot_ms == 0)
        scan->boot_ms = process_boot_ms(scan->io);
    scan->listed = scan->io->operations->list(scan->io, "/proc", take_pid, &list) >= 0;
    if (scan->listed) {
        if (list.count > 0)
            qsort(list.pids, (size_t)list.count, sizeof *list.pids, compare_pids);
        merge_pids(scan, &list);
        scan->overflow = list.overflow;
    }
    free(list.pids);
    scan->listed_ns = now_ns;
    scan_compute_processes(scan);
}

struct scan_process *scan_find(const struct process_scan *scan, uint32_t pid)
{
    int low = 0, high = scan->process_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (scan->processes[middle].pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < scan->process_count && scan->processes[low].pid == pid ? &scan->processes[low] : NULL;
}

/* --- a tick ------------------------------------------------------------------------------------------------------------------ */

static bool due(const struct scan_process *process, uint64_t now_ns)
{
    return !process->looked || now_ns - process->looked_ns >= LOOK_AGAIN_NS;
}

/* A process's holders lie side by side, so that the last one tells whether a process was counted. */
static void find_owners(struct process_scan *scan)
{
    for (int i = 0; i < scan->client_count; i++)
        scan->clients[i].owner = scan->clients[i].sharers = scan->clients[i].last_holder = 0;
    for (int i = 0; i < scan->holder_count; i++) {
        const struct scan_holder *holder = &scan->holders[i];
        struct scan_client *client = &scan->clients[holder->client];
        if (holder->pid == client->last_holder)
            continue;
        client->sharers += client->last_holder != 0;
        client->owner = client->owner == 0 || holder->pid < client->owner ? holder->pid : client->owner;
        client->last_holder = holder->pid;
    }
}

static void count_hidden(struct process_scan *scan)
{
    scan->hidden = 0;
    scan->complete = scan->listed;
    for (int i = 0; i < scan->process_count; i++) {
        scan->hidden += scan->processes[i].hidden;
        scan->complete = scan->complete && scan->processes[i].looked;
    }
}

void scan_run(struct process_scan *scan, uint64_t now_ns, uint64_t budget_ns)
{
    struct io *io = scan->io;
    for (int i = 0; i < scan->client_count; i++)
        if (scan->clients[i].used && !scan->devices[scan->clients[i].device].unreadable)
            client_follow(scan, i, now_ns);
    if (scan->listed_ns == 0 || now_ns - scan->listed_ns >= LIST_NS)
        list_processes(scan, now_ns);
    uint64_t end_ns = io->operations->mono_ns(io) + budget_ns;
    for (int i = 0; i < scan->process_count; i++) {
        struct scan_process *process = &scan->processes[scan->next < scan->process_count ? scan->next : 0];
        scan->next = (int)(process - scan->processes) + 1;
        if (!due(process, now_ns))
            continue;
        look_into(scan, process, now_ns);
        if (io->operations->mono_ns(io) >= end_ns)
            break;
    }
    find_owners(scan);
    count_hidden(scan);
}
