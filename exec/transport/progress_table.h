// The progress table: what every rank shows of itself to whoever watches, its place in the step and, for each
// communicator, the collective it entered last. It lies in the shared segment (shm) or in the rank's own memory (mpi),
// from where a thread posts it to the launcher. Plain stores by the rank, plain loads by others: nothing waits for a
// watcher.

#pragma once

#include <stdatomic.h>

#include "exec/transport/transport.h"

enum { PROGRESS_LINE_BYTES = 64, PROGRESS_HOST_BYTES = 64 };

// A TransportPlace that others read meanwhile.
typedef struct ProgressPlace {
    atomic_int step, task, layer, micro_step, ordinal;
} ProgressPlace;

// One communicator of one rank.
typedef struct ProgressCell {
    _Alignas(PROGRESS_LINE_BYTES) atomic_uint rounds;  // entered so far; a collective is one round or more
    atomic_uint collectives;                           // entered so far
    atomic_int inside;                                 // 1 from entering a collective to leaving it
    atomic_int kind;
    ProgressPlace place;
    atomic_int peer;  // the other rank of a message
    atomic_llong bytes;
    atomic_uint messages;        // that this end of a link is done with
    atomic_ullong signature[2];  // of the collective that began in the last round of this parity
} ProgressCell;

typedef struct ProgressRow {
    _Alignas(PROGRESS_LINE_BYTES) atomic_uint progress;  // changes with every task begun and collective left
    ProgressPlace place;
    atomic_int process;              // process id on its host
    atomic_int meeting;              // 1 while it waits for all others, to make its transport
    char host[PROGRESS_HOST_BYTES];  // written once, before the first progress
    ProgressCell cells[TRANSPORT_MAX_COMMUNICATORS];
} ProgressRow;

// A progress table and the words for it.
typedef struct ProgressTable {
    Mesh mesh;
    const Communicator *communicators;
    int communicator_count;
    ProgressRow *ranks;  // by rank
    bool ordered;        // each rank does one thing after another: its place tells what it has behind it
    TransportWords words;
} ProgressTable;

void progress_row_begin(ProgressRow *rank);  // nowhere yet
void progress_row_join(ProgressRow *rank);   // by its process: host and process id
void progress_row_meet(ProgressRow *rank, bool meeting);
void progress_row_note(ProgressRow *rank, const TransportPlace *place);  // the rank is here now
void progress_cell_enter(ProgressCell *cell, const Communicator *communicator, TransportKind kind,
                         const TransportCall *call);
void progress_cell_leave(ProgressRow *rank, ProgressCell *cell);
void progress_cell_enter_message(ProgressCell *cell, TransportKind kind, const TransportCall *call, int peer_rank);
void progress_cell_count_message(ProgressCell *cell);  // one more is done

TransportPlace progress_place(ProgressPlace *place);

static inline bool is_message(TransportKind kind) {
    return kind == COLLECTIVE_SEND || kind == COLLECTIVE_RECEIVE;
}

// Equal on every member of a group exactly when they call the same collective of the same task with the same bytes. Of
// a message, and across stages, whose tasks are not the same: of the same step and micro-step with the same bytes.
uint64_t collective_signature(const Communicator *communicator, TransportKind kind, const TransportCall *call);

// What a rank does in a cell of its own: "all-reduce of 4.0 KiB (step 1, task 'mlp down', layer 0)".
const char *progress_cell_words(const ProgressTable *table, int rank, ProgressCell *cell, char *out, size_t out_bytes);
// "rank 2 on node1, stage 1", the last where there are several, with " (last seen in step 1, task 'mlp down', layer 0)"
// where wanted.
const char *progress_row_words(const ProgressTable *table, int rank, bool place, char *out, size_t out_bytes);
