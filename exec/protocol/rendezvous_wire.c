// Blocking sends.

#define _GNU_SOURCE  // MSG_NOSIGNAL in strict C

#include "exec/protocol/rendezvous_wire.h"

#include <errno.h>
#include <sys/socket.h>

static bool send_all(int fd, const void *data, size_t bytes, int flags) {
    const char *at = data;
    while (bytes > 0) {
        const ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL | flags);
        if (sent < 0 && errno != EINTR) {
            return false;
        }
        at += sent > 0 ? sent : 0;
        bytes -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

bool rendezvous_frame_send(int fd, RendezvousKind kind, const void *body, size_t bytes) {
    const RendezvousFrame frame = {.kind = (uint32_t)kind, .bytes = (uint32_t)bytes};
    return send_all(fd, &frame, sizeof frame, bytes > 0 ? MSG_MORE : 0) && send_all(fd, body, bytes, 0);
}
