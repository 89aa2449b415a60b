// GEMM times of a chip, recorded by runs of the executor, for use by the simulator.

#pragma once

#include "sim/cluster/cluster.h"
#include "sim/step/chip_price.h"

// Adds to the profile what is known of the chip that the profile names, which may be nothing; returns how many.
int chip_products_add(const ChipPrice *prices, int price_count, ClusterProfile *cluster, Arena *arena);
