// Results of calibrate: parameters before and after, plans predicted with and without their own runs, outliers, and
// what the runs could not determine.

#pragma once

#include "autotune/calibrate/calibrate.h"
#include "reports/answer.h"

typedef struct CalibrationReport {
    const Calibration *calibration;
    const ClusterProfile *base, *child;
    int runs;
    const char *from;  // "the store"
    const char *path;  // the profile's output path
    const CalibrationLeftOut *left_out;
    int left_out_count;
} CalibrationReport;

extern const Answer answer_calibration;  // CalibrationReport; ndtune.calibrate/1, CSV: a line per plan
