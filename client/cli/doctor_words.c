/* Why a number is unknown, in the words of somebody who knows the driver. One line a reason, only where the number is unknown for
 * that reason on a device of that driver. */
#include <string.h>

#include "client/cli/cli.h"

enum { ANY_POOL = 0, ANY_METRIC = -1 };

struct wording {
    const char *driver; /* NULL = any */
    uint32_t pool;
    int metric;
    int reason;
    const char *text;
};

static const char intel_rights[] =
    "memory in use: the driver tells it only to root or with CAP_PERFMON (setcap cap_perfmon+ep gputapd)";
static const char intel_memory[] =
    "memory: the driver tells it at the render node (/dev/dri/renderD*), which is not here or may not be opened";
static const char no_load[] = "load: neither a sensor nor the accounts of its processes tell it";

/* A sleeping or idle device comes first, since then nothing else matters. */
static const struct wording wordings[] = {
    {NULL, ANY_POOL, ANY_METRIC, GPUTAP_REASON_ASLEEP,
     "it sleeps: nothing is read, so that it can go on sleeping; memory is from the driver's own books"},
    {NULL, ANY_POOL, ANY_METRIC, GPUTAP_REASON_LETTING_SLEEP,
     "it has been idle: it is left alone for some seconds, so that it can fall asleep (each read of a sensor would start that "
     "anew)"},
    {"i915", ANY_POOL, GPUTAP_VRAM_USED, GPUTAP_REASON_NO_PERMISSION, intel_rights},
    {"xe", ANY_POOL, GPUTAP_VRAM_USED, GPUTAP_REASON_NO_PERMISSION, intel_rights},
    {"amdgpu", ANY_POOL, GPUTAP_VRAM_USED, GPUTAP_REASON_NO_PERMISSION,
     "memory: the files may not be read; in a container mount /sys, else join the group render"},
    {"amdgpu", GPUTAP_POOL_UNIFIED, GPUTAP_POWER_CAP, GPUTAP_REASON_NOT_SUPPORTED,
     "no power limit, fan or memory temperature: an APU shares those with the processor, and its driver shows none"},
    {"amdgpu", GPUTAP_POOL_DISCRETE, GPUTAP_TEMPERATURE_MEMORY, GPUTAP_REASON_NOT_SUPPORTED,
     "memory temperature: this card's driver shows no sensor labelled mem"},
    {"amdgpu", ANY_POOL, GPUTAP_ENERGY, GPUTAP_REASON_NOT_SUPPORTED,
     "energy: the firmware counts none, or in no documented unit; joules of spans are summed up from power instead"},
    {"amdgpu", ANY_POOL, GPUTAP_PCIE_RX, GPUTAP_REASON_NOT_SUPPORTED,
     "PCIe traffic: the driver's own counter makes its reader wait for a second, so it is left alone"},
    {"amdgpu", ANY_POOL, GPUTAP_VOLTAGE_GFX, GPUTAP_REASON_NOT_SUPPORTED,
     "voltage: none is shown, or it reads 0 because the graphics part is switched off at the moment"},
    {"radeon", ANY_POOL, GPUTAP_VRAM_TOTAL, GPUTAP_REASON_NOT_SUPPORTED,
     "memory, load and power: the driver radeon tells none of them; cards from 2012 on may run under amdgpu"},
    {"nouveau", ANY_POOL, GPUTAP_VRAM_TOTAL, GPUTAP_REASON_NOT_SUPPORTED, "memory and load: the driver nouveau tells neither"},
    {"nvidia", ANY_POOL, GPUTAP_VRAM_TOTAL, GPUTAP_REASON_NOT_SUPPORTED,
     "memory, load, power: NVIDIA's driver tells them only through its own library, which is not read by this version"},
    {"i915", GPUTAP_POOL_UNIFIED, GPUTAP_VRAM_TOTAL, GPUTAP_REASON_NOT_SUPPORTED,
     "video memory: an integrated GPU has none of its own; see unified_total and unified_used"},
    {"xe", GPUTAP_POOL_UNIFIED, GPUTAP_VRAM_TOTAL, GPUTAP_REASON_NOT_SUPPORTED,
     "video memory: an integrated GPU has none of its own; see unified_total and unified_used"},
    {"i915", GPUTAP_POOL_DISCRETE, GPUTAP_VRAM_TOTAL, GPUTAP_REASON_NOT_SUPPORTED, intel_memory},
    {"xe", GPUTAP_POOL_DISCRETE, GPUTAP_VRAM_TOTAL, GPUTAP_REASON_NOT_SUPPORTED, intel_memory},
    {"i915", ANY_POOL, GPUTAP_GFX_BUSY, GPUTAP_REASON_NOT_SUPPORTED, no_load},
    {"xe", ANY_POOL, GPUTAP_GFX_BUSY, GPUTAP_REASON_NOT_SUPPORTED, no_load},
    {"amdgpu", ANY_POOL, GPUTAP_GFX_BUSY, GPUTAP_REASON_NOT_SUPPORTED, no_load},
    {NULL, ANY_POOL, ANY_METRIC, GPUTAP_REASON_IMPLAUSIBLE,
     "something read nonsense (more than the whole, or beyond what hardware has): it is dropped rather than shown"},
    {NULL, ANY_POOL, ANY_METRIC, GPUTAP_REASON_ERROR, "some reads fail though the card is awake: it may be resetting; dmesg tells"},
    {NULL, ANY_POOL, ANY_METRIC, GPUTAP_REASON_STALE,
     "some sources have stopped answering; their last numbers are too old to show"},
};

static bool any_unknown(gputap *tap, int device, int reason)
{
    for (int metric = 0; gputap_metric_info(device, metric); metric++)
        if (gputap_reason(tap, device, metric) == reason)
            return true;
    return false;
}

static bool applies(gputap *tap, int device, const gputap_device *info, const struct wording *wording)
{
    if (wording->driver && strcmp(wording->driver, info->driver) != 0)
        return false;
    if (wording->pool != ANY_POOL && wording->pool != info->pool)
        return false;
    if (wording->metric == ANY_METRIC)
        return any_unknown(tap, device, wording->reason);
    return gputap_reason(tap, device, wording->metric) == wording->reason;
}

void doctor_explain(gputap *tap, int device, const gputap_device *info)
{
    int told = 0;
    if (info->state == GPUTAP_DEVICE_GONE) {
        printf("  in words\n    it is gone: unplugged, or its driver was unloaded\n");
        return;
    }
    for (size_t i = 0; i < sizeof wordings / sizeof wordings[0]; i++) {
        if (!applies(tap, device, info, &wordings[i]))
            continue;
        printf("%s    %s\n", told++ ? "" : "  in words\n", wordings[i].text);
        if (wordings[i].reason == GPUTAP_REASON_ASLEEP || wordings[i].reason == GPUTAP_REASON_LETTING_SLEEP)
            return;
    }
}
