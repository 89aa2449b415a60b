// The prices of a chip that runs of the executor kept in the store, as times of products for the simulator.

#pragma once

#include "autotune/cli/cli.h"

// Adds to the profile what the store knows of the chip that the profile names, which may be nothing; *count says how
// many. No store is made where there is none.
Status known_products_add(Cli *cli, ClusterProfile *cluster, int *count, Error *error);
