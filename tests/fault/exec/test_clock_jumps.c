// The wall clock jumps by an hour while programs run and wait: no duration is measured by it.

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/support/run_program.h"

static char *folder, db[512];

static void begin(void) {
    folder = temp_dir_make();
    snprintf(db, sizeof db, "%s/test.db", folder);
}

static void end(void) {
    temp_dir_remove(folder);
}

TestSuite(clock_jumps, .init = begin, .fini = end);

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
Test(clock_jumps, durations_are_those_of_a_clock_that_only_goes_on) {
    cr_skip_test("a sanitizer wants to be loaded first");
}
#else
static const char *const JUMPS[] = {"NDTUNE_CLOCK_JUMP_S=3600", "NDTUNE_CLOCK_JUMP_S=-3600"};
enum { JUMP_COUNT = sizeof JUMPS / sizeof JUMPS[0] };
static const double AN_HOUR_S = 3000;  // longer than anything that runs here; the jump is longer still

static ProgramRun jumping(const char *jump, const char *const *words) {
    const char *const settings[] = {"LD_PRELOAD=" CLOCK_JUMP, jump, NULL};
    return program_run(words, settings, 100);
}

static json_t *answer_of(const ProgramRun *run) {
    cr_assert_eq(run->exit_code, 0, "%s", run->err);
    json_t *answer = json_loads(run->out, 0, NULL);
    cr_assert_not_null(answer, "%s", run->out);
    return answer;
}

static void is_a_duration(const json_t *value) {
    cr_expect(json_number_value(value) > 0 && json_number_value(value) < AN_HOUR_S, "%g s", json_number_value(value));
}

// The jump works: this test's own library, preloaded into a program, moves its clock.
Test(clock_jumps, the_wall_clock_of_a_preloaded_program_jumps) {
    void *library = dlopen(CLOCK_JUMP, RTLD_NOW);
    cr_assert_not_null(library, "%s", dlerror());
    time_t (*ask)(time_t *);
    *(void **)&ask = dlsym(library, "time");
    cr_assert_not_null(ask);
    setenv("NDTUNE_CLOCK_JUMP_S", "3600", 1);
    const struct timespec a_while = {.tv_nsec = 200000000};
    nanosleep(&a_while, NULL);
    cr_expect_gt(ask(NULL) - time(NULL), 3590);
    dlclose(library);
}

Test(clock_jumps, the_steps_of_a_run_take_what_they_take_and_none_is_late) {
    for (int i = 0; i < JUMP_COUNT; i++) {
        ProgramRun run = jumping(JUMPS[i], (const char *[]){"ndtune", "run", "--mesh", "dp_shard=2", "--model", "tiny",
                                                            "--layers", "1", "--seq", "64", "--steps", "20",
                                                            "--timeout", "60", "--format", "json", "--db", db, NULL});
        json_t *answer = answer_of(&run), *step;
        size_t k;
        json_array_foreach(json_object_get(answer, "step_time_s"), k, step) {
            is_a_duration(step);
        }
        cr_expect_eq(k, 20);
        json_decref(answer);
        program_run_free(&run);
    }
}

Test(clock_jumps, a_session_of_tune_spends_what_its_runs_took) {
    ProgramRun run = jumping(JUMPS[0], (const char *[]){"ndtune", "tune", "--world", "2", "--model", "tiny", "--layers",
                                                        "1", "--steps", "6", "--max-runs", "2", "--max-time", "3000",
                                                        "--format", "json", "--db", db, NULL});
    json_t *answer = answer_of(&run);
    cr_expect_eq(json_integer_value(json_object_get(answer, "runs")), 2);
    is_a_duration(json_object_get(answer, "wall_s"));
    json_decref(answer);
    program_run_free(&run);
}

// If the wall clock were used, setting it back an hour would keep it waiting for an hour.
Test(clock_jumps, a_time_limit_ends_a_command_though_the_clock_went_back) {
    ProgramRun run = jumping(JUMPS[1], (const char *[]){"ndtune",   "validate", "--world",   "2",    "--top",    "1",
                                                        "--spread", "0",        "--model",   "tiny", "--layers", "1",
                                                        "--with",   "ndtune",   "--timeout", "1",    "--db",     db,
                                                        "--",       "sleep",    "200",       NULL});
    cr_expect_not(run.timed_out);
    cr_expect_neq(run.exit_code, 0);
    program_run_free(&run);
}
#endif
