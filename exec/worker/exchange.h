// Sizes of an all-to-all of tokens, which the router chose.

#pragma once

#include "exec/worker/session.h"

typedef struct ExchangeParts {
    int64_t leave[TRANSPORT_MAX_WORLD], come[TRANSPORT_MAX_WORLD];  // bytes, by member of the group
} ExchangeParts;

void exchange_open(Session *session, Arena *arena);

// Gives the call parts of their own sizes where its task has them, by the rows of the transfer, else nothing. USAGE
// where more rows come than there is room for: rank, layer and expert are named.
Status exchange_parts(Session *session, const StepInstance *instance, const DeviceTransfer *transfer,
                      ExchangeParts *parts, TransportCall *call, Error *error);
