/* A socket whose other end is somebody we do not trust. He may send descriptors along, which nobody asked for: dropping the last
 * reference to one can block for as long as he likes (a TCP socket with SO_LINGER and unsent data), and it is dropped when the
 * packet is received or its socket closed. Linux refuses them since 6.16 (SO_PASSRIGHTS); before that they are left where they are,
 * and a child that does nothing else takes them along when it exits, where the kernel waits for nobody. */
#ifndef GPUTAP_BROKER_GUEST_SOCKET_H
#define GPUTAP_BROKER_GUEST_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Tells the kernel to refuse descriptors on a listening socket and those that are accepted from it, where it can. */
void guest_refuse_descriptors(int fd);
/* Like recv without waiting; a packet with descriptors stays unread: -1 with *loaded set. */
ssize_t guest_receive(int fd, void *out, size_t size, bool *loaded);
/* Closes without ever waiting. */
void guest_close(int fd);
/* The same for a listening socket, with the connections that nobody has accepted. */
void guest_close_listener(int fd);

#endif
