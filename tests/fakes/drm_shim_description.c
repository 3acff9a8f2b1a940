#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drm_shim.h"

static void fail(const char *line, const char *why)
{
    fprintf(stderr, "drm_shim: %s: %s\n", why, line);
    _exit(99);
}

enum { WORDS = 8 };

struct line {
    char text[1024];
    char *words[WORDS];
    int count;
};

static uint64_t number(const struct line *line, int index)
{
    char *end;
    if (index >= line->count)
        fail(line->words[0], "a number is missing");
    uint64_t value = strtoull(line->words[index], &end, 0);
    if (*end || end == line->words[index])
        fail(line->words[index], "not a number");
    return value;
}

static void text(const struct line *line, int index, char *out, size_t size)
{
    if (index >= line->count || (size_t)snprintf(out, size, "%s", line->words[index]) >= size)
        fail(line->words[0], "a word is missing or too long");
}

static bool is(const struct line *line, int index, const char *word)
{
    return index < line->count && strcmp(line->words[index], word) == 0;
}

static int open_raw(const char *path, int flags, unsigned mode)
{
    long fd = syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode);
    if (fd < 0)
        fail(path, "cannot be opened");
    /* Out of the way of programs that expect theirs at low numbers. */
    int high = (int)syscall(SYS_fcntl, (int)fd, F_DUPFD_CLOEXEC, 200);
    if (high < 0)
        return (int)fd;
    (void)syscall(SYS_close, fd);
    return high;
}

static void open_control(const char *path)
{
    int fd = open_raw(path, O_RDWR, 0);
    void *there = mmap(NULL, SHIM_GPUS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (there == MAP_FAILED)
        fail(path, "cannot be mapped");
    shim.control = there;
}

static void read_fault(const struct line *line)
{
    if (shim.fault_count == SHIM_FAULTS)
        fail(line->words[0], "too many");
    struct shim_fault *fault = &shim.faults[shim.fault_count++];
    fault->kind = is(line, 1, "open") ? SHIM_OPEN : is(line, 1, "read") ? SHIM_READ : SHIM_IOCTL;
    if (fault->kind == SHIM_IOCTL && !is(line, 1, "ioctl"))
        fail(line->words[0], "no such kind");
    text(line, 2, fault->part, sizeof fault->part);
    fault->from = (long)number(line, 3);
    fault->to = (long)number(line, 4);
    fault->error = (int)number(line, 5);
    fault->delay_ms = (long)number(line, 6);
    if (line->count > 7)
        text(line, 7, fault->request, sizeof fault->request);
}

static void read_info(const struct line *line, struct shim_gpu *gpu)
{
    const struct {
        const char *name;
        uint32_t *place;
    } facts[] = {{"device", &gpu->device},      {"family", &gpu->family},       {"external_rev", &gpu->external_rev},
                 {"revision", &gpu->revision},  {"vram_type", &gpu->vram_type}, {"compute_units", &gpu->compute_units},
                 {"vram_bits", &gpu->vram_bits}};
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        if (is(line, 1, facts[i].name)) {
            *facts[i].place = (uint32_t)number(line, 2);
            return;
        }
    if (!is(line, 1, "flags"))
        fail(line->words[0], "no such fact");
    gpu->flags = number(line, 2);
}

static void read_sensor(const struct line *line, struct shim_sensor *list, int *count)
{
    if (*count == SHIM_SENSORS)
        fail(line->words[0], "too many");
    struct shim_sensor *sensor = &list[(*count)++];
    sensor->type = (uint32_t)number(line, 1);
    if (is(line, 2, "errno"))
        sensor->error = (int)number(line, 3);
    else
        sensor->value = (uint32_t)number(line, 2);
}

static void read_region(const struct line *line, struct shim_gpu *gpu)
{
    if (gpu->region_count == SHIM_REGIONS)
        fail(line->words[0], "too many");
    gpu->regions[gpu->region_count++] = (struct shim_region){.class_of = (uint16_t)number(line, 1),
                                                             .instance = (uint16_t)number(line, 2),
                                                             .total = number(line, 3),
                                                             .unused = number(line, 4),
                                                             .visible = number(line, 5),
                                                             .visible_unused = number(line, 6)};
}

static void read_memory(const struct line *line, struct shim_gpu *gpu)
{
    uint64_t total = number(line, 2), used = number(line, 3);
    if (is(line, 1, "vram"))
        gpu->vram.total = total, gpu->vram.used = used;
    else if (is(line, 1, "visible"))
        gpu->visible.total = total, gpu->visible.used = used;
    else if (is(line, 1, "gtt"))
        gpu->gtt.total = total, gpu->gtt.used = used;
    else
        fail(line->words[0], "no such memory");
}

static void read_gpu_line(const struct line *line, struct shim_gpu *gpu)
{
    if (is(line, 0, "hotplug"))
        gpu->hotplug = true;
    else if (is(line, 0, "version"))
        gpu->major = (int)number(line, 1), gpu->minor = (int)number(line, 2);
    else if (is(line, 0, "info"))
        read_info(line, gpu);
    else if (is(line, 0, "memory"))
        read_memory(line, gpu);
    else if (is(line, 0, "sensor"))
        read_sensor(line, gpu->sensors, &gpu->sensor_count);
    else if (is(line, 0, "firmware"))
        read_sensor(line, gpu->firmware, &gpu->firmware_count);
    else if (is(line, 0, "region"))
        read_region(line, gpu);
    else
        fail(line->words[0], "no such item");
}

static void read_gpu(const struct line *line)
{
    if (shim.gpu_count == SHIM_GPUS)
        fail(line->words[0], "too many");
    struct shim_gpu *gpu = &shim.gpus[shim.gpu_count++];
    text(line, 1, gpu->folder, sizeof gpu->folder);
    text(line, 2, gpu->driver, sizeof gpu->driver);
    gpu->render = (int)number(line, 3);
    gpu->card = (int)number(line, 4);
    gpu->major = 3, gpu->minor = 61;
}

static void read_line(const struct line *line)
{
    if (is(line, 0, "root")) {
        text(line, 1, shim.root, sizeof shim.root);
        shim.root_length = strlen(shim.root);
    } else if (is(line, 0, "map") && shim.map_count < SHIM_MAPS)
        text(line, 1, shim.maps[shim.map_count++], sizeof shim.maps[0]);
    else if (is(line, 0, "log") && line->count > 1)
        shim.log = open_raw(line->words[1], O_WRONLY | O_APPEND | O_CREAT, 0644);
    else if (is(line, 0, "control") && line->count > 1)
        open_control(line->words[1]);
    else if (is(line, 0, "fault"))
        read_fault(line);
    else if (is(line, 0, "gpu"))
        read_gpu(line);
    else if (shim.gpu_count > 0)
        read_gpu_line(line, &shim.gpus[shim.gpu_count - 1]);
    else
        fail(line->words[0], "no such item");
}

/* By system calls alone: the program's own open and read are not ready yet. */
void shim_read_description(const char *path)
{
    static char all[65536];
    int fd = open_raw(path, O_RDONLY, 0);
    long got, size = 0;
    while ((got = syscall(SYS_read, fd, all + size, sizeof all - 1 - (size_t)size)) > 0)
        size += got;
    (void)syscall(SYS_close, fd);
    all[size] = '\0';
    char *rest = NULL;
    for (char *at = strtok_r(all, "\n", &rest); at; at = strtok_r(NULL, "\n", &rest)) {
        struct line line = {.count = 0};
        char *inner = NULL;
        (void)snprintf(line.text, sizeof line.text, "%s", at);
        line.text[strcspn(line.text, "#")] = '\0';
        for (char *word = strtok_r(line.text, " \t", &inner); word && line.count < WORDS; word = strtok_r(NULL, " \t", &inner))
            line.words[line.count++] = word;
        if (line.count > 0)
            read_line(&line);
    }
}
