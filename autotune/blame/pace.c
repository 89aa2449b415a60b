// The slow rank waits for nobody: of all ranks it spends the least time waiting in collectives, in most parts of the
// recorded time. A rank's wait is how much longer its collectives took (recorded with TORCH_NCCL_ENABLE_TIMING) than
// the shortest in the group, else the time until the last member arrived. In a message, which may be posted ahead, it
// waits at most until it posts the next; overlapping waits count once.

#include "autotune/blame/pace.h"

#include <math.h>
#include <stdlib.h>

enum { PARTS = 8, LEAST_PARTS = 4, NOBODY = -1 };

static const double NS = 1e9, MS = 1e3;
static const int64_t TOGETHER_NS = 1000000;  // batch_isend_irecv posts its messages within microseconds
static const double LEAST_EXCESS = 0.125;    // of the time; slow ranks: 0.15 and more, healthy jobs: 0.11 and less
static const double PARTS_SHARE = 0.7;       // of the parts; of slow ranks 0.75 and more, of sound jobs seldom (both of
                                             // tests/frameworks/blame, at a load of 20 to 49 on two cores)
static const double CONSTANT_SPREAD = 0.5;   // of the lateness, between its 20th and 80th percentile

typedef struct Pause {
    int rank;
    int64_t begin_ns, end_ns;
} Pause;

typedef struct Pacing {
    const Job *job;
    Pause *pauses;
    size_t pause_count, pause_capacity;
    int64_t begin_ns, end_ns;
    double *waited_s;  // by rank and part
    int slots[PARTS];
    int timed, untimed;
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
        const bool goes_on = turn && dump_op_rows[turn->op].alone && turn->op != DUMP_SEND;
        if (!turn || entries[m]->created_ns <= 0 || goes_on) {
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

static double shortest_of(const JobGroup *group, const DumpEntry *const *entries) {
    double shortest = INFINITY;
    for (int m = 0; m < group->count; m++) {
        shortest = fmin(shortest, entries[m]->duration_ms);
    }
    return shortest;
}

// When the rank continued after a message to the next one not posted together with it.
static int64_t went_on_ns(const Job *job, int rank, const DumpEntry *message) {
    const Dump *dump = job->ranks[rank].dump;
    const DumpEntry *next = message + 1, *end = dump->entries + dump->entry_count;
    while (next < end && next->created_ns - message->created_ns < TOGETHER_NS) {
        next++;
    }
    return next < end ? next->created_ns : INT64_MAX;
}

static int64_t end_of_wait(const Job *job, const JobGroup *group, const DumpEntry *const *entries, int m) {
    const double shortest_ms = shortest_of(group, entries);
    const int64_t last = last_of(group, entries);
    if (shortest_ms >= 0) {
        return entries[m]->created_ns + (int64_t)((entries[m]->duration_ms - shortest_ms) / MS * NS);
    }
    const int64_t left = entries[m]->p2p ? went_on_ns(job, group->members[m].rank, entries[m]) : INT64_MAX;
    return left < last ? left : last;
}

typedef void (*Visit)(Pacing *pacing, const JobGroup *group, const DumpEntry *const *entries, Arena *arena);

// Visits every collective that counts.
static void visit_all(Pacing *pacing, Visit visit, Arena *arena) {
    const Job *job = pacing->job;
    for (int g = 0; g < job->group_count; g++) {
        const JobGroup *group = &job->groups[g];
        const DumpEntry **entries = ARENA_ARRAY(arena, const DumpEntry *, group->count);
        for (int64_t seq = group->first; seq <= group->last; seq++) {
            if (entries_at(job, group, seq, entries)) {
                visit(pacing, group, entries, arena);
            }
        }
    }
}

// From the first collective that counts to the last: anything earlier is setup.
static void widen_span(Pacing *pacing, const JobGroup *group, const DumpEntry *const *entries, Arena *arena) {
    (void)arena;
    const int64_t last = last_of(group, entries);
    pacing->begin_ns = last < pacing->begin_ns ? last : pacing->begin_ns;
    pacing->end_ns = last > pacing->end_ns ? last : pacing->end_ns;
}

static void add_slot(Pacing *pacing, const JobGroup *group, const DumpEntry *const *entries, Arena *arena) {
    const int part = part_of(pacing, last_of(group, entries));
    const bool timed = shortest_of(group, entries) >= 0;
    if (part == NOBODY) {
        return;
    }
    pacing->slots[part]++;
    pacing->timed += timed;
    pacing->untimed += !timed;
    for (int m = 0; m < group->count; m++) {
        const Pause pause = {group->members[m].rank, entries[m]->created_ns,
                             end_of_wait(pacing->job, group, entries, m)};
        ARENA_PUSH(arena, pacing->pauses, pacing->pause_count, &pacing->pause_capacity) = pause;
    }
}

static int compare_pauses(const void *a, const void *b) {
    const Pause *one = a, *other = b;
    return one->rank != other->rank ? (one->rank > other->rank) - (one->rank < other->rank)
                                    : (one->begin_ns > other->begin_ns) - (one->begin_ns < other->begin_ns);
}

// Overlapping time counts once, in the part in which the wait ends.
static void add_pauses(Pacing *pacing) {
    if (pacing->pause_count > 0) {
        qsort(pacing->pauses, pacing->pause_count, sizeof *pacing->pauses, compare_pauses);
    }
    int64_t until = 0;
    for (size_t i = 0; i < pacing->pause_count; i++) {
        const Pause *pause = &pacing->pauses[i];
        until = i == 0 || pause[-1].rank != pause->rank ? 0 : until;
        const int64_t begin = pause->begin_ns > until ? pause->begin_ns : until;
        const int part = part_of(pacing, pause->end_ns);
        if (pause->end_ns > begin && part != NOBODY) {
            pacing->waited_s[pause->rank * PARTS + part] += (double)(pause->end_ns - begin) / NS;
        }
        until = pause->end_ns > until ? pause->end_ns : until;
    }
}

static double waited_in(const Pacing *pacing, int rank, int part) {
    return pacing->waited_s[rank * PARTS + part];
}

// How much less the rank waits in a part than the next lowest; negative = another waits less.
static double less_than_next(const Pacing *pacing, int rank, int part) {
    double next = INFINITY;
    for (int other = 0; other < pacing->job->world; other++) {
        if (other != rank && pacing->job->ranks[other].dump) {
            next = fmin(next, waited_in(pacing, other, part));
        }
    }
    return isfinite(next) ? next - waited_in(pacing, rank, part) : 0;
}

// Number of parts in which it waits least of all.
static int parts_led(const Pacing *pacing, int rank) {
    int led = 0;
    for (int part = 0; part < PARTS; part++) {
        led += pacing->slots[part] > 0 && less_than_next(pacing, rank, part) > 0;
    }
    return led;
}

// The rank that waits least in most parts.
static int least_waiting(const Pacing *pacing, int *led) {
    int least = NOBODY;
    *led = 0;
    for (int rank = 0; rank < pacing->job->world; rank++) {
        const int parts = pacing->job->ranks[rank].dump ? parts_led(pacing, rank) : 0;
        if (parts > *led) {
            *led = parts;
            least = rank;
        }
    }
    return least;
}

// Share of the time, median over the parts: a single event does not make a rank slow.
static double usual_excess(const Pacing *pacing, int rank) {
    const double part_s = (double)(pacing->end_ns - pacing->begin_ns) / NS / PARTS;
    double shares[PARTS];
    size_t count = 0;
    for (int part = 0; part < PARTS; part++) {
        if (pacing->slots[part] > 0) {
            shares[count++] = less_than_next(pacing, rank, part) / part_s;
        }
    }
    qsort(shares, count, sizeof *shares, compare_numbers);
    return shares[(count - 1) / 2];
}

// ---------------------------------------------------------------------------------------------- clocks

// Late by about the same amount everywhere, after a long GEMM and right after another collective alike: clock skew.
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
            ARENA_PUSH(arena, late, count, &capacity) = (double)(own - others) / NS;
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
    Pacing pacing = {
        .job = job, .begin_ns = INT64_MAX, .waited_s = ARENA_ARRAY(arena, double, (size_t)job->world *PARTS)};
    *pace = (Pace){.rank = NOBODY, .clock_rank = NOBODY};
    visit_all(&pacing, widen_span, arena);
    if (pacing.end_ns <= pacing.begin_ns) {
        return;
    }
    visit_all(&pacing, add_slot, arena);
    add_pauses(&pacing);
    pace->measured = pacing.timed > pacing.untimed;
    int parts = 0, led = 0;
    const int slowest = least_waiting(&pacing, &led);
    for (int part = 0; part < PARTS; part++) {
        parts += pacing.slots[part] > 0;
    }
    if (slowest == NOBODY || parts < LEAST_PARTS || led < PARTS_SHARE * parts) {
        return;
    }
    pace->excess = usual_excess(&pacing, slowest);
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
