// Published configs with a known outcome (README.md): the table is complete, and ndtune check is right about as many of
// them as RESULTS.md says. Every fifth row is checked here; score.py checks all.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "autotune/accuracy/csv_file.h"
#include "tests/cli/cli.h"

#define FOLDER NDTUNE_SOURCE_DIR "/tests/accuracy/configs/"

enum { EVERY = 5, LEAST_ROWS = 60, RIGHT_NOW = 19 };

static Arena arena;
static CsvTable table;

static void load(void) {
    Error error = {0};
    cr_assert_eq(csv_load(FOLDER "configs.csv", &arena, &table, &error), STATUS_OK, "%s", error.message);
}

static void forget(void) {
    arena_free(&arena);
}

TestSuite(configs, .init = load, .fini = forget);

static const char *cell(int row, const char *column) {
    return csv_field(&table, row, csv_column(&table, column))->text;
}

static const char *in_folder(const char *path) {
    return arena_format(&arena, FOLDER "%s", path);
}

// What check says of a row: "fits", "oom", or "none" where it predicts nothing.
static const char *answer(int row) {
    const char *words[CLI_MAX_WORDS] = {"check", in_folder(cell(row, "file")), "--format", "json"};
    int count = 4;
    char *rest = arena_format(&arena, "%s", cell(row, "options"));
    for (char *word = strtok_r(rest, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        cr_assert_lt(count, CLI_MAX_WORDS - 1);
        words[count++] = strncmp(word, "models/", 7) == 0 ? in_folder(word) : word;
    }
    ProgramRun run = cli_words(words);
    json_t *root = json_loads(run.out, 0, NULL);
    const bool runs = json_is_true(json_object_get(root, "runs")), fits = json_is_true(json_object_get(root, "fits"));
    json_decref(root);
    program_run_free(&run);
    return !runs ? "none" : fits ? "fits" : "oom";
}

Test(configs, every_row_names_its_file_outcome_and_source) {
    cr_assert_geq(table.row_count, LEAST_ROWS);
    for (int row = 0; row < table.row_count; row++) {
        const char *outcome = cell(row, "outcome");
        FILE *file = fopen(in_folder(cell(row, "file")), "r");
        cr_expect(file, "%s", cell(row, "file"));
        if (file) {
            fclose(file);
        }
        cr_expect(strcmp(outcome, "fits") == 0 || strcmp(outcome, "oom") == 0, "%s", cell(row, "id"));
        cr_expect(*cell(row, "known") && *cell(row, "gpus") && *cell(row, "framework"), "%s", cell(row, "id"));
        cr_expect(strpbrk(cell(row, "source"), "#:"), "%s", cell(row, "id"));
    }
}

Test(configs, check_is_right_about_as_many_as_the_results_say) {
    int asked = 0, right = 0;
    for (int row = 0; row < table.row_count; row += EVERY) {
        const char *said = answer(row);
        asked++;
        right += strcmp(said, cell(row, "outcome")) == 0;
    }
    cr_expect_geq(right, RIGHT_NOW, "%d of %d", right, asked);
}
