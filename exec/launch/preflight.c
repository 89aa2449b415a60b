// A preflight is a worker job like a run, with the user's own model and plan: its findings apply to that run.

#include "exec/launch/preflight.h"

#include <math.h>
#include <string.h>

#include "sim/memory/memory.h"

static const char SCHEMA[] = "ndtune.preflight-result/1";
static const char *const collectives[] = {"all_gather", "reduce_scatter", "all_reduce",
                                          "send_recv",  "send_forward",   "send_backward"};

static Status broken(Error *error, const char *what) {
    return error_set(error, STATUS_INTERNAL, "not the result of a preflight (%s): %s", SCHEMA, what);
}

static Status read_rank(const json_t *row, Arena *arena, PreflightRank *rank, Error *error) {
    const char *host = "";
    json_error_t where;
    FAIL_WITH(json_unpack_ex((json_t *)row, &where, 0, "{s:s, s:i, s:i, s:F, s:F, s:F, s:F, s:F, s:F}", "host", &host,
                             "node", &rank->node, "cores", &rank->cores, "memory_bytes", &rank->memory_bytes,
                             "shared_bytes", &rank->shared_bytes, "locked_limit_bytes", &rank->locked_limit_bytes,
                             "address_limit_bytes", &rank->address_limit_bytes, "clock_offset_s", &rank->clock_offset_s,
                             "flop_per_s", &rank->flop_per_s) != 0,
              broken(error, where.text));
    rank->host = arena_text(arena, host);
    return STATUS_OK;
}

static Status read_groups(const json_t *row, int world, Arena *arena, PreflightGroups *groups, Error *error) {
    const char *name = "";
    int axes = 0;
    json_t *seconds = NULL, *wrong = NULL, *from = NULL;
    json_error_t where;
    FAIL_WITH(json_unpack_ex((json_t *)row, &where, 0, "{s:i, s:s, s:F, s:o, s:o, s?o}", "axes", &axes, "collective",
                             &name, "payload_bytes", &groups->payload_bytes, "seconds", &seconds, "wrong", &wrong,
                             "from", &from) != 0,
              broken(error, where.text));
    for (size_t i = 0; i < sizeof collectives / sizeof collectives[0]; i++) {
        groups->collective = strcmp(collectives[i], name) == 0 ? collectives[i] : groups->collective;
    }
    FAIL_WITH(!groups->collective || axes <= 0 || (int)json_array_size(seconds) != world ||
                  (int)json_array_size(wrong) != world || (from && (int)json_array_size(from) != world),
              broken(error, "a group without its ranks"));
    groups->axes = (AxisMask)axes;
    groups->seconds = ARENA_ARRAY(arena, double, world);
    groups->wrong = ARENA_ARRAY(arena, double, world);
    groups->from = from ? ARENA_ARRAY(arena, int, world) : NULL;
    for (int rank = 0; rank < world; rank++) {
        groups->seconds[rank] = json_number_value(json_array_get(seconds, (size_t)rank));
        groups->wrong[rank] = json_number_value(json_array_get(wrong, (size_t)rank));
        if (from) {
            const json_int_t sender = json_integer_value(json_array_get(from, (size_t)rank));
            groups->from[rank] = sender >= 0 && sender < world ? (int)sender : -1;
        }
    }
    return STATUS_OK;
}

static Status read_root(const json_t *root, Arena *arena, PreflightResult *result, Error *error) {
    const char *schema = json_string_value(json_object_get(root, "schema"));
    const json_t *ranks = json_object_get(root, "ranks"), *groups = json_object_get(root, "groups");
    FAIL_WITH(!schema || strcmp(schema, SCHEMA) != 0 || (int)json_array_size(ranks) != result->world,
              broken(error, "another schema or another world"));
    result->ranks = ARENA_ARRAY(arena, PreflightRank, result->world);
    for (int rank = 0; rank < result->world; rank++) {
        TRY(read_rank(json_array_get(ranks, (size_t)rank), arena, &result->ranks[rank], error));
    }
    result->group_count = (int)json_array_size(groups);
    result->groups = ARENA_ARRAY(arena, PreflightGroups, result->group_count + 1);
    for (int i = 0; i < result->group_count; i++) {
        TRY(read_groups(json_array_get(groups, (size_t)i), result->world, arena, &result->groups[i], error));
    }
    return STATUS_OK;
}

static Status read_result(const json_t *root, const StepPrograms *programs, Arena *arena, void *context, Error *error) {
    PreflightResult *result = context;
    for (int stage = 0; stage < programs->count; stage++) {
        MemoryPlan memory;
        TRY(memory_plan(&programs->of[stage], arena, &memory, error));
        result->arena_bytes = fmax(result->arena_bytes, (double)memory.arena_bytes);
    }
    return read_root(root, arena, result, error);
}

Status exec_preflight(const RunRequest *request, const ExecOptions *options, Arena *arena, PreflightResult *result,
                      Error *error) {
    RunRequest job = *request;
    job.job = JOB_PREFLIGHT;
    *result = (PreflightResult){.mesh = request->plan.mesh, .world = mesh_world(&request->plan.mesh)};
    return exec_job(&job, options, read_result, arena, result, error);
}
