// The programs of a step, one per pipeline stage. Ranks of a stage run the same program; the mesh maps ranks to stages
// (mesh_stage_of). There is one stage if no axis has the pipeline role.

#pragma once

#include "sim/step/step.h"

typedef struct StepPrograms {
    StepProgram *of;  // by stage
    int count;
} StepPrograms;

// step_lower_stage for every stage, in the arena.
Status step_lower_stages(const ModelSpec *model, const TrainPlan *plan, const Target *target, Arena *arena,
                         StepPrograms *programs, Error *error);

// Of one stage, with few of the micro-steps: it holds as much (lower_short.c).
Status step_lower_short(const ModelSpec *model, const TrainPlan *plan, const Target *target, int stage, Arena *arena,
                        StepProgram *program, Error *error);

static inline const StepProgram *step_program_of(const StepPrograms *programs, const Mesh *mesh, int rank) {
    return &programs->of[mesh_stage_of(mesh, rank)];
}

// Of the gradient of a table that the first and the last stage have a copy of, were it trained: what each sends the
// other after the last backward (lower_tied.c).
int64_t step_tied_elements(const ModelSpec *model, const TrainPlan *plan, const Target *target, Dtype *dtype);

// The template hash of the only stage; with several, their hashes combined in order.
uint64_t step_programs_hash(const StepPrograms *programs);
