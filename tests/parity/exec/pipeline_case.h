// Pipeline plans on all shapes of some worlds, compared with one rank.

#pragma once

#include "tests/parity/exec/exec_case.h"

// A plan of the family that divides the world: with 3 in it, or powers of two.
typedef struct PipelineChoice {
    PpSchedule schedule;
    int virtual_stages;
    int zero;
    Reshard reshard;
    Recompute recompute;
    PpSplit split;
    int first, last;       // layers, for splits that specify them
    const PpOrder *order;  // of the schedule FILE
} PipelineChoice;

// Shapes of a world with more than one stage; returns how many were written.
int pipeline_shapes(int world, Mesh *meshes, int capacity);

// A model of 8 layers and a batch that the shape divides, in micro-steps of one sequence. False where the target
// refuses the plan.
bool pipeline_request(const Mesh *mesh, const PipelineChoice *choice, RunRequest *request);

// A choice whose parts walk through their values as the index grows.
PipelineChoice pipeline_spread(PpSchedule schedule, int index);

// Expects it to train as one rank does, with the same gradient norm, each stage within its planned memory.
void pipeline_trains(const RunRequest *request, Deviation *worst);

RunRequest pipeline_one_rank(const RunRequest *request);  // the same on one rank
