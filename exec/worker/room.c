// A table without memory of its own takes any.

#include "exec/worker/room.h"

#include <string.h>

Status room_open(Session *session, int64_t bytes, Arena *arena, Room *room, Error *error) {
    void *memory = NULL;
    if (session->transports->memory) {
        TRY(session->transports->memory(session->transport, 2 * bytes, &memory, error));
    }
    room->device = memory != NULL;
    room->in = memory ? memory : arena_alloc(arena, (size_t)bytes);
    room->out = memory ? room->in + bytes : arena_alloc(arena, (size_t)bytes);
    return STATUS_OK;
}

Status room_move(Session *session, const Room *room, void *to, const void *from, int64_t bytes, Error *error) {
    if (room->device) {
        return session->transports->move(session->transport, to, from, bytes, error);
    }
    if (to != from) {
        memcpy(to, from, (size_t)bytes);
    }
    return STATUS_OK;
}
