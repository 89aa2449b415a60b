// Buffers for the operands of collectives that are timed: device memory where the transport has its own, so that no
// copy to and from the host is timed with them; else host memory. Every rank opens them.

#pragma once

#include "exec/worker/session.h"

typedef struct ProbeBuffers {
    char *in, *out;
    bool device;  // reached by the transport's move alone
} ProbeBuffers;

Status probe_buffers_open(Session *session, int64_t bytes, Arena *arena, ProbeBuffers *buffers,
                          Error *error);  // bytes of each

// Between the buffers and host memory; nothing to do where they are the host's and both are the same place.
Status probe_buffers_move(Session *session, const ProbeBuffers *buffers, void *to, const void *from, int64_t bytes,
                          Error *error);
