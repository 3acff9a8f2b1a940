#include "broker/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SPAWN_MAX_ARGUMENTS = 3 * OPTIONS_MAX_LIST + 16 };

struct arguments {
    const char *items[SPAWN_MAX_ARGUMENTS];
    int count;
};

static void add(struct arguments *arguments, const char *name, const char *value)
{
    if (arguments->count + 3 > SPAWN_MAX_ARGUMENTS)
        return;
    arguments->items[arguments->count++] = name;
    if (value)
        arguments->items[arguments->count++] = value;
    arguments->items[arguments->count] = NULL;
}

/* Two descriptors to the places where the worker expects them; neither may overwrite the other on the way. */
static bool place_descriptors(int socket, int page)
{
    int high_socket = fcntl(socket, F_DUPFD, WORKER_PROGRESS + 1), high_page = fcntl(page, F_DUPFD, WORKER_PROGRESS + 1);
    bool placed =
        high_socket >= 0 && high_page >= 0 && dup2(high_socket, WORKER_SOCKET) >= 0 && dup2(high_page, WORKER_PROGRESS) >= 0;
    close(high_socket);
    close(high_page);
    return placed;
}

static void child_run(const struct arguments *arguments, int socket, int page, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    /* What ends a whole group, such as Ctrl-C or a closed terminal, is the broker's to act on; the worker ends when its socket
     * does. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    if (!place_descriptors(socket, page))
        _exit(1);
    execv("/proc/self/exe", (char *const *)(uintptr_t)arguments->items);
    _exit(127);
}

static struct arguments worker_arguments(const struct options *options, const char *provider, const char *const *exclude,
                                         int exclude_count, const char *only)
{
    struct arguments arguments = {.count = 0};
    add(&arguments, "gputapd", NULL);
    add(&arguments, "--worker", provider);
    if (options->root[0])
        add(&arguments, "--root", options->root);
    for (int i = 0; i < options->simulate_count; i++)
        add(&arguments, "--simulate", options->simulate[i]);
    add(&arguments, "--sim-load", options->sim_load);
    for (int i = 0; i < exclude_count; i++)
        add(&arguments, "--exclude", exclude[i]);
    if (only && only[0])
        add(&arguments, "--only", only);
    return arguments;
}

/* A page of its own for each worker; the broker only reads it. */
static int progress_page(const struct worker_progress **out)
{
    int page = memfd_create("gputap-progress", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (page < 0)
        return -errno;
    void *memory = MAP_FAILED;
    if (ftruncate(page, sizeof **out) == 0 && fcntl(page, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
        memory = mmap(NULL, sizeof **out, PROT_READ, MAP_SHARED, page, 0);
    if (memory == MAP_FAILED) {
        int code = errno;
        close(page);
        return -code;
    }
    *out = memory;
    return page;
}

int spawn_worker(const struct options *options, const char *provider, const char *const *exclude, int exclude_count,
                 const char *only, pid_t *pid, const struct worker_progress **progress)
{
    struct arguments arguments = worker_arguments(options, provider, exclude, exclude_count, only);
    int pair[2];
    int page = progress_page(progress);
    if (page < 0)
        return page;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        int code = errno;
        close(page);
        spawn_release(*progress);
        return -code;
    }
    pid_t parent = getpid();
    pid_t child = fork();
    int code = errno;
    if (child == 0)
        child_run(&arguments, pair[1], page, parent);
    close(pair[1]);
    close(page);
    if (child < 0) {
        close(pair[0]);
        spawn_release(*progress);
        return -code;
    }
    if (fcntl(pair[0], F_SETFL, O_NONBLOCK) != 0)
        abort();
    *pid = child;
    return pair[0];
}

void spawn_release(const struct worker_progress *progress)
{
    if (progress && munmap((void *)(uintptr_t)progress, sizeof *progress) != 0)
        abort();
}

bool spawn_runnable(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0)
        return false;
    text[got] = '\0';
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' && end[2] == 'R';
}
