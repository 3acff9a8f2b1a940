#include <stdio.h>
#include <string.h>

#include "broker/providers/pci.h"
#include "shm/text.h"

/* Reads a text file line by line in a fixed buffer; over-long lines are cut. */
struct line_reader {
    struct io *io;
    struct io_file file;
    uint64_t offset;
    size_t used, at;
    char buffer[16384];
};

static bool next_line(struct line_reader *reader, char *out, size_t size)
{
    size_t length = 0;
    bool any = false;
    for (;;) {
        if (reader->at == reader->used) {
            long got =
                reader->io->operations->pread(reader->io, reader->file.fd, reader->buffer, sizeof reader->buffer, reader->offset);
            if (got <= 0)
                break;
            reader->offset += (uint64_t)got;
            reader->used = (size_t)got;
            reader->at = 0;
        }
        any = true;
        char c = reader->buffer[reader->at++];
        if (c == '\n')
            break;
        if (length + 1 < size)
            out[length++] = c;
    }
    out[length] = '\0';
    return any;
}

static const char *maker(uint32_t vendor)
{
    switch (vendor) {
    case PCI_VENDOR_AMD: return "AMD";
    case PCI_VENDOR_NVIDIA: return "NVIDIA";
    case PCI_VENDOR_INTEL: return "Intel";
    default: return "";
    }
}

/* "Navi 21 [Radeon RX 6900 XT]": what stands in brackets is what is printed on the box. */
static void name_of_entry(uint32_t vendor, const char *entry, char *out, size_t size)
{
    const char *open = strrchr(entry, '['), *close = open ? strchr(open, ']') : NULL;
    int length = close ? (int)(close - open - 1) : (int)strlen(entry);
    text_format(out, size, "%s%s%.*s", maker(vendor), maker(vendor)[0] ? " " : "", length, close ? open + 1 : entry);
}

static struct line_reader *open_lines(struct io *io, const char *path)
{
    static struct line_reader reader; /* one search at a time; too large for the stack */
    char probe[2];
    reader = (struct line_reader){.io = io};
    io_file_init(&reader.file, "%s", path);
    (void)io_file_read(io, &reader.file, probe, sizeof probe); /* opens it */
    return reader.file.fd >= 0 ? &reader : NULL;
}

/* pci.ids: "1002  AMD", then "<tab>73bf  Navi 21 [...]" up to the next vendor. */
static bool find_in_database(struct io *io, const char *path, const struct pci_display *display, char *out, size_t size)
{
    char line[256] = "", vendor[8], device[8];
    bool inside = false, found = false;
    struct line_reader *reader = open_lines(io, path);
    (void)snprintf(vendor, sizeof vendor, "%04x", display->vendor & 0xffff);
    (void)snprintf(device, sizeof device, "%04x", display->device & 0xffff);
    while (reader && !found && next_line(reader, line, sizeof line)) {
        if (inside && line[0] != '\t' && line[0] && line[0] != '#')
            break;
        if (!inside) {
            inside = strncmp(line, vendor, 4) == 0 && line[4] == ' ';
        } else if (line[0] == '\t' && strncmp(line + 1, device, 4) == 0 && line[5] == ' ') {
            name_of_entry(display->vendor, line + 5 + strspn(line + 5, " "), out, size);
            found = true;
        }
    }
    if (reader)
        io_file_close(io, &reader->file);
    return found;
}

/* amdgpu.ids of libdrm: "73BF,<tab>C0,<tab>AMD Radeon RX 6900 XT". */
bool pci_amd_name(struct io *io, const struct pci_display *display, char *out, size_t size)
{
    char line[256];
    bool found = false;
    struct line_reader *reader = open_lines(io, "/usr/share/libdrm/amdgpu.ids");
    while (reader && !found && next_line(reader, line, sizeof line)) {
        unsigned device, revision;
        int name = 0;
        if (sscanf(line, "%x, %x, %n", &device, &revision, &name) != 2 || name == 0)
            continue;
        found = device == display->device && revision == display->revision && line[name];
        if (found)
            provider_text(out, size, line + name);
    }
    if (reader)
        io_file_close(io, &reader->file);
    return found;
}

void pci_name(struct io *io, const struct pci_display *display, char *out, size_t size)
{
    static const char *const databases[] = {"/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"};
    char name[128];
    for (size_t i = 0; !display->platform && i < sizeof databases / sizeof databases[0]; i++)
        if (find_in_database(io, databases[i], display, name, sizeof name)) {
            provider_text(out, size, name);
            return;
        }
    const char *by = maker(display->vendor);
    if (display->platform)
        text_format(name, sizeof name, "%.24s GPU (%.48s)", display->driver, display->id + strlen("platform:"));
    else
        text_format(name, sizeof name, "%s%sGPU %04x:%04x", by, by[0] ? " " : "", display->vendor, display->device);
    provider_text(out, size, name);
}
