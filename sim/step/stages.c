// Lowering stage after stage.

#include "sim/step/stages.h"

#include "sim/base/hash.h"

Status step_lower_stages(const ModelSpec *model, const TrainPlan *plan, const Target *target, Arena *arena,
                         StepPrograms *programs, Error *error) {
    programs->count = mesh_stages(&plan->mesh);
    programs->of = ARENA_ARRAY(arena, StepProgram, programs->count);
    for (int stage = 0; stage < programs->count; stage++) {
        TRY(step_lower_stage(model, plan, target, stage, arena, &programs->of[stage], error));
    }
    return STATUS_OK;
}

uint64_t step_programs_hash(const StepPrograms *programs) {
    if (programs->count == 1) {
        return step_template_hash(&programs->of[0]);
    }
    Hash hash = hash_begin();
    for (int stage = 0; stage < programs->count; stage++) {
        hash_int(&hash, (int64_t)step_template_hash(&programs->of[stage]));
    }
    return hash_end(&hash);
}
