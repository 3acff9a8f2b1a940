#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "shm/platform.h"
#include "shm/text.h"

#define TMPFS_MAGIC_NUMBER 0x01021994

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

const char *place_default_instance(void)
{
    const char *instance = environment("GPUTAP_INSTANCE");
    return instance ? instance : "default";
}

static bool is_tmpfs(const char *path)
{
    struct statfs info;
    return statfs(path, &info) == 0 && (unsigned long)info.f_type == TMPFS_MAGIC_NUMBER;
}

static void user_base(char *out, size_t size)
{
    const char *runtime = environment("XDG_RUNTIME_DIR");
    if (runtime && runtime[0] == '/')
        snprintf(out, size, "%s/gputap", runtime);
    else
        snprintf(out, size, "/dev/shm/gputap-%lu", (unsigned long)geteuid());
}

static void writer_base(char *out, size_t size)
{
    const char *named = environment("GPUTAP_DIR");
    if (named)
        snprintf(out, size, "%s", named);
    else if (geteuid() == 0)
        snprintf(out, size, "%s", is_tmpfs("/run") ? "/run/gputap" : "/dev/shm/gputap");
    else
        user_base(out, size);
}

/* What a folder made there anew would belong to. */
static gid_t default_group(const char *path)
{
    char parent[PLACE_PATH_MAX];
    struct stat info;
    snprintf(parent, sizeof parent, "%s/..", path);
    return stat(parent, &info) == 0 && (info.st_mode & S_ISGID) ? info.st_gid : getegid();
}

/* Creates a folder of the given mode, or takes one that is there and is ours; `own` says that it is this instance's alone, and
 * its mode is then set in any case, while the base that instances share keeps what it has. The user's own choice of GPUTAP_DIR is
 * taken as it is. */
static int folder_create(const char *path, mode_t mode, bool strict, bool own, int64_t group, char *message, size_t message_size)
{
    struct stat info;
    bool made = mkdir(path, mode) == 0;
    if (!made && errno != EEXIST) {
        int code = errno;
        text_format(message, message_size, "%s: cannot be created: %s", path, strerror(code));
        return code == EACCES || code == EPERM || code == EROFS ? REGION_EPERM : code == ENOSPC ? REGION_ENOSPC : REGION_ESYSTEM;
    }
    if ((strict ? lstat(path, &info) : stat(path, &info)) != 0 || !S_ISDIR(info.st_mode)) {
        text_format(message, message_size, "%s: not a folder", path);
        return REGION_EUNTRUSTED;
    }
    if (strict && info.st_uid != geteuid()) {
        text_format(message, message_size, "%s: belongs to another user (uid %lu)", path, (unsigned long)info.st_uid);
        return REGION_EUNTRUSTED;
    }
    if (info.st_uid == geteuid() && (made || own)) {
        /* An earlier start may have given the folder to a group. */
        int64_t wanted = group < 0 && !made ? (int64_t)default_group(path) : group;
        if (wanted >= 0 && chown(path, (uid_t)-1, (gid_t)wanted) != 0 && group >= 0) {
            text_format(message, message_size, "%s: cannot be given to the group: %s", path, strerror(errno));
            return REGION_EPERM;
        }
        (void)chmod(path, mode); /* mkdir's mode went through the umask */
    }
    if (access(path, W_OK | X_OK) != 0) {
        text_format(message, message_size, "%s: not writable: %s", path, strerror(errno));
        return REGION_EPERM;
    }
    return REGION_OK;
}

int place_create(const char *instance, int64_t group, char *out, size_t size, char *message, size_t message_size)
{
    char base[PLACE_PATH_MAX];
    bool named = environment("GPUTAP_DIR") != NULL;
    mode_t mode = group >= 0 ? 0750 : geteuid() == 0 || named ? 0755 : 0700;
    writer_base(base, sizeof base);
    if (base[0] != '/') {
        text_format(message, message_size, "%s: GPUTAP_DIR must be an absolute path", base);
        return REGION_ESYSTEM;
    }
    int result = folder_create(base, group >= 0 && geteuid() == 0 ? 0755 : mode, !named, false, geteuid() == 0 ? -1 : group,
                               message, message_size);
    if (result != REGION_OK)
        return result;
    if (snprintf(out, size, "%s/%s", base, instance) >= (int)size) {
        text_format(message, message_size, "%s: path too long", base);
        return REGION_ESYSTEM;
    }
    return folder_create(out, mode, true, true, group, message, message_size);
}

bool place_candidate(const char *instance, int i, char *out, size_t size, bool *trust)
{
    char base[PLACE_PATH_MAX];
    const char *named = environment("GPUTAP_DIR");
    *trust = false;
    if (named) { /* the only place: whoever names a folder does not want to read elsewhere by surprise */
        if (i > 0)
            return false;
        *trust = true;
        return named[0] == '/' && snprintf(out, size, "%s/%s", named, instance) < (int)size;
    }
    switch (i) {
    case 0: user_base(base, sizeof base); break;
    case 1: snprintf(base, sizeof base, "/dev/shm/gputap-%lu", (unsigned long)geteuid()); break;
    case 2: snprintf(base, sizeof base, "/run/gputap"); break;
    case 3: snprintf(base, sizeof base, "/dev/shm/gputap"); break;
    default: return false;
    }
    return snprintf(out, size, "%s/%s", base, instance) < (int)size;
}

int place_check(const char *directory, bool trust)
{
    struct stat info;
    if (lstat(directory, &info) != 0)
        return errno == EACCES || errno == EPERM     ? REGION_EPERM
               : errno == ENOENT || errno == ENOTDIR ? REGION_ENOENT
                                                     : REGION_ESYSTEM;
    if (!S_ISDIR(info.st_mode))
        return trust ? REGION_ENOENT : REGION_EUNTRUSTED;
    if (!trust && info.st_uid != 0 && info.st_uid != geteuid())
        return REGION_EUNTRUSTED;
    return REGION_OK;
}
