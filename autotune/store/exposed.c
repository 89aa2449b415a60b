// Exposed communication of a prediction or a run: one row per axis that has some, by axis name.

#include "autotune/store/store_internal.h"

Status store_put_exposed(Store *store, sqlite3_stmt *statement, const double exposed_s[AXIS_COUNT], Error *error) {
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (exposed_s[axis] != 0) {  // 1 is the owner, bound by the caller
            sqlite3_bind_text(statement, 2, axis_names[axis], -1, SQLITE_STATIC);
            sqlite3_bind_double(statement, 3, exposed_s[axis]);
            TRY(store_step(store, statement, error));
        }
    }
    return STATUS_OK;
}

int store_read_exposed(sqlite3_stmt *statement, double exposed_s[AXIS_COUNT]) {
    int code;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        exposed_s[axis] = 0;
    }
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        const Axis axis = axis_find((const char *)sqlite3_column_text(statement, 0));
        if (axis < AXIS_COUNT) {
            exposed_s[axis] = sqlite3_column_double(statement, 1);
        }
    }
    return code;
}
