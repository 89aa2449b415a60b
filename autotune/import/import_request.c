// A config file and the options given along with it, as one request.

#include <string.h>

#include "autotune/import/import.h"
#include "autotune/request/request.h"
#include "sim/frameworks/target_choices.h"

// What the user sets for the file's plan.
static ImportChoices given_choices(const Asked *asked) {
    ImportChoices given = import_nothing_said();
    given.world = asked->world;
    given.seq = asked->seq;
    given.micro_batch = asked->micro_batch;
    given.grad_accum = asked->grad_accum;
    given.global_batch = asked->global_batch;
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const PlanFieldId id = (PlanFieldId)i;
        if (plan_fields[id].scope != PLAN_OF_BATCH && asked->choices[id]) {
            given.choice[id] = plan_field_value(id, asked->choices[id]);
        }
    }
    return given;
}

// The training recipe, and the kernels of a target that has no switch for others.
static bool is_of_job(const Asked *asked, PlanFieldId id) {
    const Target *target = NULL;
    Error unknown = {0};
    const bool of_kernels = id == PLAN_FUSED && target_find(asked->target, &target, &unknown) == STATUS_OK;
    return plan_fields[id].scope == PLAN_OF_JOB || (of_kernels && !target_has_choice(target, id));
}

// What the file says, as if it was asked; a shape's own choices are left to the search.
static void say_choices(const Import *import, Asked *asked) {
    const ImportChoices *said = &import->said;
    asked->target = asked->target ? asked->target : import->target;
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const PlanFieldId id = (PlanFieldId)i;
        const bool plain = plan_fields[id].printed == PLAN_PRINTED_UNLESS_USUAL;
        if (!is_of_job(asked, id)) {
            asked->choices[id] = NULL;
        } else if (said->choice[id] != IMPORT_UNSAID && !(plain && said->choice[id] == plan_fields[id].usual) &&
                   (id != PLAN_FP8_RECIPE || said->choice[PLAN_PRECISION] == DTYPE_FP8)) {
            asked->choices[id] = arena_text(import->arena, plan_value_text(id, said->choice[id], VALUE_BUFFER));
        }
    }
    asked->world = said->world;
    asked->seq = said->seq;
    asked->choices[PLAN_SEQ] = said->seq > 0 ? arena_format(import->arena, "%d", said->seq) : NULL;
    asked->micro_batch = asked->grad_accum = 0;
    asked->global_batch = said->global_batch > 0 ? said->global_batch : asked->global_batch;
}

// A file that names a model of the hub that has a preset, or one that its reader knows, says --model; a flavor alone,
// such as "8B", names several.
static void say_model(Import *import, Asked *asked) {
    ModelSpec model;
    Error unknown = {0};
    const char *name = import->preset                                ? import->preset
                       : import->model && strchr(import->model, '-') ? import->model
                                                                     : NULL;
    if (asked->model || !name || model_find(name, import->arena, &model, &unknown) != STATUS_OK) {
        return;
    }
    asked->model = name;
    if (import->preset_by_sizes) {
        import_find(import, FINDING_ASSUMED, NULL, "the model is %s, which has these sizes; --model says another",
                    name);
    }
}

Status import_ask(Import *import, Asked *asked, Error *error) {
    const ImportChoices given = given_choices(asked);
    import_settle(import, &given);
    FAIL_IF(import->said.world == 0, error, STATUS_USAGE, "%s: %s", import->path, import->refusal);
    say_choices(import, asked);
    say_model(import, asked);
    return STATUS_OK;
}

void import_refuse_choices(Import *import, const TuneRequest *request) {
    for (int i = 0; i < PLAN_FIELD_COUNT && !import->refusal; i++) {
        const int said = import->said.choice[i];
        const char *reason =
            said == IMPORT_UNSAID ? NULL : target_refuses(request->target, (PlanFieldId)i, said, import->arena);
        if (reason) {
            import_refuse(import, NULL, "%s", reason);
        }
    }
    const int *said = import->said.choice;
    const char *fused = said[PLAN_OP_FUSER] == true ? target_refuses_fused(request->target, &request->model,
                                                                           said[PLAN_FP8_RECIPE], import->arena)
                                                    : NULL;
    if (fused && !import->refusal) {
        import_refuse(import, NULL, "%s", fused);
    }
}

void import_plan_of(const Import *import, const TuneRequest *request, TrainPlan *plan) {
    TrainPlan usual;
    Mesh mesh = mesh_of_one();
    memcpy(mesh.size, import->said.size, sizeof mesh.size);
    request_plan(request, &mesh, &usual);
    import_plan(import, &usual, plan);
    target_canonical(request->target, plan);
}
