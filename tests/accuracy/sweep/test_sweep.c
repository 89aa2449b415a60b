// The committed sweeps: nothing is missing, and the loop replayed on them ends at a shape that it has run.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "tests/accuracy/sweep/strategies.h"

#define FOLDER NDTUNE_SOURCE_DIR "/tests/accuracy/sweep/"

static Arena arena;
static Sweeps sweeps;

static void read_sweeps(const char *runs, const char *groups) {
    Error error = {0};
    cr_assert_eq(sweeps_read(runs, groups, &arena, &sweeps, &error), STATUS_OK, "%s", error.message);
    cr_assert_gt(sweeps.count, 0);
}

static void begin(void) {
    if (access(FOLDER "sweep.csv", R_OK) != 0) {
        cr_skip_test("no sweep was measured yet: tests/accuracy/sweep/measure");
    }
    read_sweeps(FOLDER "sweep.csv", FOLDER "groups.csv");
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(sweep, .init = begin, .fini = end);

Test(sweep, every_shape_of_its_world_was_run) {
    for (int i = 0; i < sweeps.count; i++) {
        const Sweep *sweep = &sweeps.rows[i];
        cr_expect_eq(sweep->result.entry_count, mesh_enumerate(sweep->request.world, AXES_FIRST, NULL, 0), "%s",
                     sweep->name);
    }
}

Test(sweep, every_measured_time_is_one_and_has_a_prediction) {
    for (int i = 0; i < sweeps.count; i++) {
        const Sweep *sweep = &sweeps.rows[i];
        for (int shape = 0; shape < sweep->result.entry_count; shape++) {
            cr_expect_gt(sweep->shapes[shape].count, 0, "%s", sweep->name);
            cr_expect_gt(sweep->measured_s[shape], 0, "%s", sweep->name);
            cr_expect_gt(sweep->result.entries[shape].step_s, 0, "%s", sweep->name);
        }
    }
}

Test(sweep, the_loop_replayed_names_a_shape_and_keeps_to_its_budget) {
    for (int i = 0; i < sweeps.count; i++) {
        Course course = {0};
        Error error = {0};
        const CourseOptions options = {.tolerance = 0.01, .max_runs = 12, .seed = 1};
        cr_assert_eq(course_tuned(&sweeps.rows[i], &options, &course, &error), STATUS_OK, "%s", error.message);
        cr_expect_leq(course.runs, 12, "%s", sweeps.rows[i].name);
        cr_expect_geq(sweep_regret(&sweeps.rows[i], course.named[course.runs]), 1, "%s", sweeps.rows[i].name);
        cr_expect(course.probability > 0 && course.probability < 1, "%s", sweeps.rows[i].name);
    }
}

static void end_drift(void) {
    arena_free(&arena);
}

TestSuite(drift_replay, .fini = end_drift);

// What the record does not tell apart is no error. Within 10 %: there nearly half of the sessions become sure.
Test(drift_replay, of_sessions_that_are_sure_on_a_machine_whose_speed_changes_nine_of_ten_are_right) {
    enum { SESSIONS = 8 };
    static const double TOLERANCE = 0.1;
    int sure = 0, right = 0;
    if (access(FOLDER "busy.csv", R_OK) != 0) {
        cr_skip_test("no drift was recorded yet: tests/accuracy/sweep/record_drift");
    }
    read_sweeps(FOLDER "busy.csv", FOLDER "busy_groups.csv");
    for (int i = 0; i < sweeps.count; i++) {
        for (uint64_t seed = 1; seed <= SESSIONS; seed++) {
            Course course = {0};
            Error error = {0};
            const CourseOptions options = {.tolerance = TOLERANCE, .max_runs = 40, .seed = seed};
            cr_assert_eq(course_tuned(&sweeps.rows[i], &options, &course, &error), STATUS_OK, "%s", error.message);
            sure += course.probability >= 0.95;
            right += course.probability >= 0.95 && course_right(&sweeps.rows[i], &course, TOLERANCE, &arena);
        }
    }
    cr_log_info("%d of %d sure sessions are right", right, sure);
    cr_assert_gt(sure, 1);
    cr_assert_geq(right, 0.9 * sure);
}
