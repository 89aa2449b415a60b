// What host-memory transports have in common around the data movement of a call.

#pragma once

#include <string.h>

#include "exec/transport/progress_table.h"
#include "exec/transport/reduce.h"

static inline void host_copy(void *to, const void *from, int64_t bytes) {
    if (to != from && bytes > 0) {
        memmove(to, from, (size_t)bytes);
    }
}

// For a group of one: copies input to output.
static inline Status host_run_alone(TransportKind kind, const TransportCall *call) {
    ASSERT(!is_message(kind));
    const int64_t bytes = call->leave ? call->leave[0] : call->bytes;
    host_copy(call->out, call->in, kind == COLLECTIVE_BARRIER ? 0 : bytes);
    return STATUS_OK;
}
