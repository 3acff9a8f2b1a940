/* What a client and the broker say to each other over control.sock (SOCK_SEQPACKET). A packet is one struct below, of exactly its
 * size; anything else ends the connection. Appended to within an ABI major by new types and by reserved space.
 *
 *   client                     broker
 *   HELLO                      knows pid and uid from the kernel, looks at quota and rate
 *                              GRANT, with the memory's and the doorbell's descriptors if a session was asked for,
 *                              or REFUSE and the end
 *   PERIOD, any time           the fastest period that any connection asks for is in force
 *   the end                    session over, open spans abandoned, slot free a second later
 *
 * Neither end ever waits: both sockets are non-blocking, and a client goes on by itself until the answer is there. */
#ifndef GPUTAP_SHM_CONTROL_PROTOCOL_H
#define GPUTAP_SHM_CONTROL_PROTOCOL_H

#include <stdint.h>

enum { CONTROL_MAGIC = 0x54504731 };

enum control_type { CONTROL_HELLO = 1, CONTROL_GRANT = 2, CONTROL_REFUSE = 3, CONTROL_PERIOD = 4 };
enum control_flag { CONTROL_SESSION = 1 }; /* of HELLO: without it the connection only asks for a period */
enum control_refusal { REFUSE_VERSION = 1, REFUSE_FULL = 2, REFUSE_QUOTA = 3, REFUSE_RATE = 4, REFUSE_MEMORY = 5 };

struct control_hello {
    uint32_t magic, type;
    uint16_t abi_major, abi_minor;
    uint32_t flags;
    uint64_t period_ns; /* wished for, 0 = none */
    char label[48];
    uint64_t reserved[4];
};
_Static_assert(sizeof(struct control_hello) == 104, "control layout");

struct control_grant {
    uint32_t magic, type;
    uint32_t slot, generation; /* of the session; generation 0 without one */
    uint8_t epoch[16];
    uint64_t mono_ns, real_ns; /* the broker's clocks, read together */
    uint64_t time_namespace;
    uint8_t boot_id[16];
    uint64_t min_period_ns;
    uint64_t reserved[4];
};
_Static_assert(sizeof(struct control_grant) == 112, "control layout");

struct control_refuse {
    uint32_t magic, type;
    uint32_t code;     /* enum control_refusal */
    uint32_t retry_ms; /* not sooner */
    char text[112];
};
_Static_assert(sizeof(struct control_refuse) == 128, "control layout");

struct control_period {
    uint32_t magic, type;
    uint64_t period_ns; /* 0 = no wish any more */
};
_Static_assert(sizeof(struct control_period) == 16, "control layout");

#endif
