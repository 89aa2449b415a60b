// Walks mesh x zero x reshard x recompute x rotation x accumulation; canonical and legal plans only, each once.

#include "tests/property/sim/memory/lowered_sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHOICES = 4 * 2 * 2 * 2 * 2, MAX_MESHES = 512 };  // zero, reshard, recompute, rotation, accumulation

static TrainPlan plan_of_choice(const LoweredRange *range, const Mesh *mesh, int choice) {
    TrainPlan plan = {.mesh = *mesh, .seq = range->seq, .micro_batch = 1, .precision = range->precision};
    plan.zero = choice & 3;
    plan.reshard = choice >> 2 & 1 ? RESHARD_NEVER : RESHARD_ALWAYS;
    plan.recompute = choice >> 3 & 1 ? RECOMPUTE_FULL : RECOMPUTE_NONE;
    plan.cp_rotate = choice >> 4 & 1 ? CP_ROTATE_ALLGATHER : CP_ROTATE_RING;
    plan.grad_accum = choice >> 5 & 1 ? range->max_accum : 1;
    return plan;
}

static void must(Status status, const Error *error, const char *what) {
    if (status != STATUS_OK) {
        fprintf(stderr, "%s: %s\n", what, error->message);
        abort();
    }
}

typedef struct Walk {
    const LoweredRange *range;
    ModelSpec model;
    const Target *target;
    LoweredVisitor *visit;
    void *context;
    int visited;
} Walk;

static void visit_plan(Walk *walk, TrainPlan plan) {
    Arena arena = {0};
    Error error = {0};
    const char *reason = NULL;
    char before[PLAN_TEXT_BYTES], after[PLAN_TEXT_BYTES];
    plan_text(&plan, before);
    plan_canonical(&plan);
    plan_text(&plan, after);
    target_check(walk->target, &walk->model, &plan, &arena, &reason);
    if (strcmp(before, after) == 0 && !reason) {
        StepProgram program;
        must(step_lower(&walk->model, &plan, walk->target, &arena, &program, &error), &error, after);
        walk->visit(walk->context, &program);
        walk->visited++;
    }
    arena_free(&arena);
}

int lowered_sweep(const LoweredRange *range, LoweredVisitor *visit, void *context) {
    Arena arena = {0};
    Error error = {0};
    Walk walk = {.range = range, .visit = visit, .context = context};
    must(model_find(range->model, &arena, &walk.model, &error), &error, range->model);
    must(target_find(range->target, &walk.target, &error), &error, range->target);
    if (range->max_layers > 0 && walk.model.layers > range->max_layers) {
        walk.model.layers = range->max_layers;
    }
    for (int world = 1; world <= range->max_world; world *= 2) {
        Mesh meshes[MAX_MESHES];
        const int count = mesh_enumerate(world, AXES_FIRST, meshes, MAX_MESHES);
        for (int i = 0; i < count * CHOICES; i++) {
            const int choice = i % CHOICES;
            if (choice >> 5 == 0 || range->max_accum > 1) {
                visit_plan(&walk, plan_of_choice(range, &meshes[i / CHOICES], choice));
            }
        }
    }
    arena_free(&arena);
    return walk.visited;
}
