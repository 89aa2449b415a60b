// A buffer's slot where a session's device has it: of device cpu memory that a test reads and writes.

#pragma once

#include "exec/worker/session.h"

static inline void *session_slot(const Session *session, int32_t buffer, int slot) {
    DeviceAccount account;
    session->devices->account(session->device, &account);
    return (char *)account.arena + session->memory.offset_bytes[buffer] +
           slot * session->program.buffers[buffer].slot_bytes;
}
