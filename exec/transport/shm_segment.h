// Layout of the shared segment, private to the shm transport:
//   head | a row of the progress table per rank | a gate per (communicator, rank) |
//   two staging slots per (communicator, rank) | a pipe per (link, rank)
// The gate used is that of the group's leader (the member of index 0); a pipe belongs to the sending rank.

#pragma once

#include "exec/transport/progress_table.h"
#include "exec/transport/shm.h"

enum { SHM_LINE_BYTES = 64, SHM_NO_RANK = -1, SHM_SLOT_BYTES_LEAST = 8 << 10, SHM_SHARE_GRAIN = 32 };

typedef struct ShmHead {
    uint64_t magic;
    int32_t world, communicators;
    int64_t bytes;
    _Alignas(SHM_LINE_BYTES) atomic_int stopped;
    atomic_int first_failure;
} ShmHead;

// Rung when what waiters wait for has changed.
typedef struct ShmBell {
    _Alignas(SHM_LINE_BYTES) atomic_uint rings;  // the futex word
    atomic_uint sleepers;
} ShmBell;

typedef struct ShmGate {
    _Alignas(SHM_LINE_BYTES) atomic_uint arrived;
    ShmBell bell;
} ShmGate;

// Bytes from one rank to another; the pipe's room limits how many are in flight. Both count from the start of the run;
// the room follows the pipe.
typedef struct ShmPipe {
    _Alignas(SHM_LINE_BYTES) atomic_ullong written;
    _Alignas(SHM_LINE_BYTES) atomic_ullong taken;
    ShmBell bell;
} ShmPipe;

// Precedes every message.
typedef struct ShmMessage {
    uint64_t signature;
    int64_t bytes;
} ShmMessage;

typedef struct ShmLayout {
    int world, communicators;
    int64_t progress_table_at, gates_at, bytes;
    int64_t slot_bytes[TRANSPORT_MAX_COMMUNICATORS];  // of a communicator's ranks, two each
    int64_t slots_at[TRANSPORT_MAX_COMMUNICATORS];
    int64_t room_bytes[TRANSPORT_MAX_COMMUNICATORS];  // of a link's pipes
    int64_t pipes_at[TRANSPORT_MAX_COMMUNICATORS];
} ShmLayout;

ShmLayout shm_layout(const Mesh *mesh, const Communicator *communicators, int count);

// Maps the segment behind fd and checks that it was made for this layout.
Status shm_segment_attach(int fd, const ShmLayout *layout, void **memory, Error *error);

static inline ProgressRow *shm_progress_table(void *memory, const ShmLayout *layout) {
    return (ProgressRow *)(void *)((char *)memory + layout->progress_table_at);
}

static inline ShmGate *shm_gate(void *memory, const ShmLayout *layout, int communicator, int leader) {
    return (ShmGate *)((char *)memory + layout->gates_at) + communicator * layout->world + leader;
}

static inline ShmPipe *shm_pipe(void *memory, const ShmLayout *layout, int communicator, int rank) {
    const int64_t pipe_bytes = (int64_t)sizeof(ShmPipe) + layout->room_bytes[communicator];
    return (ShmPipe *)(void *)((char *)memory + layout->pipes_at[communicator] + rank * pipe_bytes);
}

static inline char *shm_slot(void *memory, const ShmLayout *layout, int communicator, int rank) {
    return (char *)memory + layout->slots_at[communicator] + (int64_t)rank * 2 * layout->slot_bytes[communicator];
}
