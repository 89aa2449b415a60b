// Activations in double, straight from their definitions, by KernelActivation.

#pragma once

#include "kernels/kernels.h"

enum { ACTIVATIONS = 3 };

extern double (*const reference_activations[ACTIVATIONS])(double);
