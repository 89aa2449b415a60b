// One self-contained page of an answer: opens from disk, asks no network, reads without its script. What is measured,
// simulated and asked further is the caller's; the page arranges it.

#pragma once

#include <stdio.h>

#include "autotune/explain/explain.h"
#include "autotune/predict/compute_split.h"
#include "autotune/predict/predict_stages.h"
#include "autotune/result.h"
#include "autotune/run_record.h"
#include "autotune/tune/tune.h"
#include "autotune/validate/validate.h"
#include "sim/base/error.h"
#include "sim/step/timeline.h"

// One step of the best plan.
typedef struct HtmlTimeline {
    const StepProgram *program;
    const Timeline *timeline;
    int rank;  // whose lanes are shown
} HtmlTimeline;

// The best plan under another framework than the one that was asked about.
typedef struct HtmlOther {
    const char *name;            // "name@version", as export formats name it
    const TuneRequest *request;  // with that target
    Prediction prediction;       // of the plan with that framework's kernels
    const char *reason;          // why it does not run there; NULL
} HtmlOther;

typedef struct HtmlReport {
    const TuneResult *result;         // one entry or many, or none with the reasons
    const Explanation *explanation;   // NULL = not asked, for the reason below
    const char *explanation_missing;  // a sentence; NULL where it was asked
    const Validation *validation;     // NULL = nothing was measured
    const StoredRun *failed;          // runs of this model that did not end well, newest first
    int failed_count;
    const StoredPreflight *preflight;  // of as many ranks on this machine; NULL = none was made
    bool preflight_of_best;            // and of the best shape
    const Tuning *tuning;              // the session of tune; NULL
    HtmlTimeline simulated, measured;  // program NULL = there is none
    HtmlTimeline memory_step;          // simulated, of at most two micro-batches: live bytes over time
    StageSteps stages;                 // of the best plan
    const ComputeSplit *splits;        // of the first entries
    int split_count;
    const HtmlOther *others;
    int other_count;
    const char *again;  // the command that makes this page again
    bool one_plan;      // predicted alone: nothing was searched
    Arena *arena;       // of texts
} HtmlReport;

enum { HTML_SPLIT = 12 };                                   // shapes of the charts and tables that list the fastest
enum { HTML_DETAILED = 200, HTML_MOST_CANDIDATES = 8000 };  // the best in full; rows at all: the page stays below 2 MB

Status html_report(const void *report, FILE *out, Error *error);

// Was the chart runtime there when ndtune was built?
bool html_has_charts(void);
