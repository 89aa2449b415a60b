// Equivalence classes of ranks by colour refinement: ranks start with the colour of what differs between them (their
// slowdown and that of their links, or themselves with all_ranks) and are split as long as two of one colour see
// different colours in their groups. The result is an equitable partition, so simulating one rank per class with the
// classes of its groups is exact. Without slowdowns there is one class: every rank does the same work (what a
// contiguous cp split makes unequal is priced by sim/cost as the rank that the ring waits for).

#include "sim/engine/rank_classes.h"

#include <stdlib.h>

#include "sim/base/hash.h"

typedef struct Colours {
    const StepProgram *program;
    int world;
    int32_t *of_rank;
    int32_t count;
    uint64_t *signature, *sorted;
} Colours;

static int compare_u64(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t mix(uint64_t value) {
    Hash hash = hash_begin();
    hash_int(&hash, (int64_t)value);
    return hash_end(&hash);
}

// Colours become dense numbers in order of their lowest rank.
static void renumber(Colours *colours) {
    for (int rank = 0; rank < colours->world; rank++) {
        colours->sorted[rank] = colours->signature[rank];
    }
    qsort(colours->sorted, (size_t)colours->world, sizeof *colours->sorted, compare_u64);
    int32_t distinct = 0;
    for (int i = 0; i < colours->world; i++) {
        if (i == 0 || colours->sorted[i] != colours->sorted[distinct - 1]) {
            colours->sorted[distinct++] = colours->sorted[i];
        }
    }
    for (int rank = 0; rank < colours->world; rank++) {
        const uint64_t *found =
            bsearch(&colours->signature[rank], colours->sorted, (size_t)distinct, sizeof *found, compare_u64);
        colours->of_rank[rank] = (int32_t)(found - colours->sorted);
    }
    colours->count = distinct;
}

// Adds what each rank sees in the groups of one mask: the sum of mixed colours does not depend on their order.
static void add_group_signature(Colours *colours, int group, uint64_t *sums) {
    const Mesh *mesh = &colours->program->plan.mesh;
    const AxisMask axes = colours->program->groups[group].axes;
    for (int rank = 0; rank < colours->world; rank++) {
        sums[rank] = 0;
    }
    for (int rank = 0; rank < colours->world; rank++) {
        const MeshCoordinates at = mesh_coordinates(mesh, rank);
        sums[mesh_group_member(mesh, axes, &at, 0)] += mix((uint64_t)colours->of_rank[rank]);
    }
    for (int rank = 0; rank < colours->world; rank++) {
        const MeshCoordinates at = mesh_coordinates(mesh, rank);
        colours->signature[rank] =
            mix(colours->signature[rank] ^ mix(sums[mesh_group_member(mesh, axes, &at, 0)] + (uint64_t)group));
    }
}

static void refine(Colours *colours, Arena *arena) {
    uint64_t *sums = ARENA_ARRAY(arena, uint64_t, colours->world);
    int32_t before = 0;
    while (colours->count != before) {
        before = colours->count;
        for (int rank = 0; rank < colours->world; rank++) {
            colours->signature[rank] = mix((uint64_t)colours->of_rank[rank]);
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

static void one_class(const StepProgram *program, const EngineOptions *options, Arena *arena, RankClasses *classes) {
    *classes = (RankClasses){.actors = 1,
                             .rank = ARENA_NEW(arena, int32_t),
                             .slowdown = ARENA_NEW(arena, double),
                             .link_slowdown = ARENA_NEW(arena, double),
                             .first = ARENA_ARRAY(arena, int32_t, program->group_count),
                             .count = ARENA_ARRAY(arena, int32_t, program->group_count),
                             .members = ARENA_NEW(arena, int32_t)};
    classes->slowdown[0] = factor_of(options->rank_slowdown, 0);
    classes->link_slowdown[0] = factor_of(options->link_slowdown, 0);
    for (int group = 0; group < program->group_count; group++) {
        classes->count[group] = 1;
    }
}

static void pick_actors(const Colours *colours, const EngineOptions *options, int32_t *actor_of, RankClasses *classes) {
    for (int32_t i = 0; i < colours->count; i++) {
        actor_of[i] = -1;
    }
    for (int rank = 0; rank < colours->world; rank++) {
        int32_t *actor = &actor_of[colours->of_rank[rank]];
        if (*actor < 0) {
            *actor = classes->actors;
            classes->rank[classes->actors] = rank;
            classes->slowdown[classes->actors] = factor_of(options->rank_slowdown, rank);
            classes->link_slowdown[classes->actors++] = factor_of(options->link_slowdown, rank);
        }
    }
}

// The actors in the group of `actor`, each once. Actors are numbered by their lowest rank; a leader is the lowest
// actor.
static int32_t group_actors(const Colours *colours, const int32_t *actor_of, const MeshCoordinates *at, int group,
                            int32_t *seen, int32_t stamp, int32_t *out) {
    const Mesh *mesh = &colours->program->plan.mesh;
    const Group *shape = &colours->program->groups[group];
    int32_t count = 0;
    for (int i = 0; i < shape->size; i++) {
        const int32_t actor = actor_of[colours->of_rank[mesh_group_member(mesh, shape->axes, at, i)]];
        if (seen[actor] != stamp) {
            seen[actor] = stamp;
            out[count++] = actor;
            if (out[count - 1] < out[0]) {
                out[count - 1] = out[0];
                out[0] = actor;
            }
        }
    }
    return count;
}

static void find_members(const Colours *colours, const int32_t *actor_of, Arena *arena, RankClasses *classes) {
    const StepProgram *program = colours->program;
    const int32_t entries = program->group_count * classes->actors;
    int32_t *seen = ARENA_ARRAY(arena, int32_t, classes->actors);
    int32_t *out = ARENA_ARRAY(arena, int32_t, classes->actors);
    size_t filled = 0, capacity = 0;
    classes->first = ARENA_ARRAY(arena, int32_t, entries);
    classes->count = ARENA_ARRAY(arena, int32_t, entries);
    for (int32_t i = 0; i < entries; i++) {
        const int32_t group = i / classes->actors, actor = i % classes->actors;
        if (classes->count[i] > 0) {
            continue;  // listed with a member before it
        }
        const MeshCoordinates at = mesh_coordinates(&program->plan.mesh, classes->rank[actor]);
        const int32_t count = group_actors(colours, actor_of, &at, group, seen, i + 1, out);
        for (int32_t k = 0; k < count; k++) {
            classes->members = arena_grow(arena, classes->members, filled, &capacity, sizeof *classes->members);
            classes->members[filled++] = out[k];
            classes->first[group * classes->actors + out[k]] = (int32_t)filled - k - 1;
            classes->count[group * classes->actors + out[k]] = count;
        }
    }
}

// Refuses what is no slowdown; clears *equal where ranks differ.
static Status check_factors(const float *factors, int world, const char *what, bool *equal, Error *error) {
    for (int rank = 0; factors && rank < world; rank++) {
        if (!(factors[rank] >= 1 && factors[rank] < 1e6f)) {
            return error_set(error, STATUS_USAGE, "%s of rank %d is %g; at least 1 is allowed", what, rank,
                             (double)factors[rank]);
        }
        *equal &= factors[rank] == factors[0];
    }
    return STATUS_OK;
}

static uint64_t first_colour(const EngineOptions *options, int rank) {
    if (options->all_ranks) {
        return (uint64_t)rank;
    }
    Hash hash = hash_begin();
    hash_double(&hash, factor_of(options->rank_slowdown, rank));
    hash_double(&hash, factor_of(options->link_slowdown, rank));
    return hash_end(&hash);
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
    Colours colours = {.program = program,
                       .world = world,
                       .of_rank = ARENA_ARRAY(arena, int32_t, world),
                       .signature = ARENA_ARRAY(arena, uint64_t, world),
                       .sorted = ARENA_ARRAY(arena, uint64_t, world)};
    for (int rank = 0; rank < world; rank++) {
        colours.signature[rank] = first_colour(options, rank);
    }
    renumber(&colours);
    if (!options->all_ranks) {
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
