// Pipeline stages differ from one another, so no peer of a rank shows what it should have done; its own past steps do.
// A skipped message is noticed later, by another rank and at another point: the messages after it move up.

#include "autotune/blame/deviations.h"
#include "autotune/blame/turns.h"

enum { LOOK_BACK = 512 };  // over its last steps

// Does somebody wait for that rank on groups of that kind?
static bool is_awaited_on(const Job *job, const Waits *waits, int rank, int kind) {
    for (int i = 0; i < waits->count; i++) {
        const JobGroup *group = &job->groups[waits->rows[i].group];
        const Member *member = group->kind == kind ? group_member(group, rank) : NULL;
        if (member && wait_is_for(job, &waits->rows[i], member)) {
            return true;
        }
    }
    return false;
}

static bool somebody_waits_for_a_message(const Job *job, const Waits *waits) {
    for (int i = 0; i < waits->count; i++) {
        if (job->groups[waits->rows[i].group].parent >= 0) {
            return true;
        }
    }
    return false;
}

static bool agree_at(const Steps *steps, int one, int other) {
    return one < steps->count && other < steps->count && steps_agree(&steps->rows[one], &steps->rows[other]);
}

// Everything that followed is what used to follow, one position earlier.
static bool moved_up(const Steps *steps, int at, int precedent) {
    bool same = true;
    for (int k = 0; at + k < steps->count && same; k++) {
        same = agree_at(steps, at + k, precedent + 1 + k);
    }
    return same;
}

// What became of the step that was due, judged by the next ones.
static VerdictKind kind_of(const Steps *steps, int at, int precedent) {
    const Step *did = &steps->rows[at], *due = &steps->rows[precedent];
    const bool next = agree_at(steps, at, precedent + 1), later = agree_at(steps, at + 1, precedent);
    if (did->group == due->group && turns_same_op(did->turn, due->turn)) {
        return VERDICT_SIZE;
    }
    return moved_up(steps, at, precedent) ? VERDICT_SKIPPED
           : next && later                ? VERDICT_ORDER
           : next                         ? VERDICT_SKIPPED
           : later                        ? VERDICT_EXTRA
                                          : VERDICT_MISMATCH;
}

// How many collectives of that group the rank had issued before.
static int64_t number_at(const Steps *steps, int at, int group) {
    for (int i = at - 1; i >= 0; i--) {
        if (steps->rows[i].group == group) {
            return steps->rows[i].turn->seq + 1;
        }
    }
    return 1;
}

// A hang comes within one iteration of its cause: since then the rank has not reached the same point again.
static bool is_recent(const Steps *steps, int at, int precedent) {
    return steps->count - at <= at - precedent;
}

static Deviation deviation_at(const Job *job, int rank, const Steps *steps, int at, int precedent) {
    const Step *did = &steps->rows[at], *due = &steps->rows[precedent];
    return (Deviation){.found = true,
                       .kind = kind_of(steps, at, precedent),
                       .rank = rank,
                       .other = rank,
                       .group = due->group,
                       .seq = number_at(steps, at, due->group),
                       .did = did->turn,
                       .did_group = did->group,
                       .due = due->turn,
                       .at_ns = job->ranks[rank].dump->entries[did->turn->entry].created_ns};
}

// The longest matching past after which it did something else; -1 = never, or it did this as well.
static int other_precedent(const Steps *steps, int at, int *past) {
    int precedent = -1;
    *past = STEPS_LEAST_PAST - 1;
    for (int i = at - 1; i >= STEPS_LEAST_PAST; i--) {
        const int alike = steps_past(steps, i, at);
        if (alike >= STEPS_LEAST_PAST && agree_at(steps, i, at)) {
            return -1;
        }
        if (alike > *past) {
            *past = alike;
            precedent = i;
        }
    }
    return precedent;
}

void deviation_from_past(const Job *job, const Waits *waits, Arena *arena, Deviation *first) {
    int longest = 0;
    if (!somebody_waits_for_a_message(job, waits)) {
        return;
    }
    for (int rank = 0; rank < job->world; rank++) {
        const Steps steps = waits->awaited[rank] && job->ranks[rank].dump ? steps_of(job, rank, arena) : (Steps){0};
        for (int at = steps.count - 1; at > 0 && at > steps.count - LOOK_BACK; at--) {
            int past = 0;
            const int precedent = other_precedent(&steps, at, &past);
            if (precedent >= 0 && past > longest && is_recent(&steps, at, precedent) &&
                is_awaited_on(job, waits, rank, steps.rows[precedent].kind)) {
                longest = past;
                *first = deviation_at(job, rank, &steps, at, precedent);
            }
        }
    }
}
