// The prices of a chip that runs of the executor kept in the store, as times of products for the simulator.

#pragma once

#include "autotune/cli/cli.h"

// "NVIDIA H200" of "NVIDIA H200, driver 13000, cuBLASLt 130100": how a profile that was probed names its accelerator.
const char *chip_name(const char *chip, Arena *arena);

// Adds to the profile what the store knows of the chip that the profile names, which may be nothing; *count says how
// many. No store is made where there is none.
Status chip_products_add(Cli *cli, ClusterProfile *cluster, int *count, Error *error);
