// One more axis of whole copies, to separate code that uses roles from code that uses names.

#include "sim/axes/axes.h"

const AxisRow axis_twin = {.number = 103, .definition = "copies of copies"};
