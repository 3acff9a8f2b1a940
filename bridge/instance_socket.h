/* bridge.sock in the instance's folder: for programs of the same user, such as the relay in ComfyUI. */
#ifndef GPUTAP_BRIDGE_INSTANCE_SOCKET_H
#define GPUTAP_BRIDGE_INSTANCE_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct instance_socket {
    int fd, lock; /* -1 = not open */
    char path[512];
    uint64_t inode;
    char why[320]; /* it is not open; empty where that is no news */
};

void instance_socket_init(struct instance_socket *out);
/* Tries to open it in `folder`; false and `why` where that cannot be. A socket that a dead bridge left is replaced, a live one's
 * is not. */
bool instance_socket_open(struct instance_socket *out, const char *folder);
/* It is still the file that programs find in `folder`. */
bool instance_socket_intact(const struct instance_socket *out, const char *folder);
/* Closes, and removes the file if it is ours. `keep_fd`: somebody else closes the descriptor. */
void instance_socket_close(struct instance_socket *out, bool keep_fd);

#endif
