/* A library that is preloaded into a program and lets it see GPUs that are not there: files of /sys, /proc and /dev/dri come from a
 * folder, requests to DRM nodes are answered from a description. The program and the real libdrm in it stay as they are.
 *
 *   LD_PRELOAD=drm_shim.so GPUTAP_DRM_SHIM=DESCRIPTION program
 *
 * With AddressSanitizer's library in the program ASAN_OPTIONS needs verify_asan_link_order=0, since this one comes before it.
 *
 * The description, a line an item, words parted by spaces, '#' begins a comment, numbers as C writes them:
 *   root DIR              where the mapped files lie: DIR/sys/..., DIR/dev/dri/... (plain files stand for the nodes)
 *   map PATH              this path and what is below it comes from the root
 *   log FILE              "PID open PATH" and "PID ioctl PATH REQUEST" are appended, a line each
 *   control FILE          one byte a GPU in the order of the description, '0' = unplugged; may be written at any time
 *   fault KIND PART FROM TO ERRNO MS [REQUEST]
 *                         KIND open, read or ioctl; on paths that contain PART, the FROM-th to the TO-th time (from 1, TO 0 = for
 *                         ever, counted in each process): waits MS milliseconds, then fails with ERRNO, 0 = does not fail
 *   gpu FOLDER DRIVER RENDER CARD
 *                         begins a GPU: its folder's name in /sys (a PCI slot, a platform device), the minors of its nodes
 *   hotplug               SIGUSR1 to any of the processes unplugs it, and the next one plugs it in again
 *   version MAJOR MINOR   of the driver's interface
 *   info NAME NUMBER      a fact of AMDGPU_INFO_DEV_INFO: device family flags external_rev revision compute_units vram_type
 * vram_bits memory vram|visible|gtt TOTAL USED sensor TYPE VALUE     AMDGPU_INFO_SENSOR; those that are not named answer EINVAL
 *   sensor TYPE errno N
 *   firmware TYPE VERSION AMDGPU_INFO_FW_VERSION
 *   region CLASS INSTANCE TOTAL FREE VISIBLE VISIBLE_FREE
 *                         a memory region of i915 or xe
 * REQUEST of a fault and in the log is version, client, info:N, sensor:N, query:N or ioctl:NR, numbers in hexadecimal without 0x.
 */
#ifndef GPUTAP_TESTS_DRM_SHIM_H
#define GPUTAP_TESTS_DRM_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHIM_GPUS = 32, SHIM_MAPS = 16, SHIM_FAULTS = 32, SHIM_FDS = 1024, SHIM_PATH = 512, SHIM_SENSORS = 16, SHIM_REGIONS = 8 };

struct shim_sensor {
    uint32_t type, value;
    int error;
};

struct shim_region {
    uint16_t class_of, instance;
    uint64_t total, unused, visible, visible_unused;
};

struct shim_gpu {
    char folder[64], driver[24];
    int render, card;
    bool hotplug;
    int major, minor;
    uint32_t device, family, external_rev, revision, compute_units, vram_type, vram_bits;
    uint64_t flags;
    struct {
        uint64_t total, used;
    } vram, visible, gtt;
    struct shim_sensor sensors[SHIM_SENSORS], firmware[SHIM_SENSORS];
    int sensor_count, firmware_count;
    struct shim_region regions[SHIM_REGIONS];
    int region_count;
};

enum shim_kind { SHIM_OPEN, SHIM_READ, SHIM_IOCTL };

struct shim_fault {
    enum shim_kind kind;
    char part[128], request[24];
    long from, to, count;
    int error;
    long delay_ms;
};

struct shim {
    bool ready;
    char root[SHIM_PATH];
    size_t root_length;
    char maps[SHIM_MAPS][128];
    int map_count;
    struct shim_gpu gpus[SHIM_GPUS];
    int gpu_count;
    struct shim_fault faults[SHIM_FAULTS];
    int fault_count;
    int log; /* -1 = none */
    volatile char *control;
};

extern struct shim shim;

/* Reads the description; ends the program where it makes no sense, since a test must not run on less than it asked for. */
void shim_read_description(const char *path);

/* --- drm_shim_state.c ------------------------------------------------------------------------------------------------------- */
/* The GPU that a path belongs to by one of its parts, or NULL. */
const struct shim_gpu *shim_gpu_of(const char *path);
bool shim_away(const struct shim_gpu *gpu);
/* Waits and returns the errno of the fault that applies to this access, 0 = none. `request` is NULL for files. */
int shim_fault_of(enum shim_kind kind, const char *path, const char *request);
void shim_log(const char *what, const char *path, const char *request);
/* What an open descriptor stands for: the path as the program named it, or "". */
const char *shim_path_of(int fd);
void shim_remember(int fd, const char *path);

/* --- drm_shim_ioctls.c ------------------------------------------------------------------------------------------------------ */
/* Answers a request to a node of that GPU: 0, or a positive errno. `name` gets REQUEST. */
void shim_request_name(const struct shim_gpu *gpu, unsigned long request, const void *argument, char name[24]);
int shim_answer(const struct shim_gpu *gpu, unsigned long request, void *argument);

#endif
