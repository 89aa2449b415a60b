// Results for people (tables), programs (JSON, whose keys are only added to) and spreadsheets (CSV). Reports compute
// nothing: they arrange what sim and autotune found. Every function writes to `out` and fails only when memory or the
// writing does. CSV is that of RFC 4180: a header line, CRLF, quotes where needed.

#pragma once

#include "autotune/explain/diagnose.h"
#include "autotune/explain/explain.h"
#include "autotune/explain/scaling.h"
#include "autotune/result.h"
#include "autotune/run_record.h"
#include "reports/answer.h"

enum { TABLE_DEFAULT_ROWS = 10, ANSWER_ROWS_THAT_FIT = -1 };

typedef struct PredictionReport {
    const TuneRequest *request;
    const Prediction *prediction;  // of a plan that is not legal: only the plan
    bool legal;
    const char *reason;          // why it is not legal or does not fit; NULL
    const Diagnosis *diagnosis;  // of a measured step time; NULL
} PredictionReport;

typedef struct PlanReport {
    const TuneResult *result;
    bool in_full;  // with everything else that was found; 0 rows also show every rejected shape with its reason
    int rows;      // how many shapes the table shows, 0 all, or as many as fit on one screen
} PlanReport;

typedef struct StoredRunReport {
    const StoredRun *about;
    const RunRecord *run;
} StoredRunReport;

typedef struct ModelsReport {
    const ModelPreset *presets;
    int count;
    bool in_full;  // the first, in the table
} ModelsReport;

typedef struct ClustersReport {
    const ClusterProfile *profiles;
    int count;
} ClustersReport;

extern const Answer answer_plan;         // PlanReport; ndtune.plan/1
extern const Answer answer_prediction;   // PredictionReport; ndtune.prediction/1
extern const Answer answer_run;          // RunRecord; ndtune.run/1
extern const Answer answer_explanation;  // Explanation; ndtune.explain/1
extern const Answer answer_scaling;      // ScalingCurve; ndtune.scaling/1
extern const Answer answer_stored;       // StoredList; ndtune.runs/1
extern const Answer answer_stored_run;   // StoredRunReport; ndtune.stored-run/1
extern const Answer answer_models;       // ModelsReport; ndtune.models/1
extern const Answer answer_clusters;     // ClustersReport; ndtune.clusters/1
extern const Answer answer_cluster;      // ClusterProfile in full; JSON as answer_clusters

void table_answer(const TuneResult *result, int rows, FILE *out);  // in 80 columns
Status table_diagnosis(const Diagnosis *diagnosis, FILE *out, Error *error);
// What sharding, tensor and context parallelism did in the recorded step, in plain words.
void table_run_story(const RunRecord *run, FILE *out);
// Time and memory of best and runner_up, term by term, under these names.
Status table_comparison(const Explanation *explanation, const char *const names[2], FILE *out, Error *error);

// Names of the columns of a plan in CSV between the mesh and the order of its axes; returns how many.
enum { CSV_PLAN_COLUMNS = PLAN_FIELD_COUNT + 1 };
int csv_plan_names(const char *names[CSV_PLAN_COLUMNS]);
int csv_later_names(const char *names[CSV_PLAN_COLUMNS]);  // and of those at the end
Status csv_plan(const void *report, FILE *out, Error *error);
Status csv_prediction(const void *report, FILE *out, Error *error);
Status csv_candidates(const void *result, FILE *out, Error *error);  // every choice of every shape
