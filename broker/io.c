#include "broker/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "shm/metrics.h"
#include "shm/platform.h"

enum { REAL_PATH_MAX = 2048, NUMBER_TEXT_MAX = 64 };

/* --- the real machine ------------------------------------------------------------------------------------------------- */

static int real_path(const struct io *io, const char *path, char out[REAL_PATH_MAX])
{
    int length = snprintf(out, REAL_PATH_MAX, "%s%s", io->root, path);
    return length < 0 || length >= REAL_PATH_MAX ? -ENAMETOOLONG : 0;
}

/* O_NONBLOCK changes nothing for files of /sys and /proc, and keeps the open of a FIFO in a test root from waiting. */
static int real_open(struct io *io, const char *path, int flags)
{
    char full[REAL_PATH_MAX];
    int error = real_path(io, path, full);
    if (error)
        return error;
    int fd = open(full, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd < 0 ? -errno : fd;
}

static void real_close(struct io *io, int fd)
{
    (void)io;
    (void)close(fd);
}

static long real_pread(struct io *io, int fd, void *out, size_t size, uint64_t offset)
{
    (void)io;
    ssize_t got;
    do
        got = pread(fd, out, size, (off_t)offset);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Doubles the array when it is full; false without memory. */
static bool keep_name(char ***names, size_t *count, size_t *capacity, const char *name)
{
    if (*count == *capacity) {
        size_t larger = *capacity ? *capacity * 2 : 64;
        char **grown = realloc(*names, larger * sizeof **names);
        if (!grown)
            return false;
        *names = grown;
        *capacity = larger;
    }
    (*names)[*count] = strdup(name);
    return (*names)[*count] && ++*count;
}

static int real_list(struct io *io, const char *path, bool (*each)(void *context, const char *name), void *context)
{
    char full[REAL_PATH_MAX];
    int error = real_path(io, path, full);
    if (error)
        return error;
    DIR *folder = opendir(full);
    if (!folder)
        return -errno;
    char **names = NULL;
    size_t count = 0, capacity = 0;
    for (struct dirent *entry; !error && (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && !keep_name(&names, &count, &capacity, entry->d_name))
            error = -ENOMEM;
    (void)closedir(folder);
    if (count)
        qsort(names, count, sizeof *names, compare_names);
    bool more = !error;
    for (size_t i = 0; i < count; i++) {
        more = more && each(context, names[i]);
        free(names[i]);
    }
    free(names);
    return error;
}

static int real_readlink(struct io *io, const char *path, char *out, size_t size)
{
    char full[REAL_PATH_MAX];
    int error = real_path(io, path, full);
    if (error || size == 0)
        return error ? error : -EINVAL;
    ssize_t length = readlink(full, out, size - 1);
    if (length < 0)
        return -errno;
    out[length] = '\0';
    return (int)length;
}

/* Below a root there are only files: no request may reach a device of this machine. */
static int real_ioctl(struct io *io, int fd, unsigned long request, void *argument)
{
    if (io->root[0])
        return -ENOTTY;
    int result = ioctl(fd, request, argument);
    return result < 0 ? -errno : result;
}

static int real_stat_fs(struct io *io, const char *path, uint64_t *total, uint64_t *free_bytes)
{
    char full[REAL_PATH_MAX];
    int error = real_path(io, path, full);
    if (error)
        return error;
    struct statvfs facts;
    if (statvfs(full, &facts) < 0)
        return -errno;
    *total = (uint64_t)facts.f_blocks * facts.f_frsize;
    *free_bytes = (uint64_t)facts.f_bfree * facts.f_frsize;
    return 0;
}

static uint64_t real_mono_ns(struct io *io)
{
    (void)io;
    return clock_mono_ns();
}

static const struct io_operations real_operations = {
    .open = real_open,
    .close = real_close,
    .pread = real_pread,
    .list = real_list,
    .readlink = real_readlink,
    .ioctl = real_ioctl,
    .stat_fs = real_stat_fs,
    .mono_ns = real_mono_ns,
};

void io_init(struct io *io, const char *root)
{
    memset(io, 0, sizeof *io);
    io->operations = &real_operations;
    (void)snprintf(io->root, sizeof io->root, "%s", root ? root : "");
    for (size_t length = strlen(io->root); length > 0 && io->root[length - 1] == '/'; length--)
        io->root[length - 1] = '\0';
}

/* --- kept files ------------------------------------------------------------------------------------------------------- */

void io_file_init(struct io_file *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(file->path, sizeof file->path, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof file->path)
        file->path[0] = '\0'; /* never another file than the one meant */
    file->fd = -1;
}

void io_file_close(struct io *io, struct io_file *file)
{
    if (file->fd >= 0)
        io->operations->close(io, file->fd);
    file->fd = -1;
}

static int file_open(struct io *io, struct io_file *file)
{
    if (file->fd >= 0)
        return 0;
    if (!file->path[0])
        return -ENOENT;
    int fd = io->operations->open(io, file->path, O_RDONLY);
    if (fd < 0)
        return fd;
    file->fd = fd;
    return 0;
}

/* Is what was read so far all there is? */
typedef bool (*io_enough)(const char *bytes, size_t length, const void *context);

static bool line_is_enough(const char *bytes, size_t length, const void *context)
{
    (void)context;
    return bytes[length - 1] == '\n' || bytes[length - 1] == '\0';
}

static long read_pieces(struct io *io, const struct io_file *file, char *out, size_t size, io_enough enough, const void *context)
{
    size_t length = 0;
    while (length < size) {
        long got = io->operations->pread(io, file->fd, out + length, size - length, length);
        if (got < 0)
            return got;
        if (got == 0)
            break;
        length += (size_t)got;
        if (enough && enough(out, length, context))
            break;
    }
    return (long)length;
}

/* Opens the file if it is not, reads, and opens it anew where the one behind the descriptor is gone. */
static long read_kept(struct io *io, struct io_file *file, char *out, size_t size, io_enough enough, const void *context)
{
    bool kept = file->fd >= 0;
    long got = file_open(io, file);
    if (got < 0)
        return got;
    got = read_pieces(io, file, out, size, enough, context);
    if (got == -ENODEV || got == -ENOENT || got == -ESTALE) {
        io_file_close(io, file);
        /* A file that was opened just now is not opened twice. */
        if (kept && file_open(io, file) == 0)
            got = read_pieces(io, file, out, size, enough, context);
    }
    return got;
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static long file_text(struct io *io, struct io_file *file, char *out, size_t size, bool to_end)
{
    if (size == 0)
        return -EINVAL;
    out[0] = '\0';
    long got = read_kept(io, file, out, size - 1, to_end ? NULL : line_is_enough, NULL);
    if (got < 0) {
        out[0] = '\0';
        return got;
    }
    out[got] = '\0';
    size_t length = strlen(out);
    while (length > 0 && is_space(out[length - 1]))
        out[--length] = '\0';
    return length ? (long)length : -ENODATA;
}

long io_file_read(struct io *io, struct io_file *file, char *out, size_t size) { return file_text(io, file, out, size, false); }

long io_file_read_all(struct io *io, struct io_file *file, char *out, size_t size) { return file_text(io, file, out, size, true); }

struct record_size {
    size_t (*whole)(const void *bytes, size_t got);
};

static bool record_is_enough(const char *bytes, size_t length, const void *context)
{
    return length >= ((const struct record_size *)context)->whole(bytes, length);
}

long io_file_bytes(struct io *io, struct io_file *file, void *out, size_t size, size_t (*whole)(const void *bytes, size_t got))
{
    const struct record_size context = {whole};
    long got = read_kept(io, file, out, size, record_is_enough, &context);
    return got == 0 ? -ENODATA : got;
}

/* --- numbers ---------------------------------------------------------------------------------------------------------- */

static int parse_u64(const char *text, int base, uint64_t *out)
{
    while (is_space(*text))
        text++;
    if (!*text)
        return -ENODATA;
    if (*text == '-' || *text == '+')
        return -EPROTO;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, base);
    if (end == text || *end || errno)
        return -EPROTO;
    *out = value;
    return 0;
}

static int parse_i64(const char *text, int64_t *out)
{
    while (is_space(*text))
        text++;
    if (!*text)
        return -ENODATA;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno)
        return -EPROTO;
    *out = value;
    return 0;
}

int io_file_u64(struct io *io, struct io_file *file, uint64_t *out)
{
    char text[NUMBER_TEXT_MAX];
    long got = io_file_read(io, file, text, sizeof text);
    return got < 0 ? (int)got : parse_u64(text, 10, out);
}

int io_file_i64(struct io *io, struct io_file *file, int64_t *out)
{
    char text[NUMBER_TEXT_MAX];
    long got = io_file_read(io, file, text, sizeof text);
    return got < 0 ? (int)got : parse_i64(text, out);
}

long io_read_text(struct io *io, const char *path, char *out, size_t size)
{
    struct io_file file;
    io_file_init(&file, "%s", path);
    long got = io_file_read_all(io, &file, out, size);
    io_file_close(io, &file);
    return got;
}

int io_read_u64(struct io *io, const char *path, int base, uint64_t *out)
{
    char text[NUMBER_TEXT_MAX];
    long got = io_read_text(io, path, text, sizeof text);
    return got < 0 ? (int)got : parse_u64(text, base, out);
}

/* --- names ------------------------------------------------------------------------------------------------------------ */

bool io_exists(struct io *io, const char *path)
{
    char target[REAL_PATH_MAX];
    int got = io->operations->readlink(io, path, target, sizeof target);
    return got >= 0 || got == -EINVAL; /* EINVAL: there is something, and it is no link */
}

int io_link_name(struct io *io, const char *path, char *out, size_t size)
{
    char target[REAL_PATH_MAX];
    int got = io->operations->readlink(io, path, target, sizeof target);
    if (got < 0)
        return got;
    const char *slash = strrchr(target, '/');
    int length = snprintf(out, size, "%s", slash ? slash + 1 : target);
    return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : length;
}

unsigned io_reason(int negative_errno)
{
    switch (-negative_errno) {
    case EACCES: return REASON_NO_PERMISSION;
    case ENOENT:
    case ENOTDIR:
    case ENODATA:
    case EINVAL:
    case EOPNOTSUPP:
    case ENOSYS:
    case ENOTTY:
    case ENXIO: return REASON_NOT_SUPPORTED;
    default: return REASON_ERROR;
    }
}
