// Anything written per RFC 4180 is read back; any other input gives a table or an error with its place.

#include <criterion/criterion.h>
#include <string.h>
#include <time.h>

#include "autotune/accuracy/csv_file.h"

enum { ROUNDS = 2000, MAX_BYTES = 400 };

static Arena arena;
static uint64_t state;

static void begin(void) {
    state = (uint64_t)time(NULL) | 1;
    cr_log_info("seed %llu", (unsigned long long)state);
}

static void forget(void) {
    arena_free(&arena);
}

TestSuite(csv_properties, .init = begin, .fini = forget);

static int next_below(int bound) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state % (uint64_t)bound);
}

static const char *random_text(void) {
    static const char letters[] = "ab1.,\"\n\r ;";
    const int length = next_below(6);
    char text[8] = "";
    for (int i = 0; i < length; i++) {
        text[i] = letters[next_below((int)sizeof letters - 1)];
    }
    return arena_text(&arena, text);
}

static size_t write_quoted(char *out, const char *text) {
    size_t used = 0;
    out[used++] = '"';
    for (; *text; text++) {
        if (*text == '"') {
            out[used++] = '"';
        }
        out[used++] = *text;
    }
    out[used++] = '"';
    return used;
}

Test(csv_properties, quoted_fields_are_read_back_as_they_were_written) {
    enum { COLUMNS = 3, ROWS = 4 };
    for (int round = 0; round < ROUNDS; round++) {
        arena_reset(&arena);
        char bytes[MAX_BYTES + 8] = "x,y,z\r\n";
        size_t used = strlen(bytes);
        const char *written[ROWS][COLUMNS];
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            const int column = i % COLUMNS;
            written[i / COLUMNS][column] = random_text();
            used += write_quoted(bytes + used, written[i / COLUMNS][column]);
            memcpy(bytes + used, column < COLUMNS - 1 ? "," : "\r\n", 2);
            used += column < COLUMNS - 1 ? 1 : 2;
        }
        CsvTable table;
        Error error = {0};
        cr_assert_eq(csv_parse(bytes, used, "x.csv", &arena, &table, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(table.row_count, ROWS);
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            cr_assert_str_eq(csv_field(&table, i / COLUMNS, i % COLUMNS)->text, written[i / COLUMNS][i % COLUMNS]);
        }
    }
}

Test(csv_properties, any_bytes_are_a_table_or_an_error_with_its_place) {
    static const char letters[] = "ab,,\"\"\n\n\r\0x";
    for (int round = 0; round < 10 * ROUNDS; round++) {
        arena_reset(&arena);
        const int length = next_below(60);
        char bytes[64];
        for (int i = 0; i < length; i++) {
            bytes[i] = letters[next_below((int)sizeof letters - 1)];
        }
        CsvTable table;
        Error error = {0};
        const Status status = csv_parse(bytes, (size_t)length, "x.csv", &arena, &table, &error);
        cr_assert(status == STATUS_OK || status == STATUS_USAGE);
        cr_assert(status == STATUS_OK || strncmp(error.message, "x.csv:", 6) == 0, "%s", error.message);
        for (int i = 0; status == STATUS_OK && i < table.row_count * table.column_count; i++) {
            const CsvField *field = csv_field(&table, i / table.column_count, i % table.column_count);
            cr_assert(field->line >= 1 && field->column >= 1 && strlen(field->text) < (size_t)length);
        }
    }
}
