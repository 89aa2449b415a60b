// The JSON and CSV of tune. What is unknown is null, never 0.

#include "reports/csv_lines.h"
#include "reports/json_objects.h"
#include "reports/tuning.h"

static json_t *mesh_at(const Tuning *tuning, int shape) {
    return shape < 0 ? json_null() : json_mesh(&tuning->shapes[shape].prediction->plan.mesh);
}

static json_t *step_object(const Tuning *tuning, const TuneStep *step) {
    const TuneRun *run = &step->run;
    const bool ran = run->shape >= 0;
    return json_pack("{s:o, s:s?, s:o, s:b, s:o, s:o, s:o, s:o, s:s?, s:o, s:s?, s:o, s:f, s:f, s:f, s:o, s:s?, s:f}",
                     "mesh", mesh_at(tuning, run->shape), "why",
                     !ran         ? NULL
                     : run->known ? "known"
                                  : tune_why_names[step->because],
                     "run_id", run->id > 0 ? json_integer((json_int_t)run->id) : json_null(), "known", run->known,
                     "expected_step_time_s", json_known(ran, step->expected_s), "expected_low_s",
                     json_known(ran, step->expected_low_s), "expected_high_s", json_known(ran, step->expected_high_s),
                     "measured_step_time_s", json_known(ran && !run->failure, run->step_s), "failure", run->failure,
                     "wall_s", json_known(ran && !run->known, run->wall_s), "calibration", step->learnt, "winner",
                     mesh_at(tuning, step->winner), "probability", step->probability, "expected_regret", step->regret,
                     "entropy_bits", step->entropy, "next", mesh_at(tuning, step->next), "next_why",
                     step->next < 0 ? NULL : tune_why_names[step->why], "gain_bits", step->gain);
}

static json_t *shape_object(const Target *target, const TuneShape *shape) {
    const bool ran = shape->runs > 0;
    return json_pack("{s:i, s:o, s:o, s:f, s:f, s:f, s:f, s:o, s:i, s:f, s:f, s:b, s:s?}", "place", shape->place,
                     "mesh", json_mesh(&shape->prediction->plan.mesh), "plan",
                     json_train_plan(target, &shape->prediction->plan), "predicted_step_time_s",
                     shape->prediction->step_s, "calibrated_step_time_s", shape->calibrated_s, "believed_low_s",
                     shape->low_s, "believed_high_s", shape->high_s, "measured_step_time_s",
                     json_known(ran, shape->measured_s), "runs", shape->runs, "probability_good", shape->good,
                     "probability_fastest", shape->best, "unsettled", shape->unsettled, "out", shape->out);
}

Status json_tuning(const Tuning *tuning, FILE *out, Error *error) {
    json_t *shapes = json_array(), *steps = json_array();
    for (int i = 0; i < tuning->shape_count; i++) {
        json_array_append_new(shapes, shape_object(tuning->request->target, &tuning->shapes[i]));
    }
    for (int i = 0; i < tuning->step_count; i++) {
        json_array_append_new(steps, step_object(tuning, &tuning->steps[i]));
    }
    const TuneOptions *options = &tuning->options;
    const TuneStep *last = tune_last(tuning);
    return json_print(
        json_pack("{s:s, s:o, s:f, s:f, s:o, s:o, s:I, s:o, s:o, s:f, s:f, s:s, s:i, s:i, s:i, s:f, s:o, s:o}",
                  "schema", "ndtune.tune/1", "request", json_request(tuning->request), "wanted_probability",
                  options->probability, "tolerance", options->tolerance, "max_runs",
                  options->max_runs > 0 ? json_integer(options->max_runs) : json_null(), "max_time_s",
                  json_known(options->max_time_s > 0, options->max_time_s), "seed", (json_int_t)options->seed, "begin",
                  step_object(tuning, &tuning->begin), "winner", mesh_at(tuning, last->winner), "probability",
                  last->probability, "expected_regret", last->regret, "stopped_by", tune_stop_names[tuning->stop],
                  "runs", tuning->runs, "known", tuning->known, "failed", tuning->failures, "wall_s", tuning->wall_s,
                  "steps", steps, "shapes", shapes),
        out, error);
}

Status csv_tuning(const Tuning *tuning, FILE *out, Error *error) {
    Csv csv = {.out = out};
    csv_header(&csv, "run" AXES_COLUMNS ",why,expected_s,expected_low_s,expected_high_s,measured_s,failure,"
                     "wall_s,winner,probability,expected_regret,entropy_bits");
    for (int i = 0; i < tuning->step_count; i++) {
        const TuneStep *step = &tuning->steps[i];
        const TuneRun *run = &step->run;
        char mesh[MESH_TEXT_BYTES];
        csv_integer(&csv, i + 1);
        for (int axis = 0; axis < AXIS_COUNT; axis++) {
            csv_integer(&csv, tuning->shapes[run->shape].prediction->plan.mesh.size[axis]);
        }
        csv_text(&csv, run->known ? "known" : tune_why_names[step->because]);
        csv_number(&csv, true, step->expected_s);
        csv_number(&csv, true, step->expected_low_s);
        csv_number(&csv, true, step->expected_high_s);
        csv_number(&csv, !run->failure, run->step_s);
        csv_text(&csv, run->failure);
        csv_number(&csv, !run->known, run->wall_s);
        csv_text(&csv, step->winner < 0 ? NULL : mesh_text(&tuning->shapes[step->winner].prediction->plan.mesh, mesh));
        csv_number(&csv, true, step->probability);
        csv_number(&csv, true, step->regret);
        csv_number(&csv, true, step->entropy);
        csv_end_line(&csv);
    }
    return csv_finish(&csv, error);
}
