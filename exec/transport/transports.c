// Registration table of the transports in this build's worker.

#include <string.h>

#include "exec/transport/shm.h"
#if NDTUNE_HAVE_MPI
#include "exec/transport/mpi.h"
#endif
#if NDTUNE_HAVE_NCCL
#include "exec/transport/nccl.h"
#endif

static const TransportTable *const transports[] = {
    &transport_shm,
#if NDTUNE_HAVE_MPI
    &transport_mpi,
#endif
#if NDTUNE_HAVE_NCCL
    &transport_nccl,
#endif
};

const TransportTable *transport_find(const char *name, Error *error) {
    for (size_t i = 0; i < sizeof transports / sizeof *transports; i++) {
        if (strcmp(transports[i]->name, name) == 0) {
            return transports[i];
        }
    }
    transport_check(name, error);
    return NULL;
}
