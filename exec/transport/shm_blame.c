// A rank that has entered more rounds of a communicator than another member waits for that member, or will. Following
// these arrows from a rank that waits too long ends at the ranks that wait for nobody: they hang, died or are slow.
// Lanes in threads can close a circle (a prefetching lane of the culprit waits as well); then it is the one that is
// furthest behind in all.

#include "exec/transport/shm_blame.h"

static uint32_t rounds_of(const ShmView *view, int communicator, int rank) {
    return atomic_load(&shm_seat(view->memory, view->layout, communicator, rank)->rounds);
}

static bool waits_for(const ShmView *view, int rank, int other) {
    const Mesh *mesh = &view->setup->mesh;
    const MeshCoordinates at = mesh_coordinates(mesh, rank), there = mesh_coordinates(mesh, other);
    for (int c = 0; c < view->setup->communicator_count; c++) {
        const AxisMask outside = AXIS_ALL & ~view->setup->communicators[c].axes;
        const bool one_group = mesh_group_index(mesh, outside, &at) == mesh_group_index(mesh, outside, &there);
        if (one_group && (int32_t)(rounds_of(view, c, other) - rounds_of(view, c, rank)) < 0) {
            return true;
        }
    }
    return false;
}

static int furthest_behind(const ShmView *view, const ShmBlame *blame) {
    int behind = -1;
    uint64_t least = 0;
    for (int rank = 0; rank < view->layout->world; rank++) {
        uint64_t rounds = 0;
        for (int c = 0; c < view->setup->communicator_count; c++) {
            rounds += rounds_of(view, c, rank);
        }
        if (blame->held_up[rank] && (behind < 0 || rounds < least)) {
            behind = rank;
            least = rounds;
        }
    }
    return behind;
}

// Marks everybody that rank waits for, directly or through others.
static void follow(const ShmView *view, int from, ShmBlame *blame) {
    int queue[TRANSPORT_MAX_WORLD], head = 0, tail = 0;
    bool seen[TRANSPORT_MAX_WORLD] = {false};
    queue[tail++] = from;
    seen[from] = true;
    while (head < tail) {
        const int rank = queue[head++];
        bool waits = false;
        for (int other = 0; other < view->layout->world; other++) {
            if (other == rank || !waits_for(view, rank, other)) {
                continue;
            }
            waits = true;
            if (!seen[other]) {
                seen[other] = true;
                queue[tail++] = other;
            }
        }
        blame->held_up[rank] = waits && rank != from;
        blame->culprit[rank] = !waits;
    }
}

void shm_blame(const ShmView *view, int waiting_rank, ShmBlame *blame) {
    *blame = (ShmBlame){.held_up = {false}};
    follow(view, waiting_rank, blame);
    for (int rank = 0; rank < view->layout->world; rank++) {
        if (blame->culprit[rank]) {
            return;
        }
    }
    const int behind = furthest_behind(view, blame);
    if (behind >= 0) {
        blame->held_up[behind] = false;
        blame->culprit[behind] = true;
    }
}
