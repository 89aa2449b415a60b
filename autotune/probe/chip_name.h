// How a probed profile names its accelerator.

#pragma once

#include "sim/base/arena.h"

// "NVIDIA H200" of "NVIDIA H200, driver 13000, cuBLASLt 130100".
const char *chip_name(const char *chip, Arena *arena);
