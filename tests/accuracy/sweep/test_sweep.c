// The committed sweeps: nothing is missing, and the loop replayed on them ends at a shape that it has run.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "tests/accuracy/sweep/strategies.h"

#define FOLDER NDTUNE_SOURCE_DIR "/tests/accuracy/sweep/"

static Arena arena;
static Sweeps sweeps;

static void begin(void) {
    Error error = {0};
    if (access(FOLDER "sweep.csv", R_OK) != 0) {
        cr_skip_test("no sweep was measured yet: tests/accuracy/sweep/measure");
    }
    cr_assert_eq(sweeps_read(FOLDER "sweep.csv", FOLDER "groups.csv", &arena, &sweeps, &error), STATUS_OK, "%s",
                 error.message);
    cr_assert_gt(sweeps.count, 0);
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(sweep, .init = begin, .fini = end, .timeout = 300);

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
        cr_assert_eq(course_tuned(&sweeps.rows[i], true, 12, 1, &course, &error), STATUS_OK, "%s", error.message);
        cr_expect_leq(course.runs, 12, "%s", sweeps.rows[i].name);
        cr_expect_geq(sweep_regret(&sweeps.rows[i], course.named[course.runs]), 1, "%s", sweeps.rows[i].name);
        cr_expect(course.probability > 0 && course.probability < 1, "%s", sweeps.rows[i].name);
    }
}
