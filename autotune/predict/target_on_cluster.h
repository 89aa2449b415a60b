// A target as it runs on one machine: numbers calibrated from its runs there replace those of its row, and libraries
// take what they do on its chip.

#pragma once

#include "autotune/result.h"
#include "sim/base/arena.h"
#include "sim/cluster/cluster.h"
#include "sim/frameworks/target.h"

// The row itself where nothing of it differs there, else a copy in the arena.
const Target *target_on_cluster(const Target *target, const ClusterProfile *cluster, Arena *arena);

// And with the kernel that its attention takes there for the request's training, where nothing is said of it.
const Target *target_with_kernels(const Target *target, const TuneRequest *request, Arena *arena);

// The entry of a runner, made of its runtime, in place of the one that the profile has; false: no room for one more.
bool target_to_cluster(const Target *target, ClusterProfile *cluster);
