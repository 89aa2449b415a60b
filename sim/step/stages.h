// The programs of a step, one for each stage of its pipeline. Ranks of a stage run the same program; which stage a rank
// is in is the mesh's (mesh_stage_of). There is one stage as long as no axis has that role.

#pragma once

#include "sim/step/step.h"

typedef struct StepPrograms {
    StepProgram *of;  // by stage
    int count;
} StepPrograms;

// step_lower_stage of every stage, in the arena.
Status step_lower_stages(const ModelSpec *model, const TrainPlan *plan, const Target *target, Arena *arena,
                         StepPrograms *programs, Error *error);

static inline const StepProgram *step_program_of(const StepPrograms *programs, const Mesh *mesh, int rank) {
    return &programs->of[mesh_stage_of(mesh, rank)];
}

// The template hash of the only stage; of several, theirs in order.
uint64_t step_programs_hash(const StepPrograms *programs);
