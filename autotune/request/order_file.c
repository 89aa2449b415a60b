// A pipeline order from a file: replaced by the equivalent choices where they exist, else the order itself.

#include <string.h>

#include "autotune/request/request_internal.h"
#include "sim/step/schedules/order_file.h"

static bool is_file(const char *text) {
    const char *dot = text ? strrchr(text, '.') : NULL;
    return dot && strcmp(dot, ".csv") == 0;
}

Status say_number(Builder *builder, PlanFieldId id, const char *whose, const char *name, int number, Error *error) {
    const char **said = &builder->asked->choices[id];
    const int own = *said ? plan_field_value(id, *said) : PLAN_ANY;
    const int low = (int)plan_fields[id].low, high = (int)plan_fields[id].high;
    FAIL_IF(own != PLAN_ANY && own != number, about(builder->asked, ASKED_CHOICE + (int)id, error), STATUS_USAGE,
            "%s has %d %s, not %d", whose, number, name, own);
    FAIL_IF(number < low || number > high, error, STATUS_USAGE, "%s has %d %s, and a plan holds %d to %d", whose,
            number, name, low, high);
    *said = arena_format(builder->arena, "%d", number);
    return STATUS_OK;
}

// As the schedule that has it, where one does.
static Status take(Builder *builder, const char *path, Error *error) {
    PpOrder *order = ARENA_NEW(builder->arena, PpOrder);
    if (order_file_read(path, builder->arena, order, error) != STATUS_OK) {
        return STATUS_USAGE;
    }
    const Schedule *known = order_file_named(order, builder->arena);
    builder->request->pp_order = known ? NULL : order;
    TRY(choose_mesh(builder, error));
    FAIL_IF(mesh_stages(&builder->request->mesh) != order->stages, error, STATUS_USAGE,
            "%s is the order of %d ranks: use pp=%d", path, order->stages, order->stages);
    const char *said_rounds = builder->asked->choices[PLAN_PP_ROUNDS];
    const int rounds = said_rounds ? plan_field_value(PLAN_PP_ROUNDS, said_rounds) : 1;
    const int micro_steps = order->micro_steps * (rounds > 1 ? rounds : 1);
    TRY(say_number(builder, PLAN_GRAD_ACCUM, path, "micro-batches", micro_steps, error));
    builder->asked->grad_accum = micro_steps;
    const char *name = known ? known->name : pp_schedule_names[PP_FILE];
    builder->asked->choices[PLAN_PP_SCHEDULE] = name;
    TrainPlan plan = {.pp_schedule = (PpSchedule)plan_field_value(PLAN_PP_SCHEDULE, name)};
    plan.mesh = mesh_of_one();
    plan.mesh.size[AXIS_PP] = order->stages;
    return plan_field_matters(&plan, PLAN_VIRTUAL_STAGES)
               ? say_number(builder, PLAN_VIRTUAL_STAGES, path, "stages on each rank", order->chunks, error)
               : STATUS_OK;
}

Status choose_order_file(Builder *builder, Error *error) {
    Asked *asked = builder->asked;
    const char *path = asked->choices[PLAN_PP_SCHEDULE];
    if (!is_file(path)) {
        return STATUS_OK;
    }
    about(asked, ASKED_CHOICE + PLAN_PP_SCHEDULE, error);
    FAIL_IF(!builder->defaults->single_plan || asked->world > 0, error, STATUS_USAGE,
            "a file of actions is the order of one pipeline: give it to predict, run or export, with --mesh");
    return take(builder, path, error);
}
