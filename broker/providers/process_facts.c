#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/providers/process_scan.h"
#include "shm/text.h"

enum { KERNEL_THREAD = 0x00200000 /* PF_KTHREAD of include/linux/sched.h */, TICKS_PER_SECOND = 100 /* USER_HZ everywhere */ };

/* Fields after the name, which stands in parentheses and may hold any byte (proc_pid_stat(5)). */
static const char *after_name(const char *stat)
{
    const char *close = strrchr(stat, ')');
    return close ? close + 1 : NULL;
}

static int read_stat(struct io *io, uint32_t pid, char *text, size_t size)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%u/stat", pid);
    long got = io_read_text(io, path, text, size);
    return got < 0 ? (int)got : 0;
}

int process_birth(struct io *io, uint32_t pid, struct process_birth *out)
{
    char text[1024];
    unsigned long long flags, start;
    unsigned parent;
    int error = read_stat(io, pid, text, sizeof text);
    const char *fields = error ? NULL : after_name(text);
    if (error)
        return error;
    /* state ppid pgrp session tty tpgid flags, then twelve more, then the start */
    if (!fields || sscanf(fields, " %*c %u %*d %*d %*d %*d %llu %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &parent,
                          &flags, &start) != 3)
        return -EPROTO;
    *out = (struct process_birth){.ticks = start, .parent = parent, .kernel_thread = (flags & KERNEL_THREAD) != 0};
    return 0;
}

uint64_t process_boot_ms(struct io *io)
{
    char *text = malloc(65536); /* a line a processor and all interrupts come before it */
    uint64_t seconds = 0;
    if (!text)
        abort();
    if (io_read_text(io, "/proc/stat", text, 65536) > 0) {
        const char *line = strstr(text, "\nbtime ");
        seconds = line ? strtoull(line + 7, NULL, 10) : 0;
    }
    free(text);
    return seconds * 1000;
}

static bool is_id(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isxdigit((unsigned char)text[i]))
            return false;
    return length == 64;
}

/* Docker, podman, containerd and Kubernetes end the group's path in 64 hexadecimal digits, with "docker-", "libpod-",
 * "cri-containerd-" before and ".scope" after them where systemd made it; LXC has "/lxc/<name>" or "/lxc.payload.<name>". */
void process_container(const char *cgroup, char *out, size_t size)
{
    out[0] = '\0';
    for (const char *at = cgroup; *at; at++) {
        size_t length = strspn(at, "0123456789abcdef");
        if (is_id(at, length) && (at == cgroup || !isalnum((unsigned char)at[-1]))) {
            text_copy(out, size, at, 12);
            return;
        }
        at += length ? length - 1 : 0;
    }
    static const char *const lxc[] = {"/lxc.payload.", "/lxc/"};
    for (size_t i = 0; i < sizeof lxc / sizeof lxc[0] && !out[0]; i++) {
        const char *name = strstr(cgroup, lxc[i]);
        if (name) {
            name += strlen(lxc[i]);
            text_copy(out, size, name, strcspn(name, "/\n"));
        }
    }
}

static void read_user(struct io *io, struct scan_process *process)
{
    char path[64], text[4096];
    process->uid = UINT32_MAX;
    (void)snprintf(path, sizeof path, "/proc/%u/status", process->pid);
    if (io_read_text(io, path, text, sizeof text) < 0)
        return;
    const char *line = strstr(text, "\nUid:");
    if (line)
        process->uid = (uint32_t)strtoul(line + 5, NULL, 10);
}

bool process_facts(struct io *io, uint64_t boot_ms, struct scan_process *process)
{
    char path[64], text[4096];
    struct process_birth birth;
    if (process_birth(io, process->pid, &birth) != 0)
        return false;
    process->parent = birth.parent;
    process->start_ticks = birth.ticks;
    process->start_ms = boot_ms ? boot_ms + birth.ticks * (1000 / TICKS_PER_SECOND) : 0;
    (void)snprintf(path, sizeof path, "/proc/%u/comm", process->pid);
    process->comm[0] = '\0';
    if (io_read_text(io, path, text, sizeof text) > 0)
        text_copy(process->comm, sizeof process->comm, text, strlen(text));
    read_user(io, process);
    (void)snprintf(path, sizeof path, "/proc/%u/cgroup", process->pid);
    process->container[0] = '\0';
    if (io_read_text(io, path, text, sizeof text) > 0)
        process_container(text, process->container, sizeof process->container);
    process->known = true;
    return true;
}
