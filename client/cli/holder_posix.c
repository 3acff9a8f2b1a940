#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#include "client/cli/holder.h"
#include "shm/text.h"

enum { SLICE_MS = 200, ANSWER_SECONDS = 5 };

static volatile sig_atomic_t quit_asked;

static void on_signal(int number) { quit_asked = number; }

static bool fail(const char *what)
{
    fprintf(stderr, "gputap: %s: %s\n", what, strerror(errno));
    return false;
}

/* --- the place ---------------------------------------------------------------------------------------------------------------- */

static bool make_folder(struct holder_place *place)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    const char *bases[] = {runtime && runtime[0] == '/' ? runtime : "", "/tmp"};
    for (int i = 0; i < 2; i++) {
        if (!bases[i][0] || strlen(bases[i]) > sizeof place->folder - 32)
            continue;
        text_format(place->folder, sizeof place->folder, "%s/gputap-annotate-XXXXXX", bases[i]);
        if (mkdtemp(place->folder))
            return true;
    }
    place->folder[0] = '\0';
    return fail("no folder can be made for the session");
}

static bool address_of(const char *path, struct sockaddr_un *address)
{
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof address->sun_path) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(address->sun_path, path, strlen(path) + 1);
    return true;
}

static bool make_socket(struct holder_place *place)
{
    struct sockaddr_un address;
    text_format(place->path, sizeof place->path, "%s/socket", place->folder);
    place->socket = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    return place->socket >= 0 && address_of(place->path, &address) &&
           bind(place->socket, (struct sockaddr *)&address, sizeof address) == 0 && listen(place->socket, 16) == 0;
}

static int open_process(long pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
#else
    (void)pid;
    errno = ENOSYS;
    return -1;
#endif
}

bool holder_prepare(struct holder_place *place, long pid)
{
    *place = (struct holder_place){.socket = -1, .shell = -1, .pid = pid > 0 ? pid : (long)getppid()};
    place->shell = open_process(place->pid);
    if (place->pid <= 1 || (place->shell < 0 && kill((pid_t)place->pid, 0) != 0)) {
        fprintf(stderr, "gputap: there is no process %ld to hold the session for\n", place->pid);
        return false;
    }
    if (make_folder(place) && make_socket(place))
        return true;
    if (place->folder[0])
        (void)fail(place->path);
    holder_remove(place);
    return false;
}

void holder_remove(struct holder_place *place)
{
    if (place->socket >= 0)
        close(place->socket);
    if (place->shell >= 0)
        close(place->shell);
    if (place->path[0])
        (void)unlink(place->path);
    if (place->folder[0])
        (void)rmdir(place->folder);
    place->socket = place->shell = -1;
}

/* --- its life ------------------------------------------------------------------------------------------------------------------
 */

/* Whoever waits for the end of a pipe that the shell has open must not wait for us. */
static void close_all_but(const struct holder_place *place)
{
    long most = sysconf(_SC_OPEN_MAX);
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= 2; fd++)
        if (null >= 0)
            (void)dup2(null, fd);
    for (int fd = 3; fd < (most > 0 && most < 4096 ? most : 4096); fd++)
        if (fd != place->socket && fd != place->shell)
            close(fd);
}

bool holder_detach(struct holder_place *place, bool *failed)
{
    pid_t pid = fork();
    *failed = pid < 0 && !fail("fork");
    if (pid != 0)
        return false;
    (void)setsid();
    (void)chdir("/");
    close_all_but(place);
    (void)signal(SIGTERM, on_signal);
    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    return true;
}

static bool shell_lives(const struct holder_place *place, const struct pollfd *shell)
{
    return place->shell >= 0 ? !(shell->revents & POLLIN) : kill((pid_t)place->pid, 0) == 0 || errno == EPERM;
}

static bool ours(int fd)
{
#ifdef SO_PEERCRED
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
#else
    (void)fd; /* the folder lets nobody else in */
    return true;
#endif
}

static void bound_waiting(int fd)
{
    struct timeval limit = {.tv_sec = ANSWER_SECONDS};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

/* True when that was the last request. */
static bool serve_one(int listener, gputap *tap)
{
    static struct holder_reply reply;
    struct holder_request request;
    bool last = false;
    int fd = accept(listener, NULL, NULL);
    if (fd < 0)
        return false;
    bound_waiting(fd);
    if (ours(fd) && recv(fd, &request, sizeof request, 0) == (ssize_t)sizeof request && request.magic == HOLDER_MAGIC) {
        holder_answer(tap, &request, &reply);
        last = request.type == HOLDER_CLOSE;
        (void)send(fd, &reply, sizeof reply, MSG_NOSIGNAL);
    }
    close(fd);
    return last;
}

void holder_serve(struct holder_place *place, gputap *tap)
{
    bool last = false;
    while (!last && !quit_asked) {
        struct pollfd entries[2] = {{.fd = place->socket, .events = POLLIN}, {.fd = place->shell, .events = POLLIN}};
        (void)poll(entries, 2, SLICE_MS);
        if (!shell_lives(place, &entries[1]))
            break;
        if (entries[0].revents & POLLIN)
            last = serve_one(place->socket, tap);
        else
            (void)gputap_poll(tap);
    }
    gputap_close(tap);
    holder_remove(place);
}

/* --- the other end --------------------------------------------------------------------------------------------------------------
 */

bool holder_ask(const char *path, const struct holder_request *request, struct holder_reply *reply)
{
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (fd < 0 || !address_of(path, &address) || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        (void)fail("the session of this shell is gone (" HOLDER_VARIABLE ")");
        if (fd >= 0)
            close(fd);
        return false;
    }
    bound_waiting(fd);
    ssize_t got = -1;
    if (send(fd, request, sizeof *request, MSG_NOSIGNAL) == (ssize_t)sizeof *request)
        got = recv(fd, reply, sizeof *reply, 0);
    close(fd);
    if (got == (ssize_t)sizeof *reply && reply->magic == HOLDER_MAGIC)
        return true;
    fprintf(stderr, "gputap: the session of this shell does not answer, or is another version's\n");
    return false;
}
