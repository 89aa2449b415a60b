// Stores written by e549c6e (record_stores) stay usable: their contents are found again, and sessions continue.

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/store/store.h"
#include "tests/cli/cli.h"
#include "tests/guard/guard.h"

static char *folder, asked[512], ran[512];

static void begin(void) {
    folder = temp_dir_make();
    guard_store("asked.db", folder);
    guard_store("ran.db", folder);
    snprintf(asked, sizeof asked, "%s/asked.db", folder);
    snprintf(ran, sizeof ran, "%s/ran.db", folder);
}

static void end(void) {
    temp_dir_remove(folder);
}

TestSuite(guard_stores, .init = begin, .fini = end);

// The prediction of a row as the store's cache gives it.
static Prediction find(Store *store, const json_t *row, Arena *arena) {
    const PredictionCache cache = store_cache(store);
    Prediction prediction = {0};
    const char *hash = cli_text(row, "content_hash");
    cr_assert(cache.find(cache.state, strtoull(hash, NULL, 16), arena, &prediction), "%s is not found", hash);
    return prediction;
}

static void each_prediction(const char *path, const char *rows, void (*check)(const json_t *row, const Prediction *)) {
    Arena arena = {0};
    Store *store;
    Error error = {0};
    cr_assert_eq(store_open(path, &store, &error), STATUS_OK, "%s", error.message);
    json_t *recorded = json_load_file(rows, 0, NULL), *row;
    cr_assert_gt(json_array_size(recorded), 10);
    size_t i;
    json_array_foreach(recorded, i, row) {
        const Prediction prediction = find(store, row, &arena);
        check(row, &prediction);
    }
    json_decref(recorded);
    store_close(store);
    arena_free(&arena);
}

static void times_are_those(const json_t *row, const Prediction *found) {
    cr_expect_eq(found->step_s, cli_number(row, "step_s"));
    cr_expect_eq(found->compute_s, cli_number(row, "compute_s"));
    cr_expect_eq(found->exposed_s[AXIS_DP_REPLICATE], cli_number(row, "exposed_dp_replicate_s"));
    cr_expect_eq(found->exposed_s[AXIS_DP_SHARD], cli_number(row, "exposed_dp_shard_s"));
    cr_expect_eq(found->exposed_s[AXIS_CP], cli_number(row, "exposed_cp_s"));
    cr_expect_eq(found->exposed_s[AXIS_TP], cli_number(row, "exposed_tp_s"));
    cr_expect_eq(found->optimizer_s, cli_number(row, "optimizer_s"));
    cr_expect_eq(found->overhead_s, cli_number(row, "overhead_s"));
}

static void memory_is_that(const json_t *row, const Prediction *found) {
    const MemoryBreakdown *memory = &found->memory;
    cr_expect_eq(memory->parameters, cli_number(row, "parameters_bytes"));
    cr_expect_eq(memory->gradients, cli_number(row, "gradients_bytes"));
    cr_expect_eq(memory->optimizer, cli_number(row, "optimizer_bytes"));
    cr_expect_eq(memory->activations, cli_number(row, "activations_bytes"));
    cr_expect_eq(memory->logits, cli_number(row, "logits_bytes"));
    cr_expect_eq(memory->gathered_parameters, cli_number(row, "gathered_parameters_bytes"));
    cr_expect_eq(memory->peak_bytes, cli_number(row, "peak_bytes"));
    cr_expect_eq(memory->reserved_bytes, cli_number(row, "reserved_bytes"));
    cr_expect_str_eq(memory->peak_phase, cli_text(row, "peak_phase"));
    cr_expect_str_eq(memory->top_name, cli_text(row, "top_name"));
    cr_expect_eq(found->recomputed_flop_per_token, cli_number(row, "recomputed_flop_per_token"));
}

Test(guard_stores, the_cache_finds_the_times_of_every_old_prediction) {
    each_prediction(asked, GUARD_STORES "/asked.json", times_are_those);
}

Test(guard_stores, the_cache_finds_the_memory_of_every_old_prediction) {
    each_prediction(asked, GUARD_STORES "/asked.json", memory_is_that);
}

Test(guard_stores, predictions_of_runs_are_found_too) {
    each_prediction(ran, GUARD_STORES "/ran.json", times_are_those);
}

// The hash of a prediction covers the code that made it, so the first asking computes.
Test(guard_stores, the_second_asking_in_an_old_store_is_answered_from_its_cache) {
    json_t *first = CLI_JSON(0, "plan", "--world", "4", "--model", "1b", "--db", asked, "--format", "json");
    json_t *second = CLI_JSON(0, "plan", "--world", "4", "--model", "1b", "--db", asked, "--format", "json");
    const json_t *search = json_object_get(second, "search");
    cr_expect_gt(cli_number(search, "cached"), 0);
    cr_expect_eq(cli_number(search, "simulated"), 0);
    cr_expect(json_equal(json_object_get(first, "entries"), json_object_get(second, "entries")));
    json_decref(first);
    json_decref(second);
}

Test(guard_stores, the_last_request_of_an_old_store_runs_for_real) {
    ProgramRun run = CLI("validate", "--steps", "3", "--spread", "0", "--db", ran);
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_not_null(strstr(run.err, "last request: ndtune validate --world 2 --model tiny"), "%s", run.err);
    program_run_free(&run);
}

Test(guard_stores, an_old_store_takes_the_next_run) {
    ProgramRun run = CLI("run", "--mesh", "dp_shard=2", "--model", "tiny", "--steps", "2", "--db", ran);
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    program_run_free(&run);
    json_t *runs = CLI_JSON(0, "runs", "30", "--db", ran, "--format", "json");
    cr_expect_str_eq(cli_text(runs, "state"), "ok");
    json_decref(runs);
}
