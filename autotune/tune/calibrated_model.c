// From a session's runs to samples, from their posterior to predictions and gradients of all shapes.

#include "autotune/tune/calibrated_model.h"

#include <math.h>

_Static_assert((int)CALIBRATION_MAX <= (int)BELIEF_FACTORS, "every coordinate of theta is a factor");

// Held-out errors of calibrated predictions: 4 to 12 % median (accuracy-notes.md 1.1). Worth four shapes.
static const double USUAL_MISFIT = 0.10, USUAL_WORTH = 4;

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
    const CalibrationPosterior *posterior = &own->calibration.posterior;
    Arena scratch = {0};
    Status status = STATUS_OK;
    for (int i = 0; i < tuning->shape_count && status == STATUS_OK; i++) {
        const CalibrationCase what = calibrated_model_case(tuning, i);
        CalibrationSensitivity at;
        status = calibrate_sensitivity(posterior, &what, &scratch, &at, error);
        shapes[i].predicted = at.log_step - log((double)plan_tokens_per_step(&what.plan));
        for (int factor = 0; factor < posterior->count; factor++) {
            shapes[i].gradient[factor] = at.gradient[factor];
        }
    }
    arena_free(&scratch);
    return status;
}

// A few shapes that a dozen factors explain well do not show that the next one will fit as well: until many have run,
// the misfit stays near what held-out shapes show elsewhere (a scaled inverse chi-squared prior).
static double cautious_misfit(const Calibration *calibration) {
    const double own = calibration->posterior.misfit_sd, shapes = calibration->shape_count;
    return sqrt((USUAL_WORTH * USUAL_MISFIT * USUAL_MISFIT + shapes * own * own) / (USUAL_WORTH + shapes));
}

// Factors that had to move by many of their prior deviations say that the priors were too sure of them: the covariance
// grows by how much (a Birge ratio over the shapes that made them move; Birge 1932).
static double tension(const Calibration *calibration) {
    const CalibrationPosterior *posterior = &calibration->posterior;
    double squares = 0;
    for (int i = 0; i < posterior->count; i++) {
        squares += pow(posterior->mean[i] / posterior->at[i].prior_sd, 2);
    }
    return fmax(1, squares / calibration->shape_count);
}

static void take_posterior(const Calibration *calibration, TuneModel *model) {
    const CalibrationPosterior *posterior = &calibration->posterior;
    *model = (TuneModel){.factors = posterior->count, .misfit_sd = cautious_misfit(calibration)};
    const double widened = tension(calibration);
    for (int i = 0; i < posterior->count * posterior->count; i++) {
        model->covariance[i] = widened * posterior->covariance[i];
    }
}

Status calibrated_model_learn(CalibratedModel *own, const Tuning *tuning, TuneModel *model, BeliefShape *shapes,
                              const char **learnt, Error *error) {
    Error why = {0};
    const Status status = calibrate(own, tuning, &why);
    own->calibrated = status == STATUS_OK;
    if (status == STATUS_USAGE) {
        own->refusal = arena_text(&own->arena, why.message);
        tune_model_prior(tuning, model, shapes);
        *learnt = "one common factor";
        return STATUS_OK;
    }
    if (status != STATUS_OK) {
        *error = why;
        return status;
    }
    TRY(predict_shapes(own, tuning, shapes, error));
    take_posterior(&own->calibration, model);
    const CalibrationScore *fit = &own->calibration.fit;
    *learnt = arena_format(&own->arena, "error %.0f %% -> %.0f %%", 100 * fit->before_median, 100 * fit->after_median);
    return STATUS_OK;
}

Status calibrated_model_profile(const CalibratedModel *own, const char *date, Arena *arena, ClusterProfile *profile,
                                Error *error) {
    if (!own->calibrated) {
        return error_set(error, STATUS_USAGE, "there is no calibrated profile: %s", own->refusal);
    }
    return calibration_child(&own->calibration, &own->input, date, arena, profile, error);
}
