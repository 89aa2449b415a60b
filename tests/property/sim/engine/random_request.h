// Random legal plans: model, cluster, target, mesh and every choice of a plan, as users request them.

#pragma once

#include "sim/cluster/cluster.h"
#include "sim/frameworks/target.h"
#include "tests/property/sim/engine/random_program.h"

typedef struct RandomRequest {
    ModelSpec model;
    ClusterProfile profile;
    const Target *target;
    int world, seq;
} RandomRequest;

RandomRequest random_request(Random *random, Arena *arena);

// A legal canonical plan of the request; false when the drawn shape is not legal.
bool random_plan(Random *random, const RandomRequest *request, Arena *arena, TrainPlan *plan);

bool random_is_legal(const RandomRequest *request, const TrainPlan *plan, Arena *arena);
