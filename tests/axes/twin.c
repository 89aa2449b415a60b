// One more axis of whole copies, for what goes by roles and what goes by names.

#include "sim/axes/axes.h"

const AxisRow axis_twin = {.number = 103, .definition = "copies of copies"};
