// A target as it runs on one machine: numbers calibrated from its runs there replace those of its row.

#pragma once

#include "sim/base/arena.h"
#include "sim/cluster/cluster.h"
#include "sim/frameworks/target.h"

// The row itself where the profile was not calibrated for it, else a copy in the arena.
const Target *target_on_cluster(const Target *target, const ClusterProfile *cluster, Arena *arena);

// The entry of a runner, made of its runtime, in place of the one that the profile has; false: no room for one more.
bool target_to_cluster(const Target *target, ClusterProfile *cluster);
