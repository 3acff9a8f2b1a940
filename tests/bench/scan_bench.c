/* What the scan of processes costs a tick, against looking at every descriptor of every process each time as other monitors do:
 * 300 processes with 20 descriptors each, 8 of them with a GPU, at ten ticks a second for ten seconds of the scan's own clock. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/providers/process_scan.h"
#include "shm/platform.h"

enum { PROCESSES = 300, DESCRIPTORS = 20, USERS = 8, TICKS = 100, SWEEPS = 5 };
#define TICK_NS UINT64_C(100000000)

static char root[64];
static uint64_t fake_ns = UINT64_C(1000000000000), real_start_ns;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void make_folder(const char *path)
{
    if (mkdir(path, 0700) != 0)
        fail(path);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        fail(path);
}

static void make_process(int pid, bool gpu)
{
    char path[160], text[256];
    snprintf(path, sizeof path, "%s/proc/%d", root, pid);
    make_folder(path);
    snprintf(path, sizeof path, "%s/proc/%d/fd", root, pid);
    make_folder(path);
    snprintf(path, sizeof path, "%s/proc/%d/fdinfo", root, pid);
    make_folder(path);
    snprintf(path, sizeof path, "%s/proc/%d/stat", root, pid);
    snprintf(text, sizeof text, "%d (p) S 1 1 1 0 -1 4194304 1 1 1 1 1 1 1 1 20 0 1 0 77 1 1\n", pid);
    write_file(path, text);
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        bool node = gpu && fd == 7;
        snprintf(path, sizeof path, "%s/proc/%d/fd/%d", root, pid, fd);
        if (symlink(node ? "/dev/dri/renderD128" : "/dev/null", path) != 0)
            fail(path);
        snprintf(path, sizeof path, "%s/proc/%d/fdinfo/%d", root, pid, fd);
        snprintf(
            text, sizeof text,
            "drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t%d\ndrm-memory-vram:\t9 KiB\ndrm-engine-gfx:\t%d ns\n",
            pid, pid);
        write_file(path, node ? text : "pos:\t0\nflags:\t02\nmnt_id:\t5\n");
    }
}

static void remove_root(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    if (system(command) != 0)
        fail(root);
}

/* The scan's clock moves by whole ticks; within a tick it is the real one, so that its budget holds. */
static uint64_t scan_clock(struct io *io)
{
    (void)io;
    return fake_ns + (clock_mono_ns() - real_start_ns);
}

/* --- the way of others ------------------------------------------------------------------------------------------------------ */

struct sweep {
    struct io *io;
    char folder[64];
    int clients;
};

static bool sweep_fd(void *context, const char *name)
{
    struct sweep *sweep = context;
    char path[96], target[64], text[4096];
    struct fdinfo info;
    snprintf(path, sizeof path, "/proc/%.16s/fd/%.16s", sweep->folder, name);
    (void)sweep->io->operations->readlink(sweep->io, path, target, sizeof target);
    snprintf(path, sizeof path, "/proc/%.16s/fdinfo/%.16s", sweep->folder, name);
    sweep->clients += io_read_text(sweep->io, path, text, sizeof text) > 0 && fdinfo_parse(text, &info);
    return true;
}

static bool sweep_process(void *context, const char *name)
{
    struct sweep *sweep = context;
    char path[64];
    snprintf(sweep->folder, sizeof sweep->folder, "%s", name);
    snprintf(path, sizeof path, "/proc/%.16s/fd", name);
    (void)sweep->io->operations->list(sweep->io, path, sweep_fd, sweep);
    return true;
}

int main(void)
{
    static struct io io, paced;
    struct io_operations operations;
    struct process_scan scan;
    const struct scan_device device = {.id = "0000:03:00.0", .minors = {128, 0}};
    snprintf(root, sizeof root, "/tmp/gputap-scan-XXXXXX");
    if (!mkdtemp(root))
        fail(root);
    char path[96];
    snprintf(path, sizeof path, "%s/proc", root);
    make_folder(path);
    for (int i = 0; i < PROCESSES; i++)
        make_process(1000 + i, i % (PROCESSES / USERS) == 0);
    io_init(&io, root);
    paced = io;
    operations = *io.operations;
    operations.mono_ns = scan_clock;
    paced.operations = &operations;

    uint64_t start = clock_mono_ns();
    struct sweep sweep = {.io = &io};
    for (int i = 0; i < SWEEPS; i++)
        (void)io.operations->list(&io, "/proc", sweep_process, &sweep);
    double swept = (double)(clock_mono_ns() - start) / SWEEPS;

    scan_init(&scan, &paced);
    scan_set_devices(&scan, &device, 1);
    for (int i = 0; i < 40; i++, fake_ns += TICK_NS) { /* the first look at everything */
        real_start_ns = clock_mono_ns();
        scan_run(&scan, fake_ns, UINT64_C(3000000));
    }
    uint64_t spent = 0, longest = 0;
    for (int i = 0; i < TICKS; i++, fake_ns += TICK_NS) {
        real_start_ns = clock_mono_ns();
        scan_run(&scan, fake_ns, UINT64_C(3000000));
        uint64_t took = clock_mono_ns() - real_start_ns;
        spent += took;
        longest = took > longest ? took : longest;
    }
    double tick = (double)spent / TICKS;
    printf("process scan a tick / sweep of all %d descriptors: 1/%.0f  (%.0f us / %.0f us; longest tick %.1f ms; %d clients)  "
           "target <= 1/50\n",
           PROCESSES * DESCRIPTORS, swept / tick, tick / 1e3, swept / 1e3, (double)longest / 1e6, scan.client_count);
    scan_free(&scan);
    remove_root();
    return 0;
}
