// Rows of JSON.

#include "exec/protocol/chip_prices.h"

json_t *chip_prices_json(const ChipPrice *prices, int count) {
    json_t *rows = json_array();
    for (int i = 0; i < count; i++) {
        json_t *row = json_pack("[s,s,s,f]", prices[i].chip, prices[i].what, prices[i].choice, prices[i].seconds);
        if (!row || json_array_append_new(rows, row) != 0) {
            json_decref(rows);
            return NULL;
        }
    }
    return rows;
}

Status chip_prices_take(const json_t *rows, Arena *arena, const ChipPrice **prices, int *count, Error *error) {
    const int rows_count = (int)json_array_size(rows);
    ChipPrice *list = ARENA_ARRAY(arena, ChipPrice, rows_count + 1);
    for (int i = 0; i < rows_count; i++) {
        const char *chip, *what, *choice;
        FAIL_IF(json_unpack(json_array_get(rows, (size_t)i), "[s,s,s,F!]", &chip, &what, &choice, &list[i].seconds) !=
                    0,
                error, STATUS_USAGE, "prices: row %d is not [chip, what, choice, seconds]", i);
        list[i].chip = arena_text(arena, chip);
        list[i].what = arena_text(arena, what);
        list[i].choice = arena_text(arena, choice);
    }
    *prices = list;
    *count = rows_count;
    return STATUS_OK;
}
