// Results for people (tables), programs (JSON, as DESIGN section 9 promises) and spreadsheets (CSV). Reports compute
// nothing: they arrange what sim and autotune found. Every function writes to `out` and fails only when memory or the
// writing does.

#pragma once

#include <stdio.h>

#include "autotune/diagnose.h"
#include "autotune/explain.h"
#include "autotune/result.h"
#include "autotune/run_record.h"
#include "autotune/scaling.h"
#include "sim/base/error.h"

enum { TABLE_DEFAULT_ROWS = 10, ANSWER_ROWS_THAT_FIT = -1 };

typedef struct PredictionReport {
    const TuneRequest *request;
    const Prediction *prediction;  // of a plan that is not legal: only the plan
    bool legal;
    const char *reason;          // why it is not legal or does not fit; NULL
    const Diagnosis *diagnosis;  // of a measured step time; NULL
} PredictionReport;

// In 80 columns; rows: how many shapes to show, 0 all, or as many as fit on one screen.
void table_answer(const TuneResult *result, int rows, FILE *out);
// With everything else that was found; 0 rows also show every rejected shape with its reason.
Status table_plan(const TuneResult *result, int rows, FILE *out, Error *error);
Status table_diagnosis(const Diagnosis *diagnosis, FILE *out, Error *error);
Status table_prediction(const PredictionReport *report, FILE *out, Error *error);
Status table_run(const RunRecord *run, FILE *out, Error *error);
// What sharding, tensor and context parallelism did in the recorded step, in plain words.
void table_run_story(const RunRecord *run, FILE *out);
Status table_explanation(const Explanation *explanation, FILE *out, Error *error);
// Time and memory of best and runner_up, term by term, under these names.
Status table_comparison(const Explanation *explanation, const char *const names[2], FILE *out, Error *error);
Status table_scaling(const ScalingCurve *curve, FILE *out, Error *error);
Status table_stored(const StoredList *list, FILE *out, Error *error);
Status table_stored_run(const StoredRun *about, const RunRecord *run, FILE *out, Error *error);
Status table_model(const ModelSpec *model, FILE *out, Error *error);
Status table_cluster(const ClusterProfile *profile, FILE *out, Error *error);

// Schemas ndtune.plan/1, ndtune.prediction/1, ndtune.run/1, ndtune.explain/1, ndtune.scaling/1, ndtune.runs/1,
// ndtune.stored-run/1, ndtune.models/1, ndtune.clusters/1.
Status json_plan(const TuneResult *result, FILE *out, Error *error);
Status json_prediction(const PredictionReport *report, FILE *out, Error *error);
Status json_run(const RunRecord *run, FILE *out, Error *error);
Status json_explanation(const Explanation *explanation, FILE *out, Error *error);
Status json_scaling(const ScalingCurve *curve, FILE *out, Error *error);
Status json_stored(const StoredList *list, FILE *out, Error *error);
Status json_stored_run(const StoredRun *about, const RunRecord *run, FILE *out, Error *error);
Status json_models(const ModelPreset *presets, int count, FILE *out, Error *error);
Status json_clusters(const ClusterProfile *profiles, int count, FILE *out, Error *error);

// RFC 4180: a header line, CRLF, quotes where needed.
// Names of the columns of a plan between the mesh and the order of its axes; returns how many.
enum { CSV_PLAN_COLUMNS = PLAN_FIELD_COUNT + 1 };
int csv_plan_names(const char *names[CSV_PLAN_COLUMNS]);
Status csv_plan(const TuneResult *result, FILE *out, Error *error);
Status csv_prediction(const PredictionReport *report, FILE *out, Error *error);
Status csv_run(const RunRecord *run, FILE *out, Error *error);
Status csv_candidates(const TuneResult *result, FILE *out, Error *error);  // every choice of every shape
Status csv_explanation(const Explanation *explanation, FILE *out, Error *error);
Status csv_scaling(const ScalingCurve *curve, FILE *out, Error *error);
Status csv_stored(const StoredList *list, FILE *out, Error *error);
