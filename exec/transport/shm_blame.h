// Who holds a waiting rank up, read from the seats of the shared segment. Private to the shm transport.

#pragma once

#include "exec/transport/shm_segment.h"

typedef struct ShmView {
    const TransportSetup *setup;
    const ShmLayout *layout;
    void *memory;
} ShmView;

typedef struct ShmBlame {
    bool held_up[TRANSPORT_MAX_WORLD];  // waited for, directly or through others, but waiting themselves
    bool culprit[TRANSPORT_MAX_WORLD];  // waited for and waiting for nobody
} ShmBlame;

void shm_blame(const ShmView *view, int waiting_rank, ShmBlame *blame);
