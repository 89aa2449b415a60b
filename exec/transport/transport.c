// Names of the transports. ndtune links no MPI and no NCCL: it knows only which ones its worker was built with; the
// tables are in transports.c. An absent one is refused in words, never replaced by another.

#include "exec/transport/transport.h"

#include <string.h>

typedef struct Known {
    const char *name, *needs;
    bool built;
} Known;

static const Known known[] = {
    {"shm", "", true},
    {"mpi", "Open MPI was not found when it was configured (package libopenmpi-dev)", NDTUNE_HAVE_MPI},
    {"nccl", "no nccl.h of 2.28 or newer and cuda.h when it was configured (CUDA toolkit, package libnccl-dev)",
     NDTUNE_HAVE_NCCL},
};

Status transport_check(const char *name, Error *error) {
    char built[64] = "";
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].built) {
            const size_t used = strlen(built);
            snprintf(built + used, sizeof built - used, "%s%s", used ? ", " : "", known[i].name);
        }
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name) == 0) {
            return known[i].built ? STATUS_OK
                                  : error_set(error, STATUS_ENVIRONMENT,
                                              "transport %s is not part of this build, which runs %s: %s", name, built,
                                              known[i].needs);
        }
    }
    return error_set(error, STATUS_USAGE, "no transport '%s'; this build runs %s", name, built);
}
