#include "broker/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/worker_protocol.h"

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

static void child_run(const struct arguments *arguments, int socket, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    /* A terminal's Ctrl-C is the broker's to act on; the worker ends when its socket does. */
    signal(SIGINT, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    if (socket == WORKER_SOCKET)
        fcntl(socket, F_SETFD, 0);
    else if (dup2(socket, WORKER_SOCKET) < 0)
        _exit(1);
    execv("/proc/self/exe", (char *const *)(uintptr_t)arguments->items);
    _exit(127);
}

int spawn_worker(const struct options *options, const char *provider, const char *const *exclude, int exclude_count,
                 const char *only, pid_t *pid)
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

    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return -errno;
    pid_t parent = getpid();
    pid_t child = fork();
    if (child < 0) {
        int code = errno;
        close(pair[0]);
        close(pair[1]);
        return -code;
    }
    if (child == 0)
        child_run(&arguments, pair[1], parent);
    close(pair[1]);
    if (fcntl(pair[0], F_SETFL, O_NONBLOCK) != 0)
        abort();
    *pid = child;
    return pair[0];
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
