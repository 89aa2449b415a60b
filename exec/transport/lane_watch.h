// What a stream has done of a communicator's collectives and messages, shown on the progress table. The host notes each
// one that it puts into a stream; the stream counts, in memory that the host reads, the ones it began and the ones it
// ended.

#pragma once

#include "exec/transport/progress_table.h"

// Written by a stream in its order, one line for each communicator: no write is slowed down by another lane's.
typedef struct LaneCounts {
    _Alignas(PROGRESS_LINE_BYTES) atomic_uint begun;
    atomic_uint ended;
} LaneCounts;

typedef struct LaneNote {
    TransportKind kind;
    int64_t bytes;
    ReduceOp op;
    TransportPlace place;
} LaneNote;

// Notes of the latest: a stream takes some hundred launches before the host has to wait for it.
enum { LANE_NOTES = 1024 };

// Of whom, and where it is shown.
typedef struct LanePlace {
    const Communicator *communicator;
    int peer;  // of a link: the other rank
    ProgressRow *row;
    ProgressCell *cell;
} LanePlace;

typedef struct LaneWatch {
    LanePlace of;
    LaneCounts *counts;
    LaneNote *notes;
    atomic_uint noted;
    unsigned shown_begun, shown_ended;
} LaneWatch;

void lane_watch_begin(LaneWatch *watch, const LanePlace *of, LaneCounts *counts, Arena *arena);
// The next call of this communicator goes into a stream: its number, 1, 2, ..., which the stream is to count.
unsigned lane_watch_note(LaneWatch *watch, TransportKind kind, const TransportCall *call);
bool lane_watch_idle(const LaneWatch *watch);  // the stream has ended all that was noted
// Puts what the stream has done since the last look on the progress table; one thread at a time. False: nothing new.
bool lane_watch_show(LaneWatch *watch);
