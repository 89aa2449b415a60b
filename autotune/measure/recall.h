// What the store has of an answer: runs of its plans, runs that failed, the last preflight.

#pragma once

#include "autotune/measure/measuring.h"
#include "autotune/validate/validate.h"

// A run that was asked for by its number.
typedef struct NamedRun {
    int64_t id;  // 0 = none was
    const RunRecord *record;
    const char *plan;
} NamedRun;

// The runs of the first entries, as validate would have made them; *validation: NULL = there are none. `named` stands
// there even where another version of ndtune made it, which knows no others by hash.
Status recall_validation(const Measuring *measuring, const TuneResult *result, const NamedRun *named,
                         const Validation **validation, Error *error);

// Runs of the model that did not end well, newest first.
Status recall_failures(Store *store, const TuneRequest *request, Arena *arena, const StoredRun **failed, int *count,
                       Error *error);

// Of as many ranks on the request's machine (a calibrated profile is its parent's): the newest of that shape, else the
// newest; *preflight: NULL = none was made.
Status recall_preflight(Store *store, const TuneRequest *request, const char *mesh, Arena *arena,
                        const StoredPreflight **preflight, bool *of_mesh, Error *error);
