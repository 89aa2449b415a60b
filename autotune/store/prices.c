// What work costs on chips, as runs found out: one row for each chip and piece of work, the newest.

#include "autotune/store/store_internal.h"

Status store_put_prices(Store *store, const ChipPrice *prices, int count, Error *error) {
    sqlite3_stmt *statement = NULL;
    if (count == 0) {
        return STATUS_OK;
    }
    TRY(store_prepare(store,
                      "INSERT INTO chip_prices (chip, what, choice, seconds) VALUES (?,?,?,?) ON CONFLICT (chip, what) "
                      "DO UPDATE SET choice = excluded.choice, seconds = excluded.seconds, "
                      "measured_at = excluded.measured_at WHERE seconds <> excluded.seconds",
                      &statement, error));
    Status status = STATUS_OK;
    for (int i = 0; i < count && status == STATUS_OK; i++) {
        int place = 1;
        bind_text(statement, &place, prices[i].chip);
        bind_text(statement, &place, prices[i].what);
        bind_text(statement, &place, prices[i].choice);
        bind_double(statement, &place, prices[i].seconds);
        status = store_step(store, statement, error);
    }
    sqlite3_finalize(statement);
    return status;
}

Status store_prices(Store *store, Arena *arena, const ChipPrice **prices, int *count, Error *error) {
    sqlite3_stmt *statement = NULL;
    ChipPrice *list = NULL;
    size_t capacity = 0;
    *count = 0;
    TRY(store_prepare(store, "SELECT chip, what, choice, seconds FROM chip_prices ORDER BY measured_at, chip, what",
                      &statement, error));
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        list = arena_grow(arena, list, (size_t)*count, &capacity, sizeof *list);
        list[(*count)++] = (ChipPrice){.chip = text_at(statement, 0, arena),
                                       .what = text_at(statement, 1, arena),
                                       .choice = text_at(statement, 2, arena),
                                       .seconds = sqlite3_column_double(statement, 3)};
    }
    const Status status =
        code == SQLITE_DONE ? STATUS_OK : store_error(store->db, store->path, "reading prices", error);
    sqlite3_finalize(statement);
    *prices = list;
    return status;
}
