// A note is written before its number goes into the stream, so a reader that sees the number sees the note.

#include "exec/transport/lane_watch.h"

void lane_watch_begin(LaneWatch *watch, const LanePlace *of, LaneCounts *counts, Arena *arena) {
    *watch = (LaneWatch){.of = *of, .counts = counts, .notes = ARENA_ARRAY(arena, LaneNote, LANE_NOTES)};
    atomic_init(&watch->noted, 0);
    atomic_store(&counts->begun, 0);
    atomic_store(&counts->ended, 0);
}

unsigned lane_watch_note(LaneWatch *watch, TransportKind kind, const TransportCall *call) {
    const unsigned number = atomic_load_explicit(&watch->noted, memory_order_relaxed) + 1;
    watch->notes[(number - 1) % LANE_NOTES] =
        (LaneNote){.kind = kind, .bytes = call->bytes, .op = call->op, .place = call->place};
    atomic_store_explicit(&watch->noted, number, memory_order_release);
    return number;
}

bool lane_watch_idle(const LaneWatch *watch) {
    return atomic_load_explicit(&watch->counts->ended, memory_order_acquire) ==
           atomic_load_explicit(&watch->noted, memory_order_relaxed);
}

static void show_begun(const LanePlace *of, const LaneNote *note) {
    const TransportCall call = {.bytes = note->bytes, .op = note->op, .place = note->place};
    progress_cell_enter(of->cell, of->communicator, note->kind, &call, of->peer);
    if (!is_message(note->kind)) {
        progress_cell_round(of->cell);
    }
}

// How many after `shown` can be reported; older notes are gone.
static unsigned news(unsigned shown, unsigned now) {
    return now - shown < LANE_NOTES ? now - shown : LANE_NOTES;
}

bool lane_watch_show(LaneWatch *watch) {
    const unsigned ended = atomic_load_explicit(&watch->counts->ended, memory_order_acquire);
    const unsigned begun = atomic_load_explicit(&watch->counts->begun, memory_order_acquire);
    if (begun == watch->shown_begun && ended == watch->shown_ended) {
        return false;
    }
    for (unsigned left = news(watch->shown_ended, ended); left > 0; left--) {
        if (is_message(watch->notes[(ended - left) % LANE_NOTES].kind)) {
            progress_cell_count_message(watch->of.cell);
        }
    }
    for (unsigned left = news(watch->shown_begun, begun); left > 0; left--) {
        show_begun(&watch->of, &watch->notes[(begun - left) % LANE_NOTES]);
    }
    if (begun == ended) {
        atomic_store_explicit(&watch->of.cell->inside, 0, memory_order_release);
    }
    atomic_fetch_add_explicit(&watch->of.row->progress, 1, memory_order_release);
    watch->shown_begun = begun;
    watch->shown_ended = ended;
    return true;
}
