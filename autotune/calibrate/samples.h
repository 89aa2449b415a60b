// Measured runs for a calibration, from any origin: the store, a run file, logs of a framework. Unusable runs are
// counted with their reason.

#pragma once

#include "autotune/accuracy/run_file.h"
#include "autotune/calibrate/calibrate.h"

enum { LEFT_OUT_MOST = 64 };

typedef struct SampleList {
    Arena *arena;
    const ClusterProfile *base;  // NULL until it is known
    const char *base_text;       // what it was found by
    const Target *target;        // of framework runs: only this one's; NULL = all
    bool any_version;            // any version of that target
    CalibrationSample *rows;
    int count;
    size_t capacity;
    CalibrationLeftOut left_out[LEFT_OUT_MOST];
    int left_out_count;
    const char *from;  // as a phrase: "the store", "runs.csv"
} SampleList;

void samples_add(SampleList *list, const CalibrationSample *sample);
void samples_leave_out(SampleList *list, const char *reason);

// Are runs of a framework (NAME@VERSION), on a cluster of that name, wanted? If not, the run is left out; `wanted` says
// what is.
bool samples_want(SampleList *list, const char *target);
bool samples_want_cluster(SampleList *list, const char *cluster, const char *wanted);

// A built-in profile or a file as the base.
Status samples_base(SampleList *list, const char *text, Error *error);

// The cluster that most rows are of (run_machine.h); NULL = none names one.
const char *samples_usual_cluster(const RunFile *file, Arena *arena);

// The rows of a run file (the columns of `ndtune accuracy`), `path` its name; the base is known.
void samples_of_file(SampleList *list, const RunFile *file, const char *path);
