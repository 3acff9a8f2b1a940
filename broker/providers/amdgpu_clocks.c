/* Clocks as the pp_dpm tables tell them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/providers/amdgpu.h"

/* The end of the line's number, its unit after it: "0: 500Mhz", "S: 19Mhz" (deep sleep). NULL for another kind of line. */
static const char *clock_of_line(const char *line, double *mhz)
{
    const char *colon = line + strcspn(line, ":\n");
    char *end;
    if (*colon != ':')
        return NULL;
    *mhz = strtod(colon + 1, &end);
    return end != colon + 1 && (strncmp(end, "Mhz", 3) == 0 || strncmp(end, "MHz", 3) == 0) ? end + 3 : NULL;
}

int amdgpu_clock_now(const char *text, double *mhz)
{
    int result = -ENODATA;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        double value;
        const char *rest = clock_of_line(line, &value);
        size_t space = rest ? strspn(rest, " \t") : 0;
        if (rest && rest[space] == '*') {
            *mhz = value;
            result = 0;
        }
    }
    return result;
}

double amdgpu_clock_maximum(const char *text)
{
    double most = 0, value;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (clock_of_line(line, &value) && value > most && value < AMDGPU_CLOCK_MOST)
            most = value;
    }
    return most;
}

void amdgpu_clock_sample(struct amdgpu_device *device, struct io *io, struct sample *sample, enum amdgpu_field field, int metric)
{
    char text[AMDGPU_TEXT];
    double mhz = 0;
    int error = amdgpu_file_text(device, io, field, text, sizeof text);
    if (!error)
        error = amdgpu_clock_now(text, &mhz);
    if (error)
        sample_unknown(sample, metric, io_reason(error));
    else
        sample_f64_within(sample, metric, mhz, 0, AMDGPU_CLOCK_MOST);
}

/* A running engine has a clock: 0 MHz is then a sensor that was not ready, and no fact (CPU-X#301). */
void amdgpu_clock_drop_stopped(struct sample *sample, int metric)
{
    bool busy = metrics_valid(sample->valid, METRIC_GFX_BUSY) && sample->values[METRIC_GFX_BUSY].f64 > 0;
    if (busy && metrics_valid(sample->valid, metric) && sample->values[metric].f64 <= 0)
        sample_f64_within(sample, metric, 0, 1, AMDGPU_CLOCK_MOST);
}
