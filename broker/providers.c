/* The providers of this build. The order is that of the REGION_PROVIDER entries, not of trust: that is the ladders' affair. */
#include <string.h>

#include "broker/provider.h"
#include "broker/providers/all.h"

const struct provider *const providers[] = {&provider_system, &provider_drm,       &provider_amdgpu,
                                            &provider_intel,  &provider_processes, &provider_sim};
const int provider_count = (int)(sizeof providers / sizeof providers[0]);
_Static_assert(sizeof providers / sizeof providers[0] <= LAYOUT_MAX_PROVIDERS, "REGION_PROVIDER has no room for it");

int provider_find(const char *name)
{
    for (int i = 0; i < provider_count; i++)
        if (strcmp(providers[i]->name, name) == 0)
            return i;
    return -1;
}
