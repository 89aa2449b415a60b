// The shapes and runs of tune, for people and programs; what is unknown is null, never 0. The log is written while the
// session runs, so its columns are as wide as the widest mesh of the session.

#include "reports/tuning.h"

#include <math.h>
#include <string.h>

#include "reports/format.h"
#include "reports/json_objects.h"
#include "reports/schemas.h"
#include "sim/base/text.h"

static const Mesh *mesh_of(const Tuning *tuning, int shape) {
    return shape < 0 ? NULL : &tuning->shapes[shape].prediction->plan.mesh;
}

static json_t *mesh_object(const Tuning *tuning, int shape) {
    return shape < 0 ? json_null() : json_mesh(mesh_of(tuning, shape));
}

// ---- shapes

static const char *state_of(const TuneShape *shape) {
    return shape->out ? "out" : shape->unsettled ? "unsettled" : shape->runs > 0 ? "ok" : "not run";
}

KNOWN(has_run, TuneShape, of->runs > 0)
MADE(batch, TuneShape, record_of_product(of->prediction->plan.micro_batch, of->prediction->plan.grad_accum, text))
MADE(believed, TuneShape, record_of_text(format_between(sqrt(of->low_s * of->high_s), of->low_s, of->high_s, text)))
MADE(state, TuneShape, record_of_text(state_of(of)))
NESTED_IN(plan, TuneShape, Tuning, json_train_plan(in->request->target, &of->prediction->plan))

static const RecordField tune_shapes[] = {
    {FIELD("place", INT, TuneShape, place), COLUMN(1, "place")},
    {FIELD_OF("mesh", MESH, TuneShape, prediction, Prediction, plan.mesh), COLUMN(2, "mesh")},
    {.key = "plan", .nested = plan},
    {FIELD_OF("predicted_step_time_s", REAL, TuneShape, prediction, Prediction, step_s), COLUMN(4, "predicted"),
     .unit = AS_SECONDS},
    {FIELD("calibrated_step_time_s", REAL, TuneShape, calibrated_s), COLUMN(5, "calibrated"), .unit = AS_SECONDS},
    {FIELD("believed_low_s", REAL, TuneShape, low_s)},
    {FIELD("believed_high_s", REAL, TuneShape, high_s)},
    {FIELD("measured_step_time_s", REAL, TuneShape, measured_s), COLUMN(7, "measured"), .known = has_run,
     .unit = AS_SECONDS},
    {FIELD("runs", INT, TuneShape, runs), COLUMN(8, "runs")},
    {FIELD("probability_good", REAL, TuneShape, good), COLUMN(9, "P good"), .unit = AS_RATIO},
    {FIELD("probability_fastest", REAL, TuneShape, best), COLUMN(10, "P fastest"), .unit = AS_RATIO},
    {FIELD("unsettled", FLAG, TuneShape, unsettled)},
    {FIELD("out", TEXT, TuneShape, out)},
    {BY(batch), COLUMN(3, "micro x accum"), .right = true},
    {BY(believed), COLUMN(6, "believed (80 % interval)"), .right = true},
    {BY(state), COLUMN(11, "state")},
};
SCHEMA(tune_shapes, TuneShape);

// ---- runs

static RecordValue measured_of(const TuneStep *step, char text[RECORD_BYTES]) {
    return record_of_text(step->run.failure ? step->run.failure : text_seconds(text, step->run.step_s));
}

KNOWN(ran, TuneStep, of->run.shape >= 0)
KNOWN(is_new, TuneStep, of->run.shape >= 0 && !of->run.known)
KNOWN(is_stored, TuneStep, of->run.id > 0)
KNOWN(is_measured, TuneStep, of->run.shape >= 0 && !of->run.failure)
KNOWN(goes_on, TuneStep, of->next >= 0)
MADE_IN(number, TuneStep, Tuning, record_of_whole(of - in->steps + 1))
MADE_IN(mesh_run, TuneStep, Tuning, record_of_mesh(mesh_of(in, of->run.shape)))
MADE_IN(winner, TuneStep, Tuning, record_of_mesh(mesh_of(in, of->winner)))
MADE_IN(winner_words, TuneStep, Tuning,
        record_of_text(of->winner < 0 ? NULL : mesh_text(mesh_of(in, of->winner), text)))
MADE_IN(next, TuneStep, Tuning, record_of_mesh(mesh_of(in, of->next)))
MADE(because, TuneStep, record_of_text(of->run.known ? "known" : tune_why_names[of->because]))
MADE(next_why, TuneStep, record_of_text(tune_why_names[of->why]))
MADE(expected, TuneStep, record_of_text(format_between(of->expected_s, of->expected_low_s, of->expected_high_s, text)))
MADE(measured, TuneStep, measured_of(of, text))

static const RecordField tune_steps[] = {
    {.key = "run", BY(number), COLUMN(1, "run"), .no_json = true, .right = true},
    {.key = "mesh", .kind = RECORD_MESH, .make = mesh_run, COLUMN(2, "mesh")},
    {.key = "why", BY(because), COLUMN(3, "why"), .known = ran},
    {FIELD("run_id", LONG, TuneStep, run.id), .known = is_stored, .no_csv = true},
    {FIELD("known", FLAG, TuneStep, run.known), .no_csv = true},
    {FIELD("expected_step_time_s", REAL, TuneStep, expected_s), .csv = "expected_s", .known = ran},
    {FIELD("expected_low_s", REAL, TuneStep, expected_low_s), .known = ran},
    {FIELD("expected_high_s", REAL, TuneStep, expected_high_s), .known = ran},
    {FIELD("measured_step_time_s", REAL, TuneStep, run.step_s), .csv = "measured_s", .known = is_measured},
    {FIELD("failure", TEXT, TuneStep, run.failure)},
    {FIELD("wall_s", REAL, TuneStep, run.wall_s), .known = is_new},
    {FIELD("calibration", TEXT, TuneStep, learnt), .no_csv = true},
    {.key = "winner", .kind = RECORD_MESH, .make = winner, COLUMN(6, "winner then"), .no_csv = true},
    {.key = "winner", BY(winner_words), .no_json = true},
    {FIELD("probability", REAL, TuneStep, probability), COLUMN(7, "P"), .unit = AS_RATIO},
    {FIELD("expected_regret", REAL, TuneStep, regret)},
    {FIELD("entropy_bits", REAL, TuneStep, entropy)},
    {.key = "next", .kind = RECORD_MESH, .make = next, .no_csv = true},
    {.key = "next_why", BY(next_why), .known = goes_on, .no_csv = true},
    {FIELD("gain_bits", REAL, TuneStep, gain), .no_csv = true},
    {BY(expected), COLUMN(4, "expected (80 % interval)"), .right = true},
    {BY(measured), COLUMN(5, "measured"), .right = true},
};
SCHEMA(tune_steps, TuneStep);

static Status json_tuning(const void *answer, FILE *out, Error *error) {
    const Tuning *tuning = answer;
    const RecordSchema shapes = record_about(&schema_tune_shapes, tuning);
    const RecordSchema steps = record_about(&schema_tune_steps, tuning);
    const TuneOptions *options = &tuning->options;
    const TuneStep *last = tune_last(tuning);
    return json_print(
        json_pack("{s:s, s:o, s:f, s:f, s:o, s:o, s:I, s:o, s:o, s:f, s:f, s:s, s:i, s:i, s:i, s:f, s:o, s:o}",
                  "schema", "ndtune.tune/1", "request", json_request(tuning->request), "wanted_probability",
                  options->probability, "tolerance", options->tolerance, "max_runs",
                  options->max_runs > 0 ? json_integer(options->max_runs) : json_null(), "max_time_s",
                  json_known(options->max_time_s > 0, options->max_time_s), "seed", (json_int_t)options->seed, "begin",
                  record_object(&steps, &tuning->begin), "winner", mesh_object(tuning, last->winner), "probability",
                  last->probability, "expected_regret", last->regret, "stopped_by", tune_stop_names[tuning->stop],
                  "runs", tuning->runs, "known", tuning->known, "failed", tuning->failures, "wall_s", tuning->wall_s,
                  "steps", record_array(&steps, tuning->steps, tuning->step_count), "shapes",
                  record_array(&shapes, tuning->shapes, tuning->shape_count)),
        out, error);
}

static Status csv_tuning(const void *answer, FILE *out, Error *error) {
    const Tuning *tuning = answer;
    const RecordSchema steps = record_about(&schema_tune_steps, tuning);
    return record_csv(&steps, tuning->steps, tuning->step_count, out, error);
}

static int mesh_width(const Tuning *tuning) {
    int width = (int)strlen("shape");
    for (int i = 0; i < tuning->shape_count; i++) {
        const int length = (int)strlen(format_mesh(&tuning->shapes[i].prediction->plan.mesh, FORMAT_BUFFER));
        width = length > width ? length : width;
    }
    return width;
}

static const char *mesh_at(const Tuning *tuning, int shape, char out[FORMAT_BYTES]) {
    if (shape < 0) {
        return "-";
    }
    return format_mesh(&tuning->shapes[shape].prediction->plan.mesh, out);
}

void table_tuning_begin(const Tuning *tuning, FILE *out) {
    const TuneRequest *request = tuning->request;
    const TuneOptions *options = &tuning->options;
    fprintf(out, "%s on %d ranks, run by the executor, predicted on profile %s; %d shapes, seed %llu\n",
            request->model.name, request->world, request->cluster.name, tuning->shape_count,
            (unsigned long long)options->seed);
    fprintf(out, "until one is within %g %% of the fastest with probability %g", 100 * options->tolerance,
            options->probability);
    if (options->max_runs > 0) {
        fprintf(out, ", at most %d runs", options->max_runs);
    }
    if (options->max_time_s > 0) {
        fprintf(out, ", at most %g s of runs", options->max_time_s);
    }
    const int mesh = mesh_width(tuning);
    fprintf(out, "\n\n%4s  %-*s  %-12s  %-31s  %-9s  %-20s  %-*s  %5s  next\n", "run", mesh, "shape", "why",
            "expected (80 %)", "measured", "calibration", mesh, "winner", "P");
    fflush(out);
}

static const char *next_text(const Tuning *tuning, const TuneStep *step, char out[2 * FORMAT_BYTES]) {
    char words[FORMAT_BYTES];
    if (step->next < 0) {
        return "-";
    }
    if (step->why == TUNE_TELLS_MOST) {
        snprintf(out, 2 * FORMAT_BYTES, "%s, %.2f bit of %.2f", mesh_at(tuning, step->next, words), step->gain,
                 step->entropy);
    } else {
        snprintf(out, 2 * FORMAT_BYTES, "%s, %s", mesh_at(tuning, step->next, words), tune_why_names[step->why]);
    }
    return out;
}

void table_tuning_step(const Tuning *tuning, const TuneStep *step, FILE *out) {
    char shape[FORMAT_BYTES], winner[FORMAT_BYTES];
    char next[2 * FORMAT_BYTES];
    const int mesh = mesh_width(tuning);
    const TuneRun *run = &step->run;
    const bool first = run->shape < 0;
    fprintf(out, "%4d  %-*s  %-12s  %-31s  %-9s  %-20s  %-*s  %5.2f  %s\n", tuning->step_count, mesh,
            mesh_at(tuning, run->shape, shape),
            first        ? "-"
            : run->known ? "known"
                         : tune_why_names[step->because],
            first ? "-" : format_between(step->expected_s, step->expected_low_s, step->expected_high_s, FORMAT_BUFFER),
            first          ? "-"
            : run->failure ? "failed"
                           : text_seconds(UNIT_BUFFER, run->step_s),
            step->learnt ? step->learnt : "-", mesh, mesh_at(tuning, step->winner, winner), step->probability,
            next_text(tuning, step, next));
    if (run->failure) {
        fprintf(out, "      %s\n", run->failure);
    }
    fflush(out);
}

// ----------------------------------------------------------------------------------------------- what came of it

static void print_winner(const Tuning *tuning, FILE *out) {
    const TuneStep *last = tune_last(tuning);
    const TuneShape *winner = tune_winner(tuning);
    if (winner) {
        fprintf(out, "\nBest: %s", format_mesh_options(&winner->prediction->plan.mesh, FORMAT_BUFFER));
        if (winner->runs > 0) {
            fprintf(out, ", measured %s in %d run%s", text_seconds(UNIT_BUFFER, winner->measured_s), winner->runs,
                    winner->runs == 1 ? "" : "s");
        } else {
            fprintf(out, ", which never ran");
        }
        fprintf(out, "\n  within %g %% of the fastest with probability %.2f: %s\n", 100 * tuning->options.tolerance,
                last->probability, tune_stop_words[tuning->stop]);
        fprintf(out, "  it is expected to be %.1f %% slower than the fastest\n", 100 * last->regret);
        if (winner->place > 1) {
            fprintf(out, "  predicted in place %d; %s was predicted best\n", winner->place,
                    format_mesh(&tuning->shapes[0].prediction->plan.mesh, FORMAT_BUFFER));
        }
    } else {
        fprintf(out, "\nNo shape is left\n");
    }
    fprintf(out, "  %d run%s in %s", tuning->runs, tuning->runs == 1 ? "" : "s",
            text_seconds(UNIT_BUFFER, tuning->wall_s));
    if (tuning->known > 0) {
        fprintf(out, ", %d more known before (--no-cache begins without them)", tuning->known);
    }
    fprintf(out, "\n");
}

static Status table_tuning(const void *answer, FILE *out, Error *error) {
    const Tuning *tuning = answer;
    fprintf(out, "\n");
    TRY(record_table(&schema_tune_shapes, tuning->shapes, tuning->shape_count, out, error));
    for (int i = 0; i < tuning->shape_count; i++) {
        const TuneShape *shape = &tuning->shapes[i];
        if (shape->out) {
            fprintf(out, "%s is out: %s\n", format_mesh(&shape->prediction->plan.mesh, FORMAT_BUFFER), shape->out);
        }
    }
    print_winner(tuning, out);
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the result could not be written") : STATUS_OK;
}

const Answer answer_tuning = {.table = table_tuning, .json = json_tuning, .csv = csv_tuning};
