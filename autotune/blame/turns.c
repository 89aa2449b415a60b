// A training job is periodic, so what follows is what followed before.

#include "autotune/blame/turns.h"

#include <stdlib.h>
#include <string.h>

bool turns_same_op(const Turn *a, const Turn *b) {
    return a->op == b->op || (dump_op_is_message(a->op) && dump_op_is_message(b->op));
}

bool turns_agree(const Turn *a, const Turn *b) {
    const DumpOpRow *row = &dump_op_rows[a->op];
    return turns_same_op(a, b) && (!row->same_in || a->in == b->in) && (!row->same_out || a->out == b->out) &&
           (!(row->same_in && row->same_out) || strcmp(a->dtype, b->dtype) == 0);
}

bool steps_agree(const Step *a, const Step *b) {
    return a->kind == b->kind && turns_agree(a->turn, b->turn);
}

Steps steps_in(const Job *job, const RankGroup *at, Arena *arena) {
    const JobGroup *group = &job->groups[at->group];
    const Member *member = &group->members[at->member];
    Steps steps = {.rows = ARENA_ARRAY(arena, Step, member->count), .count = member->count};
    for (int t = 0; t < member->count; t++) {
        steps.rows[t] = (Step){.kind = group->kind, .group = at->group, .turn = &member->turns[t]};
    }
    return steps;
}

static int compare_steps(const void *a, const void *b) {
    const int one = ((const Step *)a)->turn->entry, other = ((const Step *)b)->turn->entry;
    return (one > other) - (one < other);
}

Steps steps_of(const Job *job, int rank, Arena *arena) {
    const JobRank *row = &job->ranks[rank];
    int count = 0;
    for (int g = 0; g < row->group_count; g++) {
        count += job->groups[row->groups[g].group].members[row->groups[g].member].count;
    }
    Steps steps = {.rows = ARENA_ARRAY(arena, Step, count)};
    for (int g = 0; g < row->group_count; g++) {
        const Steps some = steps_in(job, &row->groups[g], arena);
        for (int i = 0; i < some.count; i++) {
            steps.rows[steps.count++] = some.rows[i];
        }
    }
    if (steps.count > 0) {
        qsort(steps.rows, (size_t)steps.count, sizeof *steps.rows, compare_steps);
    }
    return steps;
}

int steps_past(const Steps *steps, int one, int other) {
    int past = 0;
    while (past < one && past < other && steps_agree(&steps->rows[one - 1 - past], &steps->rows[other - 1 - past])) {
        past++;
    }
    return past;
}

int steps_precedent(const Steps *steps, int at) {
    int best = -1, longest = STEPS_LEAST_PAST - 1;
    for (int i = at - 1; i > longest; i--) {
        const int past = steps_past(steps, i, at);
        if (past > longest) {
            longest = past;
            best = i;
        }
    }
    return best;
}
