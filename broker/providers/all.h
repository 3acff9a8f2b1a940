/* Every provider that there is; providers.c picks those of the build. */
#ifndef GPUTAP_BROKER_PROVIDERS_ALL_H
#define GPUTAP_BROKER_PROVIDERS_ALL_H

#include "broker/provider.h"

extern const struct provider provider_system;
extern const struct provider provider_drm;
extern const struct provider provider_amdgpu;
extern const struct provider provider_intel;
extern const struct provider provider_processes;
extern const struct provider provider_sim;

#endif
