// An axis that does nothing. In the list of more axes it is the slowest, so that every other axis changes place.

#include "sim/axes/axes.h"

const AxisRow axis_idle = {.number = 101, .definition = "ranks that do nothing"};
