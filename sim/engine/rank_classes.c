// Equivalence classes of ranks by colour refinement: ranks start with the colour of what differs between them (their
// slowdown and that of their links) and are split as long as two of one colour see different colours in their groups.
// The result is an equitable partition, so simulating one rank per class with the classes of its groups is exact.
// Without slowdowns there is one class: every rank does the same work (what a contiguous cp split makes unequal is
// priced by sim/cost as the rank that the ring waits for). With all_ranks each is a class of its own, and with stages,
// whose ranks meet one by one.
//
// Coordinates along an axis that no special rank has are interchangeable: they count as one kind of coordinate, and
// what is coloured are cells, a kind along each axis, with as many ranks as the kinds have coordinates. Where few ranks
// are special, a world of any size has few cells; otherwise each rank is one.

#include "sim/engine/rank_classes.h"

#include <stdlib.h>

#include "sim/base/hash.h"

enum { MOST_SPECIAL = 64 };  // ranks; beyond, each rank is a cell

// Numbered in the order of their lowest ranks.
typedef struct Cells {
    const Mesh *mesh;
    int kinds[AXIS_COUNT];
    int32_t *lowest[AXIS_COUNT], *many[AXIS_COUNT];  // by kind: its lowest coordinate, how many have it
    int32_t count;
} Cells;

typedef struct Colours {
    const StepProgram *program;
    Cells cells;
    int32_t *of_cell;
    int32_t count;
    uint64_t *signature, *sorted;
    int32_t **leader;  // by group and cell: the cell of the group's first member
    int32_t **weight;  // and how many of its members are in the cell
} Colours;

// ---- cells

static MeshCoordinates cell_kinds(const Cells *cells, int32_t cell) {
    MeshCoordinates kinds = {0};
    for (int place = AXIS_COUNT - 1; place >= 0; place--) {
        const Axis axis = mesh_axis_at(cells->mesh, place);
        kinds.at[axis] = cell % cells->kinds[axis];
        cell /= cells->kinds[axis];
    }
    return kinds;
}

static int cell_rank(const Cells *cells, int32_t cell) {
    MeshCoordinates at = cell_kinds(cells, cell);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        at.at[axis] = cells->lowest[axis][at.at[axis]];
    }
    return mesh_rank(cells->mesh, &at);
}

// The special coordinates of an axis are kinds of their own; the others are one.
static void find_kinds(Cells *cells, int axis, const bool *special, Arena *arena) {
    const int size = AXES_BORROWED & AXIS_BIT(axis) ? 1 : cells->mesh->size[axis];
    int common = -1;
    cells->lowest[axis] = ARENA_ARRAY(arena, int32_t, size);
    cells->many[axis] = ARENA_ARRAY(arena, int32_t, size);
    for (int at = 0; at < size; at++) {
        if (!special || special[at] || common < 0) {
            common = special && !special[at] ? cells->kinds[axis] : common;
            cells->lowest[axis][cells->kinds[axis]] = at;
            cells->many[axis][cells->kinds[axis]++] = 1;
        } else {
            cells->many[axis][common]++;
        }
    }
    cells->count *= cells->kinds[axis];
}

// ranks: special ones, NULL = all are.
static Cells cells_find(const Mesh *mesh, const int32_t *ranks, int count, Arena *arena) {
    Cells cells = {.mesh = mesh, .count = 1};
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        bool *special = ranks ? ARENA_ARRAY(arena, bool, mesh->size[axis]) : NULL;
        for (int i = 0; i < count; i++) {
            special[mesh_coordinates(mesh, ranks[i]).at[axis]] = true;
        }
        find_kinds(&cells, axis, special, arena);
    }
    return cells;
}

// Of an axis, some of its ranks.
static bool takes_part(AxisMask axes) {
    return (axes & (AXES_BORROWED | AXES_LEFT_BY_EP)) || axes_nearest_ranks(axes) > 0 || axes_apart_ranks(axes) > 0;
}

static bool borrows(const StepProgram *program) {
    bool found = false;
    for (int32_t i = 0; i < program->group_count; i++) {
        found |= takes_part(program->groups[i].axes);
    }
    return found;
}

static void place_cell(Colours *colours, int32_t group, int32_t cell) {
    const Cells *cells = &colours->cells;
    const AxisMask axes = colours->program->groups[group].axes;
    if (takes_part(axes)) {  // each rank is a cell
        const MeshCoordinates at = mesh_coordinates(cells->mesh, cell);
        colours->leader[group][cell] = mesh_group_member(cells->mesh, axes, &at, 0);
        colours->weight[group][cell] = 1;
        return;
    }
    const MeshCoordinates kinds = cell_kinds(cells, cell);
    int32_t leader = 0, weight = 1;
    for (int place = 0; place < AXIS_COUNT; place++) {
        const Axis axis = mesh_axis_at(cells->mesh, place);
        const bool inside = axes & AXIS_BIT(axis);
        leader = leader * cells->kinds[axis] + (inside ? 0 : kinds.at[axis]);
        weight *= inside ? cells->many[axis][kinds.at[axis]] : 1;
    }
    colours->leader[group][cell] = leader;
    colours->weight[group][cell] = weight;
}

static void place_cells(Colours *colours, Arena *arena) {
    const int32_t groups = colours->program->group_count;
    colours->leader = ARENA_ARRAY(arena, int32_t *, groups);
    colours->weight = ARENA_ARRAY(arena, int32_t *, groups);
    for (int32_t group = 0; group < groups; group++) {
        colours->leader[group] = ARENA_UNCLEARED(arena, int32_t, colours->cells.count);
        colours->weight[group] = ARENA_UNCLEARED(arena, int32_t, colours->cells.count);
        for (int32_t cell = 0; cell < colours->cells.count; cell++) {
            place_cell(colours, group, cell);
        }
    }
}

// ---- colours

static int compare_u64(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t mix(uint64_t value) {
    Hash hash = hash_begin();
    hash_int(&hash, (int64_t)value);
    return hash_end(&hash);
}

// Colours become dense numbers in the order of their signatures.
static void renumber(Colours *colours) {
    const int32_t cells = colours->cells.count;
    for (int32_t cell = 0; cell < cells; cell++) {
        colours->sorted[cell] = colours->signature[cell];
    }
    qsort(colours->sorted, (size_t)cells, sizeof *colours->sorted, compare_u64);
    int32_t distinct = 0;
    for (int32_t i = 0; i < cells; i++) {
        if (i == 0 || colours->sorted[i] != colours->sorted[distinct - 1]) {
            colours->sorted[distinct++] = colours->sorted[i];
        }
    }
    for (int32_t cell = 0; cell < cells; cell++) {
        const uint64_t *found =
            bsearch(&colours->signature[cell], colours->sorted, (size_t)distinct, sizeof *found, compare_u64);
        colours->of_cell[cell] = (int32_t)(found - colours->sorted);
    }
    colours->count = distinct;
}

// Adds what each rank sees in the groups of one mask: the sum of mixed colours does not depend on their order.
static void add_group_signature(Colours *colours, int group, uint64_t *sums) {
    const int32_t cells = colours->cells.count, *leader = colours->leader[group], *weight = colours->weight[group];
    for (int32_t cell = 0; cell < cells; cell++) {
        sums[cell] = 0;
    }
    for (int32_t cell = 0; cell < cells; cell++) {
        sums[leader[cell]] += (uint64_t)weight[cell] * mix((uint64_t)colours->of_cell[cell]);
    }
    for (int32_t cell = 0; cell < cells; cell++) {
        colours->signature[cell] = mix(colours->signature[cell] ^ mix(sums[leader[cell]] + (uint64_t)group));
    }
}

static void refine(Colours *colours, Arena *arena) {
    uint64_t *sums = ARENA_ARRAY(arena, uint64_t, colours->cells.count);
    int32_t before = 0;
    while (colours->count != before) {
        before = colours->count;
        for (int32_t cell = 0; cell < colours->cells.count; cell++) {
            colours->signature[cell] = mix((uint64_t)colours->of_cell[cell]);
        }
        for (int group = 0; group < colours->program->group_count; group++) {
            add_group_signature(colours, group, sums);
        }
        renumber(colours);
    }
}

static double factor_of(const float *factors, int rank) {
    return factors ? (double)factors[rank] : 1;
}

static bool in_stage(const StepProgram *program, int rank) {
    const Mesh *mesh = &program->plan.mesh;
    return !mesh_has_stages(mesh) || mesh_stage_of(mesh, rank) == program->stage;
}

// The lowest: in the first place of every other axis.
static int first_of_stage(const StepProgram *program) {
    const Mesh *mesh = &program->plan.mesh;
    const MeshCoordinates first = mesh_coordinates(mesh, 0);
    return mesh_group_member(mesh, AXES_STAGE, &first, program->stage);
}

static void one_class(const StepProgram *program, const EngineOptions *options, Arena *arena, RankClasses *classes) {
    *classes = (RankClasses){.actors = 1,
                             .rank = ARENA_NEW(arena, int32_t),
                             .slowdown = ARENA_NEW(arena, double),
                             .link_slowdown = ARENA_NEW(arena, double),
                             .first = ARENA_ARRAY(arena, int32_t, program->group_count),
                             .count = ARENA_ARRAY(arena, int32_t, program->group_count),
                             .members = ARENA_NEW(arena, int32_t)};
    classes->rank[0] = first_of_stage(program);
    classes->slowdown[0] = factor_of(options->rank_slowdown, classes->rank[0]);
    classes->link_slowdown[0] = factor_of(options->link_slowdown, classes->rank[0]);
    for (int group = 0; group < program->group_count; group++) {
        classes->count[group] = 1;
    }
}

static void pick_actors(const Colours *colours, const EngineOptions *options, int32_t *actor_of, RankClasses *classes) {
    for (int32_t i = 0; i < colours->count; i++) {
        actor_of[i] = -1;
    }
    for (int32_t cell = 0; cell < colours->cells.count; cell++) {
        int32_t *actor = &actor_of[colours->of_cell[cell]];
        const int rank = cell_rank(&colours->cells, cell);
        if (*actor < 0 && in_stage(colours->program, rank)) {
            *actor = classes->actors;
            classes->rank[classes->actors] = rank;
            classes->slowdown[classes->actors] = factor_of(options->rank_slowdown, rank);
            classes->link_slowdown[classes->actors++] = factor_of(options->link_slowdown, rank);
        }
    }
}

// The actors in each group, each once; the group's cells are in the order of its members. Actors are numbered by their
// lowest rank; a leader is the lowest actor.
typedef struct GroupActors {
    int32_t *next;  // by cell: of the same group; -1 = none
    int32_t *seen;  // by actor
    int32_t *out;
    int32_t stamp;
} GroupActors;

static void chain_groups(const Colours *colours, int group, int32_t *next, int32_t *last) {
    const int32_t *leader = colours->leader[group];
    for (int32_t cell = 0; cell < colours->cells.count; cell++) {
        next[cell] = last[cell] = -1;
    }
    for (int32_t cell = 0; cell < colours->cells.count; cell++) {
        if (last[leader[cell]] >= 0) {
            next[last[leader[cell]]] = cell;
        }
        last[leader[cell]] = cell;
    }
}

static int32_t group_actors(const Colours *colours, const int32_t *actor_of, int32_t first, GroupActors *found) {
    int32_t count = 0, *out = found->out;
    found->stamp++;
    for (int32_t cell = first; cell >= 0; cell = found->next[cell]) {
        const int32_t actor = actor_of[colours->of_cell[cell]];
        if (actor >= 0 && found->seen[actor] != found->stamp) {  // below 0: of another stage
            found->seen[actor] = found->stamp;
            out[count++] = actor;
            if (out[count - 1] < out[0]) {
                out[count - 1] = out[0];
                out[0] = actor;
            }
        }
    }
    return count;
}

// The cell that an actor's rank is in is the first of its colour.
static void find_members(const Colours *colours, const int32_t *actor_of, Arena *arena, RankClasses *classes) {
    const StepProgram *program = colours->program;
    const int32_t actors = classes->actors, entries = program->group_count * actors, cells = colours->cells.count;
    GroupActors found = {.next = ARENA_ARRAY(arena, int32_t, cells),
                         .seen = ARENA_ARRAY(arena, int32_t, actors),
                         .out = ARENA_ARRAY(arena, int32_t, actors)};
    int32_t *last = ARENA_ARRAY(arena, int32_t, cells), *home = ARENA_ARRAY(arena, int32_t, actors);
    size_t filled = 0, capacity = 0;
    for (int32_t cell = cells - 1; cell >= 0; cell--) {
        const int32_t actor = actor_of[colours->of_cell[cell]];
        if (actor >= 0 && in_stage(program, cell_rank(&colours->cells, cell))) {
            home[actor] = cell;
        }
    }
    classes->first = ARENA_ARRAY(arena, int32_t, entries);
    classes->count = ARENA_ARRAY(arena, int32_t, entries);
    for (int32_t i = 0; i < entries; i++) {
        const int32_t group = i / actors, actor = i % actors;
        if (actor == 0) {
            chain_groups(colours, group, found.next, last);
        }
        if (classes->count[i] > 0) {
            continue;  // listed with a member before it
        }
        const int32_t count = group_actors(colours, actor_of, colours->leader[group][home[actor]], &found);
        for (int32_t k = 0; k < count; k++) {
            ARENA_PUSH(arena, classes->members, filled, &capacity) = found.out[k];
            classes->first[group * actors + found.out[k]] = (int32_t)filled - k - 1;
            classes->count[group * actors + found.out[k]] = count;
        }
    }
}

// Refuses what is no slowdown; clears *equal where ranks differ.
static Status check_factors(const float *factors, int world, const char *what, bool *equal, Error *error) {
    for (int rank = 0; factors && rank < world; rank++) {
        FAIL_IF(!(factors[rank] >= 1 && factors[rank] < 1e6f), error, STATUS_USAGE,
                "%s of rank %d is %g; at least 1 is allowed", what, rank, (double)factors[rank]);
        *equal &= factors[rank] == factors[0];
    }
    return STATUS_OK;
}

static uint64_t first_colour(const EngineOptions *options, int rank) {
    Hash hash = hash_begin();
    hash_double(&hash, factor_of(options->rank_slowdown, rank));
    hash_double(&hash, factor_of(options->link_slowdown, rank));
    return hash_end(&hash);
}

// Those that differ from the usual rank, the fastest; -1: too many to tell apart.
static int special_ranks(const EngineOptions *options, int world, int32_t ranks[MOST_SPECIAL]) {
    int count = 0;
    for (int rank = 0; rank < world; rank++) {
        if (factor_of(options->rank_slowdown, rank) > 1 || factor_of(options->link_slowdown, rank) > 1) {
            if (count == MOST_SPECIAL) {
                return -1;
            }
            ranks[count++] = rank;
        }
    }
    return count;
}

Status rank_classes_find(const StepProgram *program, const EngineOptions *options, Arena *arena, RankClasses *classes,
                         Error *error) {
    const int world = mesh_world(&program->plan.mesh);
    bool equal = !options->all_ranks;
    TRY(check_factors(options->rank_slowdown, world, "slowdown", &equal, error));
    TRY(check_factors(options->link_slowdown, world, "link slowdown", &equal, error));
    if (equal) {
        one_class(program, options, arena, classes);
        return STATUS_OK;
    }
    int32_t special[MOST_SPECIAL];
    const bool apart = options->all_ranks || plan_has_stages(&program->plan);
    const int count = apart || borrows(program) ? -1 : special_ranks(options, world, special);
    Colours colours = {.program = program,
                       .cells = cells_find(&program->plan.mesh, count < 0 ? NULL : special, count, arena)};
    colours.of_cell = ARENA_ARRAY(arena, int32_t, colours.cells.count);
    colours.signature = ARENA_ARRAY(arena, uint64_t, colours.cells.count);
    colours.sorted = ARENA_ARRAY(arena, uint64_t, colours.cells.count);
    for (int32_t cell = 0; cell < colours.cells.count; cell++) {
        const int rank = cell_rank(&colours.cells, cell);
        colours.signature[cell] = apart ? (uint64_t)rank : first_colour(options, rank);
    }
    renumber(&colours);
    place_cells(&colours, arena);
    if (!apart) {
        refine(&colours, arena);
    }
    int32_t *actor_of = ARENA_ARRAY(arena, int32_t, colours.count);
    *classes = (RankClasses){.rank = ARENA_ARRAY(arena, int32_t, colours.count),
                             .slowdown = ARENA_ARRAY(arena, double, colours.count),
                             .link_slowdown = ARENA_ARRAY(arena, double, colours.count)};
    pick_actors(&colours, options, actor_of, classes);
    find_members(&colours, actor_of, arena, classes);
    return STATUS_OK;
}
