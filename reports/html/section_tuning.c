// The conclusions of tune: the winner with its probability, the shapes, and the session run by run. Empty where there
// was no session.

#include "reports/format.h"
#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "reports/schemas.h"
#include "sim/base/text.h"

static const char *mesh_at(const Tuning *tuning, int shape, char out[FORMAT_BYTES]) {
    return shape < 0 ? "–" : format_layout(&tuning->shapes[shape].prediction->plan.mesh, out);
}

static void write_winner(const Tuning *tuning, FILE *out) {
    const TuneShape *winner = tune_winner(tuning);
    fputs("<p id=\"tune-winner\"><strong>", out);
    if (winner) {
        markup_format(out, "%s is within %g %% of the fastest with probability %.2f",
                      format_layout(&winner->prediction->plan.mesh, FORMAT_BUFFER), 100 * tuning->options.tolerance,
                      tune_last(tuning)->probability);
    } else {
        fputs("No shape is left", out);
    }
    fputs("</strong>", out);
    markup_format(out, ": %s. ndtune tune took %d run%s in %s", tune_stop_words[tuning->stop], tuning->runs,
                  tuning->runs == 1 ? "" : "s", text_seconds(UNIT_BUFFER, tuning->wall_s));
    markup_format(out, ", %d of them failed, %d more were known before.", tuning->failures, tuning->known);
    fputs("</p>\n", out);
}

static void write_out(const void *what, FILE *out) {
    const Tuning *tuning = what;
    char words[FORMAT_BYTES];
    for (int i = 0; i < tuning->shape_count; i++) {
        if (tuning->shapes[i].out) {
            fprintf(out, "%s is out: %s\n", mesh_at(tuning, i, words), tuning->shapes[i].out);
        }
    }
}

void section_tuning(const HtmlReport *report, FILE *out) {
    const Tuning *tuning = report->tuning;
    if (tuning) {
        write_winner(tuning, out);
        table_records("table-tuning", "What is believed of each shape after the last run", &schema_tune_shapes,
                      tuning->shapes, tuning->shape_count, out);
        markup_lines(write_out, tuning, out);
        const RecordSchema steps = record_about(&schema_tune_steps, tuning);
        fputs("<details><summary>Run by run</summary>\n", out);
        table_records("table-tuning-runs", "The runs of the session in order", &steps, tuning->steps,
                      tuning->step_count, out);
        fputs("</details>\n", out);
    }
}

// One point per run: the probability of the winner at that time.
json_t *tuning_data(const HtmlReport *report) {
    json_t *steps = json_array();
    for (int i = 0; report->tuning && i < report->tuning->step_count; i++) {
        const TuneStep *step = &report->tuning->steps[i];
        char words[FORMAT_BYTES];
        json_array_append_new(steps, json_pack("{s:i, s:f, s:s}", "run", i + 1, "probability", step->probability,
                                               "winner", mesh_at(report->tuning, step->winner, words)));
    }
    return steps;
}
