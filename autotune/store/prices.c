// Measured costs of work on chips: the newest row for each chip and piece of work.

#include "autotune/store/store_internal.h"

static Status put_price(Store *store, sqlite3_stmt *row, const void *what, int64_t id, int i, Error *error) {
    const ChipPrice *price = (const ChipPrice *)what + i;
    (void)id;
    return store_put(store, row, error, "sssn", price->chip, price->what, price->choice, price->seconds);
}

Status store_put_prices(Store *store, const ChipPrice *prices, int count, Error *error) {
    static const char sql[] =
        "INSERT INTO chip_prices (chip, what, choice, seconds) VALUES (?,?,?,?) ON CONFLICT (chip, what) "
        "DO UPDATE SET choice = excluded.choice, seconds = excluded.seconds, "
        "measured_at = excluded.measured_at WHERE seconds <> excluded.seconds";
    return count > 0 ? store_put_rows(store, sql, put_price, prices, 0, count, error) : STATUS_OK;
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
