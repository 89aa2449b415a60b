// Writes predictions inside a transaction begun by another file of the store.

#pragma once

#include "autotune/store/store_internal.h"

typedef struct PredictionWriter {
    Store *store;
    const TuneRequest *request;
    uint64_t profile_hash;  // of the request's cluster; hashing it takes longer than writing a row
} PredictionWriter;

// All predictions are of this request.
Status prediction_writer_open(Store *store, const TuneRequest *request, PredictionWriter *writer, Error *error);
Status prediction_write(PredictionWriter *writer, const Prediction *prediction, Error *error);
