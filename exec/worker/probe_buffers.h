// Operand buffers for collectives that are timed: device memory where the transport has its own, so that the timing
// includes no copy to or from the host; else host memory. Every rank opens them.

#pragma once

#include "exec/worker/session.h"

typedef struct ProbeBuffers {
    char *in, *out;
    bool device;  // accessible only through the transport's move
} ProbeBuffers;

typedef struct ProbeCollective {
    const char *name;
    TransportKind kind;
    bool parts;  // bytes of a call are one rank's part of the payload
} ProbeCollective;

enum { PROBE_COLLECTIVES = 6 };
extern const ProbeCollective probe_collective_rows[PROBE_COLLECTIVES];

Status probe_buffers_open(Session *session, int64_t bytes, Arena *arena, ProbeBuffers *buffers,
                          Error *error);  // bytes of each

// Copies between the buffers and host memory; a no-op where the buffers are in host memory and both are the same.
Status probe_buffers_move(Session *session, const ProbeBuffers *buffers, void *to, const void *from, int64_t bytes,
                          Error *error);
