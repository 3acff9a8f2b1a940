/* The machine itself: CPU, memory, disks, network. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/providers/all.h"
#include "broker/providers/system.h"
#include "shm/text.h"

struct system_state {
    struct system_cpu cpu;
    struct system_flow flow;
    struct layout_host host; /* as described last */
    bool described;
};

void system_within(struct sample *sample, int metric, double value, double low, double high)
{
    if (value >= low && value <= high)
        sample_f64(sample, metric, value);
    else
        sample_unknown(sample, metric, REASON_IMPLAUSIBLE);
}

static int system_start(struct provider_context *context)
{
    struct system_state *state = calloc(1, sizeof *state);
    if (!state)
        return -ENOMEM;
    if (!io_exists(context->io, "/proc/stat") && !io_exists(context->io, "/proc/meminfo")) {
        text_format(context->message, sizeof context->message, "no /proc/stat and no /proc/meminfo");
        free(state);
        return -ENOENT;
    }
    system_cpu_init(&state->cpu, context->io);
    system_flow_init(&state->flow);
    context->state = state;
    text_format(context->message, sizeof context->message, "CPU clock by %s, %d power domains",
                state->cpu.clock_count ? "cpufreq" : "/proc/cpuinfo", state->cpu.package_count);
    return 0;
}

static int system_sample(struct provider_context *context, int device, struct sample *sample)
{
    struct system_state *state = context->state;
    (void)device;
    uint64_t mono_ns = context->io->operations->mono_ns(context->io);
    sample->mono_ns = mono_ns;
    system_cpu_sample(&state->cpu, context->io, mono_ns, sample);
    system_flow_sample(&state->flow, context->io, mono_ns, sample);
    return 0;
}

/* --- what does not change --------------------------------------------------------------------------------------------- */

/* The text after KEY and `mark` at the start of a line, unquoted; empty if there is none. */
static void value_of(const char *text, const char *key, char mark, char *out, size_t size)
{
    size_t length = strlen(key);
    out[0] = '\0';
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) != 0)
            continue;
        const char *at = line + length + strspn(line + length, " \t");
        if (*at != mark)
            continue;
        at += 1 + strspn(at + 1, " \t\"'");
        size_t end = strcspn(at, mark == '=' ? "\n\"'" : "\n");
        text_copy(out, size, at, end);
        return;
    }
}

/* "0-3,8,10-11" */
static uint32_t count_range_list(const char *text)
{
    uint32_t count = 0;
    while (*text) {
        char *end;
        unsigned long first = strtoul(text, &end, 10), last = first;
        if (end == text)
            break;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        if (last >= first && last < 1u << 20)
            count += (uint32_t)(last - first + 1);
        text = *end == ',' ? end + 1 : "";
    }
    return count;
}

static void describe_text(struct io *io, const char *path, char *out, size_t size)
{
    char text[256];
    provider_text(out, size, io_read_text(io, path, text, sizeof text) < 0 ? "" : text);
}

static void describe_once(struct io *io, struct layout_host *host)
{
    char text[4096];
    describe_text(io, "/proc/sys/kernel/osrelease", host->kernel, sizeof host->kernel);
    if (io_read_text(io, "/etc/os-release", text, sizeof text) >= 0 ||
        io_read_text(io, "/usr/lib/os-release", text, sizeof text) >= 0)
        value_of(text, "PRETTY_NAME", '=', host->os, sizeof host->os);
    if (io_read_text(io, "/proc/cpuinfo", text, sizeof text) >= 0) {
        value_of(text, "model name", ':', host->cpu_name, sizeof host->cpu_name);
        if (!host->cpu_name[0])
            value_of(text, "Hardware", ':', host->cpu_name, sizeof host->cpu_name); /* 32-bit ARM */
    }
}

static int system_describe(struct provider_context *context, struct layout_host *host)
{
    struct system_state *state = context->state;
    char online[1024];
    if (!state->described)
        describe_once(context->io, &state->host);
    state->described = true;
    describe_text(context->io, "/proc/sys/kernel/hostname", state->host.hostname, sizeof state->host.hostname);
    if (io_read_text(context->io, "/sys/devices/system/cpu/online", online, sizeof online) >= 0)
        state->host.cpu_threads = count_range_list(online);
    *host = state->host;
    return 0;
}

static void system_stop(struct provider_context *context)
{
    struct system_state *state = context->state;
    if (!state)
        return;
    system_cpu_close(&state->cpu, context->io);
    system_flow_close(&state->flow, context->io);
    free(state);
    context->state = NULL;
}

const struct provider provider_system = {.name = "system",
                                         .host = true,
                                         .start = system_start,
                                         .sample = system_sample,
                                         .describe_host = system_describe,
                                         .stop = system_stop};
