// Standing still is counted in looks of this process: a pause of its own (stopped, suspended, starved) counts little. A
// rank that stands still inside a collective waits for others: the diagnosis follows the progress table. One that
// stands still outside of any hangs in its task. A rank whose rows stop coming is stopped, or its host is gone: one
// that prepares may take its time, but shows itself meanwhile.

#include "exec/launch/watch.h"

#include <math.h>
#include <string.h>

#include "exec/transport/clock.h"

static const double MEETING_S = 60;           // before the first step ranks wait for the slowest of them: at least this
static const double PREPARATION_S = 600;      // initial weights of a large model, or the kernels that a probe measures
static const double SILENT_SHARE = 0.7;       // of the timeout without a row, where rows come twenty times a second
static const double LONG_SHARE = 0.5;         // of the timeout: a wait that began when somebody else stood still
static const double UNHEARD_S = 0.5;          // beyond the timeout, while ranks prepare: many start on few cores
static const double RANKS_KNOW_BETTER_S = 1;  // over shared memory ranks see it themselves, with the place at hand

void watch_begin(Watch *watch, const char *host, Arena *arena) {
    const int world = mesh_world(&watch->table.mesh);
    watch->still_s = ARENA_ARRAY(arena, double, world);
    watch->progress = ARENA_ARRAY(arena, unsigned, world);
    watch->looked_s = clock_s();
    memset(watch->still_s, 0, (size_t)world * sizeof *watch->still_s);
    memset(watch->progress, 0, (size_t)world * sizeof *watch->progress);
    watch->stopped_s = ARENA_ARRAY(arena, double, world);
    memset(watch->stopped_s, 0, (size_t)world * sizeof *watch->stopped_s);
    for (int rank = 0; host && rank < world; rank++) {  // a rank says it itself, once it comes that far
        snprintf(watch->table.ranks[rank].host, sizeof watch->table.ranks[rank].host, "%s", host);
    }
}

static void count_up(Watch *watch) {
    const double past_s = clock_past_s(&watch->looked_s);
    for (int rank = 0; rank < mesh_world(&watch->table.mesh); rank++) {
        const unsigned progress = atomic_load(&watch->table.ranks[rank].progress);
        watch->still_s[rank] = progress == watch->progress[rank] ? watch->still_s[rank] + past_s : 0;
        watch->progress[rank] = progress;
        const bool stopped = !watch->rendezvous && watch->workers->of_rank[rank].stopped;
        watch->stopped_s[rank] = stopped ? watch->stopped_s[rank] + past_s : 0;
    }
}

// The communicator in which the rank waits; -1 = in none.
static int waits_in(const Watch *watch, int rank) {
    for (int c = 0; c < watch->table.communicator_count; c++) {
        if (atomic_load(&watch->table.ranks[rank].cells[c].inside)) {
            return c;
        }
    }
    return -1;
}

static double limit_of(const Watch *watch, int rank) {
    const bool preparing = progress_place(&watch->table.ranks[rank].place).step < 0;
    const bool meeting = waits_in(watch, rank) >= 0 || atomic_load(&watch->table.ranks[rank].meeting);
    const double least_s = !preparing ? 0 : meeting ? MEETING_S : PREPARATION_S;
    const double limit_s = fmax(watch->timeout_s, least_s);
    return watch->rendezvous && !preparing ? limit_s : limit_s + RANKS_KNOW_BETTER_S;
}

static Status silent(const Watch *watch, int rank, double silent_s, Error *error) {
    char who[320], whom[128], what[256];
    progress_row_words(&watch->table, rank, true, who, sizeof who);
    for (int other = 0; other < mesh_world(&watch->table.mesh); other++) {
        const int c = other == rank ? -1 : waits_in(watch, other);
        if (c >= 0) {
            progress_row_words(&watch->table, other, false, whom, sizeof whom);
            progress_cell_words(&watch->table, other, &watch->table.ranks[other].cells[c], what, sizeof what);
            return error_set(error, STATUS_ENVIRONMENT,
                             "%s was not heard of for %.1f s: it is stopped, or its host is gone; lane %s: %s waits "
                             "in %s",
                             who, silent_s, watch->table.communicators[c].name, whom, what);
        }
    }
    return error_set(error, STATUS_ENVIRONMENT, "%s was not heard of for %.1f s: it is stopped, or its host is gone",
                     who, silent_s);
}

static bool ended(const Watch *watch, int rank) {
    return watch->rendezvous ? rendezvous_rank(watch->rendezvous, rank)->done : watch->workers->of_rank[rank].pid == 0;
}

// Has not come yet, or came to a good end.
static bool absent(const Watch *watch, int rank) {
    return ended(watch, rank) || watch->progress[rank] == 0;
}

// Since its last row, or since its process was stopped. A rank that never came has no rows.
static double silence_of(const Watch *watch, int rank) {
    return watch->rendezvous ? rendezvous_rank(watch->rendezvous, rank)->silent_s : watch->stopped_s[rank];
}

// One that prepares and is not heard of any more: no other rank would say so before long.
static int silent_in_preparation(const Watch *watch) {
    for (int rank = 0; rank < mesh_world(&watch->table.mesh); rank++) {
        const bool prepares = !ended(watch, rank) && progress_place(&watch->table.ranks[rank].place).step < 0;
        if (prepares && silence_of(watch, rank) > watch->timeout_s + UNHEARD_S) {
            return rank;
        }
    }
    return -1;
}

// The one whose rows have stopped, when somebody stands still.
static int most_silent(const Watch *watch) {
    int most = -1;
    double silent_s = SILENT_SHARE * watch->timeout_s;
    for (int rank = 0; watch->rendezvous && rank < mesh_world(&watch->table.mesh); rank++) {
        if (!absent(watch, rank) && silence_of(watch, rank) > silent_s) {
            most = rank;
            silent_s = silence_of(watch, rank);
        }
    }
    return most;
}

// The rank that stands still longest, of those that wait for others; -1 = none does.
static int longest_waiting(const Watch *watch) {
    int longest = -1;
    for (int rank = 0; rank < mesh_world(&watch->table.mesh); rank++) {
        const bool waits = !absent(watch, rank) && waits_in(watch, rank) >= 0;
        if (waits && (longest < 0 || watch->still_s[rank] > watch->still_s[longest])) {
            longest = rank;
        }
    }
    return longest;
}

static int first_beyond_limit(const Watch *watch) {
    for (int rank = 0; rank < mesh_world(&watch->table.mesh); rank++) {
        if (!absent(watch, rank) && watch->still_s[rank] > limit_of(watch, rank)) {
            return rank;
        }
    }
    return -1;
}

// Somebody stands still too long. Whoever waits knows for whom; else it is that rank itself.
Status watch_look(Watch *watch, Error *error) {
    count_up(watch);
    const int mute = silent_in_preparation(watch);
    if (mute >= 0) {
        return silent(watch, mute, silence_of(watch, mute), error);
    }
    const int stuck = first_beyond_limit(watch);
    if (stuck < 0) {
        return STATUS_OK;
    }
    const int quiet = most_silent(watch), waiting = longest_waiting(watch);
    if (quiet >= 0) {
        return silent(watch, quiet, silence_of(watch, quiet), error);
    }
    if (waiting >= 0 && watch->still_s[waiting] > LONG_SHARE * limit_of(watch, waiting)) {
        return diagnose_late(&watch->table, waiting, waits_in(watch, waiting), watch->still_s[waiting], error);
    }
    char who[320];
    progress_row_words(&watch->table, stuck, true, who, sizeof who);
    const bool meeting = atomic_load(&watch->table.ranks[stuck].meeting);
    return error_set(error, STATUS_ENVIRONMENT, "%s stands still there since %.1f s, and waits for %s", who,
                     watch->still_s[stuck], meeting ? "all ranks to meet" : "nobody");
}
