/* There is no broker on Windows yet, so nobody to ask for a session: a link is always down, and a client annotates for itself
 * alone. With the broker come its named pipe and a section duplicated into the client. */
#include "client/control_link.h"

#include <stddef.h>

void link_init(struct control_link *link) { *link = (struct control_link){.state = LINK_DOWN, .socket = -1, .bell = -1}; }

bool link_ask(struct control_link *link, const char *directory, const struct control_hello *hello)
{
    (void)link, (void)directory, (void)hello;
    return false;
}

enum link_news link_listen(struct control_link *link, struct control_grant *grant, struct control_refuse *refuse, int wait_ms)
{
    (void)link, (void)grant, (void)refuse, (void)wait_ms;
    return LINK_NOTHING;
}

void link_ring(struct control_link *link) { (void)link; }

uint64_t link_unheard(struct control_link *link)
{
    (void)link;
    return 0;
}

void link_send_period(struct control_link *link, uint64_t period_ns) { (void)link, (void)period_ns; }
void link_close(struct control_link *link) { link_init(link); }
void link_forget(struct control_link *link) { link_init(link); }
