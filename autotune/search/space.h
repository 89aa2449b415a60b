// The space of a request: every factorization of the world crossed with the choices that go with a shape, in a stable
// order.

#pragma once

#include "autotune/result.h"
#include "sim/base/arena.h"

enum { SPACE_MAX_MICRO_BATCH = 64 };  // larger micro-batches gain nothing that accumulation does not give

typedef struct Space {
    Mesh *meshes;
    int mesh_count;
    Candidate *candidates;  // by shape, micro-batch, rank order, searched fields; canonical, no plan twice
    int candidate_count;
} Space;

// Of a mesh and those near it: one axis other than of data at most is twice or half as long. NULL = of all. A shape
// that no batch arithmetic allows still gets one candidate, so that a rule can say why.
void space_enumerate_near(const TuneRequest *request, const Mesh *mesh, Arena *arena, Space *space);

// The shapes alone.
void space_meshes(const TuneRequest *request, Arena *arena, Space *space);

// A shape with what was asked, else the target's usual choices: one sequence, or the micro-batch asked for, at a time.
void space_plain_plan(const TuneRequest *request, const Mesh *mesh, TrainPlan *plan);

// With this many chunks per stage of the plan, do all chunks have equally many layers, as the target counts them?
bool space_cuts_evenly(const TuneRequest *request, const TrainPlan *plan, int chunks);

// Does an open search try the value, given the fields that are set?
bool space_tries(const TuneRequest *request, const TrainPlan *plan, PlanFieldId id, int value);

// Is the field's value found by what just fits in memory?
bool space_fits(const TuneRequest *request, PlanFieldId id);

// Sets a field of a plan: what was asked, else the target's own.
void space_take(const TuneRequest *request, TrainPlan *plan, PlanFieldId id);

// Whether the target's own weights are bf16 at the precision that was asked for.
int space_usual_master(const Target *target, const TuneRequest *request);

// What was asked for; where that is the target's own, the own of another target.
int space_master_of_other(const TuneRequest *request, const Target *other);

// Sets all fields so that say how the job trains, whatever the shape: precision, kernels and the like.
void space_job(const TuneRequest *request, TrainPlan *plan);
