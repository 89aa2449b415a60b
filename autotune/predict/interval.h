// The interval of a predicted step time.

#pragma once

#include "autotune/result.h"

// 80 % interval around step_s: asymmetric, because runs are slower than predicted more often than faster.
void interval_of(double step_s, const ClusterProfile *cluster, const Target *target, const ModelSpec *model, int ranks,
                 double *low_s, double *high_s);

// The same form for a known spread: one sigma of the log step time.
void interval_around(double step_s, double log_sd, double *low_s, double *high_s);

// By another, independent spread.
void interval_widen(double step_s, double log_sd, double *low_s, double *high_s);

// Factor on the sd of a parameter that one set of runs alone taught.
double interval_one_set(bool one_set);
