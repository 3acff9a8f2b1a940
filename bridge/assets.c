#include "bridge/assets.h"

#include <string.h>

const struct asset *assets_find(const char *path)
{
    for (size_t i = 0; i < assets_embedded_count; i++)
        if (strcmp(assets_embedded[i].path, path) == 0)
            return &assets_embedded[i];
    return NULL;
}
