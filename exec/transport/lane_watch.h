// What a stream has done of a communicator's collectives, shown on the board. The host notes each collective that it
// puts into a stream; the stream counts, in memory that the host reads, the ones it began and the ones it ended.

#pragma once

#include "exec/transport/board.h"

// Written by a stream in its order, one line for each communicator: no write is slowed down by another lane's.
typedef struct LaneCounts {
    _Alignas(BOARD_LINE_BYTES) atomic_uint begun;
    atomic_uint ended;
} LaneCounts;

typedef struct LaneNote {
    CollectiveKind kind;
    int64_t bytes;
    ReduceOp op;
    TransportPlace place;
} LaneNote;

// Notes of the latest: a stream takes some hundred launches before the host has to wait for it.
enum { LANE_NOTES = 1024 };

typedef struct LaneWatch {
    BoardRank *row;
    BoardSeat *seat;
    LaneCounts *counts;
    LaneNote *notes;
    atomic_uint noted;
    unsigned first_round;         // of the seat, before the first collective
    unsigned shown_begun, shown_ended;
} LaneWatch;

void lane_watch_begin(LaneWatch *watch, BoardRank *row, BoardSeat *seat, LaneCounts *counts, Arena *arena);
// The next collective of this communicator goes into a stream: its number, 1, 2, ..., which the stream is to count.
unsigned lane_watch_note(LaneWatch *watch, CollectiveKind kind, const TransportCall *call);
bool lane_watch_idle(const LaneWatch *watch);  // the stream has ended all that was noted
// Puts what the stream has done since the last look on the board; one thread at a time. False: nothing new.
bool lane_watch_show(LaneWatch *watch);
