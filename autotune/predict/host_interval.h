// What the pace of hosts adds to the interval of a predicted step time.

#pragma once

#include "autotune/result.h"

// Of targets whose modules' time on the host was measured (TargetRuntime, module_operations), on machines that were not
// calibrated: each prediction costs two estimates, so of a search only the first few get it.
Status host_intervals(const TuneRequest *request, Prediction *predictions, int count, Error *error);
