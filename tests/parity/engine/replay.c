// See the header. Kernels and collectives slow each other only through links: interference is off.

#include "tests/parity/engine/replay.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/program_builder.h"
#include "tests/support/sizes.h"

typedef struct Building {
    ProgramBuilder builder;
    TaskCost costs[REPLAY_MAX_TASKS];
    int tasks;
} Building;

static const char *const lane_names[] = {"compute", "ag", "rs", "rep", "tp", "cp"};
enum { LANES = sizeof lane_names / sizeof *lane_names };

json_t *replay_file(void) {
    json_error_t error;
    json_t *file = json_load_file(NDTUNE_SOURCE_DIR "/tests/parity/engine/simgrid.json", 0, &error);
    cr_assert_not_null(file, "line %d: %s", error.line, error.text);
    return file;
}

const char *replay_text(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    cr_assert_not_null(text, "no text \"%s\"", key);
    return text;
}

double replay_number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    cr_assert(json_is_number(value), "no number \"%s\"", key);
    return json_number_value(value);
}

double replay_difference(double engine_s, double recorded_s) {
    return engine_s / recorded_s - 1;
}

void replay_free(Replay *replay) {
    arena_free(&replay->arena);
}

// ---------------------------------------------------------------------------------------------- building

static void begin(Building *building, Replay *replay, int ranks) {
    memset(replay, 0, sizeof *replay);
    building->tasks = 0;
    building->builder = builder_begin(&replay->arena, 1);
    building->builder.program.plan.mesh = (Mesh){.size = SIZES(1, ranks, 1, 1)};
    for (int lane = 0; lane < LANES; lane++) {
        builder_lane(&building->builder, lane_names[lane], lane - 1);
    }
    builder_group(&building->builder, "ring", AXES_SHARD_GROUP, ranks);
}

static Task *add_task(Building *building, const char *name, TaskKind kind, int16_t lane, TaskCost cost) {
    cr_assert_lt(building->tasks, REPLAY_MAX_TASKS);
    building->costs[building->tasks++] = cost;
    Task *task = builder_task(&building->builder, name, kind, lane, PHASE_FORWARD);
    task->group = lane == LANE_COMPUTE ? -1 : 0;
    return task;
}

static void run(Building *building, bool no_contention, Replay *replay) {
    const StepProgram *program = builder_program(&building->builder);
    const EngineCosts costs = {.tasks = building->costs, .interference = {1, 1, 1}};
    const EngineOptions options = {.all_ranks = true, .keep_spans = true, .no_contention = no_contention};
    Error error = {0};
    cr_assert_eq(engine_run_costs(program, &costs, &options, &replay->arena, &replay->result, &error), STATUS_OK, "%s",
                 error.message);
    replay->tasks = program->task_count;
    for (int64_t i = 0; i < replay->result.timeline.span_count; i++) {
        const Span *span = &replay->result.timeline.spans[i];
        if (span->rank == 0) {
            replay->end_s[span->task] = span->end_s;
        }
    }
}

// ---------------------------------------------------------------------------------------------- flows

static const json_t *link_named(const json_t *situation, const char *name) {
    size_t i;
    json_t *link;
    json_array_foreach(json_object_get(situation, "links"), i, link) {
        if (strcmp(replay_text(link, "name"), name) == 0) {
            return link;
        }
    }
    cr_assert_fail("no link %s", name);
    return NULL;
}

static TaskCost flow_cost(const json_t *situation, const json_t *task) {
    TaskCost cost = {0};
    double bytes_per_s = INFINITY, shared[RESOURCE_COUNT] = {0};
    const double bytes = replay_number(task, "bytes");
    char links[64], *rest = links;
    snprintf(links, sizeof links, "%s", replay_text(task, "links"));
    for (char *name = strtok_r(rest, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        const json_t *link = link_named(situation, name);
        const char *resource = replay_text(link, "resource");
        const double speed = replay_number(link, "bytes_per_s");
        bytes_per_s = fmin(bytes_per_s, speed);
        cost.seconds += replay_number(link, "latency_s");
        shared[RESOURCE_NIC] = strcmp(resource, "nic") == 0 ? speed : shared[RESOURCE_NIC];
        shared[RESOURCE_UPLINK] = strcmp(resource, "uplink") == 0 ? speed : shared[RESOURCE_UPLINK];
        shared[RESOURCE_NODE_LINK] = strcmp(resource, "node_link") == 0 ? speed : shared[RESOURCE_NODE_LINK];
    }
    cost.seconds += bytes / bytes_per_s;
    for (int r = 0; r < RESOURCE_COUNT; r++) {
        cost.use[r] = shared[r] > 0 ? (float)(bytes / shared[r] / cost.seconds) : 0;
    }
    return cost;
}

static int16_t lane_of(const json_t *task) {
    for (int16_t lane = 0; lane < LANES; lane++) {
        if (strcmp(lane_names[lane], replay_text(task, "lane")) == 0) {
            return lane;
        }
    }
    cr_assert_fail("no lane %s", replay_text(task, "lane"));
    return 0;
}

void replay_flows(const json_t *situation, bool no_contention, Replay *replay) {
    Building building;
    begin(&building, replay, 1);
    const json_t *tasks = json_object_get(situation, "tasks");
    int32_t events[REPLAY_MAX_TASKS];
    size_t i;
    json_t *task;
    json_array_foreach(tasks, i, task) {
        const int16_t lane = lane_of(task);
        const char *name = replay_text(task, "name");
        const TaskCost cost = json_object_get(task, "bytes") ? flow_cost(situation, task)
                                                             : (TaskCost){.seconds = replay_number(task, "seconds")};
        const int32_t buffer = builder_buffer(&building.builder, name, ROLE_ACTIVATION, 1, STEP_ALIGN_BYTES);
        events[i] = builder_event(&building.builder, buffer, lane, true);
        add_task(&building, name, lane == LANE_COMPUTE ? TASK_GEMM : TASK_ALL_GATHER, lane, cost);
        for (size_t before = 0; before < i; before++) {
            if (strcmp(replay_text(json_array_get(tasks, before), "name"), replay_text(task, "after")) == 0) {
                builder_wait(&building.builder, events[before], 0, 0);
            }
        }
        builder_record(&building.builder, events[i], 0, 0);
    }
    run(&building, no_contention, replay);
}

// ---------------------------------------------------------------------------------------------- rings

int replay_ring_step_count(const json_t *ring, const json_t *collective) {
    const int rounds = strcmp(replay_text(collective, "kind"), "all_reduce") == 0 ? 2 : 1;
    return rounds * ((int)replay_number(ring, "ranks") - 1);
}

// Hockney: one step of the ring passes payload / ranks over a hop.
static TaskCost step_cost(const json_t *ring, const json_t *collective) {
    const double part_s =
        replay_number(collective, "payload_bytes") / replay_number(ring, "ranks") / replay_number(ring, "bytes_per_s");
    TaskCost cost = {.seconds = replay_number(ring, "latency_s") + part_s};
    cost.use[RESOURCE_NIC] = (float)(part_s / cost.seconds);
    return cost;
}

void replay_ring(const json_t *ring, Replay *replay) {
    Building building;
    begin(&building, replay, (int)replay_number(ring, "ranks"));
    size_t i;
    json_t *collective;
    json_array_foreach(json_object_get(ring, "collectives"), i, collective) {
        const int16_t lane = (int16_t)(LANE_AG + (int)i);
        TaskCost cost = step_cost(ring, collective);
        cost.seconds *= replay_ring_step_count(ring, collective);
        add_task(&building, "pause", TASK_SEND_RECV, lane, (TaskCost){.seconds = replay_number(collective, "start_s")});
        add_task(&building, "collective", TASK_ALL_REDUCE, lane, cost);
    }
    run(&building, false, replay);
}

void replay_ring_steps(const json_t *ring, Replay *replay) {
    Building building;
    begin(&building, replay, (int)replay_number(ring, "ranks"));
    const json_t *collective = json_array_get(json_object_get(ring, "collectives"), 0);
    for (int i = 0; i < replay_ring_step_count(ring, collective); i++) {
        add_task(&building, "step", TASK_SEND_RECV, LANE_AG, step_cost(ring, collective));
    }
    run(&building, false, replay);
}
