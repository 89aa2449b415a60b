// A pipeline order from a file: replaced by the equivalent options where they exist, else the order itself.

#include <string.h>

#include "autotune/cli/request.h"
#include "sim/step/schedules/order_file.h"

static bool is_file(const char *text) {
    const char *dot = strrchr(text, '.');
    return dot && strcmp(dot, ".csv") == 0;
}

// What the file says of another option; who says something else is wrong.
static Status say(Cli *cli, OptionId option, const char *path, const char *name, int32_t number, Error *error) {
    OptionValue *value = &cli->options.values[option];
    if (value->given && value->integer != number) {
        return cli_refuse(cli, option, error, "%s has %d %s, not %lld", path, number, name, (long long)value->integer);
    }
    if (!value->given) {
        *value = (OptionValue){
            .given = true, .text = arena_format(&cli->arena, "%d", number), .integer = number, .argument = -1};
    }
    return STATUS_OK;
}

static Status check_stages(Cli *cli, const char *path, const PpOrder *order, Error *error) {
    Mesh mesh;
    TRY(request_mesh(cli, &mesh, error));
    if (mesh_stages(&mesh) != order->stages) {
        return cli_refuse(cli, OPTION_MESH, error, "%s is the order of %d ranks: use pp=%d", path, order->stages,
                          order->stages);
    }
    return STATUS_OK;
}

// As the schedule that has it, where one does.
static Status take(Cli *cli, OptionId option, const char *path, TuneRequest *request, Error *error) {
    PpOrder *order = ARENA_NEW(&cli->arena, PpOrder);
    if (order_file_read(path, &cli->arena, order, error) != STATUS_OK) {
        return cli_blame(cli, option, STATUS_USAGE);
    }
    const Schedule *known = order_file_schedule(order, &cli->arena);
    request->pp_order = known ? NULL : order;
    TRY(check_stages(cli, path, order, error));
    TRY(say(cli, OPTION_GRAD_ACCUM, path, "micro-batches", order->micro_steps, error));
    const char *name = known ? known->name : pp_schedule_names[PP_FILE];
    cli->options.values[option].text = name;
    TrainPlan plan = {.pp_schedule = (PpSchedule)plan_field_value(PLAN_PP_SCHEDULE, name)};
    plan.mesh = mesh_of_one();
    plan.mesh.size[AXIS_PP] = order->stages;
    return plan_field_matters(&plan, PLAN_VIRTUAL_STAGES)
               ? say(cli, option_of(PLAN_VIRTUAL_STAGES), path, "stages on each rank", order->chunks, error)
               : STATUS_OK;
}

Status request_order_file(Cli *cli, const RequestDefaults *defaults, TuneRequest *request, Error *error) {
    const OptionId option = option_of(PLAN_PP_SCHEDULE);
    const char *path = cli_text_or(cli, option, "");
    if (!is_file(path)) {
        return STATUS_OK;
    }
    if (!defaults->single_plan || cli_given(cli, OPTION_WORLD)) {
        return cli_refuse(cli, option, error,
                          "a file of actions is the order of one pipeline: give it to predict, run or export, "
                          "with --mesh");
    }
    return take(cli, option, path, request, error);
}
