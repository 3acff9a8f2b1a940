/* Which processes hold which GPU, found in /proc a little at a time.
 *
 * Every tick the fdinfo of each known DRM client is read through a descriptor that is kept open. Once a second the list of
 * processes is read, and those that are new are looked into. Each process is looked into again every ten seconds. What does not
 * fit into a tick's share of time is done in the next. To look into a process is to read where its descriptors point to: that a
 * process of another user does not allow it makes the answer partial, not zero. */
#ifndef GPUTAP_BROKER_PROVIDERS_PROCESS_SCAN_H
#define GPUTAP_BROKER_PROVIDERS_PROCESS_SCAN_H

#include "broker/provider.h"
#include "broker/providers/fdinfo.h"
#include "broker/providers/kfd.h"

enum { SCAN_MOST_PROCESSES = 1 << 18, SCAN_MOST_CLIENTS = 1024, SCAN_MOST_HOLDERS = 1 << 16, SCAN_DEVICES = PROVIDER_MAX_DEVICES };

/* A process of this machine. Facts beyond `pid` are read when it turns out to hold a GPU. */
struct scan_process {
    uint32_t pid;
    bool looked; /* into its descriptors, at least once */
    bool hidden; /* they may not be read */
    bool listed; /* in the list of processes that is being read */
    bool known;  /* the facts below are */
    uint64_t looked_ns;
    uint32_t parent;
    uint64_t start_ticks; /* tells two users of one pid apart */
    uint64_t start_ms;
    uint32_t uid;
    char comm[16];
    char container[16];
};

/* A descriptor of a process that belongs to a client: the original, a duplicate, or one inherited over a fork. */
struct scan_holder {
    uint32_t pid, fd;
    int client;
};

/* A DRM client: one open of a device node, however many descriptors and processes share it. */
struct scan_client {
    bool used;
    int device; /* index of the provider's device */
    uint64_t id;
    struct io_file file; /* of one of its holders */
    uint32_t owner;      /* the lowest pid that holds it, 0 = none */
    uint32_t sharers;    /* other processes that do */
    uint32_t last_holder;
    uint64_t read_ns; /* of the last good read; 0 = none yet */
    bool fresh;       /* read at this tick */
    struct fdinfo info;
    uint64_t base[FDINFO_ENGINES], total_base[FDINFO_ENGINES]; /* counters as of the last read: they never go back */
    bool based[FDINFO_ENGINES];
    double busy[FDINFO_ENGINES]; /* % since the last read, NaN = unknown */
};

/* A process of the compute driver, whose work no client's file shows. */
struct scan_compute {
    uint32_t pid;
    int device;
    bool has_vram;
    uint64_t vram;
    double busy; /* % of the compute units that it occupies, NaN = unknown */
};

/* How a process's descriptors are assigned to devices. */
struct scan_device {
    char id[48];                            /* the PCI address, or "platform:..." */
    int minors[2];                          /* of the render node and the card, -1 = none */
    uint32_t kfd_gpus[KFD_MOST_PARTITIONS]; /* numbers of the device, or of its partitions, in the compute driver */
    int kfd_gpu_count;
    uint32_t compute_units;
    bool unreadable; /* its clients are not to be read now, lest it wakes or stays awake */
};

struct process_scan {
    struct io *io;
    const struct scan_device *devices;
    int device_count;
    struct scan_process *processes; /* by pid */
    int process_count, process_capacity;
    struct scan_holder *holders;
    int holder_count, holder_capacity;
    struct scan_client *clients;
    int client_count, client_capacity;
    struct scan_compute *computes;
    int compute_count, compute_capacity;
    int next;            /* process to be looked into next */
    uint64_t listed_ns;  /* when processes were listed last, 0 = never */
    uint64_t boot_ms;    /* Unix milliseconds, 0 = unknown */
    uint32_t hidden;     /* processes that may not be looked into */
    uint32_t own_parent; /* whose children are workers like this one, 0 = not known */
    bool listed;         /* the list of processes could be read */
    bool complete;       /* every listed process has been looked into once */
    bool overflow;       /* something had no room */
};

void scan_init(struct process_scan *scan, struct io *io);
void scan_free(struct process_scan *scan);
/* The devices, whose indices clients carry. A change forgets all clients. */
void scan_set_devices(struct process_scan *scan, const struct scan_device *devices, int count);
/* The process of that pid in the last list, or NULL. */
struct scan_process *scan_find(const struct process_scan *scan, uint32_t pid);
/* Room for one more in a growing array of the scan; false where `most` are there. */
bool scan_grow(void **array, int *capacity, int count, int most, size_t size);
/* One tick's share: at most about `budget_ns` of looking into processes, beside the known clients. */
void scan_run(struct process_scan *scan, uint64_t now_ns, uint64_t budget_ns);

/* --- process_facts.c ---------------------------------------------------------------------------------------------------- */
/* Start time, name, user and container of a process. False if it is gone. */
bool process_facts(struct io *io, uint64_t boot_ms, struct scan_process *process);
/* Its start in clock ticks since boot, its parent, and whether it is a thread of the kernel; -errno. */
struct process_birth {
    uint64_t ticks;
    uint32_t parent;
    bool kernel_thread;
};
int process_birth(struct io *io, uint32_t pid, struct process_birth *out);
/* When the machine was booted, Unix milliseconds; 0 = unknown. */
uint64_t process_boot_ms(struct io *io);
/* The short id of a container in the text of a /proc/<pid>/cgroup; empty for none. */
void process_container(const char *cgroup, char *out, size_t size);

/* --- process_kfd.c ------------------------------------------------------------------------------------------------------- */
/* Reads anew what the compute driver tells. */
void scan_compute_processes(struct process_scan *scan);

/* --- process_table.c: what is told ---------------------------------------------------------------------------------------- */
/* The table of one device from what the scan knows, and the sums that are metrics. */
struct device_load {
    double busy[FDINFO_KINDS]; /* % of the busiest engine of a kind, over all clients; NaN = unknown */
    uint64_t vram;             /* sum over clients */
    bool vram_known;
    uint32_t processes;
};
void process_table_fill(const struct process_scan *scan, int device, uint64_t now_ns, struct layout_process_table *table,
                        struct device_load *load);

#endif
