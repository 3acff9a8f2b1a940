/* The client's end of the connection to the broker's control socket. Nothing here waits, but for link_listen where it is told to.
 * One implementation a platform. */
#ifndef GPUTAP_CLIENT_CONTROL_LINK_H
#define GPUTAP_CLIENT_CONTROL_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "shm/control_protocol.h"

enum link_state { LINK_DOWN, LINK_ASKED, LINK_UP };
enum link_news { LINK_NOTHING, LINK_GRANTED, LINK_REFUSED, LINK_GONE };

struct control_link {
    enum link_state state;
    int socket, bell;          /* -1 = none */
    void *memory;              /* CLIENT_MEMORY_BYTES, NULL without a session */
    struct control_link *next; /* of all in this process */
};

void link_init(struct control_link *link);
/* Connects to the broker of that folder and says HELLO. False, and still down, where nobody listens or has time. */
bool link_ask(struct control_link *link, const char *directory, const struct control_hello *hello);
/* Hears what the broker says, waiting at most wait_ms for it. GRANTED: the link is up. REFUSED, GONE: it is down again. */
enum link_news link_listen(struct control_link *link, struct control_grant *grant, struct control_refuse *refuse, int wait_ms);
/* Tells the broker that there is an event. */
void link_ring(struct control_link *link);
/* How often that was not heard. */
uint64_t link_unheard(struct control_link *link);
void link_send_period(struct control_link *link, uint64_t period_ns);
void link_close(struct control_link *link);
/* Forgets a link that belongs to the parent process: its memory is not mapped here, its descriptors are closed already. */
void link_forget(struct control_link *link);

#endif
