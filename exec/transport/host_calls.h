// What transports of host memory do alike around the moving of a call's bytes.

#pragma once

#include <string.h>

#include "exec/transport/progress_table.h"
#include "exec/transport/reduce.h"

static inline int64_t host_least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline void host_copy(void *to, const void *from, int64_t bytes) {
    if (to != from && bytes > 0) {
        memmove(to, from, (size_t)bytes);
    }
}

// In a group of one: what goes in comes out.
static inline Status host_run_alone(TransportKind kind, const TransportCall *call) {
    ASSERT(!is_message(kind));
    const int64_t bytes = call->leave ? call->leave[0] : call->bytes;
    host_copy(call->out, call->in, kind == COLLECTIVE_BARRIER ? 0 : bytes);
    return STATUS_OK;
}

// Shows the call in the rank's cell; ranks: the group's. A link's sender is its member 0.
static inline void host_enter(ProgressCell *cell, const Communicator *communicator, TransportKind kind,
                              const TransportCall *call, const int *ranks) {
    if (is_message(kind)) {
        ASSERT(communicator->link.step != 0);
        progress_cell_enter_message(cell, kind, call, ranks[kind == COLLECTIVE_SEND]);
    } else {
        progress_cell_enter(cell, communicator, kind, call);
    }
}

static inline void host_leave(ProgressRow *row, ProgressCell *cell, TransportKind kind) {
    if (is_message(kind)) {
        progress_cell_count_message(cell);
    }
    progress_cell_leave(row, cell);
}
