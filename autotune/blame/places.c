// A group of the job is a group of the mesh where the members are the same. Every step issues the same sequence on it,
// so the recorded collectives are aligned with that cycle where most of the last ones match; a place gets a name only
// where its own operation and size match, too.

#include "autotune/blame/places.h"

#include <math.h>
#include <string.h>

enum { STEPS_COMPARED = 2 };

static const double SIZE_SLACK = 0.1;  // frameworks pad shards and vocabularies
static const double FITTING = 0.7;     // of the last collectives: logging and norms are user code

typedef struct Expected {
    TaskKind kind;
    double bytes;
    const Task *task;
    int layer, micro_step;
} Expected;

typedef struct Circle {
    Expected *rows;
    int count;
} Circle;

// For one member: the cycle its turns lie on, and the place of its last one.
typedef struct Fit {
    const Circle *circle;  // NULL = none
    int offset;
} Fit;

typedef struct Naming {
    const Job *job;
    const Mesh *mesh;
    const StepPrograms *programs;
    Arena *arena;
    Places *places;
    Fit **fits;  // by group of the job and member
} Naming;

// ---------------------------------------------------------------------------------------------- groups of the mesh

static bool is_group_of(const JobGroup *group, const Mesh *mesh, AxisMask axes) {
    const MeshCoordinates at = mesh_coordinates(mesh, group->members[0].rank);
    bool same = mesh_group_size(mesh, axes) == group->count;
    for (int index = 0; same && index < group->count; index++) {
        same = group_member(group, mesh_group_member(mesh, axes, &at, index)) != NULL;
    }
    return same;
}

// What a step issues on groups with those members: on all axes, or on the axes of one of the program's groups.
static Circle *read_circle(const Naming *naming, const StepProgram *program, const JobGroup *group, int only) {
    Circle *circle = ARENA_NEW(naming->arena, Circle);
    size_t capacity = 0;
    StepInstance instance;
    for (StepCursor cursor = step_cursor_begin(program); step_cursor_next(&cursor, &instance);) {
        const Task *task = &program->tasks[instance.task];
        if (!task_is_collective(task) || task->group < 0 || (only >= 0 && task->group != only) ||
            !is_group_of(group, naming->mesh, program->groups[task->group].axes)) {
            continue;
        }
        ARENA_PUSH(naming->arena, circle->rows, circle->count, &capacity) =
            (Expected){.kind = task->kind,
                       .bytes = (double)task->payload_bytes,
                       .task = task,
                       .layer = instance.layer,
                       .micro_step = instance.micro_step};
    }
    return circle;
}

// ---------------------------------------------------------------------------------------------- fitting

// Gloo implements a reduce-scatter as an all-reduce.
static bool same_kind(TaskKind kind, const DumpEntry *entry) {
    const bool gloo = strncmp(entry->name, "gloo:", 5) == 0;
    return kind == TASK_ALL_GATHER       ? entry->op == DUMP_ALL_GATHER
           : kind == TASK_REDUCE_SCATTER ? entry->op == DUMP_REDUCE_SCATTER || (gloo && entry->op == DUMP_ALL_REDUCE)
           : kind == TASK_ALL_REDUCE     ? entry->op == DUMP_ALL_REDUCE
                                         : entry->op == DUMP_SEND || entry->op == DUMP_RECEIVE;
}

static bool fits(const Expected *expected, const Turn *turn, const DumpEntry *entry) {
    return same_kind(expected->kind, entry) && turn->bytes >= 0 &&
           fabs((double)turn->bytes - expected->bytes) <= SIZE_SLACK * expected->bytes;
}

static int wrap(int at, int count) {
    return (at % count + count) % count;
}

static int count_fitting(const Job *job, const Member *member, const Circle *circle, int offset, int compared) {
    int fitting = 0;
    for (int back = 0; back < compared; back++) {
        const Turn *turn = &member->turns[member->count - 1 - back];
        fitting += fits(&circle->rows[wrap(offset - back, circle->count)], turn, turn_entry(job, member, turn));
    }
    return fitting;
}

typedef struct Score {
    int matched, compared;
} Score;

static bool better(const Score *a, const Score *b) {
    return (int64_t)a->matched * b->compared > (int64_t)b->matched * a->compared;
}

static Score find_offset(const Naming *naming, const Member *member, const Circle *circle, int *best) {
    const int recent = STEPS_COMPARED * circle->count;
    Score score = {.compared = member->count < recent ? member->count : recent};
    for (int offset = 0; offset < circle->count; offset++) {
        const int fitting = count_fitting(naming->job, member, circle, offset, score.compared);
        if (fitting > score.matched) {
            score.matched = fitting;
            *best = offset;
        }
    }
    return score;
}

// A framework may issue the collectives of several axes on one process group or have one for each, although their
// members are the same: the best match is taken.
static bool fit_member(const Naming *naming, const JobGroup *group, const Member *member, Fit *fit) {
    const StepProgram *program = &naming->programs->of[mesh_stage_of(naming->mesh, member->rank)];
    Score best = {0, 1};
    Score counted = {0, 0};
    for (int only = -1; only < program->group_count && member->count > 0; only++) {
        if (only >= 0 && !is_group_of(group, naming->mesh, program->groups[only].axes)) {
            continue;
        }
        const Circle *circle = read_circle(naming, program, group, only);
        int offset = -1;
        const Score score = circle->count > 0 ? find_offset(naming, member, circle, &offset) : (Score){0, 1};
        counted = circle->count > 0 && (counted.compared == 0 || better(&score, &best)) ? score : counted;
        if (better(&score, &best)) {
            best = score;
            *fit = (Fit){score.matched >= FITTING * score.compared ? circle : NULL, offset};
        }
    }
    naming->places->matched += counted.matched;
    naming->places->compared += counted.compared;
    return counted.compared > 0;
}

static void fit_groups(Naming *naming) {
    const Job *job = naming->job;
    naming->fits = ARENA_ARRAY(naming->arena, Fit *, job->group_count);
    for (int g = 0; g < job->group_count; g++) {
        const JobGroup *group = &job->groups[g];
        bool known = false;
        naming->fits[g] = ARENA_ARRAY(naming->arena, Fit, group->count);
        for (int m = 0; m < group->count; m++) {
            known |= fit_member(naming, group, &group->members[m], &naming->fits[g][m]);
        }
        naming->places->group_count += known;
    }
}

// ---------------------------------------------------------------------------------------------- names

static const char *name_of(const Naming *naming, const Expected *expected) {
    const char *phase = phase_name(expected->task->phase);
    return naming->programs->of[0].plan.grad_accum > 1
               ? arena_format(naming->arena, "task '%s', layer %d, %s, micro-step %d", expected->task->name,
                              expected->layer, phase, expected->micro_step)
               : arena_format(naming->arena, "task '%s', layer %d, %s", expected->task->name, expected->layer, phase);
}

// The place for a member of the group whose turns lie on the cycle; the rank itself where possible.
static void name_place(const Naming *naming, int rank, VerdictPlace *place) {
    if (place->group < 0) {
        return;
    }
    const JobGroup *group = &naming->job->groups[place->group];
    for (int own = 1; own >= 0 && !place->layer; own--) {
        for (int m = 0; m < group->count && !place->layer; m++) {
            const Member *member = &group->members[m];
            const Turn *turn = member_turn(member, place->seq);
            const Fit *fit = &naming->fits[place->group][m];
            if ((own != 0) != (member->rank == rank) || !fit->circle || !turn) {
                continue;
            }
            const int back = (int)(&member->turns[member->count - 1] - turn);
            const Expected *expected = &fit->circle->rows[wrap(fit->offset - back, fit->circle->count)];
            if (turn->op == place->op && fits(expected, turn, turn_entry(naming->job, member, turn))) {
                place->layer = name_of(naming, expected);
            }
        }
    }
}

void places_name(const Job *job, const Mesh *mesh, const StepPrograms *programs, Arena *arena, Verdict *verdict,
                 Places *places) {
    Naming naming = {.job = job, .mesh = mesh, .programs = programs, .arena = arena, .places = places};
    *places = (Places){0};
    fit_groups(&naming);
    for (int rank = 0; rank < job->world; rank++) {
        name_place(&naming, rank, &verdict->stands[rank]);
    }
    const int blamed = verdict->rank_count > 0 ? verdict->ranks[0] : -1;
    name_place(&naming, blamed, &verdict->did);
    name_place(&naming, -1, &verdict->due);
}
