// A table without memory of its own accepts any.

#include "exec/worker/probe_buffers.h"

#include <string.h>

Status probe_buffers_open(Session *session, int64_t bytes, Arena *arena, ProbeBuffers *buffers, Error *error) {
    void *memory = NULL;
    if (session->transports->memory) {
        TRY(session->transports->memory(session->transport, 2 * bytes, &memory, error));
    }
    buffers->device = memory != NULL;
    buffers->in = memory ? memory : arena_alloc(arena, (size_t)bytes);
    buffers->out = memory ? buffers->in + bytes : arena_alloc(arena, (size_t)bytes);
    return STATUS_OK;
}

Status probe_buffers_move(Session *session, const ProbeBuffers *buffers, void *to, const void *from, int64_t bytes,
                          Error *error) {
    if (buffers->device) {
        return session->transports->move(session->transport, to, from, bytes, error);
    }
    if (to != from) {
        memcpy(to, from, (size_t)bytes);
    }
    return STATUS_OK;
}
