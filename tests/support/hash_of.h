// The hash of one thing alone.

#pragma once

#include "sim/cluster/cluster.h"
#include "sim/model/model.h"
#include "sim/plan/plan.h"

static inline uint64_t hash_of_plan(const TrainPlan *plan) {
    Hash hash = hash_begin();
    plan_hash(plan, &hash);
    return hash_end(&hash);
}

static inline uint64_t hash_of_model(const ModelSpec *model) {
    Hash hash = hash_begin();
    model_hash(model, &hash);
    return hash_end(&hash);
}

static inline uint64_t hash_of_cluster(const ClusterProfile *profile) {
    Hash hash = hash_begin();
    cluster_hash(profile, &hash);
    return hash_end(&hash);
}
