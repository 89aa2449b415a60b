// What the pace of hosts adds to the interval of a predicted step time.

#pragma once

#include "autotune/result.h"

// Of targets whose modules' time on the host was measured (TargetRuntime, module_operations), on machines that were not
// calibrated. An estimate costs one more, what was simulated two; they share what their plans have in common.
Status host_intervals(const TuneRequest *request, Prediction *predictions, int count, Error *error);
