/* All file access of the providers, through one small table with a root prefix, so that tests run on directories of real dumps
 * with errors, delays and short reads injected. */
#ifndef GPUTAP_BROKER_IO_H
#define GPUTAP_BROKER_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct io;

/* Operations return >= 0, or -errno. Paths are absolute, without the root prefix. */
struct io_operations {
    int (*open)(struct io *io, const char *path, int flags);
    void (*close)(struct io *io, int fd);
    long (*pread)(struct io *io, int fd, void *out, size_t size, uint64_t offset);
    /* Names of a folder, sorted, without "." and ".."; each is passed to `each`, which returns false to stop. */
    int (*list)(struct io *io, const char *path, bool (*each)(void *context, const char *name), void *context);
    int (*readlink)(struct io *io, const char *path, char *out, size_t size);
    int (*ioctl)(struct io *io, int fd, unsigned long request, void *argument);
    int (*stat_fs)(struct io *io, const char *path, uint64_t *total, uint64_t *free_bytes);
    uint64_t (*mono_ns)(struct io *io);
};

struct io {
    const struct io_operations *operations;
    char root[1024]; /* "" or a folder without final slash */
    void *context;   /* the implementation's own */
};

/* The real thing, on this machine below `root` ("" for none). */
void io_init(struct io *io, const char *root);

/* A file that is kept open and re-read by pread: 6 to 10 times cheaper than opening it anew. Opened at the first read; closed
 * and opened again when the read says that the file behind it is gone (ENODEV, ENOENT, ESTALE). */
struct io_file {
    int fd; /* -1 = not open */
    char path[512];
};
void io_file_init(struct io_file *file, const char *format, ...);
void io_file_close(struct io *io, struct io_file *file);
/* Reads from the start into out (always NUL-terminated, trailing white space and NULs cut). Bytes, or -errno; an empty file
 * is -ENODATA. One line is enough for it: a read that ends in a new line is taken as whole. */
long io_file_read(struct io *io, struct io_file *file, char *out, size_t size);
/* The same, read on to the end of the file: for files of several records, which the kernel may hand out piece by piece. */
long io_file_read_all(struct io *io, struct io_file *file, char *out, size_t size);

/* Bytes as they are, from the start. `whole` says how many a record has, seen from its first `got` bytes, so that a driver that
 * makes the record anew for every read is asked once. Bytes, or -errno; an empty file is -ENODATA. */
long io_file_bytes(struct io *io, struct io_file *file, void *out, size_t size, size_t (*whole)(const void *bytes, size_t got));

/* Whole decimal numbers of a kept file: 0 or -errno; text that is no such number is -EPROTO. A sysfs number may be followed by
 * NULs and white space. */
int io_file_u64(struct io *io, struct io_file *file, uint64_t *out);
int io_file_i64(struct io *io, struct io_file *file, int64_t *out);

/* One-shot reads by path. */
long io_read_text(struct io *io, const char *path, char *out, size_t size);
int io_read_u64(struct io *io, const char *path, int base, uint64_t *out);
/* Asks without opening: to open a device node could wake the device. */
bool io_exists(struct io *io, const char *path);
/* Last part of a link's target ("amdgpu" of .../driver), or -errno. */
int io_link_name(struct io *io, const char *path, char *out, size_t size);

/* The reason for an errno of a sysfs read (enum reason). EPERM and EBUSY are what a suspended or resetting amdgpu answers, so
 * they are errors, not missing rights; only EACCES is. */
unsigned io_reason(int negative_errno);

#endif
