// One chunk is in flight at a time.

#define _GNU_SOURCE  // nanosleep in strict C

#include "tests/support/nccl_recording/channel.h"

#include <string.h>
#include <time.h>

static bool is_empty(Channel *channel) {
    return atomic_load(&channel->given) == atomic_load(&channel->taken);
}

static size_t chunk(size_t left) {
    return left < CHANNEL_BYTES ? left : CHANNEL_BYTES;
}

static void give(Exchange *exchange) {
    const size_t bytes = chunk(exchange->out_bytes - exchange->given);
    if (bytes > 0 && is_empty(exchange->out)) {
        exchange->out->bytes = exchange->out_bytes;
        memcpy(exchange->out->slot, exchange->from + exchange->given, bytes);
        exchange->given += bytes;
        atomic_fetch_add(&exchange->out->given, 1);
    }
}

static void take(Exchange *exchange) {
    const size_t bytes = chunk(exchange->in_bytes - exchange->taken);
    if (bytes > 0 && !is_empty(exchange->in)) {
        exchange->odd = exchange->in->bytes != exchange->in_bytes;
        memcpy(exchange->to + exchange->taken, exchange->in->slot, bytes);
        exchange->taken += bytes;
        atomic_fetch_add(&exchange->in->taken, 1);
    }
}

bool exchange_run(Exchange *exchange) {
    for (int looks = 1; !atomic_load(exchange->aborted) && !exchange->odd; looks++) {
        if (exchange->out) {
            give(exchange);
        }
        if (exchange->in) {
            take(exchange);
        }
        const bool gone = !exchange->out || (exchange->given == exchange->out_bytes && is_empty(exchange->out));
        if (gone && (!exchange->in || exchange->taken == exchange->in_bytes) && !exchange->odd) {
            return true;
        }
        if (looks % 64 == 0) {
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        }
    }
    return false;
}
