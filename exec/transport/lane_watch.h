// A stream's progress through a communicator's collectives and messages, shown in the progress table. The host notes
// each one it puts into a stream; the stream counts, in memory the host can read, those begun and those finished.

#pragma once

#include "exec/transport/progress_table.h"

// Written in stream order, one cache line per communicator, so writes of different lanes do not slow each other down.
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

// Ring of the latest notes: a stream takes some hundred launches before the host has to wait for it.
enum { LANE_NOTES = 1024 };

// Whose progress, and where it is shown.
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
// The next call of this communicator goes into a stream: its number, 1, 2, ..., which the stream must count.
unsigned lane_watch_note(LaneWatch *watch, TransportKind kind, const TransportCall *call);
bool lane_watch_idle(const LaneWatch *watch);  // the stream has finished everything noted
// Publishes the stream's progress since the last look in the progress table; one thread at a time. False: no change.
bool lane_watch_show(LaneWatch *watch);
