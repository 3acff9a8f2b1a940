#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/providers/pci.h"

/* "16.0 GT/s PCIe" and "16"; a device that is off answers "Unknown" and 255. */
static int read_link(struct io *io, const char *folder, double *speed, uint64_t *width)
{
    char path[512], text[64];
    (void)snprintf(path, sizeof path, "%.440s/current_link_speed", folder);
    long got = io_read_text(io, path, text, sizeof text);
    if (got < 0)
        return (int)got;
    *speed = strtod(text, NULL);
    (void)snprintf(path, sizeof path, "%.440s/current_link_width", folder);
    int error = io_read_u64(io, path, 10, width);
    if (error)
        return error;
    return *speed > 0 && *speed <= 256 && *width >= 1 && *width <= 32 ? 0 : -ENODATA;
}

/* Length of `path` without its last part. */
static size_t parent_length(const char *path, size_t length)
{
    while (length > 0 && path[length - 1] != '/')
        length--;
    return length > 0 ? length - 1 : 0;
}

static bool is_root_complex(const char *path, size_t length)
{
    size_t start = parent_length(path, length);
    return strncmp(path + start + 1, "pci", 3) == 0;
}

/* Vega10 and later, Navi, and Intel's Arc hide behind a switch of their own on the card, and their own link file tells of the
 * wire inside, which is always as fast as it gets. The card's link to the machine is that of the outermost bridge of the same
 * vendor below the root port. */
int pci_link(struct io *io, const struct pci_display *display, double *speed, uint64_t *width)
{
    char target[512], path[600], vendor_file[640];
    int got = io->operations->readlink(io, display->path, target, sizeof target);
    /* "../../../devices/pci0000:00/0000:00:01.1/0000:01:00.0/..." */
    const char *tail = got < 0 || display->platform ? NULL : strstr(target, "devices/pci");
    if (!tail)
        return read_link(io, display->path, speed, width);
    (void)snprintf(path, sizeof path, "/sys/%s", tail);
    size_t length = strlen(path);
    for (;;) {
        size_t up = parent_length(path, length);
        uint64_t vendor = 0;
        if (up == 0 || is_root_complex(path, up) || is_root_complex(path, parent_length(path, up)))
            break; /* above is the host, or its root port */
        (void)snprintf(vendor_file, sizeof vendor_file, "%.*s/vendor", (int)up, path);
        if (io_read_u64(io, vendor_file, 16, &vendor) != 0 || vendor != display->vendor)
            break;
        length = up;
    }
    path[length] = '\0';
    return read_link(io, path, speed, width);
}

void pci_link_sample(int error, double speed, uint64_t width, struct sample *sample)
{
    if (error) {
        sample_unknown(sample, METRIC_PCIE_SPEED, io_reason(error));
        sample_unknown(sample, METRIC_PCIE_WIDTH, io_reason(error));
        return;
    }
    sample_f64(sample, METRIC_PCIE_SPEED, speed);
    sample_u64(sample, METRIC_PCIE_WIDTH, width);
}
