// See the header. Loops are regular inside, as a lowered program's are; everything else is drawn.

#include "tests/property/sim/engine/random_program.h"

#include "tests/support/seed.h"
#include "tests/support/splitmix.h"

enum { MAX_TASKS = 96, EVENTS_PER_LANE = 2 };

typedef struct Draft {
    Random *random;
    Arena *arena;
    ProgramBuilder builder;
    TaskCost *costs;
    int tasks, lanes, groups, layers;
    int32_t events[8][EVENTS_PER_LANE];
    int slots[8][EVENTS_PER_LANE];
    int micro_steps[8][EVENTS_PER_LANE];  // that have slots of their own; 0 = all share
    bool layered[8][EVENTS_PER_LANE];     // recorded per layer, or always at slot 0
    bool host;
} Draft;

Random random_begin(const char *name) {
    return (Random){seed_of_run(name, 20261129)};
}

uint32_t random_below(Random *random, uint32_t bound) {
    return (uint32_t)(splitmix_next(&random->state) >> 11) % bound;
}

static int pick(Draft *draft, int bound) {
    return (int)random_below(draft->random, (uint32_t)bound);
}

static void add_lanes(Draft *draft) {
    static const char *const names[] = {"compute", "ag", "rs", "rep", "tp", "cp", "ctl"};
    draft->lanes = 2 + pick(draft, 6);
    for (int lane = 0; lane < draft->lanes; lane++) {
        builder_lane(&draft->builder, names[lane], lane == 0 ? -1 : pick(draft, 4));
        for (int i = 0; i < EVENTS_PER_LANE; i++) {
            static const int rings[] = {1, 2, 3, 64};
            draft->slots[lane][i] = rings[pick(draft, 4)];
            draft->layered[lane][i] = pick(draft, 3) > 0;
            draft->micro_steps[lane][i] = pick(draft, 3) ? 0 : 1 + pick(draft, 4);
            const int micro_steps = draft->micro_steps[lane][i];
            const int slots = draft->slots[lane][i] * (micro_steps ? micro_steps : 1);
            const int32_t buffer = builder_buffer(&draft->builder, "b", ROLE_ACTIVATION, slots, 256);
            draft->builder.program.buffers[buffer].micro_steps = micro_steps;
            draft->events[lane][i] = builder_event(&draft->builder, buffer, (int16_t)lane, true);
        }
    }
}

static void add_mesh(Draft *draft) {
    Mesh *mesh = &draft->builder.program.plan.mesh;
    int left = RANDOM_MAX_RANKS;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        const int size = axis == AXIS_PP ? 1 : 1 + pick(draft, 3);  // stages have programs of their own
        mesh->size[axis] = size <= left ? size : 1;
        left /= mesh->size[axis];
    }
    draft->groups = 1 + pick(draft, 3);
    for (int i = 0; i < draft->groups; i++) {
        const AxisMask axes = (AxisMask)(1 + pick(draft, (int)AXIS_ALL));
        builder_group(&draft->builder, "g", axes, mesh_group_size(mesh, axes));
    }
}

static TaskCost draw_cost(Draft *draft, bool collective) {
    TaskCost cost = {.seconds = (pick(draft, 8) == 0 ? 0 : 1 + pick(draft, 200)) * 1e-7};
    cost.host_s = draft->host ? pick(draft, 60) * 1e-7 : 0;
    cost.sm_share = collective ? (float)pick(draft, 20) / 100.0f : 1.0f;
    for (int r = 0; r < RESOURCE_COUNT; r++) {
        cost.use[r] = (float)pick(draft, 101) / 100.0f;
    }
    return cost;
}

// An event of a buffer that has slots per micro-step is met at a fixed slot once in a while.
static SlotIndex draw_index(Draft *draft, int lane, int which, bool in_layers, int offsets) {
    const bool layered = in_layers && draft->layered[lane][which];
    const bool follows = draft->micro_steps[lane][which] > 0 && pick(draft, 8) > 0;
    return (SlotIndex){.layer_scale = layered,
                       .layer_offset = (int16_t)(layered ? pick(draft, offsets) + 2 - offsets : 0),
                       .micro_scale = follows,
                       .micro_offset = (int16_t)(follows ? pick(draft, offsets) + 2 - offsets : 0)};
}

static void add_event_refs(Draft *draft, int lane, bool in_layers) {
    ProgramBuilder *builder = &draft->builder;
    for (int i = pick(draft, 3); i > 0; i--) {
        const int from = pick(draft, draft->lanes), which = pick(draft, EVENTS_PER_LANE);
        builder_wait_at(builder, draft->events[from][which], draw_index(draft, from, which, in_layers, 3));
    }
    for (int i = 0; i < EVENTS_PER_LANE; i++) {
        if (pick(draft, 2) == 0) {
            builder_record_at(builder, draft->events[lane][i], draw_index(draft, lane, i, in_layers, 2));
        }
    }
}

static void add_tasks(Draft *draft, int count, bool in_layers) {
    for (int i = 0; i < count && draft->tasks < MAX_TASKS; i++) {
        const int lane = pick(draft, 2) ? 0 : pick(draft, draft->lanes);
        Task *task = builder_task(&draft->builder, "t", lane ? TASK_ALL_GATHER : TASK_GEMM, (int16_t)lane,
                                  pick(draft, 6) ? PHASE_FORWARD : PHASE_OPTIMIZER);
        task->group = (int16_t)(lane ? pick(draft, draft->groups) : -1);
        task->layer_guard = (int16_t)(in_layers && pick(draft, 4) == 0 ? pick(draft, 5) - 2 : 0);
        draft->costs[draft->tasks++] = draw_cost(draft, lane > 0);
        add_event_refs(draft, lane, in_layers);
    }
    StepProgram *program = &draft->builder.program;
    program->segments[program->segment_count - 1].micro_offset = pick(draft, 3) ? 0 : pick(draft, 3);
}

static void add_layers(Draft *draft) {
    const bool down = pick(draft, 2);
    builder_loop(&draft->builder, SEGMENT_LAYERS, "layers", down ? draft->layers - 1 : 0, draft->layers, down ? -1 : 1);
    add_tasks(draft, 2 + pick(draft, 8), true);
    builder_end(&draft->builder);
}

RandomProgram random_program(Random *random, Arena *arena) {
    Draft draft = {.random = random, .arena = arena, .layers = 1 + (int)random_below(random, 24)};
    draft.builder = builder_begin(arena, draft.layers);
    draft.costs = ARENA_ARRAY(arena, TaskCost, MAX_TASKS);
    draft.host = pick(&draft, 3) == 0;
    add_lanes(&draft);
    add_mesh(&draft);
    add_tasks(&draft, 1 + pick(&draft, 4), false);
    for (int part = 1 + pick(&draft, 3); part > 0; part--) {
        const bool loop = pick(&draft, 2);
        if (loop) {
            builder_loop(&draft.builder, SEGMENT_MICRO_STEPS, "micro-batches", 0, 1 + pick(&draft, 12), 1);
        }
        add_layers(&draft);
        add_tasks(&draft, 1 + pick(&draft, 4), false);
        add_layers(&draft);
        if (loop) {
            builder_end(&draft.builder);
        }
    }
    add_tasks(&draft, 1 + pick(&draft, 4), false);
    RandomProgram result = {.costs = draft.costs,
                            .interference = {.hbm_factor = 2.5, .collective_slowdown = 1.1, .residue = 1.03}};
    result.program = ARENA_NEW(arena, StepProgram);
    *result.program = *builder_program(&draft.builder);
    return result;
}
