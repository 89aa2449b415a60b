// Writing predictions inside a transaction of another file of the store.

#pragma once

#include "autotune/store/store_internal.h"

Status store_prepare_prediction(Store *store, sqlite3_stmt **statement, Error *error);
Status store_put_prediction(Store *store, sqlite3_stmt *statement, const TuneRequest *request,
                            const Prediction *prediction, Error *error);
