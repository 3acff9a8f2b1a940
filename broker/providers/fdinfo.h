/* What a DRM driver tells of one of its clients in /proc/<pid>/fdinfo/<fd> (Documentation/gpu/drm-usage-stats.rst). No I/O. */
#ifndef GPUTAP_BROKER_PROVIDERS_FDINFO_H
#define GPUTAP_BROKER_PROVIDERS_FDINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an engine is for. Each driver has names of its own (fdinfo_engine_kind). */
enum fdinfo_kind { FDINFO_GFX, FDINFO_COMPUTE, FDINFO_COPY, FDINFO_ENCODE, FDINFO_DECODE, FDINFO_MEDIA, FDINFO_KINDS };

enum { FDINFO_ENGINES = 24 };

/* One engine's account. Times and cycles only ever grow, but a driver may answer a lower number for a while. */
struct fdinfo_engine {
    bool has_time, has_cycles, has_share;
    uint64_t time_ns;
    uint64_t cycles, total_cycles; /* both in the GPU's own clock (xe) */
    double share;                  /* % as the driver worked it out itself (amdgpu before Linux 5.19) */
    uint32_t capacity;             /* engines of this name; 0 = 1 */
};

struct fdinfo {
    char driver[24];
    char pdev[32]; /* "0000:03:00.0", empty = not told */
    bool has_client, has_own_id;
    uint64_t client; /* unique on its device at least */
    bool has_vram, has_gtt;
    uint64_t vram, gtt; /* bytes resident; where the driver does not tell, bytes that it has handed out */
    struct fdinfo_engine engines[FDINFO_ENGINES];
};

/* False for text that is no DRM client's. Any bytes are safe; lines that make no sense are left out. */
bool fdinfo_parse(const char *text, struct fdinfo *out);

/* The kind of an engine by its place in fdinfo.engines. */
enum fdinfo_kind fdinfo_engine_kind(int engine);

#endif
