// Which collective of our step a recorded one is: the layer, the phase and the task, by the program of the job's mesh,
// model and framework.

#pragma once

#include "autotune/blame/verdict.h"
#include "sim/step/stages.h"

typedef struct Places {
    int matched, compared;  // collectives of groups that the step knows, and those that are as it says
    int group_count;        // process groups of the job that are groups of the mesh
} Places;

// Says it of every place in the verdict. The mesh has as many ranks as the job.
void places_name(const Job *job, const Mesh *mesh, const StepPrograms *programs, Arena *arena, Verdict *verdict,
                 Places *places);
