// What calibrate found: parameters before and after, plans predicted with and without their own runs, outliers, and
// what the runs could not tell.

#pragma once

#include "autotune/calibrate/calibrate.h"
#include "reports/answer.h"

typedef struct CalibrationReport {
    const Calibration *calibration;
    const ClusterProfile *base, *child;
    int runs;
    const char *from;  // "the store"
    const char *path;  // of the profile that was written
    const CalibrationLeftOut *left_out;
    int left_out_count;
} CalibrationReport;

extern const Answer answer_calibration;  // CalibrationReport; ndtune.calibrate/1, CSV: a line per plan
