// Compares a measured step time with its prediction: is the difference outside the prediction's interval, and which
// single cause would explain it?

#pragma once

#include "autotune/result.h"
#include "sim/base/progress.h"

enum { DIAGNOSE_CAUSES = 9, DIAGNOSE_SWITCHES = 6 };

typedef struct Cause {
    const char *name;  // "network between nodes"
    bool of_rate;      // slowness divides, else it multiplies
    const char *look;  // where to look
    bool applies;      // something of the plan depends on it
    double slowness;   // that makes the measured time; 0 = the largest that was tried does not
    double step_s;     // with that slowness, or with the largest
    double largest;    // that was tried
} Cause;

// A choice that would take about the measured time: is it what really ran?
typedef struct Suspect {
    char choice[32];  // "recompute full"
    double step_s;
} Suspect;

typedef struct Diagnosis {
    double measured_s;
    const Prediction *prediction;
    bool within;                    // the prediction's interval
    Cause causes[DIAGNOSE_CAUSES];  // those that explain first, the least slowness first
    int cause_count;                // 0 where the run is not slower than predicted
    Suspect suspects[DIAGNOSE_SWITCHES];
    int suspect_count;
    bool micro_step;    // it looks like the time of one of the step's micro-batches
    int micro_batches;  // or of this many steps of a plan without accumulation; 0 = no
} Diagnosis;

// The plan of the prediction must be canonical and legal.
Status diagnose(const TuneRequest *request, const Prediction *prediction, double measured_s, const Progress *progress,
                Diagnosis *diagnosis, Error *error);
