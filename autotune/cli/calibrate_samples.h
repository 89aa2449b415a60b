// Measured runs for a calibration, from any origin: the store, a run file, logs of a framework. Unusable runs are
// counted with their reason.

#pragma once

#include "autotune/calibrate/calibrate.h"
#include "autotune/cli/cli.h"

enum { LEFT_OUT_MOST = 64 };

typedef struct SampleList {
    Cli *cli;
    const ClusterProfile *base;
    const char *base_text;  // as given to --cluster
    const Target *target;   // of framework runs: only this one's; NULL = all
    bool any_version;       // any version of that target
    CalibrationSample *rows;
    int count;
    size_t capacity;
    CalibrationLeftOut left_out[LEFT_OUT_MOST];
    int left_out_count;
    const char *from;  // as a phrase: "the store", "runs.csv"
} SampleList;

void samples_add(SampleList *list, const CalibrationSample *sample);
void samples_leave_out(SampleList *list, const char *reason);

// Are runs of a framework (NAME@VERSION) wanted? If not, the run is left out.
bool samples_want(SampleList *list, const char *target);

// Fills list->base as --cluster would.
Status samples_load_base(SampleList *list, const char *text, Error *error);

// Each fills list->base, from --cluster or from what its runs state, and the samples.
Status samples_of_store(SampleList *list, Error *error);
Status samples_of_file(SampleList *list, const char *path, Error *error);
Status samples_of_logs(SampleList *list, Error *error);
