// Maps a recorded collective to our step: its layer, phase and task, by the program of the job's mesh, model and
// framework.

#pragma once

#include "autotune/blame/verdict.h"
#include "sim/step/stages.h"

typedef struct Places {
    int matched, compared;  // collectives of groups that the step knows, and those that match it
    int group_count;        // process groups of the job that are groups of the mesh
} Places;

// Fills it in for every place in the verdict. The mesh has as many ranks as the job.
void places_name(const Job *job, const Mesh *mesh, const StepPrograms *programs, Arena *arena, Verdict *verdict,
                 Places *places);
