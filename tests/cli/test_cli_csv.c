// Every CSV table as written: rectangular and quoted as in RFC 4180 (the strict reader of run files accepts it), and
// each of its columns is in the manual page.

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/accuracy/csv_file.h"
#include "tests/cli/cli.h"

static char *folder, db[512], file[512], runs[512];

static void begin(void) {
    folder = temp_dir_make();
    snprintf(db, sizeof db, "%s/test.db", folder);
    snprintf(file, sizeof file, "%s/table.csv", folder);
    snprintf(runs, sizeof runs, "%s/runs.csv", folder);
}

static void end(void) {
    temp_dir_remove(folder);
}

TestSuite(cli_csv, .init = begin, .fini = end);

static const char run_file[] =
    "id,model,layers,hidden,heads,ffn,vocab,cluster,target,dp_replicate,dp_shard,cp,tp,seq_len,"
    "micro_batch,grad_accum,step_time_s,usable\n"
    "one,llama-3-8b,32,4096,32,14336,128256,dgx-h100,torchtitan,1,8,1,1,8192,1,1,2.0,1\n";

// Is `word` in the page, not inside another word?
static bool says(const char *page, const char *word) {
    const size_t length = strlen(word);
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    for (const char *at = strstr(page, word); at; at = strstr(at + 1, word)) {
        if ((at == page || !strchr(letters, at[-1])) && !(at[length] && strchr(letters, at[length]))) {
            return true;
        }
    }
    return false;
}

static char *csv_section(void) {
    ProgramRun man = CLI("help", "--man");
    cr_assert_eq(man.exit_code, 0);
    const char *from = strstr(man.out, ".SH CSV"), *to = from ? strstr(from + 1, ".SH ") : NULL;
    cr_assert(from && to);
    char *section = strndup(from, (size_t)(to - from));
    program_run_free(&man);
    return section;
}

static void check_table(const char *bytes, size_t count, const char *what, const char *page, int least_rows) {
    Arena arena = {0};
    CsvTable table;
    Error error = {0};
    cr_assert_eq(csv_parse(bytes, count, what, &arena, &table, &error), STATUS_OK, "%s", error.message);
    cr_expect_geq(table.row_count, least_rows, "%s: %d rows", what, table.row_count);
    for (int i = 0; i < table.column_count; i++) {
        cr_expect(says(page, table.header[i].text), "%s: column %s is not in the manual", what, table.header[i].text);
    }
    for (const char *at = bytes; (at = memchr(at, '\n', count - (size_t)(at - bytes))); at++) {
        cr_assert_eq(at[-1], '\r', "%s: a line does not end in CRLF", what);
    }
    arena_free(&arena);
}

static void check_output(const char *const *words, const char *page, int least_rows) {
    ProgramRun run = cli_words(words);
    cr_assert_eq(run.exit_code, 0, "%s: %s", words[0], run.err);
    check_table(run.out, strlen(run.out), words[0], page, least_rows);
    program_run_free(&run);
}

static void check_file(const char *what, const char *page, int least_rows) {
    FILE *in = fopen(file, "rb");
    cr_assert_not_null(in, "%s wrote nothing", what);
    char *bytes = calloc(1 << 22, 1);
    const size_t count = fread(bytes, 1, (1 << 22) - 1, in);
    fclose(in);
    remove(file);
    check_table(bytes, count, what, page, least_rows);
    free(bytes);
}

#define CSV(rows, ...) check_output((const char *const[]){__VA_ARGS__, "--format", "csv", NULL}, page, rows)
#define TINY "--model", "tiny", "--db", db

Test(cli_csv, every_table_is_well_formed_and_in_the_manual) {
    char *page = csv_section();
    CSV(4, "--world", "4", TINY);
    CSV(1, "predict", "--mesh", "dp_shard=2", TINY);
    CSV(2, "--world", "2,4", TINY);
    CSV(5, "explain", "--world", "4", TINY);
    CSV(2, "runs", "--db", db);
    CSV(10, "models");
    CSV(10, "clusters");
    CSV(10, "clusters", "dgx-h100");
    CSV(5, "explain", "--from", NDTUNE_SOURCE_DIR "/tests/golden/import/files/torchtitan_llama3_8b.toml", "--world",
        "8", "--seq", "1024", TINY);
    FILE *out = fopen(runs, "w");
    fputs(run_file, out);
    fclose(out);
    CSV(1, "accuracy", "--runs", runs, "--csv", file);
    check_file("accuracy --csv", page, 1);
    free(page);
}

Test(cli_csv, tables_in_files_are_too) {
    char *page = csv_section();
    ProgramRun plan = CLI("--world", "4", TINY, "--csv", file);
    cr_assert_eq(plan.exit_code, 0, "%s", plan.err);
    check_file("plan --csv", page, 20);
    program_run_free(&plan);
    ProgramRun predict = CLI("predict", "--mesh", "dp_shard=2,tp=2", TINY, "--spans", file);
    cr_assert_eq(predict.exit_code, 0, "%s", predict.err);
    check_file("predict --spans", page, 100);
    program_run_free(&predict);
    free(page);
}

Test(cli_csv, a_run_and_its_spans_are_too) {
    char *page = csv_section();
    CSV(2, "run", "--mesh", "dp_shard=2", "--layers", "1", "--steps", "2", "--spans", file, TINY);
    check_file("run --spans", page, 100);
    CSV(2, "runs", "1", "--db", db);
    free(page);
}
