// One cause of what the dumps show, the most certain first: a group whose members disagree, a rank its group waits for,
// a cycle of waits, a collective no rank leaves; in a job that makes progress, a rank everybody always waits for.

#include "autotune/blame/verdict.h"

#include <stdarg.h>
#include <string.h>

#include "autotune/blame/deviations.h"
#include "autotune/blame/pace.h"
#include "autotune/blame/turns.h"
#include "autotune/blame/waits.h"

const VerdictKindRow verdict_kinds[VERDICT_KIND_COUNT] = {
    [VERDICT_HEALTHY] = {"healthy", "nobody is blamed"},
    [VERDICT_MISSING] = {"missing", "never arrived"},
    [VERDICT_SKIPPED] = {"skipped", "skipped a collective"},
    [VERDICT_EXTRA] = {"extra", "issued a collective that its group does not have"},
    [VERDICT_MISMATCH] = {"mismatch", "issued another collective than its group"},
    [VERDICT_ORDER] = {"order", "issued its collectives in another order than its group"},
    [VERDICT_SIZE] = {"size", "issued it with another size than its group"},
    [VERDICT_SLOW] = {"slow", "is slow"},
    [VERDICT_STUCK] = {"stuck", "all are in it, and nobody comes out"},
};

enum { MOST_UNKNOWN = 16 };

static const double MS = 1e3, LEAST_DOUBTED_S = 30;
static const double EARLY = 0.9, LATE = 2;  // multiples of the timeout

typedef struct Blaming {
    const Job *job;
    Arena *arena;
    Waits waits;
    Verdict *verdict;
    bool copied_late;  // the times of the files are those of a copy: nobody knows how long ranks waited
} Blaming;

static double waited(const Blaming *blaming, const Wait *wait) {
    return blaming->copied_late ? -1 : wait->age_s;
}

__attribute__((format(printf, 2, 3))) static void cannot_know(Blaming *blaming, const char *format, ...) {
    va_list values;
    va_start(values, format);
    if (blaming->verdict->unknown_count < MOST_UNKNOWN) {
        blaming->verdict->unknown[blaming->verdict->unknown_count++] = arena_vformat(blaming->arena, format, values);
    }
    va_end(values);
}

// ---------------------------------------------------------------------------------------------- places

static VerdictPlace no_place(void) {
    return (VerdictPlace){.group = -1, .bytes = -1, .waited_s = -1};
}

static VerdictPlace place_of(const Job *job, int rank, int group, const Turn *turn) {
    const DumpEntry *entry = &job->ranks[rank].dump->entries[turn->entry];
    return (VerdictPlace){.group = group,
                          .seq = turn->seq,
                          .op = turn->op,
                          .in = turn->in,
                          .out = turn->out,
                          .bytes = turn->bytes,
                          .dtype = turn->dtype,
                          .caller = entry->caller,
                          .inside = !turn->done,
                          .waited_s = -1};
}

// What that rank should have done, as another did: for a message, the other end.
static VerdictPlace due_of(const Job *job, int rank, int witness, int group, const Turn *turn) {
    VerdictPlace due = place_of(job, witness, group, turn);
    if (job->groups[group].parent >= 0) {
        due.op = job->groups[group].from == rank ? DUMP_SEND : DUMP_RECEIVE;
    }
    return due;
}

static const Wait *oldest_wait_of(const Waits *waits, int rank) {
    const Wait *oldest = NULL;
    for (int i = 0; i < waits->count; i++) {
        if (waits->rows[i].rank == rank && (!oldest || waits->rows[i].age_s > oldest->age_s)) {
            oldest = &waits->rows[i];
        }
    }
    return oldest;
}

// The rank's wait where there is one, else its last collective.
static VerdictPlace stand_of(const Blaming *blaming, int rank) {
    const Job *job = blaming->job;
    const JobRank *row = &job->ranks[rank];
    const Wait *wait = oldest_wait_of(&blaming->waits, rank);
    if (wait) {
        VerdictPlace place = place_of(job, rank, wait->group, wait->turn);
        place.inside = true;
        place.waited_s = waited(blaming, wait);
        return place;
    }
    VerdictPlace place = no_place();
    int last = -1;
    for (int g = 0; row->dump && g < row->group_count; g++) {
        const Member *member = &job->groups[row->groups[g].group].members[row->groups[g].member];
        const Turn *turn = member->count > 0 ? &member->turns[member->count - 1] : NULL;
        if (turn && turn->last_entry > last) {
            last = turn->last_entry;
            place = place_of(job, rank, row->groups[g].group, turn);
        }
    }
    return place;
}

// ---------------------------------------------------------------------------------------------- who else

static bool in_list(const int *list, int count, int rank) {
    bool in = false;
    for (int i = 0; i < count; i++) {
        in |= list[i] == rank;
    }
    return in;
}

// A skipped message is waited for under a later number: the messages after it move up.
static bool waits_for_due(const Blaming *blaming, const Wait *wait) {
    const VerdictPlace *due = &blaming->verdict->due;
    const bool message = due->group >= 0 && blaming->job->groups[due->group].parent >= 0;
    return wait->group == due->group && (wait->turn->seq == due->seq || (message && wait->turn->seq > due->seq));
}

// Ranks waiting in the collective that was due, and ranks held up by other waits.
static void find_others(Blaming *blaming) {
    Verdict *verdict = blaming->verdict;
    const Waits *waits = &blaming->waits;
    verdict->waiting = ARENA_ARRAY(blaming->arena, int, blaming->job->world);
    verdict->held = ARENA_ARRAY(blaming->arena, int, blaming->job->world);
    for (int rank = 0; rank < blaming->job->world; rank++) {
        bool here = false, elsewhere = false;
        for (int i = 0; i < waits->count; i++) {
            if (waits->rows[i].rank == rank && !in_list(verdict->ranks, verdict->rank_count, rank)) {
                const bool due = waits_for_due(blaming, &waits->rows[i]);
                here |= due;
                elsewhere |= !due;
            }
        }
        if (here) {
            verdict->waiting[verdict->waiting_count++] = rank;
        } else if (elsewhere) {
            verdict->held[verdict->held_count++] = rank;
        }
    }
}

static void blame_rank(Blaming *blaming, VerdictKind kind, int rank) {
    Verdict *verdict = blaming->verdict;
    verdict->kind = kind;
    verdict->ranks[verdict->rank_count++] = rank;
}

// ---------------------------------------------------------------------------------------------- the causes

static void blame_deviation(Blaming *blaming, const Deviation *found) {
    Verdict *verdict = blaming->verdict;
    const Job *job = blaming->job;
    blame_rank(blaming, found->kind, found->rank);
    verdict->guilty_unknown = found->unknown;
    verdict->did = place_of(job, found->rank, found->did_group, found->did);
    verdict->due = due_of(job, found->rank, found->other, found->group, found->due);
    verdict->due.seq = found->seq;
    if (found->unknown) {
        verdict->ranks[verdict->rank_count++] = found->other;
        cannot_know(blaming, "which of the two is wrong: no other rank does the same, and neither did before");
    }
    if (found->kind == VERDICT_ORDER &&
        !member_turn(group_member(&job->groups[found->group], found->other), found->seq + 1)) {
        cannot_know(blaming, "whether the group of rank %d would have issued it later: it has not come so far",
                    found->rank);
    }
    if ((found->kind == VERDICT_SIZE || found->kind == VERDICT_MISMATCH) && found->no_next) {
        cannot_know(blaming,
                    "whether rank %d issued that one wrong or went past it: nothing tells what its group issues next",
                    found->rank);
    }
    if (found->kind == VERDICT_SKIPPED && found->did_group != found->group) {
        cannot_know(blaming, "whether rank %d left it out or would have issued it later", found->rank);
    }
}

// Of the waits for that rank, the one in the collective it issued next in the past, else the one that began first.
static const Wait *first_wait_for(const Blaming *blaming, int rank) {
    const Job *job = blaming->job;
    const Wait *first = NULL;
    const Steps steps = steps_of(job, rank, blaming->arena);
    const int precedent = steps_precedent(&steps, steps.count);
    int64_t begun = 0;
    for (int i = 0; i < blaming->waits.count; i++) {
        const Wait *wait = &blaming->waits.rows[i];
        const Member *member = group_member(&job->groups[wait->group], rank);
        const int64_t created = job->ranks[wait->rank].dump->entries[wait->turn->entry].created_ns;
        if (!member || !wait_is_for(job, wait, member)) {
            continue;
        }
        const Step here = {.kind = job->groups[wait->group].kind, .turn = wait->turn};
        if (precedent >= 0 && steps_agree(&here, &steps.rows[precedent])) {
            return wait;
        }
        if (!first || created < begun) {
            first = wait;
            begun = created;
        }
    }
    return first;
}

static void find_awaited(Blaming *blaming, int rank) {
    const Job *job = blaming->job;
    Verdict *verdict = blaming->verdict;
    verdict->awaited = ARENA_ARRAY(blaming->arena, VerdictPlace, blaming->waits.count);
    for (int i = 0; i < blaming->waits.count; i++) {
        const Wait *wait = &blaming->waits.rows[i];
        const Member *member = group_member(&job->groups[wait->group], rank);
        if (member && wait_is_for(job, wait, member)) {
            verdict->awaited[verdict->awaited_count++] = due_of(job, rank, wait->rank, wait->group, wait->turn);
        }
    }
    if (verdict->awaited_count > 1 && !job->ranks[rank].dump && job->groups[verdict->due.group].parent >= 0) {
        cannot_know(blaming,
                    "which of the %d that others wait for rank %d in it would have come to first: it left no dump",
                    verdict->awaited_count, rank);
    }
}

// The first wait for a rank that may be to blame: with a dump, where some of them have one.
static const Wait *wait_that_counts(const Blaming *blaming, int rank, bool seen) {
    return !seen || blaming->job->ranks[rank].dump ? first_wait_for(blaming, rank) : NULL;
}

// Of several ranks that wait for nobody, the ones that were waited for first. A rank whose dump shows it to be missing
// is more certain than one without a dump.
static void blame_sinks(Blaming *blaming, const int *sinks, int count) {
    const Job *job = blaming->job;
    Verdict *verdict = blaming->verdict;
    const Wait *first = NULL;
    bool seen = false;
    for (int i = 0; i < count; i++) {
        seen |= job->ranks[sinks[i]].dump != NULL;
    }
    for (int i = 0; i < count; i++) {
        const Wait *wait = wait_that_counts(blaming, sinks[i], seen);
        if (wait && (!first || wait->age_s > first->age_s)) {
            first = wait;
        }
    }
    for (int i = 0; first && i < count; i++) {
        const Wait *wait = wait_that_counts(blaming, sinks[i], seen);
        if (wait && job->groups[wait->group].kind == job->groups[first->group].kind &&
            wait->turn->seq == first->turn->seq) {
            blame_rank(blaming, VERDICT_MISSING, sinks[i]);
        }
    }
    if (first) {
        verdict->due = due_of(job, verdict->ranks[0], first->rank, first->group, first->turn);
        verdict->due.waited_s = waited(blaming, first);
        verdict->did = stand_of(blaming, verdict->ranks[0]);
        find_awaited(blaming, verdict->ranks[0]);
    }
}

// The longest wait.
static const Wait *longest_wait(const Waits *waits) {
    const Wait *longest = NULL;
    for (int i = 0; i < waits->count; i++) {
        longest =
            waits->rows[i].too_long && (!longest || waits->rows[i].age_s > longest->age_s) ? &waits->rows[i] : longest;
    }
    return longest;
}

// Recorders write their dumps at a timeout or shortly after it; other mtimes may be those of a copy.
static void doubt_times(Blaming *blaming) {
    const Wait *wait = longest_wait(&blaming->waits);
    const double timeout_s =
        wait ? (double)blaming->job->ranks[wait->rank].dump->entries[wait->turn->entry].timeout_ms / MS : 0;
    const bool early = timeout_s > 0 && wait->age_s >= LEAST_DOUBTED_S && wait->age_s < EARLY * timeout_s;
    blaming->copied_late = timeout_s > 0 && wait->age_s > LATE * timeout_s + LEAST_DOUBTED_S;
    if (early || blaming->copied_late) {
        cannot_know(blaming,
                    "how long they wait: that is counted to the times of the files, which a copy changes (cp -p "
                    "and rsync -t keep them); in copies of dumps of a job that goes on somebody may only be late");
    }
}

static void blame_stuck(Blaming *blaming) {
    Verdict *verdict = blaming->verdict;
    const Wait *wait = longest_wait(&blaming->waits);
    verdict->kind = VERDICT_STUCK;
    verdict->due = place_of(blaming->job, wait->rank, wait->group, wait->turn);
    verdict->due.waited_s = waited(blaming, wait);
    cannot_know(blaming, "whether it is the network, the library or a device: every rank is in it with the same sizes; "
                         "ndtune preflight on the same hosts tries the links");
}

static void blame_hang(Blaming *blaming) {
    const Job *job = blaming->job;
    const Waits *waits = &blaming->waits;
    Deviation left = {0}, circle = {0}, alone = {0};
    int count = 0;
    doubt_times(blaming);
    deviations_alone(job, blaming->arena, &alone);
    if (alone.found) {
        blame_deviation(blaming, &alone);
        return;
    }
    const int *sinks = waits_sinks(job, waits, blaming->arena, &count);
    deviations_between_groups(job, blaming->arena, &left);
    if (left.found && (!sinks || in_list(sinks, count, left.rank))) {
        blame_deviation(blaming, &left);
        return;
    }
    if (sinks && waits->unseen_count <= job->world / 2) {
        blame_sinks(blaming, sinks, count);
    } else if (sinks) {
        cannot_know(blaming, "who is missing: only %d of %d ranks have a dump", job->dump_count, job->world);
        return;
    }
    if (blaming->verdict->rank_count > 0) {
        return;
    }
    deviation_from_past(job, waits, blaming->arena, &circle);
    if (!circle.found) {
        deviation_of_circle(job, waits, blaming->arena, &circle);
    }
    if (circle.found) {
        blame_deviation(blaming, &circle);
    } else {
        blame_stuck(blaming);
    }
}

static void blame_pace(Blaming *blaming) {
    Pace pace;
    pace_find(blaming->job, blaming->arena, &pace);
    if (pace.rank >= 0) {
        blame_rank(blaming, VERDICT_SLOW, pace.rank);
        blaming->verdict->excess = pace.excess;
        blaming->verdict->did = stand_of(blaming, pace.rank);
        if (!pace.measured) {
            cannot_know(blaming, "how long devices worked: the times are those at which hosts issued collectives "
                                 "(TORCH_NCCL_ENABLE_TIMING=1 records durations)");
        }
    } else if (pace.clock_rank >= 0) {
        cannot_know(blaming, "whether rank %d is slow or its clock is ahead: it is late by %.3f s everywhere alike",
                    pace.clock_rank, pace.clock_s);
    }
}

// ---------------------------------------------------------------------------------------------- what is not known

static void say_who_left_no_dump(Blaming *blaming) {
    const Job *job = blaming->job;
    int *ranks = ARENA_ARRAY(blaming->arena, int, job->world);
    int count = 0;
    for (int rank = 0; rank < job->world; rank++) {
        if (!job->ranks[rank].dump) {
            ranks[count++] = rank;
        }
    }
    if (count == 1) {
        cannot_know(blaming, "where rank %d stands: it left no dump (it died before it could, or its file is not here)",
                    ranks[0]);
    } else if (count > 1) {
        cannot_know(blaming,
                    "where ranks %s stand: they left no dump (they died before they could, or their files are "
                    "not here)",
                    job_rank_list(ranks, count, blaming->arena));
    }
}

static void say_what_is_missing(Blaming *blaming) {
    const Job *job = blaming->job;
    bool gloo = false, guessed = false, wrapped = false, messages = false;
    say_who_left_no_dump(blaming);
    for (int rank = 0; rank < job->world; rank++) {
        const JobRank *row = &job->ranks[rank];
        if (row->dump) {
            gloo |= row->dump->entry_count > 0 && strncmp(row->dump->entries[0].name, "gloo:", 5) == 0;
            wrapped |= row->dump->wrapped;
            messages |= row->channel_count > 0;
        }
    }
    for (int g = 0; g < job->group_count; g++) {
        guessed |= !job->groups[g].whole;
    }
    if (guessed) {
        cannot_know(blaming, "who else belongs to a group: the dumps do not list members, so those that used it are "
                             "taken for all");
    }
    if (wrapped && messages) {
        cannot_know(blaming,
                    "which message is which between two ranks whose recorders have lost the first: the last that "
                    "is over is taken for the same one on both");
    }
    if (gloo && !messages) {
        cannot_know(blaming, "sends and receives: the recorder of Gloo has none");
    }
    if (wrapped && blaming->verdict->kind != VERDICT_HEALTHY) {
        cannot_know(blaming, "what was before the oldest entry that the recorder kept (TORCH_FR_BUFFER_SIZE)");
    }
}

void verdict_find(const Job *job, double hang_s, Arena *arena, Verdict *verdict) {
    Blaming blaming = {.job = job, .arena = arena, .verdict = verdict};
    *verdict = (Verdict){.ranks = ARENA_ARRAY(arena, int, job->world + 2),
                         .unknown = ARENA_ARRAY(arena, const char *, MOST_UNKNOWN),
                         .did = no_place(),
                         .due = no_place()};
    waits_find(job, hang_s, arena, &blaming.waits);
    verdict->longest_wait_s = blaming.waits.longest_s;
    Deviation differs = {0};
    deviations_in_groups(job, arena, &differs);
    if (differs.found) {
        blame_deviation(&blaming, &differs);
    } else if (blaming.waits.hangs) {
        blame_hang(&blaming);
    } else {
        blame_pace(&blaming);
    }
    find_others(&blaming);
    verdict->stands = ARENA_ARRAY(arena, VerdictPlace, job->world);
    for (int rank = 0; rank < job->world; rank++) {
        verdict->stands[rank] = stand_of(&blaming, rank);
        verdict->stands[rank].rank = rank;
    }
    say_what_is_missing(&blaming);
}
