#include "fake_machine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DEVICE "0000:03:00.0"
enum { CONTENT_MOST = 8192 };

static struct fake_machine *of(struct io *io) { return io->context; }

static uint32_t hash(const struct fake_machine *machine, const char *path)
{
    uint32_t value = 2166136261u ^ machine->salt;
    for (; *path; path++)
        value = (value ^ (uint8_t)*path) * 16777619u;
    return value;
}

static uint8_t byte_at(const struct fake_machine *machine, size_t at)
{
    return machine->size ? machine->data[at % machine->size] : 0;
}

static bool ends(const char *path, const char *with)
{
    size_t length = strlen(path), tail = strlen(with);
    return length >= tail && strcmp(path + length - tail, with) == 0;
}

/* What must be right for anything to be read at all, and text that leads further in than chance would. */
static const char *fixed(const struct fake_machine *machine, const char *path, uint32_t mixed)
{
    static const struct {
        const char *end, *text[4];
    } files[] = {{"/class", {"0x030000\n", "0x030000\n", "0x038000\n", "0x030000\n"}},
                 {DEVICE "/vendor", {"0x1002\n", "0x8086\n", "0x1002\n", "0x10de\n"}},
                 {"/power/runtime_status", {"active\n", "active\n", "suspended\n", "active\n"}},
                 {"temp1_label", {"edge\n", "pkg\n", "edge\n", "x\n"}},
                 {"temp2_label", {"junction\n", "pkg\n", "vram\n", "junction\n"}},
                 {"temp3_label", {"mem\n", "vram\n", "mem\n", "mem\n"}},
                 {"power1_label", {"PPT\n", "card\n", "slowPPT\n", "PPT\n"}},
                 {"power2_label", {"fastPPT\n", "pkg\n", "fastPPT\n", "x\n"}},
                 {"energy1_label", {"card\n", "card\n", "pkg\n", "x\n"}},
                 {"energy2_label", {"pkg\n", "pkg\n", "card\n", "x\n"}},
                 {"freq1_label", {"sclk\n", "sclk\n", "x\n", "sclk\n"}},
                 {"freq2_label", {"mclk\n", "mclk\n", "x\n", "mclk\n"}},
                 {"in0_label", {"vddgfx\n", "vddgfx\n", "vddnb\n", "x\n"}}};
    (void)machine;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (ends(path, files[i].end))
            return files[i].text[mixed % 4];
    return NULL;
}

/* The bytes of a file: text that is fixed, a number, or a piece of the input. */
static long content(const struct fake_machine *machine, const char *path, char out[CONTENT_MOST])
{
    uint32_t mixed = hash(machine, path);
    const char *text = fixed(machine, path, mixed);
    if (text)
        return snprintf(out, CONTENT_MOST, "%s", text);
    uint8_t how = byte_at(machine, mixed % 251);
    if (how % 16 == 0)
        return -(how & 16 ? EIO : how & 32 ? EBUSY : how & 64 ? EACCES : EPERM);
    if (how % 16 < 6 && !ends(path, "gpu_metrics")) {
        uint64_t number = 0;
        for (unsigned i = 0; i < 8; i++)
            number = number << 8 | byte_at(machine, mixed % 997 + i);
        return snprintf(out, CONTENT_MOST, how & 128 ? "-%llu\n" : "%llu\n", (unsigned long long)(number >> how % 61));
    }
    size_t from = ends(path, "gpu_metrics") ? 0 : mixed % 613, length = machine->size;
    if (!ends(path, "gpu_metrics"))
        length = byte_at(machine, mixed % 509) * 4u;
    length = length < CONTENT_MOST ? length : CONTENT_MOST;
    for (size_t i = 0; i < length; i++)
        out[i] = (char)byte_at(machine, from + i);
    return (long)length;
}

static int fake_open(struct io *io, const char *path, int flags)
{
    struct fake_machine *machine = of(io);
    (void)flags;
    if (hash(machine, path) % 23 == 0 && !ends(path, "/class") && !ends(path, "/vendor"))
        return -ENOENT;
    for (int i = 0; i < FAKE_FILES; i++)
        if (!machine->paths[i][0]) {
            (void)snprintf(machine->paths[i], sizeof machine->paths[i], "%s", path);
            return i;
        }
    return -EMFILE;
}

static void fake_close(struct io *io, int fd) { of(io)->paths[fd][0] = '\0'; }

static long fake_pread(struct io *io, int fd, void *out, size_t size, uint64_t offset)
{
    static char bytes[CONTENT_MOST];
    long length = content(of(io), of(io)->paths[fd], bytes);
    if (length < 0 || offset >= (uint64_t)length)
        return length < 0 ? length : 0;
    size_t left = (size_t)length - (size_t)offset;
    memcpy(out, bytes + offset, left < size ? left : size);
    return (long)(left < size ? left : size);
}

static int fake_list(struct io *io, const char *path, bool (*each)(void *context, const char *name), void *context)
{
    static const struct {
        const char *end, *names[4];
    } folders[] = {{"/sys/bus/pci/devices", {DEVICE}},
                   {"/sys/class/drm", {"card0", "renderD128"}},
                   {DEVICE "/drm", {"card0", "renderD128"}},
                   {DEVICE "/hwmon", {"hwmon3"}},
                   {"/sys/bus/pci/devices/" DEVICE, {"tile0", "tile1"}},
                   {"/tile0", {"gt0", "gt1"}},
                   {"/tile1", {"gt2"}},
                   {"/card0/gt", {"gt0", "gt1"}},
                   {"/proc", {"1", "700", "701", "self"}},
                   {"/proc/700/fd", {"0", "7", "9"}},
                   {"/proc/701/fd", {"7"}},
                   {"/sys/class/kfd/kfd/proc", {"700", "5000"}}};
    (void)io;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        if (ends(path, folders[i].end)) {
            for (int n = 0; n < 4 && folders[i].names[n] && each(context, folders[i].names[n]); n++)
                continue;
            return 0;
        }
    return -ENOENT;
}

static int fake_readlink(struct io *io, const char *path, char *out, size_t size)
{
    struct fake_machine *machine = of(io);
    if (ends(path, "/driver"))
        return snprintf(out, size, "../../../../bus/pci/drivers/%s", machine->driver);
    if (ends(path, "/fd/7") || ends(path, "/fd/9"))
        return snprintf(out, size, "/dev/dri/renderD128");
    if (ends(path, "/sys/bus/pci/devices/" DEVICE))
        return snprintf(out, size, "../../../devices/pci0000:00/0000:00:01.1/" DEVICE);
    return hash(machine, path) % 11 == 0 ? -ENOENT : -EINVAL;
}

/* Bytes of the input for an answer of a driver, its first word a small number, since that is a count. */
static void answer(const struct fake_machine *machine, uint64_t to, size_t size)
{
    uint8_t *out = (uint8_t *)(uintptr_t)to; /* NOLINT(performance-no-int-to-ptr): it is how the kernel is told */
    size_t from = byte_at(machine, 3) * 8u;
    for (size_t i = 0; i < size; i++)
        out[i] = i < 4 ? 0 : byte_at(machine, from + i);
    if (size > 0)
        out[0] = byte_at(machine, from) % 20;
}

/* DRM_IOCTL_XE_DEVICE_QUERY and DRM_IOCTL_I915_QUERY (xe_drm.h, i915_drm.h), which hold a place for the answer and its size. */
static int fake_ioctl(struct io *io, int fd, unsigned long request, void *argument)
{
    const struct fake_machine *machine = of(io);
    uint64_t words[5];
    (void)fd;
    if (byte_at(machine, 5) % 8 == 0 || (request != 0xc0286440UL && request != 0xc0106479UL))
        return -ENOTTY;
    memcpy(words, argument, request == 0xc0286440UL ? 40 : 16);
    if (request == 0xc0106479UL) {
        argument = (void *)(uintptr_t)words[1]; /* NOLINT(performance-no-int-to-ptr): the item */
        memcpy(words, argument, 24);
    }
    uint32_t size = (uint32_t)(request == 0xc0286440UL ? words[1] >> 32 : words[1]);
    if (size > 0)
        answer(machine, words[2], size);
    else if (request == 0xc0286440UL)
        words[1] |= (uint64_t)(byte_at(machine, 7) % 20 * 88 + 8) << 32;
    memcpy(argument, words, 24);
    return 0;
}

static int fake_stat_fs(struct io *io, const char *path, uint64_t *total, uint64_t *free_bytes)
{
    (void)io, (void)path;
    *total = *free_bytes = 0;
    return -ENOENT;
}

static uint64_t fake_mono_ns(struct io *io) { return of(io)->now_ns; }

static const struct io_operations operations = {.open = fake_open,
                                                .close = fake_close,
                                                .pread = fake_pread,
                                                .list = fake_list,
                                                .readlink = fake_readlink,
                                                .ioctl = fake_ioctl,
                                                .stat_fs = fake_stat_fs,
                                                .mono_ns = fake_mono_ns};

void fake_machine_init(struct fake_machine *machine, const char *driver, const uint8_t *data, size_t size)
{
    memset(machine, 0, sizeof *machine);
    *machine = (struct fake_machine){.data = data, .size = size, .driver = driver, .now_ns = UINT64_C(1000000000)};
    machine->io = (struct io){.operations = &operations, .context = machine};
    (void)snprintf(machine->io.root, sizeof machine->io.root, "/fake"); /* no library may open what is this machine's */
}
