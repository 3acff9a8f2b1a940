#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "drm_shim.h"

struct shim shim = {.log = -1};
static char paths[SHIM_FDS][SHIM_PATH];

/* --- what is plugged in ----------------------------------------------------------------------------------------------------- */

static bool part_is(const char *part, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(part, name, length) == 0;
}

static bool owns_part(const struct shim_gpu *gpu, const char *part, size_t length)
{
    char names[4][32];
    (void)snprintf(names[0], sizeof names[0], "renderD%d", gpu->render);
    (void)snprintf(names[1], sizeof names[1], "card%d", gpu->card);
    (void)snprintf(names[2], sizeof names[2], "226:%d", gpu->render);
    (void)snprintf(names[3], sizeof names[3], "226:%d", gpu->card);
    for (int i = 0; i < 4; i++)
        if (part_is(part, length, names[i]))
            return true;
    return part_is(part, length, gpu->folder);
}

const struct shim_gpu *shim_gpu_of(const char *path)
{
    for (const char *part = path; *part;) {
        size_t length = strcspn(part, "/");
        for (int i = 0; length > 0 && i < shim.gpu_count; i++)
            if (owns_part(&shim.gpus[i], part, length))
                return &shim.gpus[i];
        part += length + (part[length] == '/');
    }
    return NULL;
}

bool shim_away(const struct shim_gpu *gpu) { return gpu && shim.control && shim.control[gpu - shim.gpus] == '0'; }

static void plug(int signal_number)
{
    (void)signal_number;
    for (int i = 0; i < shim.gpu_count; i++)
        if (shim.gpus[i].hotplug && shim.control)
            shim.control[i] = shim.control[i] == '0' ? '1' : '0';
}

/* --- faults, log, descriptors ----------------------------------------------------------------------------------------------- */

int shim_fault_of(enum shim_kind kind, const char *path, const char *request)
{
    int error = 0;
    for (int i = 0; i < shim.fault_count; i++) {
        struct shim_fault *fault = &shim.faults[i];
        if (fault->kind != kind || !strstr(path, fault->part) || (fault->request[0] && strcmp(fault->request, request) != 0))
            continue;
        fault->count++;
        if (fault->count < fault->from || (fault->to && fault->count > fault->to))
            continue;
        struct timespec wait = {fault->delay_ms / 1000, fault->delay_ms % 1000 * 1000000};
        while (fault->delay_ms && nanosleep(&wait, &wait) != 0)
            continue;
        error = fault->error ? fault->error : error;
    }
    return error;
}

void shim_log(const char *what, const char *path, const char *request)
{
    char out[SHIM_PATH + 64];
    if (shim.log < 0)
        return;
    int length = snprintf(out, sizeof out, "%ld %s %s%s%s\n", (long)getpid(), what, path, request[0] ? " " : "", request);
    if (length > 0 && (size_t)length < sizeof out)
        (void)!syscall(SYS_write, shim.log, out, (size_t)length);
}

const char *shim_path_of(int fd) { return shim.ready && fd >= 0 && fd < SHIM_FDS ? paths[fd] : ""; }

void shim_remember(int fd, const char *path)
{
    if (fd >= 0 && fd < SHIM_FDS)
        (void)snprintf(paths[fd], sizeof paths[fd], "%s", path);
}

__attribute__((constructor)) static void begin(void)
{
    const char *description = getenv("GPUTAP_DRM_SHIM");
    if (!description)
        return;
    shim_read_description(description);
    for (int i = 0; i < shim.gpu_count; i++)
        if (shim.gpus[i].hotplug) {
            struct sigaction action = {.sa_handler = plug, .sa_flags = SA_RESTART};
            (void)sigaction(SIGUSR1, &action, NULL);
        }
    shim.ready = true;
}
