#include <string.h>

#include "shm/platform.h"

bool place_valid_instance(const char *instance)
{
    size_t length = instance ? strlen(instance) : 0;
    if (length < 1 || length > 64 || instance[0] == '.')
        return false;
    return strspn(instance, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == length;
}
