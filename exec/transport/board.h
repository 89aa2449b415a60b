// The board: what every rank shows of itself to whoever watches, its place in the step and, for each communicator, the
// collective it entered last. It lies in the shared segment (shm) or in the rank's own memory (mpi), from where a
// thread posts it to the launcher. Plain stores by the rank, plain loads by others: nothing waits for a watcher.

#pragma once

#include <stdatomic.h>

#include "exec/transport/transport.h"

enum { BOARD_LINE_BYTES = 64, BOARD_HOST_BYTES = 64 };

// One communicator of one rank.
typedef struct BoardSeat {
    _Alignas(BOARD_LINE_BYTES) atomic_uint rounds;  // entered so far; a collective is one round or more
    atomic_uint collectives;                        // entered so far
    atomic_int inside;                              // 1 from entering a collective to leaving it
    atomic_int kind, step, task, layer, micro_step, ordinal;
    atomic_int peer;  // the other rank of a message
    atomic_llong bytes;
    atomic_uint messages;        // that this end of a link is done with
    atomic_ullong signature[2];  // of the collective that began in the last round of this parity
} BoardSeat;

typedef struct BoardRank {
    _Alignas(BOARD_LINE_BYTES) atomic_uint progress;  // changes with every task begun and collective left
    atomic_int step, task, layer, micro_step, ordinal;
    atomic_int process;           // process id on its host
    atomic_int meeting;           // 1 while it waits for all others, to make its transport
    char host[BOARD_HOST_BYTES];  // written once, before the first progress
    BoardSeat seats[TRANSPORT_MAX_COMMUNICATORS];
} BoardRank;

// A board and the words for it.
typedef struct Board {
    Mesh mesh;
    const Communicator *communicators;
    int communicator_count;
    BoardRank *ranks;  // by rank
    bool ordered;      // each rank does one thing after another: its place tells what it has behind it
    TransportWords words;
} Board;

void board_rank_begin(BoardRank *rank);  // nowhere yet
void board_rank_join(BoardRank *rank);   // by its process: host and process id
void board_meet(BoardRank *rank, bool meeting);
void board_note(BoardRank *rank, const TransportPlace *place);  // the rank is here now
void board_enter(BoardSeat *seat, const Communicator *communicator, CollectiveKind kind, const TransportCall *call);
void board_leave(BoardRank *rank, BoardSeat *seat);
void board_message_enter(BoardSeat *seat, CollectiveKind kind, const TransportCall *call, int peer_rank);
void board_message_count(BoardSeat *seat);  // one more is done

TransportPlace board_place(BoardRank *rank);
TransportPlace board_seat_place(BoardSeat *seat);

static inline bool is_message(CollectiveKind kind) {
    return kind == COLLECTIVE_SEND || kind == COLLECTIVE_RECEIVE;
}

// Equal on every member of a group exactly when they call the same collective of the same task with the same bytes. Of
// a message, and across stages, whose tasks are not the same: of the same step and micro-step with the same bytes.
uint64_t board_signature(const Communicator *communicator, CollectiveKind kind, const TransportCall *call);

// What a rank does in a seat of its own: "all-reduce of 4.0 KiB (step 1, task 'mlp down', layer 0)".
const char *board_collective_words(const Board *board, int rank, BoardSeat *seat, char *out, size_t out_bytes);
// "rank 2 on node1, stage 1", the last where there are several, with " (last seen in step 1, task 'mlp down', layer 0)"
// where wanted.
const char *board_rank_words(const Board *board, int rank, bool place, char *out, size_t out_bytes);
