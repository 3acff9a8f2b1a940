/* Compute processes: /sys/class/kfd/kfd/proc/<pid>/{vram_<gpu>,stats_<gpu>/cu_occupancy} (kfd_process.c). Clients' fdinfo shows
 * their memory, but none of their work (amdsmi issue 130). /dev/kfd is never opened: that would make us one of them. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/providers/process_scan.h"

#define KFD_PROCESSES "/sys/class/kfd/kfd/proc"

/* One partition's part; false if the process has not opened it. */
static bool take_partition(struct io *io, uint32_t gpu, struct scan_compute *compute, uint64_t *units_in_use, bool *units_told)
{
    uint64_t value;
    char path[128];
    (void)snprintf(path, sizeof path, KFD_PROCESSES "/%u/vram_%u", compute->pid, gpu);
    int error = io_read_u64(io, path, 10, &value);
    if (error == -ENOENT)
        return false;
    if (error == 0 && value >> SAMPLE_MEMORY_BITS == 0) {
        compute->has_vram = true;
        compute->vram += value;
    }
    (void)snprintf(path, sizeof path, KFD_PROCESSES "/%u/stats_%u/cu_occupancy", compute->pid, gpu);
    if (io_read_u64(io, path, 10, &value) == 0) {
        *units_told = true;
        *units_in_use += value < 65536 ? value : 65536;
    }
    return true;
}

static void take_device(struct process_scan *scan, uint32_t pid, int index)
{
    const struct scan_device *device = &scan->devices[index];
    struct scan_compute compute = {.pid = pid, .device = index, .busy = (double)NAN};
    uint64_t units = 0;
    bool opened = false, told = false;
    for (int i = 0; i < device->kfd_gpu_count; i++)
        opened = take_partition(scan->io, device->kfd_gpus[i], &compute, &units, &told) || opened;
    if (!opened)
        return;
    if (told && device->compute_units > 0)
        compute.busy = units < device->compute_units ? 100.0 * (double)units / device->compute_units : 100;
    if (scan_grow((void **)&scan->computes, &scan->compute_capacity, scan->compute_count, SCAN_MOST_CLIENTS, sizeof compute))
        scan->computes[scan->compute_count++] = compute;
    else
        scan->overflow = true;
}

static bool take_process(void *context, const char *name)
{
    struct process_scan *scan = context;
    char *end;
    unsigned long pid = strtoul(name, &end, 10);
    if (!isdigit((unsigned char)name[0]) || *end || pid == 0 || pid > INT32_MAX)
        return true;
    int before = scan->compute_count;
    for (int i = 0; i < scan->device_count; i++)
        if (scan->devices[i].kfd_gpu_count > 0)
            take_device(scan, (uint32_t)pid, i);
    struct scan_process *process = scan->compute_count > before ? scan_find(scan, (uint32_t)pid) : NULL;
    if (process && !process->known)
        (void)process_facts(scan->io, scan->boot_ms, process);
    return true;
}

void scan_compute_processes(struct process_scan *scan)
{
    scan->compute_count = 0;
    for (int i = 0; i < scan->device_count; i++)
        if (scan->devices[i].kfd_gpu_count > 0) {
            (void)scan->io->operations->list(scan->io, KFD_PROCESSES, take_process, scan);
            return;
        }
}
