/* Why a value is unknown, and where a known one comes from. */
#include <string.h>

#include "client/handle.h"
#include "shm/text.h"

/* The two tables that say why: of a device, or of the host. */
struct origins {
    uint8_t reasons[64];
    uint8_t sources[64];
};

static int read_origins(gputap *tap, int device, struct origins *out)
{
    union {
        struct layout_device device;
        struct layout_host host;
        uint64_t words[sizeof(struct layout_device) / 8];
    } raw;
    int result;
    memset(out, 0, sizeof *out);
    if (device == GPUTAP_HOST) {
        result = entry_read(tap, REGION_HOST, 0, raw.words, sizeof raw.host / 8);
        memcpy(out->reasons, raw.host.reasons, sizeof out->reasons);
        return result;
    }
    result = entry_read(tap, REGION_DEVICE, device, raw.words, sizeof raw.device / 8);
    memcpy(out->reasons, raw.device.reasons, sizeof out->reasons);
    memcpy(out->sources, raw.device.sources, sizeof out->sources);
    return result;
}

static int check_metric(gputap *tap, int device, int metric)
{
    if (!gputap_metric_info(device, metric))
        return client_fail(tap, GPUTAP_EINVAL, "%d is not a metric of device %d", metric, device);
    return GPUTAP_OK;
}

/* 1 known, 0 unknown, or an error. Nothing sampled yet is unknown. */
static int is_known(gputap *tap, int device, int metric)
{
    double value;
    int result = gputap_read(tap, device, &metric, 1, &value);
    if (result == GPUTAP_EEMPTY)
        return 0;
    return result != GPUTAP_OK ? result : value == value;
}

int gputap_reason(gputap *tap, int device, int metric)
{
    struct origins origins;
    if (!tap)
        return GPUTAP_EINVAL;
    int result = check_metric(tap, device, metric);
    if (result == GPUTAP_OK)
        result = is_known(tap, device, metric);
    if (result != 0)
        return result < 0 ? result : GPUTAP_REASON_NONE;
    result = read_origins(tap, device, &origins);
    if (result == GPUTAP_EEMPTY)
        return GPUTAP_REASON_NOT_SAMPLED;
    if (result != GPUTAP_OK)
        return result;
    uint8_t reason = origins.reasons[metric];
    return reason > REASON_NONE && reason < REASON_COUNT ? reason : GPUTAP_REASON_NOT_SAMPLED;
}

int gputap_source(gputap *tap, int device, int metric, char *out, size_t size)
{
    struct origins origins;
    gputap_provider provider = GPUTAP_PROVIDER_INIT;
    if (!tap || !out)
        return GPUTAP_EINVAL;
    if (size < sizeof provider.name)
        return client_fail(tap, GPUTAP_ESIZE, "%zu bytes are needed", sizeof provider.name);
    out[0] = '\0';
    int result = check_metric(tap, device, metric);
    if (result == GPUTAP_OK)
        result = is_known(tap, device, metric);
    if (result <= 0)
        return result;
    if (device == GPUTAP_HOST) { /* one provider has the host table to itself */
        int count;
        text_format(out, size, "%s", metrics_table(true, &count)[metric].ladder);
        return GPUTAP_OK;
    }
    result = read_origins(tap, device, &origins);
    if (result != GPUTAP_OK || origins.sources[metric] == 255)
        return result;
    if (gputap_provider_info(tap, origins.sources[metric], &provider) == GPUTAP_OK)
        text_format(out, size, "%s", provider.name);
    return GPUTAP_OK;
}
