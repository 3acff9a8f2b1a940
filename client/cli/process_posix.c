/* Running another program in our place: it keeps the terminal, gets what is sent to us, and its end is ours. */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cli/cli.h"

extern char **environ;

enum { EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127, EXIT_SIGNAL = 128 };

static const int taken[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD};
enum { TAKEN = sizeof taken / sizeof taken[0] };

static volatile sig_atomic_t to_forward, asked_to_end;

/* The terminal sends its interrupt to the command as well as to us: then the kernel is the sender. What somebody sends to us alone
 * is handed on. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    bool of_terminal = (number == SIGINT || number == SIGQUIT) && info->si_code == SI_KERNEL;
    if (number != SIGCHLD && !of_terminal)
        to_forward = asked_to_end = number;
}

bool process_asked_to_end(void) { return asked_to_end != 0; }

/* What was ignored from the start stays so, as under nohup. */
static void take_signals(sigset_t *given_back)
{
    sigemptyset(given_back);
    for (int i = 0; i < TAKEN; i++) {
        struct sigaction before, now;
        memset(&now, 0, sizeof now);
        sigemptyset(&now.sa_mask);
        now.sa_sigaction = on_signal;
        now.sa_flags = SA_SIGINFO;
        (void)sigaction(taken[i], NULL, &before);
        if (before.sa_handler == SIG_IGN && taken[i] != SIGCHLD)
            continue;
        (void)sigaction(taken[i], &now, NULL);
        sigaddset(given_back, taken[i]);
    }
}

static int start(char **argv, const sigset_t *mask, const sigset_t *defaults, pid_t *pid)
{
    posix_spawnattr_t attributes;
    if (posix_spawnattr_init(&attributes) != 0)
        return ENOMEM;
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawnattr_setsigmask(&attributes, mask);
    (void)posix_spawnattr_setsigdefault(&attributes, defaults);
    int error = posix_spawnp(pid, argv[0], NULL, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    return error;
}

static int wait_for(pid_t pid, const sigset_t *unblocked, void (*meanwhile)(void *context), void *context)
{
    for (;;) {
        int status;
        pid_t got = waitpid(pid, &status, WNOHANG);
        if (got == pid)
            return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
        if (got < 0 && errno != EINTR)
            return EXIT_CANNOT_RUN;
        if (to_forward) {
            (void)kill(pid, to_forward);
            to_forward = 0;
        }
        struct timespec slice = {.tv_nsec = 500000000};
        (void)pselect(0, NULL, NULL, NULL, &slice, unblocked);
        meanwhile(context);
    }
}

int process_run(char **argv, void (*meanwhile)(void *context), void *context)
{
    sigset_t held, before, given_back;
    pid_t pid = 0;
    sigemptyset(&held);
    sigaddset(&held, SIGCHLD);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGHUP);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGQUIT);
    (void)sigprocmask(SIG_BLOCK, &held, &before);
    take_signals(&given_back);
    int error = start(argv, &before, &given_back, &pid), code;
    if (error == 0) {
        sigset_t unblocked = before;
        sigdelset(&unblocked, SIGCHLD);
        code = wait_for(pid, &unblocked, meanwhile, context);
    } else {
        fprintf(stderr, "gputap: %s: %s\n", argv[0], strerror(error));
        code = error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
    }
    (void)signal(SIGPIPE, SIG_IGN); /* a report that nobody reads does not change the exit code */
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return code;
}
