// Whoever is slow waits for nobody: of all ranks it spends least time waiting in collectives, in most parts of the
// recorded time. What a rank waits is known from how long its collectives took (recorded with
// TORCH_NCCL_ENABLE_TIMING) beyond the shortest of the group, else from when the last member came.

#include "autotune/blame/pace.h"

#include <math.h>
#include <stdlib.h>

enum { PARTS = 8, LEAST_PARTS = 4, NOBODY = -1 };

static const double NS = 1e9, MS = 1e3;
static const double LEAST_EXCESS = 0.125;   // of the time; of slow ranks 0.15 and more, of sound jobs 0.11 and less
static const double PARTS_SHARE = 0.7;      // of the parts; of slow ranks 0.75 and more, of sound jobs seldom (both of
                                            // tests/frameworks/blame, at a load of 20 to 49 on two cores)
static const double USUAL_SPREAD = 0.97;    // of collectives: a longer wait is an event, and counts as if it were usual
static const double CONSTANT_SPREAD = 0.5;  // of the lateness, between its 20th and 80th percentile

typedef struct Pacing {
    const Job *job;
    int64_t begin_ns, end_ns;
    double *waited_s;  // by rank and part
    int slots[PARTS];
    int timed, untimed;
    double cap_s;  // of a wait
} Pacing;

static int part_of(const Pacing *pacing, int64_t at_ns) {
    const double share = (double)(at_ns - pacing->begin_ns) / (double)(pacing->end_ns - pacing->begin_ns);
    return share < 0 ? NOBODY : share >= 1 ? PARTS - 1 : (int)(share * PARTS);
}

// Every member's entry of that number; false where one is missing.
static bool entries_at(const Job *job, const JobGroup *group, int64_t seq, const DumpEntry **entries) {
    for (int m = 0; m < group->count; m++) {
        const Turn *turn = member_turn(&group->members[m], seq);
        entries[m] = turn ? turn_entry(job, &group->members[m], turn) : NULL;
        if (!turn || entries[m]->created_ns <= 0 || dump_op_rows[turn->op].alone) {
            return false;
        }
    }
    return group->count > 1;
}

static int64_t last_of(const JobGroup *group, const DumpEntry *const *entries) {
    int64_t last = 0;
    for (int m = 0; m < group->count; m++) {
        last = entries[m]->created_ns > last ? entries[m]->created_ns : last;
    }
    return last;
}

static int compare_numbers(const void *a, const void *b) {
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static double longest_wait(const JobGroup *group, const DumpEntry *const *entries, bool *timed) {
    double shortest = INFINITY, longest = -INFINITY;
    int64_t first = INT64_MAX;
    for (int m = 0; m < group->count; m++) {
        shortest = fmin(shortest, entries[m]->duration_ms);
        longest = fmax(longest, entries[m]->duration_ms);
        first = entries[m]->created_ns < first ? entries[m]->created_ns : first;
    }
    *timed = shortest >= 0;
    return *timed ? (longest - shortest) / MS : (double)(last_of(group, entries) - first) / NS;
}

// From the first collective that counts to the last: what is before is the setting up. And the longest usual wait.
static void find_span(Pacing *pacing, Arena *arena) {
    const Job *job = pacing->job;
    double *waits = NULL;
    size_t capacity = 0, count = 0;
    pacing->begin_ns = INT64_MAX;
    for (int g = 0; g < job->group_count; g++) {
        const JobGroup *group = &job->groups[g];
        const DumpEntry **entries = ARENA_ARRAY(arena, const DumpEntry *, group->count);
        for (int64_t seq = group->first; seq <= group->last; seq++) {
            if (entries_at(job, group, seq, entries)) {
                const int64_t last = last_of(group, entries);
                pacing->begin_ns = last < pacing->begin_ns ? last : pacing->begin_ns;
                pacing->end_ns = last > pacing->end_ns ? last : pacing->end_ns;
                bool timed = false;
                waits = arena_grow(arena, waits, count, &capacity, sizeof *waits);
                waits[count++] = longest_wait(group, entries, &timed);
            }
        }
    }
    if (count > 0) {
        qsort(waits, count, sizeof *waits, compare_numbers);
        pacing->cap_s = waits[(size_t)(USUAL_SPREAD * (double)(count - 1))];
    }
}

static void add_slot(Pacing *pacing, const JobGroup *group, const DumpEntry *const *entries) {
    const int64_t last = last_of(group, entries);
    double shortest = INFINITY;
    for (int m = 0; m < group->count; m++) {
        shortest = entries[m]->duration_ms < shortest ? entries[m]->duration_ms : shortest;
    }
    const int part = part_of(pacing, last);
    if (part == NOBODY) {
        return;
    }
    pacing->slots[part]++;
    pacing->timed += shortest >= 0;
    pacing->untimed += shortest < 0;
    for (int m = 0; m < group->count; m++) {
        const double waited =
            shortest >= 0 ? (entries[m]->duration_ms - shortest) / MS : (double)(last - entries[m]->created_ns) / NS;
        pacing->waited_s[group->members[m].rank * PARTS + part] += fmin(waited, pacing->cap_s);
    }
}

static void add_slots(Pacing *pacing, Arena *arena) {
    const Job *job = pacing->job;
    for (int g = 0; g < job->group_count; g++) {
        const JobGroup *group = &job->groups[g];
        const DumpEntry **entries = ARENA_ARRAY(arena, const DumpEntry *, group->count);
        for (int64_t seq = group->first; seq <= group->last; seq++) {
            if (entries_at(job, group, seq, entries)) {
                add_slot(pacing, group, entries);
            }
        }
    }
}

static double waited_in(const Pacing *pacing, int rank, int part) {
    return pacing->waited_s[rank * PARTS + part];
}

// Who waits least in all.
static int least_waiting(const Pacing *pacing) {
    int least = NOBODY;
    double lowest = INFINITY;
    for (int rank = 0; rank < pacing->job->world; rank++) {
        double waited = 0;
        for (int part = 0; part < PARTS; part++) {
            waited += waited_in(pacing, rank, part);
        }
        if (pacing->job->ranks[rank].dump && waited < lowest) {
            lowest = waited;
            least = rank;
        }
    }
    return least;
}

// How much less the rank waits than the next, from one part to another; negative = another waits less.
static double less_than_next(const Pacing *pacing, int rank, int from, int to) {
    double own = 0, next = INFINITY;
    for (int other = 0; other < pacing->job->world; other++) {
        double waited = 0;
        for (int part = from; part < to; part++) {
            waited += waited_in(pacing, other, part);
        }
        if (other == rank) {
            own = waited;
        } else if (pacing->job->ranks[other].dump) {
            next = fmin(next, waited);
        }
    }
    return isfinite(next) ? next - own : 0;
}

// ---------------------------------------------------------------------------------------------- clocks

// Late by about the same everywhere: after a long product and right after another collective. That is a clock.
static bool always_late_alike(const Pacing *pacing, int rank, Arena *arena, double *late_s) {
    const Job *job = pacing->job;
    double *late = NULL;
    size_t capacity = 0, count = 0;
    for (int g = 0; g < job->ranks[rank].group_count; g++) {
        const JobGroup *group = &job->groups[job->ranks[rank].groups[g].group];
        const DumpEntry **entries = ARENA_ARRAY(arena, const DumpEntry *, group->count);
        for (int64_t seq = group->first; seq <= group->last; seq++) {
            if (!entries_at(job, group, seq, entries)) {
                continue;
            }
            int64_t others = 0, own = 0;
            for (int m = 0; m < group->count; m++) {
                const bool mine = group->members[m].rank == rank;
                own = mine ? entries[m]->created_ns : own;
                others = !mine && entries[m]->created_ns > others ? entries[m]->created_ns : others;
            }
            late = arena_grow(arena, late, count, &capacity, sizeof *late);
            late[count++] = (double)(own - others) / NS;
        }
    }
    if (count == 0) {
        return false;
    }
    qsort(late, count, sizeof *late, compare_numbers);
    *late_s = late[count / 2];
    return *late_s > 0 && late[count * 4 / 5] - late[count / 5] < CONSTANT_SPREAD * *late_s;
}

void pace_find(const Job *job, Arena *arena, Pace *pace) {
    Pacing pacing = {.job = job, .waited_s = ARENA_ARRAY(arena, double, (size_t)job->world *PARTS)};
    *pace = (Pace){.rank = NOBODY, .clock_rank = NOBODY};
    find_span(&pacing, arena);
    if (pacing.end_ns <= pacing.begin_ns) {
        return;
    }
    add_slots(&pacing, arena);
    pace->measured = pacing.timed > pacing.untimed;
    const int slowest = least_waiting(&pacing);
    int parts = 0, own = 0;
    for (int part = 0; part < PARTS && slowest != NOBODY; part++) {
        parts += pacing.slots[part] > 0;
        own += pacing.slots[part] > 0 && less_than_next(&pacing, slowest, part, part + 1) > 0;
    }
    if (parts < LEAST_PARTS || own < PARTS_SHARE * parts) {
        return;
    }
    pace->excess = less_than_next(&pacing, slowest, 0, PARTS) * NS / (double)(pacing.end_ns - pacing.begin_ns);
    if (pace->excess < LEAST_EXCESS) {
        return;
    }
    double late_s = 0;
    if (!pace->measured && always_late_alike(&pacing, slowest, arena, &late_s)) {
        pace->clock_rank = slowest;
        pace->clock_s = late_s;
        return;
    }
    pace->rank = slowest;
}
