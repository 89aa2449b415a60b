// trainer_state.json of transformers' Trainer (4.57, trainer_callback.py and speed_metrics): log_history is a list of
// what was logged; the last entry of a run that ended has train_runtime, seconds for the steps that it made: max_steps,
// or fewer where it was stopped early. Intermediate entries hold losses and steps but no time. Not modelled: a run
// resumed from a checkpoint, whose time covers the later steps only.

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "autotune/validate/step_log_formats.h"

// The entry that ends a run, or NULL.
static const json_t *summary_of(const json_t *history) {
    for (size_t i = json_array_size(history); i > 0; i--) {
        const json_t *entry = json_array_get(history, i - 1);
        if (json_is_number(json_object_get(entry, "train_runtime"))) {
            return entry;
        }
    }
    return NULL;
}

void step_log_trainer_state(const char *text, double tokens_per_rank, Arena *arena, StepLog *log) {
    (void)tokens_per_rank;
    *log = (StepLog){0};
    json_t *root = text[strspn(text, " \t\r\n")] == '{' ? json_loads(text, 0, NULL) : NULL;
    const json_t *history = json_object_get(root, "log_history");
    if (json_is_array(history)) {
        const json_t *summary = summary_of(history);
        const json_t *last_step = json_object_get(summary, "step");
        const double steps = json_number_value(last_step ? last_step : json_object_get(root, "max_steps"));
        const double runtime_s = json_number_value(json_object_get(summary, "train_runtime"));
        *log = (StepLog){.format = "HF Trainer, trainer_state.json", .average = true};
        const double step_s = steps > 0 ? runtime_s / steps : 0;
        if (step_s > 0 && isfinite(step_s)) {
            log->step_s = ARENA_ARRAY(arena, double, 1);
            log->step_s[log->count++] = step_s;
        } else {
            log->nothing =
                "a trainer_state.json holds times only once its run has ended (train_runtime): take what the "
                "Trainer printed";
        }
    }
    json_decref(root);
}
