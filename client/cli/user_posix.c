#include <pwd.h>

#include "client/cli/cli.h"

const char *user_name(char *out, size_t size, uint32_t uid)
{
    const struct passwd *entry = getpwuid((uid_t)uid);
    if (entry && entry->pw_name && entry->pw_name[0])
        snprintf(out, size, "%s", entry->pw_name);
    else
        snprintf(out, size, "%u", uid);
    return out;
}
