// The store: what goes in comes out, once.

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "autotune/store/store.h"
#include "tests/support/run_program.h"
#include "tests/support/search_all.h"
#include "tests/support/sizes.h"
#include "tests/unit/autotune/requests.h"

static Arena arena;
static char *folder;
static char path[STORE_PATH_BYTES];
static Store *store;
static TuneRequest request;
static Error error;

static void begin(void) {
    arena = (Arena){0};
    error = (Error){0};
    folder = temp_dir_make();
    snprintf(path, sizeof path, "%s/a/b/test.db", folder);
    request = request_for(&arena, 4, "7b", "dgx-h100", "accelerate");
    cr_assert_eq(store_make_folders(path, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(store_open(path, &store, &error), STATUS_OK, "%s", error.message);
}

static void end(void) {
    store_close(store);
    temp_dir_remove(folder);
    arena_free(&arena);
}

TestSuite(store, .init = begin, .fini = end);

static TuneResult search(const PredictionCache *cache) {
    TuneResult result;
    cr_assert_eq(search_run(&request, cache, NULL, &arena, &result, &error), STATUS_OK, "%s", error.message);
    return result;
}

static void save(const TuneResult *result) {
    cr_assert_eq(store_save_result(store, result, &error), STATUS_OK, "%s", error.message);
}

Test(store, folders_above_the_file_are_made) {
    struct stat about;
    cr_assert_eq(stat(path, &about), 0);
}

Test(store, an_empty_store_knows_nothing) {
    const PredictionCache cache = store_cache(store);
    Prediction prediction;
    cr_assert_not(cache.find(cache.state, 1, &arena, &prediction));
}

Test(store, a_saved_search_is_answered_from_the_store) {
    const PredictionCache cache = store_cache(store);
    const TuneResult first = search(&cache);
    cr_assert_gt(first.search.simulated, 0);
    save(&first);
    const TuneResult second = search(&cache);
    cr_assert_eq(second.search.simulated, 0);
    cr_assert_eq(second.search.cached, first.search.simulated);
}

Test(store, numbers_from_the_store_are_the_computed_ones_bit_for_bit) {
    const PredictionCache cache = store_cache(store);
    const TuneResult first = search(&cache);
    save(&first);
    const TuneResult second = search(&cache);
    cr_assert_eq(first.entry_count, second.entry_count);
    for (int i = 0; i < first.entry_count; i++) {
        const Prediction *a = &first.entries[i], *b = &second.entries[i];
        cr_assert(plans_equal(&a->plan, &b->plan));
        cr_assert_eq(a->step_s, b->step_s);
        cr_assert_eq(a->step_high_s, b->step_high_s);
        cr_assert_arr_eq(a->exposed_s, b->exposed_s, sizeof a->exposed_s);
        cr_assert_eq(a->memory.activations, b->memory.activations);
        cr_assert_eq(a->memory.reserved_bytes, b->memory.reserved_bytes);
        cr_assert_str_eq(a->memory.top_name, b->memory.top_name);
        cr_assert_eq(a->mfu, b->mfu);
    }
}

Test(store, a_prediction_saved_again_replaces_its_exposed_seconds) {
    const PredictionCache cache = store_cache(store);
    const TuneResult first = search(&cache);
    save(&first);
    Prediction again = first.entries[0], found = {0};
    again.cached = false;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        again.exposed_s[axis] = axis == AXIS_CP ? 0.25 : 0;
    }
    cr_assert_eq(store_save_prediction(store, &request, &again, &error), STATUS_OK, "%s", error.message);
    cr_assert(cache.find(cache.state, again.content_hash, &arena, &found));
    cr_assert_arr_eq(found.exposed_s, again.exposed_s, sizeof found.exposed_s);
}

Test(store, another_profile_is_not_a_hit) {
    const PredictionCache cache = store_cache(store);
    const TuneResult first = search(&cache);
    save(&first);
    cr_assert_eq(cluster_set(&request.cluster, "fabric.node_gbps=800", &arena, &error), STATUS_OK, "%s", error.message);
    const TuneResult second = search(&cache);
    cr_assert_eq(second.search.cached, 0);
}

Test(store, the_same_words_with_a_slow_rank_are_another_request) {
    const TuneResult first = search(NULL);
    save(&first);
    const Handicap slow = {.index = 3, .factor = 2};
    request.handicaps = &slow;
    request.handicap_count = 1;
    const TuneResult second = search(NULL);
    save(&second);
    StoredList list;
    cr_assert_eq(store_list(store, 10, &arena, &list, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(list.request_count, 2);
}

Test(store, another_precision_is_not_a_hit) {
    const PredictionCache cache = store_cache(store);
    const TuneResult first = search(&cache);
    save(&first);
    request.asked[PLAN_PRECISION] = DTYPE_FP32;
    cr_assert_eq(search(&cache).search.cached, 0);
}

Test(store, a_limit_applies_to_what_comes_from_the_store) {
    const PredictionCache cache = store_cache(store);
    const TuneResult first = search(&cache);
    save(&first);
    request.memory_limit_bytes = first.entries[0].memory.reserved_bytes - 1;
    const TuneResult second = search(&cache);
    for (int i = 0; i < second.entry_count; i++) {
        cr_assert_leq(second.entries[i].memory.reserved_bytes, request.memory_limit_bytes);
    }
}

Test(store, a_reopened_file_still_knows) {
    const TuneResult first = search(NULL);
    save(&first);
    store_close(store);
    cr_assert_eq(store_open(path, &store, &error), STATUS_OK, "%s", error.message);
    const PredictionCache cache = store_cache(store);
    cr_assert_eq(search(&cache).search.simulated, 0);
}

Test(store, two_open_stores_share_what_they_know) {
    Store *other = NULL;
    cr_assert_eq(store_open(path, &other, &error), STATUS_OK, "%s", error.message);
    const TuneResult first = search(NULL);
    save(&first);
    const PredictionCache cache = store_cache(other);
    cr_assert_eq(search(&cache).search.simulated, 0);
    store_close(other);
}

Test(store, a_single_prediction_is_kept_too) {
    Predictor predictor;
    Prediction prediction;
    TrainPlan plan;
    memset(&plan, 0, sizeof plan);
    plan = (TrainPlan){.mesh = {SIZES(1, 4, 1, 1)},
                       .seq = 4096,
                       .micro_batch = 1,
                       .grad_accum = 1,
                       .zero = 3,
                       .precision = DTYPE_BF16};
    plan_canonical(&plan);
    const PredictionCache cache = store_cache(store);
    predictor_init(&predictor, &request, &cache);
    cr_assert_eq(predict_plan(&predictor, &plan, false, &arena, &prediction, &error), STATUS_OK, "%s", error.message);
    cr_assert_not(prediction.cached);
    cr_assert_eq(store_save_prediction(store, &request, &prediction, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(predict_plan(&predictor, &plan, false, &arena, &prediction, &error), STATUS_OK);
    cr_assert(prediction.cached);
    predictor_free(&predictor);
}

Test(store, a_run_gets_a_number_of_its_own) {
    const double numbers[] = {6.9, 6.5, NAN};
    RunRecord run = {
        .request = &request,
        .source = "executor",
        .host = "h",
        .device = "cpu",
        .transport = "shm",
        .lanes = "serial",
        .seed = 1,
        .steps = 3,
        .losses = numbers,
        .grad_norms = numbers,
        .step_times_s = numbers,
        .state = "diverged",
        .prediction = {.plan = {.mesh = {SIZES(1, 1, 1, 1)}, .seq = 8, .micro_batch = 1, .grad_accum = 1}}};
    int64_t first = 0, second = 0;
    cr_assert_eq(store_save_run(store, &run, &first, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(store_save_run(store, &run, &second, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(second, first + 1);
}

Test(store, stages_of_a_run_come_back_and_a_bubble_that_was_not_measured_as_such) {
    const RunStage stages[] = {{0, 3, 0.25, 0.125, 4096, 8192}, {1, 2, NAN, 0.5, (int64_t)1 << 40, 0}};
    const RunRecord run = {.request = &request,
                           .source = "executor",
                           .host = "h",
                           .device = "cpu",
                           .transport = "shm",
                           .lanes = "serial",
                           .state = "ok",
                           .stages = stages,
                           .stage_count = 2};
    StoredRun about;
    RunRecord kept;
    bool found = false;
    int64_t id = 0;
    cr_assert_eq(store_save_run(store, &run, &id, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(store_run_in_full(store, id, &arena, &about, &kept, &found, &error), STATUS_OK, "%s", error.message);
    cr_assert(found);
    cr_assert_eq(kept.stage_count, 2);
    for (int i = 0; i < 2; i++) {
        const RunStage *was = &stages[i], *is = &kept.stages[i];
        cr_expect(is->stage == was->stage && is->layers == was->layers, "%d", i);
        cr_expect(is->peak_bytes == was->peak_bytes && is->planned_peak_bytes == was->planned_peak_bytes, "%d", i);
        cr_expect_eq(is->predicted_bubble_share, was->predicted_bubble_share);
    }
    cr_expect_eq(kept.stages[0].bubble_share, 0.25);
    cr_expect(isnan(kept.stages[1].bubble_share));
}

Test(store, a_run_in_no_known_state_is_not_stored) {
    RunRecord run = {
        .request = &request,
        .source = "executor",
        .host = "h",
        .device = "cpu",
        .transport = "shm",
        .lanes = "serial",
        .state = "odd",
        .prediction = {.plan = {.mesh = {SIZES(1, 1, 1, 1)}, .seq = 8, .micro_batch = 1, .grad_accum = 1}}};
    cr_assert_eq(store_save_run(store, &run, NULL, &error), STATUS_ENVIRONMENT);
}

Test(store_path, follows_xdg_data_home_then_home) {
    char out[STORE_PATH_BYTES];
    setenv("XDG_DATA_HOME", "/data", 1);
    setenv("HOME", "/home/me", 1);
    cr_assert_eq(store_default_path(out, &error), STATUS_OK);
    cr_assert_str_eq(out, "/data/ndtune/ndtune.db");
    unsetenv("XDG_DATA_HOME");
    cr_assert_eq(store_default_path(out, &error), STATUS_OK);
    cr_assert_str_eq(out, "/home/me/.local/share/ndtune/ndtune.db");
    setenv("XDG_DATA_HOME", "relative", 1);  // not allowed by the specification
    cr_assert_eq(store_default_path(out, &error), STATUS_OK);
    cr_assert_str_eq(out, "/home/me/.local/share/ndtune/ndtune.db");
    unsetenv("XDG_DATA_HOME");
    unsetenv("HOME");
    cr_assert_eq(store_default_path(out, &error), STATUS_ENVIRONMENT);
}

static int prices_stored(const ChipPrice **prices) {
    int count;
    cr_assert_eq(store_prices(store, &arena, prices, &count, &error), STATUS_OK, "%s", error.message);
    return count;
}

Test(store, prices_of_a_chip_are_kept_once_and_the_newest_counts) {
    const ChipPrice first[] = {{"chip a", "2x2x2", "00", 1e-6}, {"chip b", "2x2x2", "01", 2e-6}};
    const ChipPrice again = {"chip a", "2x2x2", "02", 3e-6};
    const ChipPrice *kept;
    RunRecord run = {.request = &request,
                     .source = "executor",
                     .host = "h",
                     .device = "cuda",
                     .transport = "shm",
                     .lanes = "serial",
                     .state = "ok",
                     .chip = "chip a",
                     .device_bytes = 4096,
                     .prices = first,
                     .price_count = 2};
    cr_assert_eq(prices_stored(&kept), 0);
    cr_assert_eq(store_save_run(store, &run, NULL, &error), STATUS_OK, "%s", error.message);
    run.prices = &again;
    run.price_count = 1;
    cr_assert_eq(store_save_run(store, &run, NULL, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(prices_stored(&kept), 2);
    const int a = strcmp(kept[0].chip, "chip a") == 0 ? 0 : 1;  // the newest last, of one millisecond by name
    cr_expect_str_eq(kept[a].chip, "chip a");
    cr_expect_str_eq(kept[a].choice, "02");
    cr_expect_eq(kept[a].seconds, 3e-6);
    cr_expect_str_eq(kept[1 - a].choice, "01");
}

Test(store, calibrations_are_kept_with_their_parent_and_their_runs) {
    const StoredCalibration calibration = {.command = "ndtune calibrate",
                                           .parent = "local-cpu",
                                           .parent_hash = "0123456789abcdef",
                                           .profile = "local-cpu-calibrated",
                                           .profile_hash = "fedcba9876543210",
                                           .profile_json = "{}",
                                           .runs_json = "[\"run 1\",\"run 2\"]",
                                           .runs = 2,
                                           .plans = 2,
                                           .misfit_sd = 0.05,
                                           .noise_sd = 0.02,
                                           .fit_before = 0.2,
                                           .fit_after = 0.05};
    int64_t first = 0, second = 0;
    cr_assert_eq(store_save_calibration(store, &calibration, &first, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(store_save_calibration(store, &calibration, &second, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(second, first + 1);
}

Test(store, a_store_without_runs_has_none_to_calibrate_on) {
    StoredMeasurement *runs = NULL;
    int count = 1;
    cr_assert_eq(store_measured_runs(store, 0, &arena, &runs, &count, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(count, 0);
}

Test(store, preflights_are_listed_with_what_is_wrong_and_come_back_whole) {
    static const StoredFinding findings[] = {{true, "rank 1 on b is slow"}, {false, "clocks differ"}};
    static const StoredGroups groups[] = {{"tp", "all_reduce", 2, 1024, 0.5, 0.25, 1},
                                          {"tp", "send_recv", 2, 8, 1, 0, 0}};
    StoredPreflight saved = {.command = "ndtune preflight",
                             .cluster = "box",
                             .hosts = "a, b",
                             .device = "cpu",
                             .transport = "shm",
                             .mesh = "tp=2",
                             .world = 2,
                             .ready = true};
    cr_assert_eq(store_save_preflight(store, &saved, &error), STATUS_OK, "%s", error.message);
    saved.ready = false;
    saved.findings = findings;
    saved.groups = groups;
    saved.finding_count = saved.group_count = 2;
    cr_assert_eq(store_save_preflight(store, &saved, &error), STATUS_OK, "%s", error.message);
    StoredPreflight read;
    StoredList list;
    bool found = true;
    cr_assert_eq(store_list(store, 0, &arena, &list, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(list.preflight_count, 2);
    cr_expect(!list.preflights[0].ready && list.preflights[0].finding_count == 1, "the newest is the first");
    cr_expect_str_eq(list.preflights[0].findings[0].sentence, "rank 1 on b is slow");
    cr_expect(list.preflights[1].ready && list.preflights[1].finding_count == 0);
    cr_assert_eq(store_preflight(store, 99, &arena, &read, &found, &error), STATUS_OK);
    cr_expect(!found);
    cr_assert_eq(store_preflight(store, list.preflights[0].id, &arena, &read, &found, &error), STATUS_OK, "%s",
                 error.message);
    cr_assert(found && !read.ready && read.finding_count == 2 && read.group_count == 2);
    cr_expect_str_eq(read.hosts, "a, b");
    cr_expect(read.findings[0].bad && !read.findings[1].bad);
    cr_expect_str_eq(read.findings[0].sentence, "rank 1 on b is slow");
    cr_expect_eq(read.groups[0].predicted_s, 0.25);
    cr_expect_eq(read.groups[0].wrong_elements, 1);
    cr_expect_eq(read.groups[1].predicted_s, 0);
    cr_expect_str_eq(read.groups[1].collective, "send_recv");
}
