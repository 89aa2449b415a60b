// The progress table: what every rank publishes for its watchers, its place in the step and, for each communicator, the
// last call it entered. It lies in the shared segment (shm) or in the rank's own memory (mpi), from which a thread
// sends it to the launcher. Only the rank writes its row, and only one thread a given cell: plain stores there, plain
// loads by others, and nothing waits for a watcher.

#pragma once

#include <stdatomic.h>

#include "exec/transport/transport.h"

enum { PROGRESS_LINE_BYTES = 64, PROGRESS_HOST_BYTES = 64 };

// A TransportPlace that other threads or processes read concurrently.
typedef struct ProgressPlace {
    atomic_int step, task, layer, micro_step, ordinal;
} ProgressPlace;

// One communicator of one rank.
typedef struct ProgressCell {
    _Alignas(PROGRESS_LINE_BYTES) atomic_uint rounds;  // entered so far; a collective is one round or more
    atomic_int inside;                                 // 1 from entering a call to leaving it
    atomic_int kind;                                   // -1 before the first
    ProgressPlace place;
    atomic_int peer;  // the other rank of a message
    atomic_llong bytes;
    atomic_uint messages;        // finished by this end of a link
    atomic_ullong signature[2];  // of the collective that began in the last round of this parity
} ProgressCell;

typedef struct ProgressRow {
    _Alignas(PROGRESS_LINE_BYTES) atomic_uint progress;  // changes whenever a task begins or a call ends
    ProgressPlace place;
    atomic_int process;              // process id on its host
    atomic_int meeting;              // 1 while it waits for all others to create its transport
    char host[PROGRESS_HOST_BYTES];  // written once, before the first progress
    ProgressCell cells[TRANSPORT_MAX_COMMUNICATORS];
} ProgressRow;

// A progress table and the text for its entries.
typedef struct ProgressTable {
    Mesh mesh;
    const Communicator *communicators;
    int communicator_count;
    ProgressRow *ranks;  // by rank; NULL where only
    ProgressRow *own;    // this rank's row is known
    bool ordered;        // each rank runs its tasks in order: its place tells what it has completed
    TransportWords words;
} ProgressTable;

// For all ranks; NULL: for the setup's own row alone.
ProgressTable progress_table_from(const TransportSetup *setup, ProgressRow *ranks);

// ---------------------------------------------------------------------------------------------- writing

void progress_row_begin(ProgressRow *row);  // no place yet
void progress_row_join(ProgressRow *row);   // by its own process: host and process id
void progress_row_meet(ProgressRow *row, bool meeting);
void progress_row_note(ProgressRow *row, const TransportPlace *place);  // the rank is here now

// peer: for a message, the rank at its other end.
void progress_cell_enter(ProgressCell *cell, const Communicator *communicator, TransportKind kind,
                         const TransportCall *call, int peer);
unsigned progress_cell_round(ProgressCell *cell);      // enters one more round: returns the new count
void progress_cell_count_message(ProgressCell *cell);  // one more is complete
void progress_cell_leave(ProgressRow *row, ProgressCell *cell);

static inline bool is_message(TransportKind kind) {
    return kind == TRANSPORT_SEND || kind == TRANSPORT_RECEIVE;
}

// Equal on every member of a group exactly when they call the same collective of the same task with the same bytes. For
// messages, and across stages, whose tasks differ: the same step and micro-step with the same bytes.
uint64_t collective_signature(const Communicator *communicator, TransportKind kind, const TransportCall *call);

// ---------------------------------------------------------------------------------------------- reading

// A snapshot of a cell.
typedef struct ProgressView {
    bool inside;
    int kind, peer;
    unsigned rounds, messages;
    int64_t bytes;
    TransportPlace place;
} ProgressView;

ProgressView progress_view(ProgressCell *cell);
ProgressRow *progress_row(const ProgressTable *table, int rank);
ProgressView progress_look(const ProgressTable *table, int rank, int communicator);
TransportPlace progress_place(const ProgressTable *table, int rank);
int progress_inside(const ProgressTable *table, int rank);  // the communicator of the call it is in; -1 = none

typedef struct ProgressWords {
    char text[320];
} ProgressWords;

// What a rank is doing: "all-reduce of 4.0 KiB (step 1, task 'mlp down', layer 0)".
ProgressWords progress_call_words(const ProgressTable *table, int rank, ProgressView call);
// "rank 2 on node1, stage 1", the stage only if there are several, with " (last seen in step 1, task 'mlp down', layer
// 0)" on request.
ProgressWords progress_row_words(const ProgressTable *table, int rank, bool place);
void progress_list_add(char *list, size_t bytes, const char *words);  // "rank 0, rank 1"
