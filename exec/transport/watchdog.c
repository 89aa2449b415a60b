// A rank that makes no progress inside a collective waits for others: the diagnosis follows the progress table. One
// that makes no progress outside of any hangs in its task. A rank whose rows stop arriving is stopped, or its host is
// gone: one that prepares may take its time, but keeps sending rows.

#include "exec/transport/watchdog.h"

#include <math.h>

#include "sim/base/clock.h"

static const double MEETING_S = 60;           // before the first step ranks wait for the slowest of them: at least this
static const double PREPARATION_S = 600;      // initial weights of a large model, or the kernels that a probe measures
static const double SILENT_SHARE = 0.7;       // of the timeout without a row, where rows come twenty times a second
static const double LONG_SHARE = 0.5;         // of the timeout: a wait that began when another rank already stood still
static const double UNHEARD_S = 0.5;          // added to the timeout while ranks prepare: many start on few cores
static const double RANKS_KNOW_BETTER_S = 1;  // over shared memory ranks notice it themselves, and know the place
static const double NEAREST_FIRST_S = 0.5;    // for the rank nearest to the culprit to be the one that tells of it
static const double SPREAD_S = 5;             // minimum, from the first rank to the last: many start on few cores
static const double LEAVE_S = 5;              // a launcher whose ranks have all ended well exits by then
static const double LONGEST_LOOK_S = 0.25;    // a longer gap between looks was a pause of this process

// Seconds since the last look, whose time is set to now; 0 for the first one.
static double past(double *looked_s) {
    const double now_s = clock_s();
    const double past_s = *looked_s > 0 ? fmin(now_s - *looked_s, LONGEST_LOOK_S) : 0;
    *looked_s = now_s;
    return past_s;
}

Status wait_look(Wait *wait, bool stopped, Error *error) {
    wait->waited_s += past(&wait->looked_s);
    FAIL_IF(stopped, error, STATUS_ENVIRONMENT, "lane %s: stopped because another rank failed", wait->lane);
    return STATUS_OK;
}

bool wait_is_to_be_told(const Wait *wait, const ProgressTable *table, int rank, int communicator) {
    if (!wait_is_over(wait) || wait->waited_s > wait->limit_s + NEAREST_FIRST_S) {
        return wait_is_over(wait);
    }
    const WaitPlace nearest = diagnose_nearest(table, rank);
    return nearest.rank < 0 || (nearest.rank == rank && nearest.communicator == communicator);
}

// ---------------------------------------------------------------------------------------------- all ranks

static int world_of(const Watchdog *watchdog) {
    return mesh_world(&watchdog->table.mesh);
}

static void count_up(Watchdog *watchdog) {
    const double past_s = past(&watchdog->looked_s);
    int came = 0, done = 0;
    for (int rank = 0; rank < world_of(watchdog); rank++) {
        RankWatch *seen = &watchdog->ranks[rank];
        const unsigned progress = atomic_load(&progress_row(&watchdog->table, rank)->progress);
        seen->still_s = progress == seen->progress ? seen->still_s + past_s : 0;
        seen->silent_s = seen->heard || !seen->came || seen->done ? 0 : seen->silent_s + past_s;
        seen->progress = progress;
        seen->heard = false;
        came += seen->came;
        done += seen->done;
    }
    watchdog->nobody_s += came == 0 ? past_s : 0;
    watchdog->some_s += came > 0 && came < world_of(watchdog) ? past_s : 0;
    watchdog->over_s += done == world_of(watchdog) ? past_s : 0;
}

// Once the first rank has connected, the others have as long as one that falls silent; before, the launcher's limit.
double watchdog_missing_s(const Watchdog *watchdog) {
    const double timeout_s = watchdog->timeout_s;
    const bool late =
        watchdog->nobody_s > fmax(watchdog->arrival_s, timeout_s) || watchdog->some_s > fmax(SPREAD_S, timeout_s);
    return late ? watchdog->nobody_s + watchdog->some_s : 0;
}

bool watchdog_over(const Watchdog *watchdog) {
    return watchdog->over_s >= LEAVE_S;
}

static bool meets(const Watchdog *watchdog, int rank) {
    return atomic_load(&progress_row(&watchdog->table, rank)->meeting) != 0;
}

static bool prepares(const Watchdog *watchdog, int rank) {
    return progress_place(&watchdog->table, rank).step < 0;
}

static double limit_of(const Watchdog *watchdog, int rank) {
    const bool preparing = prepares(watchdog, rank);
    const bool meeting = progress_inside(&watchdog->table, rank) >= 0 || meets(watchdog, rank);
    const double least_s = !preparing ? 0 : meeting ? MEETING_S : PREPARATION_S;
    const double limit_s = fmax(watchdog->timeout_s, least_s);
    return watchdog->children || preparing ? limit_s + RANKS_KNOW_BETTER_S : limit_s;
}

static Status silent(const Watchdog *watchdog, int rank, Error *error) {
    const ProgressTable *table = &watchdog->table;
    char waits[768] = "";
    for (int other = 0; other < world_of(watchdog) && !*waits; other++) {
        const int c = other == rank ? -1 : progress_inside(table, other);
        if (c >= 0) {
            snprintf(waits, sizeof waits, "; lane %s: %s waits in %s", table->communicators[c].name,
                     progress_row_words(table, other, false).text,
                     progress_call_words(table, other, progress_look(table, other, c)).text);
        }
    }
    return error_set(error, STATUS_ENVIRONMENT, "%s was not heard of for %.1f s: it is stopped, or its host is gone%s",
                     progress_row_words(table, rank, true).text, watchdog->ranks[rank].silent_s, waits);
}

// Not connected yet, or ended well.
static bool absent(const Watchdog *watchdog, int rank) {
    return watchdog->ranks[rank].done || watchdog->ranks[rank].progress == 0;
}

// A rank that prepares and has fallen silent; no other rank would report it soon.
static int silent_in_preparation(const Watchdog *watchdog) {
    for (int rank = 0; rank < world_of(watchdog); rank++) {
        const RankWatch *seen = &watchdog->ranks[rank];
        if (!seen->done && prepares(watchdog, rank) && seen->silent_s > watchdog->timeout_s + UNHEARD_S) {
            return rank;
        }
    }
    return -1;
}

// The rank whose rows have stopped, when some rank stands still.
static int most_silent(const Watchdog *watchdog) {
    int most = -1;
    double silent_s = SILENT_SHARE * watchdog->timeout_s;
    for (int rank = 0; !watchdog->children && rank < world_of(watchdog); rank++) {
        if (!absent(watchdog, rank) && watchdog->ranks[rank].silent_s > silent_s) {
            most = rank;
            silent_s = watchdog->ranks[rank].silent_s;
        }
    }
    return most;
}

// The rank that stands still longest among those that wait for others; -1 = none.
static int longest_waiting(const Watchdog *watchdog) {
    int longest = -1;
    for (int rank = 0; rank < world_of(watchdog); rank++) {
        const bool waits = !absent(watchdog, rank) && progress_inside(&watchdog->table, rank) >= 0;
        if (waits && (longest < 0 || watchdog->ranks[rank].still_s > watchdog->ranks[longest].still_s)) {
            longest = rank;
        }
    }
    return longest;
}

// Whose wait to tell of: of those that began long ago, the one nearest to the culprit, else the longest.
static WaitPlace told_wait(const Watchdog *watchdog) {
    const int longest = longest_waiting(watchdog);
    const double long_s = LONG_SHARE * limit_of(watchdog, longest >= 0 ? longest : 0);
    if (longest < 0 || watchdog->ranks[longest].still_s <= long_s) {
        return (WaitPlace){-1, -1};
    }
    const WaitPlace nearest = diagnose_nearest(&watchdog->table, longest);
    const bool long_too = nearest.rank >= 0 && watchdog->ranks[nearest.rank].still_s > long_s;
    return long_too ? nearest : (WaitPlace){longest, progress_inside(&watchdog->table, longest)};
}

static int first_beyond_limit(const Watchdog *watchdog) {
    for (int rank = 0; rank < world_of(watchdog); rank++) {
        if (!absent(watchdog, rank) && watchdog->ranks[rank].still_s > limit_of(watchdog, rank)) {
            return rank;
        }
    }
    return -1;
}

// Some rank has stood still too long. A waiting rank leads to the culprit; else it is that rank itself.
Status watchdog_look(Watchdog *watchdog, Error *error) {
    count_up(watchdog);
    const int mute = silent_in_preparation(watchdog);
    FAIL_WITH(mute >= 0, silent(watchdog, mute, error));
    const int stuck = first_beyond_limit(watchdog);
    if (stuck < 0) {
        return STATUS_OK;
    }
    const int quiet = most_silent(watchdog);
    const WaitPlace wait = told_wait(watchdog);
    FAIL_WITH(quiet >= 0, silent(watchdog, quiet, error));
    FAIL_WITH(wait.rank >= 0,
              diagnose_late(&watchdog->table, wait.rank, wait.communicator, watchdog->ranks[wait.rank].still_s, error));
    return error_set(error, STATUS_ENVIRONMENT, "%s stands still there since %.1f s, and waits for %s",
                     progress_row_words(&watchdog->table, stuck, true).text, watchdog->ranks[stuck].still_s,
                     meets(watchdog, stuck) ? "all ranks to meet" : "nobody");
}
