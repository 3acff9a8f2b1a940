#include "bridge/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

FILE *private_file_open(const char *path, const char **why)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        *why = strerror(errno);
        return NULL;
    }
    *why = NULL;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        *why = "it is not a regular file";
    else if (status.st_mode & (S_IROTH | S_IWOTH))
        *why = "others may read or write it (chmod 600 it)";
    FILE *file = *why ? NULL : fdopen(fd, "r");
    if (!file) {
        if (!*why)
            *why = strerror(errno);
        close(fd);
    }
    return file;
}
