#include "bridge/assets.h"

#include <stdint.h>
#include <stdio.h>

/* FNV-1a: tells versions of a file apart, no more is asked of it. */
void assets_hash(const unsigned char *bytes, size_t length, char etag[24])
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    snprintf(etag, 24, "%016llx", (unsigned long long)hash);
}
