// Layout of the shared segment, private to the shm transport:
//   head | the board's row per rank | a gate per (communicator, rank) | two staging slots per (communicator, rank)
// A gate is used at the leader of its group (the member of index 0).

#pragma once

#include "exec/transport/board.h"
#include "exec/transport/shm.h"

enum { SHM_LINE_BYTES = 64, SHM_NO_RANK = -1, SHM_SLOT_BYTES_LEAST = 8 << 10 };

typedef struct ShmHead {
    uint64_t magic;
    int32_t world, communicators;
    int64_t slot_bytes;
    _Alignas(SHM_LINE_BYTES) atomic_int stopped;
    atomic_int first_failure;
} ShmHead;

typedef struct ShmGate {
    _Alignas(SHM_LINE_BYTES) atomic_uint arrived;
    _Alignas(SHM_LINE_BYTES) atomic_uint generation;  // the futex word
    atomic_uint sleepers;
} ShmGate;

typedef struct ShmLayout {
    int world, communicators;
    int64_t slot_bytes;
    int64_t board_at, gates_at, slots_at, bytes;
} ShmLayout;

ShmLayout shm_layout(const Mesh *mesh, int communicators);

// Maps the segment behind fd and checks that it was made for this layout.
Status shm_segment_attach(int fd, const ShmLayout *layout, void **memory, Error *error);

static inline BoardRank *shm_board(void *memory, const ShmLayout *layout) {
    return (BoardRank *)(void *)((char *)memory + layout->board_at);
}

static inline ShmGate *shm_gate(void *memory, const ShmLayout *layout, int communicator, int leader) {
    return (ShmGate *)((char *)memory + layout->gates_at) + communicator * layout->world + leader;
}

static inline char *shm_slot(void *memory, const ShmLayout *layout, int communicator, int rank) {
    return (char *)memory + layout->slots_at + (int64_t)(communicator * layout->world + rank) * 2 * layout->slot_bytes;
}
