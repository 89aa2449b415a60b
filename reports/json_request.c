// What was asked, as JSON.

#include <math.h>

#include "reports/json_objects.h"

static json_t *int_or_null(bool known, int64_t value) {
    return known ? json_integer((json_int_t)value) : json_null();
}

// Fields of the plan as they were asked for, from..end of the order.
static void set_asked(json_t *object, const TuneRequest *request, const PlanFieldId *order, int from, int end) {
    for (int i = from; i < end; i++) {
        if (plan_fields[order[i]].scope != PLAN_OF_BATCH) {
            json_object_set_new(object, plan_fields[order[i]].name,
                                json_plan_value(order[i], request->asked[order[i]]));
        }
    }
}

// What was asked; null = left to the search.
json_t *json_request(const TuneRequest *request) {
    static const char *const efforts[EFFORT_COUNT] = {"simulate", "estimate", "exhaustive"};
    static const PlanFieldId first[] = {PLAN_ZERO,       PLAN_RESHARD,        PLAN_RECOMPUTE,   PLAN_CP_ROTATE,
                                        PLAN_PRECISION,  PLAN_ATTENTION,      PLAN_FUSED,       PLAN_TP_OVERLAP,
                                        PLAN_FP8_RECIPE, PLAN_MASTER_WEIGHTS, PLAN_REDUCE_DTYPE};
    enum { BEFORE_LIMITS = 5 };
    PlanFieldId fields[PLAN_FIELD_COUNT];
    plan_fields_from(first, sizeof first / sizeof first[0], fields);
    json_t *object = json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:i, s:o, s:o}", "command", request->command,
                               "world", request->world, "model", request->model.name, "model_asked",
                               request->model_asked, "cluster", request->cluster.name, "target", request->target->name,
                               "target_version", request->target->version, "seq", request->seq, "global_batch",
                               int_or_null(request->global_batch > 0 && !request->batch_assumed, request->global_batch),
                               "micro_batch", int_or_null(request->micro_batch > 0, request->micro_batch));
    if (!object) {
        return NULL;
    }
    set_asked(object, request, fields, 0, BEFORE_LIMITS);
    json_object_set_new(object, "max_tp", int_or_null(request->max_tp > 0, request->max_tp));
    json_object_set_new(object, "memory_limit_bytes", json_integer((json_int_t)llround(request->memory_limit_bytes)));
    json_object_set_new(object, "effort", json_string(efforts[request->effort]));
    json_object_set_new(object, "assumptions", json_strings(request->assumptions, request->assumption_count));
    set_asked(object, request, fields, BEFORE_LIMITS, PLAN_FIELD_COUNT);
    Mesh asked = {.order = request->order};
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        asked.size[axis] = AXES_FIRST & AXIS_BIT(axis) ? 2 : 1;  // an axis of size 1 would not be named
    }
    json_object_set_new(object, "rank_order",
                        request->any_order ? json_null() : json_string(mesh_order_text(&asked, MESH_BUFFER)));
    json_object_set_new(object, "objective", json_string(objective_names[request->objective]));
    json_object_set_new(object, "tokens", request->tokens > 0 ? json_real(request->tokens) : json_null());
    return object;
}
