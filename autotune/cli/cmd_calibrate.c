// ndtune calibrate: a cluster profile fitted to measured runs, with the uncertainty left by the fit. The profile is
// written, and kept in the store with its runs and its errors before and after.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/cli/calibrate_inputs.h"
#include "reports/calibration.h"
#include "reports/json_objects.h"

typedef struct Calibrating {
    Cli *cli;
    SampleList samples;
    CalibrationInput input;
    Calibration calibration;
    ClusterProfile child;
    const char *path;
} Calibrating;

// Most options say what a log ran, which files and the store know by themselves.
static Status check_options(Cli *cli, Error *error) {
    static const OptionId own[] = {OPTION_CLUSTER, OPTION_TARGET, OPTION_TRANSPORT, OPTION_RUNS, OPTION_LOG,
                                   OPTION_FORMAT,  OPTION_OUT,    OPTION_DB,        OPTION_HELP, OPTION_VERSION};
    for (int id = 0; id < OPTION_COUNT && !cli_given(cli, OPTION_LOG); id++) {
        bool takes = !cli_given(cli, (OptionId)id);
        for (size_t i = 0; i < sizeof own / sizeof own[0] && !takes; i++) {
            takes = own[i] == (OptionId)id;
        }
        if (!takes) {
            error_set(error, STATUS_USAGE, "--%s says what a log of --log ran, and there is no --log",
                      option_row((OptionId)id).name);
            return cli_blame(cli, (OptionId)id,
                             error_hint(error, "leave it out: runs of the store and of --runs say "
                                               "themselves what they ran"));
        }
    }
    FAIL_WITH(cli_given(cli, OPTION_TRANSPORT) && (cli_given(cli, OPTION_RUNS) || cli_given(cli, OPTION_LOG)),
              cli_refuse(cli, OPTION_TRANSPORT, error,
                         "--transport chooses among the runs of the store, which %s takes the place of",
                         cli_given(cli, OPTION_RUNS) ? "--runs" : "--log"));
    return STATUS_OK;
}

// What the parent was fitted on is already in its numbers.
static void warn_of_same_runs(const SampleList *samples) {
    const ClusterCalibration *before = samples->base->calibration;
    int same = 0;
    for (int i = 0; i < samples->count && before; i++) {
        for (int run = 0; run < before->run_count; run++) {
            if (strcmp(samples->rows[i].id, before->runs[run]) == 0) {
                same++;
                break;
            }
        }
    }
    if (same > 0) {
        fprintf(stderr, "ndtune: %d of these runs taught %s already and count twice: calibrate its parent %s instead\n",
                same, samples->base->name, before->parent);
    }
}

static const CalibrationLeftOut *most_left_out(const SampleList *samples) {
    const CalibrationLeftOut *most = NULL;
    for (int i = 0; i < samples->left_out_count; i++) {
        most = !most || samples->left_out[i].runs > most->runs ? &samples->left_out[i] : most;
    }
    return most;
}

// No runs left: report the most common reason.
static Status none_usable(const SampleList *samples, Error *error) {
    const CalibrationLeftOut *most = most_left_out(samples);
    return most ? error_set(error, STATUS_USAGE, "no run of %s can be used; %d: %s", samples->from, most->runs,
                            most->reason)
                : error_set(error, STATUS_USAGE, "%s holds no runs", samples->from);
}

static Status fit(Calibrating *work, Error *error) {
    Cli *cli = work->cli;
    const Progress progress = cli_progress(cli);
    FAIL_WITH(work->samples.count == 0, none_usable(&work->samples, error));
    warn_of_same_runs(&work->samples);
    work->input = (CalibrationInput){.base = work->samples.base,
                                     .samples = work->samples.rows,
                                     .count = work->samples.count,
                                     .hold_out = true,
                                     .progress = &progress};
    const Status status = calibrate_fit(&work->input, &cli->arena, &work->calibration, error);
    cli_progress_clear(cli);
    work->input.progress = NULL;
    const CalibrationLeftOut *most = most_left_out(&work->samples);
    if (status == STATUS_USAGE && most) {
        error_hint(error, "not used were %d runs: %s", most->runs, most->reason);
    }
    return status;
}

static Status keep(Calibrating *work, const char *text, Error *error) {
    const Calibration *done = &work->calibration;
    const ClusterCalibration *about = work->child.calibration;
    Hash hash = hash_begin();
    char hex[HASH_TEXT_BYTES];
    cluster_hash(&work->child, &hash);
    json_t *ids = json_strings(about->runs, about->run_count);
    char *runs = json_dumps(ids, JSON_COMPACT);
    json_decref(ids);
    const StoredCalibration stored = {.command = work->cli->line,
                                      .parent = about->parent,
                                      .parent_hash = about->parent_hash,
                                      .profile = work->child.name,
                                      .profile_hash = hash_hex(hash_end(&hash), hex),
                                      .profile_json = text,
                                      .runs_json = runs ? runs : "[]",
                                      .runs = about->run_count,
                                      .plans = done->shape_count,
                                      .held_out_plans = done->held_out.shapes,
                                      .misfit_sd = done->posterior.misfit_sd,
                                      .noise_sd = done->posterior.noise_sd,
                                      .fit_before = done->fit.before_median,
                                      .fit_after = done->fit.after_median,
                                      .held_out_before = done->held_out.before_median,
                                      .held_out_after = done->held_out.after_median};
    const Status status = store_save_calibration(work->cli->store, &stored, NULL, error);
    free(runs);
    return status;
}

static Status save(Calibrating *work, Error *error) {
    Cli *cli = work->cli;
    const char *text;
    TRY(calibration_child(&work->calibration, &work->input, cli_today(cli), &cli->arena, &work->child, error));
    work->path = cli_text_or(cli, OPTION_OUT, "calibrated.json");
    TRY(cli_write_profile(cli, work->path, &work->child, &text, error));
    return keep(work, text, error);
}

static Status print(const Calibrating *work, Error *error) {
    const CalibrationReport report = {.calibration = &work->calibration,
                                      .base = work->input.base,
                                      .child = &work->child,
                                      .runs = work->samples.count,
                                      .from = work->samples.from,
                                      .path = work->path,
                                      .left_out = work->samples.left_out,
                                      .left_out_count = work->samples.left_out_count};
    return cli_answer(work->cli, &answer_calibration, &report, error);
}

Status cmd_calibrate(Cli *cli, Error *error) {
    Calibrating *work = ARENA_NEW(&cli->arena, Calibrating);
    work->cli = cli;
    TRY(cli_open_store(cli, error));
    TRY(check_options(cli, error));
    TRY(calibrate_inputs(cli, &work->samples, error));
    TRY(fit(work, error));
    TRY(save(work, error));
    return print(work, error);
}
