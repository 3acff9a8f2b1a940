#include "fault_io.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fault_io *of(struct io *io) { return io->context; }

enum access { AT_READ, AT_OPEN, AT_IOCTL, AT_LINK };

static enum access access_of(const struct fault_rule *rule)
{
    return rule->at_open ? AT_OPEN : rule->at_ioctl ? AT_IOCTL : rule->at_link ? AT_LINK : AT_READ;
}

/* The rule that applies to this access, counted. */
static struct fault_rule *applying(struct fault_io *fault, const char *path, enum access access)
{
    struct fault_rule *found = NULL;
    for (int i = 0; i < FAULT_RULES; i++) {
        struct fault_rule *rule = &fault->rules[i];
        if (!rule->match[0] || access_of(rule) != access || !strstr(path, rule->match))
            continue;
        rule->count++;
        if (rule->count >= rule->first && (rule->last == 0 || rule->count <= rule->last))
            found = rule;
    }
    if (found)
        fault->now += found->delay_ns;
    return found;
}

static int fault_open(struct io *io, const char *path, int flags)
{
    struct fault_io *fault = of(io);
    if (fault->traced < FAULT_TRACE)
        fault->trace[fault->traced++] = strdup(path);
    const struct fault_rule *rule = applying(fault, path, AT_OPEN);
    if (rule && rule->error)
        return -rule->error;
    int fd = fault->base.operations->open(&fault->base, path, flags);
    if (fd >= 0 && fd < FAULT_FDS)
        strncpy(fault->paths[fd], path, sizeof fault->paths[fd] - 1);
    return fd;
}

static void fault_close(struct io *io, int fd)
{
    struct fault_io *fault = of(io);
    if (fd >= 0 && fd < FAULT_FDS)
        memset(fault->paths[fd], 0, sizeof fault->paths[fd]);
    fault->base.operations->close(&fault->base, fd);
}

static long fault_pread(struct io *io, int fd, void *out, size_t size, uint64_t offset)
{
    struct fault_io *fault = of(io);
    const struct fault_rule *rule = fd >= 0 && fd < FAULT_FDS ? applying(fault, fault->paths[fd], AT_READ) : NULL;
    if (rule && rule->error)
        return -rule->error;
    size_t ask = rule && rule->short_read && rule->short_read < size ? rule->short_read : size;
    long got = fault->base.operations->pread(&fault->base, fd, out, ask, offset);
    if (rule && rule->pad && got >= 0) {
        memset((char *)out + got, 0, ask - (size_t)got);
        got = (long)ask;
    }
    return got;
}

static int fault_list(struct io *io, const char *path, bool (*each)(void *context, const char *name), void *context)
{
    char name[512];
    (void)snprintf(name, sizeof name, "%.480s|list", path);
    for (int i = 0; i < FAULT_RULES; i++)
        if (of(io)->rules[i].match[0] && strcmp(of(io)->rules[i].match, name) == 0) {
            of(io)->now += of(io)->rules[i].delay_ns;
            if (of(io)->rules[i].error)
                return -of(io)->rules[i].error;
        }
    return of(io)->base.operations->list(&of(io)->base, path, each, context);
}

static int fault_readlink(struct io *io, const char *path, char *out, size_t size)
{
    const struct fault_rule *rule = applying(of(io), path, AT_LINK);
    if (rule && rule->error)
        return -rule->error;
    return of(io)->base.operations->readlink(&of(io)->base, path, out, size);
}

static int fault_ioctl(struct io *io, int fd, unsigned long request, void *argument)
{
    struct fault_io *fault = of(io);
    const char *path = fd >= 0 && fd < FAULT_FDS ? fault->paths[fd] : "";
    fault->ioctls++;
    const struct fault_rule *rule = applying(fault, path, AT_IOCTL);
    if (rule && rule->error)
        return -rule->error;
    if (fault->ioctl.match && strstr(path, fault->ioctl.match))
        return fault->ioctl.answer(fault->ioctl.context, request, argument);
    return of(io)->base.operations->ioctl(&of(io)->base, fd, request, argument);
}

static int fault_stat_fs(struct io *io, const char *path, uint64_t *total, uint64_t *free_bytes)
{
    return of(io)->base.operations->stat_fs(&of(io)->base, path, total, free_bytes);
}

static uint64_t fault_mono_ns(struct io *io) { return of(io)->now; }

static const struct io_operations fault_operations = {
    .open = fault_open,
    .close = fault_close,
    .pread = fault_pread,
    .list = fault_list,
    .readlink = fault_readlink,
    .ioctl = fault_ioctl,
    .stat_fs = fault_stat_fs,
    .mono_ns = fault_mono_ns,
};

void fault_io_init(struct fault_io *fault, const char *root)
{
    memset(fault, 0, sizeof *fault);
    io_init(&fault->base, root);
    fault->io = fault->base;
    fault->io.operations = &fault_operations;
    fault->io.context = fault;
    fault->now = UINT64_C(1000000000000);
}

void fault_io_hide_root(struct fault_io *fault) { fault->io.root[0] = '\0'; }

void fault_io_free(struct fault_io *fault) { fault_io_clear_trace(fault); }

struct fault_rule *fault_io_rule(struct fault_io *fault, const char *match, int error)
{
    for (int i = 0; i < FAULT_RULES; i++)
        if (!fault->rules[i].match[0]) {
            fault->rules[i] = (struct fault_rule){.first = 1, .error = error};
            strncpy(fault->rules[i].match, match, sizeof fault->rules[i].match - 1);
            return &fault->rules[i];
        }
    abort(); /* more rules than room: a mistake in the test */
}

void fault_io_clear_rules(struct fault_io *fault) { memset(fault->rules, 0, sizeof fault->rules); }

void fault_io_clear_trace(struct fault_io *fault)
{
    for (int i = 0; i < fault->traced; i++)
        free(fault->trace[i]);
    fault->traced = 0;
}

int fault_io_opened(const struct fault_io *fault, const char *part)
{
    int count = 0;
    for (int i = 0; i < fault->traced; i++)
        count += strstr(fault->trace[i], part) != NULL;
    return count;
}

int fault_io_open_now(const struct fault_io *fault)
{
    int count = 0;
    for (int i = 0; i < FAULT_FDS; i++)
        count += fault->paths[i][0] != '\0';
    return count;
}
