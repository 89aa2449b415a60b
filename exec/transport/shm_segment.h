// Layout of the shared segment, private to the shm transport:
//   head | a place per rank | a gate and a seat per (communicator, rank) | two staging slots per (communicator, rank)
// A gate is used at the leader of its group (the member of index 0); seats count the rounds a rank has entered.

#pragma once

#include <stdatomic.h>

#include "exec/transport/shm.h"

enum { SHM_LINE_BYTES = 64, SHM_NO_RANK = -1 };

typedef struct ShmHead {
    uint64_t magic;
    int32_t world, communicators;
    int64_t slot_bytes;
    _Alignas(SHM_LINE_BYTES) atomic_int stopped;
    atomic_int first_failure;
} ShmHead;

typedef struct ShmPlace {
    _Alignas(SHM_LINE_BYTES) atomic_int step;
    atomic_int task, layer, micro_batch;
} ShmPlace;

typedef struct ShmGate {
    _Alignas(SHM_LINE_BYTES) atomic_uint arrived;
    _Alignas(SHM_LINE_BYTES) atomic_uint generation;  // the futex word
    atomic_uint sleepers;
} ShmGate;

typedef struct ShmSeat {
    _Alignas(SHM_LINE_BYTES) atomic_uint rounds;
} ShmSeat;

typedef struct ShmLayout {
    int world, communicators;
    int64_t slot_bytes;
    int64_t places_at, gates_at, seats_at, slots_at, bytes;
} ShmLayout;

ShmLayout shm_layout(const Mesh *mesh, int communicators);

// Maps the segment behind fd and checks that it was made for this layout.
Status shm_segment_attach(int fd, const ShmLayout *layout, void **memory, Error *error);

static inline ShmPlace *shm_place(void *memory, const ShmLayout *layout, int rank) {
    return (ShmPlace *)((char *)memory + layout->places_at) + rank;
}

static inline ShmGate *shm_gate(void *memory, const ShmLayout *layout, int communicator, int leader) {
    return (ShmGate *)((char *)memory + layout->gates_at) + communicator * layout->world + leader;
}

static inline ShmSeat *shm_seat(void *memory, const ShmLayout *layout, int communicator, int rank) {
    return (ShmSeat *)((char *)memory + layout->seats_at) + communicator * layout->world + rank;
}

static inline char *shm_slot(void *memory, const ShmLayout *layout, int communicator, int rank) {
    return (char *)memory + layout->slots_at + (int64_t)(communicator * layout->world + rank) * 2 * layout->slot_bytes;
}
