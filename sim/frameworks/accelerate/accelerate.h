// What trains by accelerate extends it.

#pragma once

#include "sim/frameworks/framework.h"

extern const TargetVersion accelerate_1_14;
