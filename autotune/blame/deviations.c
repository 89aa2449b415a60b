// Which rank is wrong where two differ: the minority, first in the group, then among groups of the same kind at the
// same number, then the rank that departed from what it always did at this point.

#include "autotune/blame/deviations.h"

#include <string.h>

#include "autotune/blame/turns.h"

enum { AHEAD = 8, NOBODY = -1 };

static int64_t created(const Job *job, int rank, const Turn *turn) {
    return job->ranks[rank].dump->entries[turn->entry].created_ns;
}

static void keep_earlier(Deviation *first, const Deviation *found) {
    if (found->found && (!first->found || found->at_ns < first->at_ns)) {
        *first = *found;
    }
}

// ---------------------------------------------------------------------------------------------- who is wrong

static int votes_in(const JobGroup *group, int64_t seq, const Turn *turn) {
    int votes = 0;
    for (int m = 0; m < group->count; m++) {
        const Turn *other = member_turn(&group->members[m], seq);
        votes += other && turns_agree(turn, other);
    }
    return votes;
}

// Groups of one kind do the same; those of the same name in other pipeline stages often do.
static int votes_of_others(const Job *job, int group, int64_t seq, const Turn *turn, bool same_kind) {
    int votes = 0;
    for (int g = 0; g < job->group_count; g++) {
        const JobGroup *own = &job->groups[group], *other = &job->groups[g];
        const bool alike = own->parent < 0 && other->parent < 0 && strcmp(other->desc, own->desc) == 0;
        if (g != group && (other->kind == own->kind || (!same_kind && alike))) {
            votes += votes_in(&job->groups[g], seq, turn);
        }
    }
    return votes;
}

static int index_of(const Steps *steps, const Turn *turn) {
    int at = 0;
    while (at < steps->count && steps->rows[at].turn != turn) {
        at++;
    }
    return at;
}

// 1 = the rank did what it did before at this point, 0 = something else, -1 = it was never here.
static int as_before(const Job *job, int rank, const Turn *turn, Arena *arena) {
    const Steps steps = steps_of(job, rank, arena);
    const int at = index_of(&steps, turn);
    const int precedent = at < steps.count ? steps_precedent(&steps, at) : -1;
    return precedent < 0 ? -1 : steps_agree(&steps.rows[precedent], &steps.rows[at]);
}

// ---------------------------------------------------------------------------------------------- in a group

// What a group of the same kind issues `ahead` after seq, where it did the same here.
static const Turn *twin_ahead(const Job *job, int g, int64_t seq, const Turn *here, int ahead) {
    for (int other = 0; other < job->group_count; other++) {
        const JobGroup *group = &job->groups[other];
        for (int m = 0; m < group->count && group->kind == job->groups[g].kind && other != g; m++) {
            const Turn *same = member_turn(&group->members[m], seq);
            const Turn *turn = member_turn(&group->members[m], seq + ahead);
            if (same && turn && turns_agree(same, here)) {
                return turn;
            }
        }
    }
    return NULL;
}

// What the member issues `ahead` after seq: as it did, as others did, or as it did before at this point.
static const Turn *turn_ahead(const Job *job, const RankGroup *at, int64_t seq, int ahead, Arena *arena) {
    const Member *member = &job->groups[at->group].members[at->member];
    const Turn *turn = member_turn(member, seq + ahead), *here = member_turn(member, seq);
    if (!turn && here) {
        turn = twin_ahead(job, at->group, seq, here, ahead);
    }
    if (turn || !here) {
        return turn;
    }
    const Steps steps = steps_in(job, at, arena);
    const int precedent = steps_precedent(&steps, index_of(&steps, here));
    return precedent >= 0 && precedent + ahead < steps.count ? steps.rows[precedent + ahead].turn : NULL;
}

static bool agree(const Turn *a, const Turn *b) {
    return a && b && turns_agree(a, b);
}

// Does any rank issue such a collective at another time? One that nobody issues is not a misplaced collective.
static bool seen_elsewhere(const Job *job, const RankGroup *at, const Turn *turn) {
    for (int g = 0; g < job->group_count; g++) {
        const JobGroup *group = &job->groups[g];
        for (int m = 0; m < group->count && group->kind == job->groups[at->group].kind; m++) {
            for (int t = 0; t < group->members[m].count; t++) {
                const Turn *other = &group->members[m].turns[t];
                if (other != turn && turns_agree(turn, other)) {
                    return true;
                }
            }
        }
    }
    return false;
}

// What went wrong on the deviating rank, judged by the next collectives of both.
static VerdictKind kind_of(const Job *job, const RankGroup *wrong, const RankGroup *right, int64_t seq, Arena *arena) {
    const Turn *did = turn_ahead(job, wrong, seq, 0, arena), *due = turn_ahead(job, right, seq, 0, arena);
    const Member *member = &job->groups[wrong->group].members[wrong->member];
    const Turn *did_next = member_turn(member, seq + 1), *due_next = turn_ahead(job, right, seq, 1, arena);
    for (int ahead = 1; ahead <= AHEAD; ahead++) {
        if (!agree(did, turn_ahead(job, right, seq, ahead, arena))) {
            continue;
        }
        for (int later = 1; later <= ahead; later++) {
            const Turn *own = member_turn(member, seq + later);
            if (agree(own, due) && !agree(own, turn_ahead(job, right, seq, later, arena))) {
                return VERDICT_ORDER;
            }
        }
    }
    if (agree(did, due_next) && !(did_next && agree(did_next, due_next))) {
        return VERDICT_SKIPPED;
    }
    if (agree(did_next, due) && due_next && !agree(did_next, due_next)) {  // the group lags by one from here on
        return VERDICT_EXTRA;
    }
    if (agree(did_next, due) && seen_elsewhere(job, wrong, did)) {
        return VERDICT_ORDER;
    }
    return turns_same_op(did, due) ? VERDICT_SIZE : VERDICT_MISMATCH;
}

// Size mismatches are nobody's fault where every rank went on after them: uneven shards.
static bool all_went_on(const JobGroup *group, int64_t seq) {
    bool all = true;
    for (int m = 0; m < group->count && all; m++) {
        const Member *member = &group->members[m];
        const Turn *last = member->count > 0 ? &member->turns[member->count - 1] : NULL;
        all = last && last->seq > seq + 1 && last[-1].done;
    }
    return all;
}

static void judge(const Job *job, int g, int one, int other, int64_t seq, Arena *arena, Deviation *found) {
    const JobGroup *group = &job->groups[g];
    const Member *a = &group->members[one], *b = &group->members[other];
    const Turn *of_a = member_turn(a, seq), *of_b = member_turn(b, seq);
    int for_a = votes_in(group, seq, of_a), for_b = votes_in(group, seq, of_b);
    if (for_a == for_b) {
        for_a = votes_of_others(job, g, seq, of_a, true);
        for_b = votes_of_others(job, g, seq, of_b, true);
    }
    if (for_a == for_b) {
        for_a = as_before(job, a->rank, of_a, arena);
        for_b = as_before(job, b->rank, of_b, arena);
    }
    if (for_a == for_b) {
        for_a = votes_of_others(job, g, seq, of_a, false);
        for_b = votes_of_others(job, g, seq, of_b, false);
    }
    const bool a_wrong = for_a < for_b;
    const RankGroup wrong = {g, a_wrong ? one : other}, right = {g, a_wrong ? other : one};
    *found = (Deviation){.found = true,
                         .rank = group->members[wrong.member].rank,
                         .other = group->members[right.member].rank,
                         .unknown = for_a == for_b,
                         .group = g,
                         .did_group = g,
                         .seq = seq,
                         .did = a_wrong ? of_a : of_b,
                         .due = a_wrong ? of_b : of_a,
                         .kind = kind_of(job, &wrong, &right, seq, arena)};
    found->no_next = !turn_ahead(job, &right, seq, 1, arena);
    found->at_ns = created(job, found->rank, found->did);
}

// The first number at which two members of a group differ.
static void look_in_group(const Job *job, int g, Arena *arena, Deviation *first) {
    const JobGroup *group = &job->groups[g];
    for (int64_t seq = group->first; seq <= group->last; seq++) {
        int reference = NOBODY;
        for (int m = 0; m < group->count; m++) {
            const Turn *turn = member_turn(&group->members[m], seq);
            if (turn && reference == NOBODY) {
                reference = m;
            } else if (turn) {
                const Turn *same = member_turn(&group->members[reference], seq);
                if (!turns_agree(turn, same) && !(turns_same_op(turn, same) && all_went_on(group, seq))) {
                    Deviation found;
                    judge(job, g, reference, m, seq, arena, &found);
                    keep_earlier(first, &found);
                    return;
                }
            }
        }
    }
}

void deviations_in_groups(const Job *job, Arena *arena, Deviation *first) {
    for (int g = 0; g < job->group_count; g++) {
        look_in_group(job, g, arena, first);
    }
}

// ---------------------------------------------------------------------------------------------- alone

// A rank in a group of that kind with another collective at that number, where the two agreed before.
static bool twin_of(const Job *job, int g, const Member *member, int64_t seq, int *rank, const Turn **due) {
    const JobGroup *own = &job->groups[g];
    for (int other = 0; other < job->group_count; other++) {
        const JobGroup *group = &job->groups[other];
        for (int m = 0; m < group->count && other != g && group->kind == own->kind; m++) {
            const Turn *theirs = member_turn(&group->members[m], seq);
            if (theirs && agree(member_turn(member, seq - 1), member_turn(&group->members[m], seq - 1)) &&
                agree(member_turn(member, seq - 2), member_turn(&group->members[m], seq - 2))) {
                *rank = group->members[m].rank;
                *due = theirs;
                return true;
            }
        }
    }
    return false;
}

static bool precedent_of(const Job *job, const RankGroup *at, const Turn *turn, Arena *arena, const Turn **due) {
    const Steps steps = steps_in(job, at, arena);
    const int precedent = steps_precedent(&steps, index_of(&steps, turn));
    *due = precedent >= 0 ? steps.rows[precedent].turn : NULL;
    return precedent >= 0;
}

static int seen_members(const Job *job, const JobGroup *group) {
    int seen = 0;
    for (int m = 0; m < group->count; m++) {
        seen += job->ranks[group->members[m].rank].dump != NULL;
    }
    return seen;
}

void deviations_alone(const Job *job, Arena *arena, Deviation *first) {
    for (int g = 0; g < job->group_count; g++) {
        const JobGroup *group = &job->groups[g];
        for (int m = 0; m < group->count && seen_members(job, group) == 1; m++) {
            const Member *member = &group->members[m];
            for (int t = member->count - 1; t >= 0 && t >= member->count - 2; t--) {
                const RankGroup at = {g, m};
                const Turn *turn = &member->turns[t], *due = NULL;
                int other = member->rank;
                const bool known =
                    twin_of(job, g, member, turn->seq, &other, &due) || precedent_of(job, &at, turn, arena, &due);
                Deviation found = {.found = known && !turns_agree(turn, due),
                                   .kind = due && turns_same_op(due, turn) ? VERDICT_SIZE : VERDICT_MISMATCH,
                                   .rank = member->rank,
                                   .other = other,
                                   .group = g,
                                   .did_group = g,
                                   .seq = turn->seq,
                                   .did = turn,
                                   .due = due,
                                   .at_ns = created(job, member->rank, turn)};
                keep_earlier(first, &found);
            }
        }
    }
}

// ---------------------------------------------------------------------------------------------- between groups

static RankGroup place_of_kind(const Job *job, int rank, int kind) {
    const JobRank *row = &job->ranks[rank];
    for (int g = 0; g < row->group_count; g++) {
        if (job->groups[row->groups[g].group].kind == kind) {
            return row->groups[g];
        }
    }
    return (RankGroup){NOBODY, NOBODY};
}

// The number of the last turn of `of` that the rank issued before the k-th turn of `before`; -1 = unknown.
static int64_t count_before(const Job *job, RankGroup of, RankGroup before, int64_t k) {
    const Member *counted = &job->groups[of.group].members[of.member];
    const Turn *turn = member_turn(&job->groups[before.group].members[before.member], k);
    if (!turn || counted->count == 0 || counted->turns[0].entry > turn->entry) {
        return -1;
    }
    int low = 0, high = counted->count;  // the first that came later
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (counted->turns[middle].entry < turn->entry) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return counted->turns[low - 1].seq;
}

// From which number of kind `before` on two ranks differ, until their dumps end; -1 = at the end they agree. *agreed =
// they agreed before it.
static int64_t differ_from(const Job *job, int one, int other, int kind, int before, bool *agreed) {
    const RankGroup of_one = place_of_kind(job, one, kind), of_other = place_of_kind(job, other, kind);
    const RankGroup at_one = place_of_kind(job, one, before), at_other = place_of_kind(job, other, before);
    if (of_one.group < 0 || of_other.group < 0 || at_one.group < 0 || at_other.group < 0) {
        return -1;
    }
    const Member *a = &job->groups[at_one.group].members[at_one.member];
    const Member *b = &job->groups[at_other.group].members[at_other.member];
    int64_t from = -1;
    *agreed = false;
    if (a->count == 0 || b->count == 0) {
        return -1;
    }
    const int64_t end_a = a->turns[a->count - 1].seq, end_b = b->turns[b->count - 1].seq;
    const int64_t first_a = a->turns[0].seq, first_b = b->turns[0].seq;
    for (int64_t k = end_a < end_b ? end_a : end_b; k >= first_a && k >= first_b; k--) {
        const int64_t of_a = count_before(job, of_one, at_one, k), of_b = count_before(job, of_other, at_other, k);
        *agreed = of_a >= 0 && of_a == of_b;
        if (of_a < 0 || of_b < 0 || *agreed) {
            break;
        }
        from = k;
    }
    return from;
}

static int support(const Job *job, int kind, int before, int64_t k, int64_t count) {
    int ranks = 0;
    for (int rank = 0; rank < job->world; rank++) {
        const RankGroup of = place_of_kind(job, rank, kind), at = place_of_kind(job, rank, before);
        ranks += of.group >= 0 && at.group >= 0 && count_before(job, of, at, k) == count;
    }
    return ranks;
}

// Of two that differ: the one with fewer ranks doing the same; then the one that did not do so before.
static bool first_is_wrong(const Job *job, const int rank[2], const RankGroup of[2], const RankGroup at[2], int kind,
                           int before, int64_t k, Arena *arena) {
    int64_t count[2];
    int votes[2], usual[2];
    for (int i = 0; i < 2; i++) {
        count[i] = count_before(job, of[i], at[i], k);
        votes[i] = support(job, kind, before, k, count[i]);
        usual[i] = as_before(job, rank[i], member_turn(&job->groups[at[i].group].members[at[i].member], k), arena);
    }
    return votes[0] != votes[1]   ? votes[0] < votes[1]
           : usual[0] != usual[1] ? usual[0] < usual[1]
                                  : count[0] < count[1];
}

// The two ends of a channel disagree.
static bool same_end(const Job *job, const RankGroup at[2]) {
    return job->groups[at[0].group].parent < 0 || at[0].member == at[1].member;
}

// Members of one group of either kind. Those of the counted one run the same program; others may be stages of a
// pipeline, which always differ: they are compared from where they last agreed.
static void compare_ranks(const Job *job, int one, int other, int kind, int before, bool same, Arena *arena,
                          Deviation *first) {
    bool agreed = false;
    const int64_t k = differ_from(job, one, other, kind, before, &agreed);
    if (k < 0 || !(same || agreed)) {
        return;
    }
    const int rank[2] = {one, other};
    RankGroup of[2], at[2];
    for (int i = 0; i < 2; i++) {
        of[i] = place_of_kind(job, rank[i], kind);
        at[i] = place_of_kind(job, rank[i], before);
    }
    if (!same_end(job, of) || !same_end(job, at)) {
        return;
    }
    const int wrong = first_is_wrong(job, rank, of, at, kind, before, k, arena) ? 0 : 1, right = 1 - wrong;
    const int64_t has = count_before(job, of[wrong], at[wrong], k), want = count_before(job, of[right], at[right], k);
    const Member *witness = &job->groups[of[right].group].members[of[right].member];
    Deviation found = {
        .rank = rank[wrong], .other = rank[right], .kind = VERDICT_SKIPPED, .did_group = at[wrong].group};
    found.did = member_turn(&job->groups[at[wrong].group].members[at[wrong].member], k);
    found.group = of[wrong].group;
    found.seq = has + 1;
    found.due = has < want ? member_turn(witness, has + 1) : NULL;
    if (has > want) {  // a collective of the other kind was skipped, so its numbers run ahead
        witness = &job->groups[at[right].group].members[at[right].member];
        found.group = at[wrong].group;
        found.seq = k;
        found.due = member_turn(witness, k);
        found.did_group = of[wrong].group;
        found.did = member_turn(&job->groups[of[wrong].group].members[of[wrong].member], has);
    }
    found.found = found.due && found.did;
    found.at_ns = found.found ? created(job, found.rank, found.did) : 0;
    keep_earlier(first, &found);
}

void deviations_between_groups(const Job *job, Arena *arena, Deviation *first) {
    for (int g = 0; g < job->process_groups; g++) {
        const JobGroup *group = &job->groups[g];
        int reference = NOBODY;
        for (int m = 0; m < group->count; m++) {
            const int rank = group->members[m].rank;
            if (!job->ranks[rank].dump || reference == NOBODY) {
                reference = job->ranks[rank].dump ? rank : reference;
                continue;
            }
            for (int kind = 0; kind < job->kind_count; kind++) {
                if (kind != group->kind) {
                    compare_ranks(job, reference, rank, group->kind, kind, true, arena, first);
                    compare_ranks(job, reference, rank, kind, group->kind, false, arena, first);
                }
            }
        }
    }
}

// ---------------------------------------------------------------------------------------------- a circle

// What the rank did before at its current point, if that was something else.
static const Turn *usual_instead(const Job *job, const Wait *wait, Arena *arena) {
    const Steps steps = steps_of(job, wait->rank, arena);
    const int at = index_of(&steps, wait->turn);
    const int precedent = at < steps.count ? steps_precedent(&steps, at) : -1;
    return precedent >= 0 && !steps_agree(&steps.rows[precedent], &steps.rows[at]) ? steps.rows[precedent].turn : NULL;
}

// How many ranks are in a collective of that kind.
static int company(const Job *job, const Waits *waits, const Wait *wait) {
    int ranks = 0;
    for (int i = 0; i < waits->count; i++) {
        ranks += job->groups[waits->rows[i].group].kind == job->groups[wait->group].kind &&
                 turns_agree(waits->rows[i].turn, wait->turn);
    }
    return ranks;
}

// Where another rank waits for that rank.
static const Wait *wait_for(const Job *job, const Waits *waits, int rank) {
    for (int i = 0; i < waits->count; i++) {
        const Member *member = group_member(&job->groups[waits->rows[i].group], rank);
        if (member && wait_is_for(job, &waits->rows[i], member)) {
            return &waits->rows[i];
        }
    }
    return NULL;
}

void deviation_of_circle(const Job *job, const Waits *waits, Arena *arena, Deviation *first) {
    int fewest = 0;
    bool unusual = false;
    for (int i = 0; i < waits->count; i++) {
        const Wait *wait = &waits->rows[i], *awaited = wait_for(job, waits, wait->rank);
        const bool odd = usual_instead(job, wait, arena) != NULL;
        const int beside = company(job, waits, wait);
        if (!awaited || !waits->waits[wait->rank] || (unusual && !odd) ||
            (first->found && odd == unusual && beside >= fewest)) {
            continue;
        }
        unusual = odd;
        fewest = beside;
        *first = (Deviation){.found = true,
                             .kind = VERDICT_SKIPPED,
                             .rank = wait->rank,
                             .other = awaited->rank,
                             .group = awaited->group,
                             .seq = awaited->turn->seq,
                             .did = wait->turn,
                             .did_group = wait->group,
                             .due = awaited->turn,
                             .at_ns = created(job, wait->rank, wait->turn)};
    }
}
