// The log and the tables of `ndtune tune`. The log is written while the session runs, so its columns are as wide as the
// widest mesh of the session.

#include <math.h>
#include <string.h>

#include "reports/schemas.h"
#include "reports/tuning.h"
#include "reports/words.h"
#include "sim/base/text.h"

static int mesh_width(const Tuning *tuning) {
    char words[WORDS_BYTES];
    int width = (int)strlen("shape");
    for (int i = 0; i < tuning->shape_count; i++) {
        const int length = (int)strlen(words_mesh(&tuning->shapes[i].prediction->plan.mesh, words));
        width = length > width ? length : width;
    }
    return width;
}

static const char *mesh_at(const Tuning *tuning, int shape, char out[WORDS_BYTES]) {
    if (shape < 0) {
        return "-";
    }
    return words_mesh(&tuning->shapes[shape].prediction->plan.mesh, out);
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

static const char *next_text(const Tuning *tuning, const TuneStep *step, char out[2 * WORDS_BYTES]) {
    char words[WORDS_BYTES];
    if (step->next < 0) {
        return "-";
    }
    if (step->why == TUNE_TELLS_MOST) {
        snprintf(out, 2 * WORDS_BYTES, "%s, %.2f bit of %.2f", mesh_at(tuning, step->next, words), step->gain,
                 step->entropy);
    } else {
        snprintf(out, 2 * WORDS_BYTES, "%s, %s", mesh_at(tuning, step->next, words), tune_why_names[step->why]);
    }
    return out;
}

void table_tuning_step(const Tuning *tuning, const TuneStep *step, FILE *out) {
    char shape[WORDS_BYTES], winner[WORDS_BYTES], expected[WORDS_BYTES], measured[TEXT_UNIT_BYTES];
    char next[2 * WORDS_BYTES];
    const int mesh = mesh_width(tuning);
    const TuneRun *run = &step->run;
    const bool first = run->shape < 0;
    fprintf(out, "%4d  %-*s  %-12s  %-31s  %-9s  %-20s  %-*s  %5.2f  %s\n", tuning->step_count, mesh,
            mesh_at(tuning, run->shape, shape),
            first        ? "-"
            : run->known ? "known"
                         : tune_why_names[step->because],
            first ? "-" : words_between(step->expected_s, step->expected_low_s, step->expected_high_s, expected),
            first          ? "-"
            : run->failure ? "failed"
                           : text_seconds(measured, run->step_s),
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
    char words[WORDS_BYTES], text[TEXT_UNIT_BYTES];
    if (winner) {
        fprintf(out, "\nBest: %s", words_mesh_options(&winner->prediction->plan.mesh, words));
        if (winner->runs > 0) {
            fprintf(out, ", measured %s in %d run%s", text_seconds(text, winner->measured_s), winner->runs,
                    winner->runs == 1 ? "" : "s");
        } else {
            fprintf(out, ", which never ran");
        }
        fprintf(out, "\n  within %g %% of the fastest with probability %.2f: %s\n", 100 * tuning->options.tolerance,
                last->probability, tune_stop_words[tuning->stop]);
        fprintf(out, "  it is expected to be %.1f %% slower than the fastest\n", 100 * last->regret);
        if (winner->place > 1) {
            fprintf(out, "  predicted in place %d; %s was predicted best\n", winner->place,
                    words_mesh(&tuning->shapes[0].prediction->plan.mesh, words));
        }
    } else {
        fprintf(out, "\nNo shape is left\n");
    }
    fprintf(out, "  %d run%s in %s", tuning->runs, tuning->runs == 1 ? "" : "s", text_seconds(text, tuning->wall_s));
    if (tuning->known > 0) {
        fprintf(out, ", %d more known before (--no-cache begins without them)", tuning->known);
    }
    fprintf(out, "\n");
}

Status table_tuning(const Tuning *tuning, FILE *out, Error *error) {
    fprintf(out, "\n");
    TRY(record_table(&schema_tune_shapes, tuning->shapes, tuning->shape_count, out, error));
    char words[WORDS_BYTES];
    for (int i = 0; i < tuning->shape_count; i++) {
        const TuneShape *shape = &tuning->shapes[i];
        if (shape->out) {
            fprintf(out, "%s is out: %s\n", words_mesh(&shape->prediction->plan.mesh, words), shape->out);
        }
    }
    print_winner(tuning, out);
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the result could not be written") : STATUS_OK;
}
