// Sessions of the closed loop in the store: an equal key continues, runs keep their place, known runs are reused.

#include <criterion/criterion.h>
#include <stdio.h>

#include "autotune/store/store.h"
#include "tests/support/run_program.h"
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
    folder = temp_dir_make();
    snprintf(path, sizeof path, "%s/test.db", folder);
    request = request_for(&arena, 4, "7b", "dgx-h100", "accelerate");
    request.command = "ndtune tune";
    cr_assert_eq(store_open(path, &store, &error), STATUS_OK, "%s", error.message);
}

static void end(void) {
    store_close(store);
    temp_dir_remove(folder);
    arena_free(&arena);
}

TestSuite(tune_sessions, .init = begin, .fini = end);

static RunRecord run_of(uint64_t measurement_hash, const char *state) {
    static const double steps[] = {2, 1, 1};
    return (RunRecord){
        .request = &request,
        .source = "executor",
        .host = "here",
        .device = "cpu",
        .transport = "shm",
        .lanes = "serial",
        .steps = 3,
        .losses = steps,
        .grad_norms = steps,
        .step_times_s = steps,
        .measured_step_s = 1,
        .measurement_hash = measurement_hash,
        .state = state,
        .prediction = {.plan = {.mesh = {SIZES(1, 4, 1, 1)}, .seq = 8, .micro_batch = 1, .grad_accum = 1}}};
}

static const uint64_t hashes[] = {11, 22};

static int64_t session_of(uint64_t key, bool afresh) {
    const TuneSessionKey asked = {key, "ndtune tune", afresh, hashes, 2};
    int64_t session = 0;
    cr_assert_eq(store_tune_session(store, &asked, &session, &error), STATUS_OK, "%s", error.message);
    return session;
}

static int runs_of(int64_t session, StoredTuneRun **runs) {
    int count = 0;
    cr_assert_eq(store_tune_runs(store, session, &arena, runs, &count, &error), STATUS_OK, "%s", error.message);
    return count;
}

Test(tune_sessions, the_same_key_goes_on_and_another_does_not) {
    const int64_t first = session_of(1, false);
    cr_assert_eq(session_of(1, false), first);
    cr_assert_neq(session_of(2, false), first);
}

Test(tune_sessions, begun_afresh_it_is_the_one_that_goes_on_from_then) {
    const int64_t first = session_of(1, false), second = session_of(1, true);
    cr_assert_neq(first, second);
    cr_assert_eq(session_of(1, false), second);
}

Test(tune_sessions, runs_come_back_in_order_with_what_they_took) {
    const int64_t session = session_of(1, false);
    const RunRecord good = run_of(11, "ok"), bad = run_of(22, "failed");
    int64_t id = 0;
    cr_assert_eq(store_save_tune_run(store, session, &bad, 0.5, &id, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(store_save_tune_run(store, session, &good, 1.5, &id, &error), STATUS_OK, "%s", error.message);
    StoredTuneRun *runs;
    cr_assert_eq(runs_of(session, &runs), 2);
    cr_assert_str_eq(runs[0].state, "failed");
    cr_assert_str_eq(runs[1].state, "ok");
    cr_assert_eq(runs[1].run_id, id);
    cr_assert_eq(runs[1].wall_s, 1.5);
    cr_assert_not(runs[1].known);
}

Test(tune_sessions, runs_that_are_known_are_taken_along_once) {
    const RunRecord good = run_of(22, "ok"), bad = run_of(11, "failed"), other = run_of(33, "ok");
    cr_assert_eq(store_save_run(store, &good, NULL, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(store_save_run(store, &bad, NULL, &error), STATUS_OK);
    cr_assert_eq(store_save_run(store, &other, NULL, &error), STATUS_OK);
    const int64_t session = session_of(1, false);
    StoredTuneRun *runs;
    cr_assert_eq(runs_of(session, &runs), 1, "of its shapes, those that ended well");
    cr_assert(runs[0].known);
    cr_assert_eq(store_save_run(store, &good, NULL, &error), STATUS_OK);
    cr_assert_eq(runs_of(session_of(1, false), &runs), 1, "a session that has begun takes in what it runs");
    cr_assert_eq(runs_of(session_of(1, true), &runs), 0, "afresh is with nothing");
}

Test(tune_sessions, shapes_that_cannot_be_measured_bring_no_runs_along) {
    const RunRecord unrelated = run_of(0, "ok");
    cr_assert_eq(store_save_run(store, &unrelated, NULL, &error), STATUS_OK, "%s", error.message);
    static const uint64_t none[] = {0, 0};
    const TuneSessionKey asked = {9, "ndtune tune", false, none, 2};
    int64_t session = 0;
    cr_assert_eq(store_tune_session(store, &asked, &session, &error), STATUS_OK, "%s", error.message);
    StoredTuneRun *runs;
    cr_assert_eq(runs_of(session, &runs), 0);
}

Test(tune_sessions, a_run_that_cannot_be_stored_leaves_no_place_behind) {
    const int64_t session = session_of(1, false);
    const RunRecord broken = run_of(11, "no such state");
    int64_t id = 0;
    cr_assert_neq(store_save_tune_run(store, session, &broken, 1, &id, &error), STATUS_OK);
    StoredTuneRun *runs;
    cr_assert_eq(runs_of(session, &runs), 0);
}
