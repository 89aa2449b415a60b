// The interval of a predicted step time.

#pragma once

#include "autotune/result.h"

// 80 % interval around step_s: asymmetric, because runs are slower than predicted more often than faster.
void interval_of(double step_s, const ClusterProfile *cluster, const Target *target, double *low_s, double *high_s);
