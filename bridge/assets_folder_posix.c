#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bridge/assets.h"

#define LARGEST (8 << 20)

bool assets_folder_ok(const char *folder, const char **why)
{
    struct stat status;
    *why = "it is not a folder";
    if (stat(folder, &status) == 0)
        return S_ISDIR(status.st_mode);
    *why = strerror(errno);
    return false;
}

/* Where a path really leads, if that is inside the folder. */
static char *resolve(const char *folder, const char *path)
{
    char *root = realpath(folder, NULL), *real = NULL, *joined = NULL;
    if (root && (joined = malloc(strlen(root) + strlen(path) + 2))) {
        sprintf(joined, "%s/%s", root, path);
        real = realpath(joined, NULL);
        if (real && (strncmp(real, root, strlen(root)) != 0 || real[strlen(root)] != '/')) {
            free(real);
            real = NULL;
        }
    }
    free(root);
    free(joined);
    return real;
}

static bool read_all(int fd, struct asset *asset)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > LARGEST)
        return false;
    unsigned char *bytes = malloc((size_t)status.st_size + 1);
    size_t length = 0;
    while (bytes && length < (size_t)status.st_size) {
        ssize_t got = read(fd, bytes + length, (size_t)status.st_size - length);
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    asset->bytes = bytes;
    asset->length = length;
    return bytes != NULL;
}

bool assets_folder_read(const char *folder, const char *path, struct asset *asset)
{
    *asset = (struct asset){.path = path};
    char *real = resolve(folder, path);
    int fd = real ? open(real, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    free(real);
    if (fd < 0)
        return false;
    bool read_ok = read_all(fd, asset);
    close(fd);
    if (read_ok)
        assets_hash(asset->bytes, asset->length, asset->etag);
    return read_ok;
}
