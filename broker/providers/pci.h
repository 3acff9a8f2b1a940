/* Display devices as sysfs lists them: who they are, and how fast their link is. Nothing here wakes a sleeping device. */
#ifndef GPUTAP_BROKER_PROVIDERS_PCI_H
#define GPUTAP_BROKER_PROVIDERS_PCI_H

#include "broker/provider.h"

enum { PCI_VENDOR_AMD = 0x1002, PCI_VENDOR_NVIDIA = 0x10de, PCI_VENDOR_INTEL = 0x8086 };

struct pci_display {
    char id[48];    /* "0000:03:00.0" or "platform:<name>" */
    char path[256]; /* its folder */
    char driver[24];
    uint32_t class_code, vendor, device, subvendor, subdevice, revision;
    int render_minor; /* -1 = none */
    bool platform;
};

/* All of them, ordered by id; those of one driver where `driver` is not NULL. Never more than `capacity`: `beyond` says whether
 * there are. -errno if a folder could not be listed, since then nothing can be said of what is there. */
int pci_displays(struct io *io, const char *driver, struct pci_display *out, int capacity, bool *beyond);
/* Is it still there? A link to its folder may outlive it. */
bool pci_present(struct io *io, const struct pci_display *display);
/* Changes when a device, a driver or a node comes or goes: cheaper than pci_displays. 0, or -errno as above. */
int pci_fingerprint(struct io *io, const struct pci_display *known, int count, uint64_t *out);

/* "amd", "nvidia", "intel" or "other". */
const char *pci_vendor_name(uint32_t vendor);
/* A name for people: the PCI database's where this machine has one, else "AMD GPU 1002:6818". */
void pci_name(struct io *io, const struct pci_display *display, char *out, size_t size);
/* The marketing name that libdrm's table has for an AMD device and revision; false if it has none. Opens no device. */
bool pci_amd_name(struct io *io, const struct pci_display *display, char *out, size_t size);
/* Fills identity: all that a provider knows of a display without reading the device itself. */
void pci_describe(struct io *io, const struct pci_display *display, struct layout_device *device);

/* The link that carries the device's data, GT/s and lanes; 0 or -errno. */
int pci_link(struct io *io, const struct pci_display *display, double *speed, uint64_t *width);
/* Puts a link into the sample: `error` is what pci_link answered. */
void pci_link_sample(int error, double speed, uint64_t width, struct sample *sample);

#endif
