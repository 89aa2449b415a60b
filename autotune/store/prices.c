// Measured costs of work on chips: the newest row for each chip and piece of work.

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
        status = store_put(store, statement, error, "sssn", prices[i].chip, prices[i].what, prices[i].choice,
                           prices[i].seconds);
    }
    sqlite3_finalize(statement);
    return status;
}

static void read_price(sqlite3_stmt *row, Arena *arena, void *into) {
    ChipPrice *of = into;
    store_take(row, arena, "sssn", &of->chip, &of->what, &of->choice, &of->seconds);
}

Status store_prices(Store *store, Arena *arena, const ChipPrice **prices, int *count, Error *error) {
    sqlite3_stmt *statement = NULL;
    TRY(store_prepare(store, "SELECT chip, what, choice, seconds FROM chip_prices ORDER BY measured_at, chip, what",
                      &statement, error));
    return store_read_all(store, statement, sizeof **prices, read_price, arena, prices, count, error);
}
