// Families of chips, where what a run had goes by them.

#pragma once

#include <stdbool.h>

#include "sim/cluster/cluster.h"

typedef enum { CHIPS_HOPPER, CHIPS_CDNA3, CHIPS_COUNT } ChipFamily;

bool chip_is_of(const Accelerator *accelerator, ChipFamily family);
