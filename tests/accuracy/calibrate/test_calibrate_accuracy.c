// Calibrations of local-cpu on committed runs of real machines (README.md): plans not used in the fit are predicted
// better than with the uncalibrated profile.

#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/cli/cli.h"

#define RUNS NDTUNE_SOURCE_DIR "/tests/accuracy/calibrate/"

static double held_out_after(const char *path, double *before) {
    char *folder = temp_dir_make(), profile[512];
    snprintf(profile, sizeof profile, "%s/fitted.json", folder);
    json_t *root = CLI_JSON(0, "calibrate", "--runs", path, "--out", profile, "--format", "json");
    const json_t *held = json_object_get(root, "held_out");
    const double after = cli_number(held, "median_after");
    *before = cli_number(held, "median_before");
    json_decref(root);
    temp_dir_remove(folder);
    return after;
}

Test(calibrate_accuracy, on_a_quiet_machine_held_out_shapes_err_by_less_than_a_tenth) {
    double before;
    const double after = held_out_after(RUNS "quiet.csv", &before);
    cr_assert_gt(before, 0.3, "%g", before);
    cr_assert_lt(after, 0.1, "%g", after);
}

Test(calibrate_accuracy, on_a_machine_that_others_load_the_held_out_error_falls) {
    double before;
    const double after = held_out_after(RUNS "loaded.csv", &before);
    cr_assert_lt(after, 0.6 * before, "%g, before %g", after, before);
}
