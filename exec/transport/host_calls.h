// What host-memory transports have in common around the data movement of a call.

#pragma once

#include <string.h>

#include "exec/transport/progress_table.h"

static inline void host_copy(void *to, const void *from, int64_t bytes) {
    if (to != from && bytes > 0) {
        memmove(to, from, (size_t)bytes);
    }
}

// Of an all-to-all: the part that stays on the rank itself.
static inline void host_keep_part(const TransportCall *call, int member) {
    host_copy((char *)call->out + transport_part_begin(call->come, call->bytes, member),
              (const char *)call->in + transport_part_begin(call->leave, call->bytes, member),
              transport_part_piece(call->leave, call->bytes, member, 0, INT64_MAX));
}

// For a group of one: copies input to output.
static inline Status host_run_alone(TransportKind kind, const TransportCall *call) {
    ASSERT(!is_message(kind));
    const int64_t bytes = call->leave ? call->leave[0] : call->bytes;
    host_copy(call->out, call->in, kind == TRANSPORT_BARRIER ? 0 : bytes);
    return STATUS_OK;
}
