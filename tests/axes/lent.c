// A borrowed axis: it divides dp_shard x cp and adds no rank.

#include "sim/axes/axes.h"

const AxisRow axis_lent = {.number = 102, .definition = "ranks of dp_shard x cp, in groups"};
