// The transports of this build. An absent one is refused in words, never replaced by another.

#include "exec/transport/transport.h"

#include <string.h>

#include "exec/transport/shm.h"

static const TransportTable *const transports[] = {&transport_shm};

const TransportTable *transport_find(const char *name, Error *error) {
    for (size_t i = 0; i < sizeof transports / sizeof *transports; i++) {
        if (strcmp(transports[i]->name, name) == 0) {
            return transports[i];
        }
    }
    if (strcmp(name, "mpi") == 0 || strcmp(name, "nccl") == 0) {
        error_set(error, STATUS_ENVIRONMENT, "transport %s is not part of this build; it runs shm", name);
    } else {
        error_set(error, STATUS_USAGE, "no transport '%s'; this build runs shm", name);
    }
    return NULL;
}
