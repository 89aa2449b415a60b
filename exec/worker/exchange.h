// Sizes of an all-to-all of tokens, determined by the router.

#pragma once

#include "exec/worker/session.h"

typedef struct ExchangeParts {
    int64_t leave[TRANSPORT_MAX_WORLD], come[TRANSPORT_MAX_WORLD];  // bytes, by member of the group
} ExchangeParts;

void exchange_open(Session *session, Arena *arena);

// Gives the call parts of different sizes where its task has them, from the row counts of the transfer; else nothing.
// USAGE where more rows arrive than there is room for, naming rank, layer and expert.
Status exchange_parts(Session *session, const StepInstance *instance, const DeviceTransfer *transfer,
                      ExchangeParts *parts, TransportCall *call, Error *error);
