// Whoever is slow waits for nobody: of all ranks it spends least time waiting in collectives, in every part of the
// recorded time. What a rank waits is known from how long its collectives took (recorded with
// TORCH_NCCL_ENABLE_TIMING) beyond the shortest of the group, else from when the last member came.

#include "autotune/blame/pace.h"

#include <math.h>
#include <stdlib.h>

enum { PARTS = 8, LEAST_PARTS = 4, NOBODY = -1 };

static const double NS = 1e9, MS = 1e3;
static const double LEAST_EXCESS = 0.10;    // of the time; less is what ranks of sound jobs differ by
static const double PARTS_SHARE = 0.85;     // of the parts, so that the first may be of its own kind
static const double CONSTANT_SPREAD = 0.5;  // of the lateness, between its 20th and 80th percentile

typedef struct Pacing {
    const Job *job;
    int64_t begin_ns, end_ns;
    double *waited_s;  // by rank and part
    int slots[PARTS];
    int timed, untimed;
} Pacing;

static void find_span(Pacing *pacing) {
    const Job *job = pacing->job;
    pacing->end_ns = INT64_MAX;
    for (int rank = 0; rank < job->world; rank++) {
        const JobRank *row = &job->ranks[rank];
        if (row->dump && row->dump->entry_count > 0) {
            const int64_t last = row->dump->entries[row->dump->entry_count - 1].created_ns;
            pacing->begin_ns = row->first_ns > pacing->begin_ns ? row->first_ns : pacing->begin_ns;
            pacing->end_ns = last < pacing->end_ns ? last : pacing->end_ns;
        }
    }
}

static int part_of(const Pacing *pacing, int64_t at_ns) {
    const double share = (double)(at_ns - pacing->begin_ns) / (double)(pacing->end_ns - pacing->begin_ns);
    return share < 0 || share >= 1 ? NOBODY : (int)(share * PARTS);
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

static void add_slot(Pacing *pacing, const JobGroup *group, const DumpEntry *const *entries) {
    int64_t last = 0;
    double shortest = INFINITY;
    for (int m = 0; m < group->count; m++) {
        last = entries[m]->created_ns > last ? entries[m]->created_ns : last;
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
        pacing->waited_s[group->members[m].rank * PARTS + part] +=
            shortest >= 0 ? (entries[m]->duration_ms - shortest) / MS : (double)(last - entries[m]->created_ns) / NS;
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

// Who waits least in a part, and by how much less than the next: a share of the part.
static int least_waiting(const Pacing *pacing, int part, double *excess) {
    int least = NOBODY;
    double lowest = INFINITY, next = INFINITY;
    for (int rank = 0; rank < pacing->job->world; rank++) {
        const double waited = pacing->waited_s[rank * PARTS + part];
        if (!pacing->job->ranks[rank].dump) {
            continue;
        }
        if (waited < lowest) {
            next = lowest;
            lowest = waited;
            least = rank;
        } else if (waited < next) {
            next = waited;
        }
    }
    *excess = isfinite(next) ? (next - lowest) * NS * PARTS / (double)(pacing->end_ns - pacing->begin_ns) : 0;
    return least;
}

// ---------------------------------------------------------------------------------------------- clocks

static int compare_numbers(const void *a, const void *b) {
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

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
    find_span(&pacing);
    if (pacing.end_ns <= pacing.begin_ns || pacing.begin_ns == 0) {
        return;
    }
    add_slots(&pacing, arena);
    pace->measured = pacing.timed > pacing.untimed;
    int *parts_of = ARENA_ARRAY(arena, int, job->world), parts = 0, slowest = NOBODY;
    double *sum = ARENA_ARRAY(arena, double, job->world);
    for (int part = 0; part < PARTS; part++) {
        double excess = 0;
        const int rank = least_waiting(&pacing, part, &excess);
        parts += pacing.slots[part] > 0;
        if (rank != NOBODY && excess >= LEAST_EXCESS) {
            parts_of[rank]++;
            sum[rank] += excess;
            slowest = slowest == NOBODY || parts_of[rank] > parts_of[slowest] ? rank : slowest;
        }
    }
    if (parts < LEAST_PARTS || slowest == NOBODY || parts_of[slowest] < PARTS_SHARE * parts) {
        return;
    }
    double late_s = 0;
    if (!pace->measured && always_late_alike(&pacing, slowest, arena, &late_s)) {
        pace->clock_rank = slowest;
        pace->clock_s = late_s;
        return;
    }
    pace->rank = slowest;
    pace->excess = sum[slowest] / parts_of[slowest];
}
