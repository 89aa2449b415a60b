// From a session's runs to samples, from their posterior to predictions of all shapes.

#include "autotune/tune/calibrated_model.h"

#include <math.h>

void calibrated_model_free(CalibratedModel *model) {
    arena_free(&model->arena);
}

CalibrationCase calibrated_model_case(const Tuning *tuning, int shape) {
    return calibration_case(tuning->request, &tuning->shapes[shape].prediction->plan);
}

static int samples_of(CalibratedModel *own, const Tuning *tuning, CalibrationSample *samples) {
    int count = 0;
    for (int i = 0; i < tuning->step_count; i++) {
        const TuneRun *run = &tuning->steps[i].run;
        if (!run->failure) {
            samples[count] = (CalibrationSample){
                .what = calibrated_model_case(tuning, run->shape),
                .id = arena_format(&own->arena, "run %lld", (long long)(run->id > 0 ? run->id : i + 1)),
                .set = own->set,
                .step_s = run->steady_s};
            for (int kind = 0; kind < SPAN_KIND_COUNT && run->span_s; kind++) {
                samples[count].span_s[kind] = run->span_s[kind];
            }
            count++;
        }
    }
    return count;
}

static Status calibrate(CalibratedModel *own, const Tuning *tuning, Error *error) {
    arena_reset(&own->arena);
    CalibrationSample *samples = ARENA_ARRAY(&own->arena, CalibrationSample, tuning->step_count + 1);
    own->input = (CalibrationInput){.base = &tuning->request->cluster,
                                    .samples = samples,
                                    .count = samples_of(own, tuning, samples),
                                    .noise_sd = tuning->law.noise_sd,
                                    .threads = own->threads};
    return calibrate_fit(&own->input, &own->arena, &own->calibration, error);
}

static Status predict_shapes(const CalibratedModel *own, const Tuning *tuning, BeliefShape *shapes, Error *error) {
    Arena scratch = {0};
    Status status = STATUS_OK;
    for (int i = 0; i < tuning->shape_count && status == STATUS_OK; i++) {
        const CalibrationCase what = calibrated_model_case(tuning, i);
        CalibrationSensitivity at;
        status = calibrate_sensitivity(&own->calibration.posterior, &what, &scratch, &at, error);
        shapes[i].calibrated = at.log_step - log((double)plan_tokens_per_step(&what.plan));
    }
    arena_free(&scratch);
    return status;
}

Status calibrated_model_learn(CalibratedModel *own, const Tuning *tuning, TuneModel *model, BeliefShape *shapes,
                              const char **learnt, Error *error) {
    Error why = {0};
    const Status status = calibrate(own, tuning, &why);
    own->calibrated = status == STATUS_OK;
    tune_model_prior(tuning, model, shapes);
    if (status == STATUS_USAGE) {
        own->refusal = arena_text(&own->arena, why.message);
        *learnt = "one common factor";
        return STATUS_OK;
    }
    if (status != STATUS_OK) {
        *error = why;
        return status;
    }
    TRY(predict_shapes(own, tuning, shapes, error));
    const CalibrationScore *fit = &own->calibration.fit;
    *learnt = arena_format(&own->arena, "error %.0f %% -> %.0f %%", 100 * fit->before_median, 100 * fit->after_median);
    return STATUS_OK;
}

Status calibrated_model_profile(const CalibratedModel *own, const char *date, Arena *arena, ClusterProfile *profile,
                                Error *error) {
    FAIL_IF(!own->calibrated, error, STATUS_USAGE, "there is no calibrated profile: %s", own->refusal);
    return calibration_child(&own->calibration, &own->input, date, arena, profile, error);
}
