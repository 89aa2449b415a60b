// The loop, and the part of its state that is derived from the runs.

#include "autotune/tune/tune.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

const char *const tune_stop_names[TUNE_STOP_COUNT] = {"probability", "max-runs", "max-time", "no-shape-left", "left"};

const char *const tune_stop_words[TUNE_STOP_COUNT] = {"that is probable enough", "the budget of runs is spent",
                                                      "the budget of time is spent", "no shape is left",
                                                      "the session was left before it was sure"};

const char *const tune_why_names[TUNE_WHY_COUNT] = {"tells most", "to make sure", "to prove it"};

enum { PROOF = 2 };                      // runs of the winner: what leads by one run may lead by luck
static const double SURPRISE = 2.5;      // standard deviations: 1 run in 80 by chance
static const double DISAGREEMENT = 4.0;  // of two runs, in standard deviations of their difference

void tune_begin(const TuneResult *result, const TuneOptions *options, Arena *arena, Tuning *tuning) {
    const int top = options->top, count = top > 0 && top < result->entry_count ? top : result->entry_count;
    *tuning = (Tuning){.request = result->request,
                       .options = *options,
                       .shapes = ARENA_ARRAY(arena, TuneShape, count),
                       .shape_count = count};
    for (int i = 0; i < count; i++) {
        tuning->shapes[i] = (TuneShape){.prediction = &result->entries[i], .place = i + 1};
    }
}

const TuneStep *tune_last(const Tuning *tuning) {
    return tuning->step_count > 0 ? &tuning->steps[tuning->step_count - 1] : &tuning->begin;
}

// ------------------------------------------------------------------------------------- what follows from the runs

// The runs that ended well; `but` one, -1 = all of them.
static int runs_of(const Tuning *tuning, int but, Arena *arena, DriftRun **runs) {
    int count = 0;
    *runs = ARENA_ARRAY(arena, DriftRun, tuning->step_count + 1);
    for (int i = 0; i < tuning->step_count; i++) {
        const TuneRun *run = &tuning->steps[i].run;
        if (!run->failure && i != but) {
            (*runs)[count++] = (DriftRun){run->shape, log(run->step_s), run->at_s, run->own_sd};
        }
    }
    return count;
}

// As soon as the last one is over.
static double next_at_s(const Tuning *tuning) {
    const TuneRun *last = &tune_last(tuning)->run;
    return tuning->step_count > 0 ? last->at_s + last->wall_s : 0;
}

// Of a shape's measured log time relative to the mean of all that ran: common effects belong to no shape.
static double sd_of_contrast(const Drift *drift, int shape, int used) {
    double own = 0, all = 0;
    for (int i = 0; i < drift->shapes; i++) {
        own += drift->covariance[shape * drift->shapes + i] / used;
        for (int j = 0; j < drift->shapes; j++) {
            all += drift->covariance[i * drift->shapes + j] / used / used;
        }
    }
    return sqrt(fmax(drift->covariance[shape * drift->shapes + shape] - 2 * own + all, 0));
}

static void note_contrasts(Tuning *tuning, const Drift *drift) {
    int used = 0;
    for (int i = 0; i < tuning->shape_count; i++) {
        used += tuning->shapes[i].runs > 0;
    }
    for (int i = 0; i < tuning->shape_count; i++) {
        TuneShape *shape = &tuning->shapes[i];
        shape->measured_sd = shape->runs > 0 ? sd_of_contrast(drift, i, used) : 0;
    }
}

// What the machine did is taken out of what was measured.
static Status take_drift_out(Tuning *tuning, Arena *arena, Drift *drift, Error *error) {
    DriftRun *runs;
    const int count = runs_of(tuning, -1, arena, &runs);
    TRY(drift_learn(runs, count, tuning->shape_count, next_at_s(tuning), arena, drift, error));
    tuning->law = drift->law;
    int at = 0;
    for (int i = 0; i < tuning->shape_count; i++) {
        tuning->shapes[i].runs = 0;
    }
    for (int i = 0; i < tuning->step_count; i++) {
        TuneRun *run = &tuning->steps[i].run;
        if (!run->failure) {
            run->steady_s = run->step_s * exp(-drift->effect[at++]);
            tuning->shapes[run->shape].runs++;
            tuning->shapes[run->shape].measured_s = exp(drift->measured[run->shape]);
        }
    }
    note_contrasts(tuning, drift);
    return STATUS_OK;
}

// A shape's only run lies far from what all other runs say of it and of that time.
static Status contradicts_others(const Tuning *tuning, const TuneModel *model, const BeliefShape *shapes, int shape,
                                 bool *contradicts, Error *error) {
    Arena arena = {0};
    int own = 0;
    while (tuning->steps[own].run.failure || tuning->steps[own].run.shape != shape) {
        own++;
    }
    const TuneRun *run = &tuning->steps[own].run;
    DriftRun *runs;
    const int count = runs_of(tuning, own, &arena, &runs);
    BeliefShape *others = ARENA_ARRAY(&arena, BeliefShape, tuning->shape_count);
    memcpy(others, shapes, (size_t)tuning->shape_count * sizeof *shapes);
    others[shape].runs = 0;
    Drift drift;
    Belief belief;
    Status status = drift_under(&tuning->law, runs, count, tuning->shape_count, run->at_s, &arena, &drift, error);
    status =
        status == STATUS_OK ? belief_form(model, others, tuning->shape_count, &drift, &arena, &belief, error) : status;
    if (status == STATUS_OK) {
        double variance;
        const double expected = belief_next_run(&belief, shape, NULL, &variance);
        *contradicts = fabs(log(run->step_s / shapes[shape].tokens) - expected) > SURPRISE * sqrt(variance);
    }
    arena_free(&arena);
    return status;
}

// Two shapes contradict each other; of three, two may agree against one.
static bool has_others(const Tuning *tuning) {
    int measured = 0;
    for (int i = 0; i < tuning->shape_count; i++) {
        measured += tuning->shapes[i].runs > 0;
    }
    return measured >= 3;
}

static bool two_disagree(const Tuning *tuning, int shape) {
    double logs[2] = {0}, variance = 2 * tuning->law.noise_sd * tuning->law.noise_sd;
    int count = 0;
    for (int i = 0; i < tuning->step_count; i++) {
        const TuneRun *run = &tuning->steps[i].run;
        if (run->shape == shape && !run->failure) {
            logs[count++] = log(run->steady_s);
            variance += run->own_sd * run->own_sd;
        }
    }
    return fabs(logs[0] - logs[1]) > DISAGREEMENT * sqrt(variance);
}

// Runs of a shape do not tell yet what it takes: one that nothing else agrees with, or two that contradict each other.
static Status note_unsettled(Tuning *tuning, const TuneModel *model, const BeliefShape *shapes, Error *error) {
    const bool others = has_others(tuning);
    for (int i = 0; i < tuning->shape_count; i++) {
        TuneShape *shape = &tuning->shapes[i];
        shape->unsettled = !shape->out && shape->runs == 2 && two_disagree(tuning, i);
        if (!shape->out && shape->runs == 1 && others) {
            TRY(contradicts_others(tuning, model, shapes, i, &shape->unsettled, error));
        }
    }
    return STATUS_OK;
}

// ------------------------------------------------------------------------------------------------------- the loop

typedef struct Loop {
    Tuning *tuning;
    const TuneMeans *means;
    Arena *arena;
    size_t capacity;  // of the tuning's steps
    Arena scratch;    // of one round
    Belief belief;    // after the last step; in scratch
} Loop;

// A generator of its own per round, so that a round does not depend on how many numbers earlier ones drew.
static uint64_t round_seed(const Tuning *tuning) {
    return tuning->options.seed * 1000003u + (uint64_t)tuning->step_count * 2u;
}

static void expect(const Loop *loop, int shape, TuneStep *step) {
    const Belief *belief = &loop->belief;
    const double tokens = tune_tokens(&loop->tuning->shapes[shape]);
    double variance;
    const double expected = belief_next_run(belief, shape, NULL, &variance);
    const double reach = gsl_cdf_ugaussian_Pinv(0.9) * sqrt(variance);
    step->expected_s = exp(expected) * tokens;
    step->expected_low_s = step->expected_s * exp(-reach);
    step->expected_high_s = step->expected_s * exp(reach);
}

static void note_belief(Loop *loop, const BeliefShape *believed, const Outlook *outlook) {
    const Belief *belief = &loop->belief;
    const double reach = gsl_cdf_ugaussian_Pinv(0.9);
    for (int i = 0; i < belief->count; i++) {
        TuneShape *shape = &loop->tuning->shapes[i];
        const double tokens = tune_tokens(shape), sd = sqrt(belief->covariance[i * belief->count + i]);
        shape->calibrated_s = exp(believed[i].calibrated) * tokens;
        shape->low_s = exp(belief->mean[i] - reach * sd) * tokens;
        shape->high_s = exp(belief->mean[i] + reach * sd) * tokens;
        shape->good = outlook->good[i];
        shape->best = outlook->best[i];
    }
}

static void choose_next(Loop *loop, const Outlook *outlook, TuneStep *step) {
    const Tuning *tuning = loop->tuning;
    step->next = outlook_next(&loop->belief, outlook, round_seed(tuning), &loop->scratch, &step->gain);
    step->why = TUNE_TELLS_MOST;
    for (int i = 0; i < tuning->shape_count; i++) {
        if (tuning->shapes[i].unsettled) {
            step->next = i;
            step->why = TUNE_UNSETTLED;
            return;
        }
    }
    if (outlook->winner >= 0 && outlook->probability >= tuning->options.probability) {
        const bool proven = tuning->shapes[outlook->winner].runs >= PROOF;
        step->next = proven ? -1 : outlook->winner;
        step->why = proven ? TUNE_TELLS_MOST : TUNE_UNPROVEN;
    }
}

// What is believed after the steps so far.
static Status believe(Loop *loop, TuneStep *step, Error *error) {
    Tuning *tuning = loop->tuning;
    const int count = tuning->shape_count;
    arena_reset(&loop->scratch);
    BeliefShape *shapes = ARENA_ARRAY(&loop->scratch, BeliefShape, count);
    TuneModel model = {0};
    Drift drift;
    const char *learnt = NULL;
    TRY(take_drift_out(tuning, &loop->scratch, &drift, error));
    TRY(loop->means->learn(loop->means->state, tuning, &model, shapes, &learnt, error));
    step->learnt = learnt ? arena_text(loop->arena, learnt) : NULL;
    for (int i = 0; i < count; i++) {
        const TuneShape *shape = &tuning->shapes[i];
        shapes[i].runs = shape->runs;
        shapes[i].tokens = tune_tokens(shape);
        shapes[i].out = shape->out != NULL;
    }
    TRY(belief_form(&model, shapes, count, &drift, &loop->scratch, &loop->belief, error));
    TRY(note_unsettled(tuning, &model, shapes, error));
    Outlook outlook;
    TRY(outlook_take(&loop->belief, tuning->options.tolerance, round_seed(tuning), &loop->scratch, &outlook, error));
    note_belief(loop, shapes, &outlook);
    step->winner = outlook.winner;
    step->probability = outlook.probability;
    step->regret = outlook.regret;
    step->entropy = outlook.entropy;
    choose_next(loop, &outlook, step);
    return STATUS_OK;
}

static Status take_in(Loop *loop, const TuneRun *run, Error *error) {
    Tuning *tuning = loop->tuning;
    tuning->steps =
        arena_grow(loop->arena, tuning->steps, (size_t)tuning->step_count, &loop->capacity, sizeof *tuning->steps);
    TuneStep *step = &tuning->steps[tuning->step_count];
    *step = (TuneStep){.run = *run, .because = tune_last(tuning)->why};
    expect(loop, run->shape, step);
    tuning->step_count++;
    tuning->known += run->known;
    tuning->runs += !run->known;
    tuning->failures += run->failure != NULL;
    tuning->wall_s += run->known ? 0 : run->wall_s;
    if (run->failure) {
        tuning->shapes[run->shape].out = run->failure;
    }
    TRY(believe(loop, step, error));
    if (loop->means->report) {
        loop->means->report(loop->means->state, tuning, step);
    }
    return STATUS_OK;
}

static bool is_over(const Tuning *tuning, TuneStop *stop) {
    const TuneOptions *options = &tuning->options;
    const TuneStep *last = tune_last(tuning);
    if (last->winner < 0) {
        *stop = TUNE_NONE_LEFT;
    } else if (last->next < 0) {
        *stop = TUNE_CERTAIN;
    } else if (options->max_runs > 0 && tuning->runs >= options->max_runs) {
        *stop = TUNE_MAX_RUNS;
    } else if (options->max_time_s > 0 && tuning->wall_s >= options->max_time_s) {
        *stop = TUNE_MAX_TIME;
    } else {
        return false;
    }
    return true;
}

static Status go_on(Loop *loop, Error *error) {
    Tuning *tuning = loop->tuning;
    const TuneMeans *means = loop->means;
    while (!is_over(tuning, &tuning->stop)) {
        if (!means->run) {
            tuning->stop = TUNE_LEFT;
            return STATUS_OK;
        }
        TuneRun run = {0};
        TRY(means->run(means->state, tuning, tune_last(tuning)->next, &run, error));
        TRY(take_in(loop, &run, error));
        FAIL_IF(means->cancelled(means->state), error, STATUS_ENVIRONMENT, TUNE_INTERRUPTED);
    }
    return STATUS_OK;
}

Status tune_run(Tuning *tuning, const TuneMeans *means, Arena *arena, Error *error) {
    Loop loop = {.tuning = tuning, .means = means, .arena = arena};
    TuneRun *known = NULL;
    int count = 0;
    if (means->recall) {
        TRY(means->recall(means->state, tuning, &known, &count, error));
    }
    tuning->begin = (TuneStep){.run.shape = -1};
    Status status = believe(&loop, &tuning->begin, error);
    if (status == STATUS_OK && means->report) {
        means->report(means->state, tuning, &tuning->begin);
    }
    for (int i = 0; i < count && status == STATUS_OK; i++) {
        status = take_in(&loop, &known[i], error);
    }
    status = status == STATUS_OK ? go_on(&loop, error) : status;
    arena_free(&loop.scratch);
    return status;
}

const TuneShape *tune_winner(const Tuning *tuning) {
    const TuneStep *last = tune_last(tuning);
    return last->winner >= 0 ? &tuning->shapes[last->winner] : NULL;
}
