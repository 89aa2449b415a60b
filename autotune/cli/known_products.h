// GEMM times for the simulator, from the chip measurements that executor runs left in the store.

#pragma once

#include "autotune/cli/cli.h"

// Adds to the profile what the store knows about its chip, possibly nothing; *count says how many. A missing store is
// not created.
Status known_products_add(Cli *cli, ClusterProfile *cluster, int *count, Error *error);
