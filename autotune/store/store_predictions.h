// Writing predictions inside a transaction of another file of the store.

#pragma once

#include "autotune/store/store_internal.h"

typedef struct PredictionWriter {
    Store *store;
    sqlite3_stmt *prediction, *exposed;
} PredictionWriter;

Status prediction_writer_open(Store *store, PredictionWriter *writer, Error *error);
Status prediction_write(PredictionWriter *writer, const TuneRequest *request, const Prediction *prediction,
                        Error *error);
void prediction_writer_close(PredictionWriter *writer);  // also after an open that failed
