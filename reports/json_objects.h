// JSON objects that several reports share.

#pragma once

#include <jansson.h>

#include "reports/reports.h"

json_t *json_mesh(const Mesh *mesh);
json_t *json_train_plan(const Target *target, const TrainPlan *plan);
json_t *json_plan_value(PlanFieldId id, int value);  // of a field; PLAN_ANY is null
json_t *json_model(const ModelSpec *model);
json_t *json_profile(const ClusterProfile *profile, int world);  // world 0: without the node count
json_t *json_memory(const MemoryBreakdown *memory, double limit_bytes);
json_t *json_request(const TuneRequest *request);  // what was asked; null = left to the search
// One ndtune.prediction/1 object.
json_t *json_prediction_object(const TuneRequest *request, const Prediction *prediction, bool legal,
                               const char *reason);

json_t *json_diagnosis(const Diagnosis *diagnosis);  // the object measured of a prediction

json_t *json_strings(const char *const *texts, int count);
json_t *json_numbers(const double *values, int count);
json_t *json_exposed(bool known, const double exposed_s[AXIS_COUNT]);
json_t *json_known(bool known, double value);  // null where it is not known or not finite

// Prints and frees root; NULL root = out of memory.
Status json_print(json_t *root, FILE *out, Error *error);
