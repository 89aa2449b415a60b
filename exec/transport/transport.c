// Names of the transports. ndtune links neither MPI nor NCCL: it only knows which ones its worker was built with; the
// tables are in transports.c. A missing one is an error with a message, never replaced by another.

#include "exec/transport/transport.h"

#include <string.h>

typedef struct Known {
    const char *name, *needs;
    bool built;
} Known;

Link transport_link(int size, int from, int to) {
    const bool next = (from + 1) % size == to;
    ASSERT(size > 1 && (next || (to + 1) % size == from));
    const int edge = next ? from : to;
    return (Link){.step = next ? 1 : -1, .class = (int8_t)(edge == size - 1 && size % 2 == 1 ? 2 : edge % 2)};
}

static bool links(int size, Link link, int from, int to) {
    const Link found = transport_link(size, from, to);
    return found.step == link.step && found.class == link.class;
}

TransportGroup transport_group(const Mesh *mesh, const Communicator *communicator, int rank) {
    const AxisMask axes = communicator->axes;
    const MeshCoordinates at = mesh_coordinates(mesh, rank);
    const int size = mesh_group_size(mesh, axes), index = mesh_group_index(mesh, axes, &at);
    const Link link = communicator->link;
    TransportGroup group = {.size = size, .index = index};
    if (link.step == 0 || size == 1) {
        for (int i = 0; i < size; i++) {
            group.ranks[i] = mesh_group_member(mesh, axes, &at, i);
        }
        return group;
    }
    const int to = (index + size + link.step) % size, from = (index + size - link.step) % size;
    const bool sends = links(size, link, index, to), receives = links(size, link, from, index);
    group.size = sends || receives ? 2 : 1;
    group.index = receives;
    group.ranks[0] = receives ? mesh_group_member(mesh, axes, &at, from) : rank;
    group.ranks[1] = sends ? mesh_group_member(mesh, axes, &at, to) : rank;
    return group;
}

Status transport_check_setup(const char *name, const TransportSetup *setup, Error *error) {
    const int world = mesh_world(&setup->mesh), count = setup->communicator_count;
    return world <= TRANSPORT_MAX_WORLD && count <= TRANSPORT_MAX_COMMUNICATORS
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "transport %s runs up to %d ranks and %d communicators, not %d and %d",
                           name, TRANSPORT_MAX_WORLD, TRANSPORT_MAX_COMMUNICATORS, world, count);
}

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
