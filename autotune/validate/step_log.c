// Logs of lines, one row per format: an extended regular expression with the quantity as its second group. Sources: the
// print statements of torchtitan 0.2 (components/metrics.py), Megatron-LM (training_log), nanotron (LoggerWriter, which
// shortens numbers: 3.05K), transformers 4.57 (Trainer's summary; its progress bar is tqdm's, which smooths over some
// steps).

#include "autotune/validate/step_log.h"

#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/validate/step_log_formats.h"

typedef enum { SECONDS, MILLISECONDS, TOKENS_PER_S, STEPS_PER_S, BAR } Quantity;

typedef struct Format {
    const char *name, *pattern;  // group 2 is the number, group 4 its unit where there is one
    Quantity quantity;
    bool average;
} Format;

#define NUMBER "([0-9][0-9,]*\\.?[0-9]*([eE][-+]?[0-9]+)?)"
static const Format formats[] = {
    {"step_time=", "step[_ ]time(_s)?[\"']?[ =:]+" NUMBER " *(ms|s)?", SECONDS, false},
    {"Megatron-LM", "elapsed time per iteration \\(ms\\)(): *" NUMBER "()", MILLISECONDS, false},
    {"nanotron", "elapsed_time_per_iteration_ms(): *" NUMBER "([KM])?", MILLISECONDS, false},
    {"torchtitan", "step: *[0-9]+ .*tps(): *" NUMBER "()", TOKENS_PER_S, false},
    {"HF Trainer, progress bar", "[0-9]+/[0-9]+ \\[[0-9:]+<[^,]*(), *" NUMBER "(s/it|it/s)", BAR, false},
    {"HF Trainer, summary", "['\"]train_steps_per_second['\"]():? *" NUMBER "()", STEPS_PER_S, true},
};
enum { FORMATS = sizeof formats / sizeof formats[0], GROUPS = 5, LINE_BYTES = 4096 };

const char *step_log_formats(void) {
    return "step_time=SECONDS (or ms with the unit behind it), torchtitan (tps:), Megatron-LM (elapsed time per "
           "iteration (ms):), nanotron (elapsed_time_per_iteration_ms:), HF Trainer (its progress bar, else "
           "train_steps_per_second; trainer_state.json of a run that ended)";
}

// "12,345.6" as a number.
static double number_of(const char *text, regmatch_t match) {
    char digits[64];
    size_t used = 0;
    for (regoff_t i = match.rm_so; i < match.rm_eo && used + 1 < sizeof digits; i++) {
        if (text[i] != ',') {
            digits[used++] = text[i];
        }
    }
    digits[used] = '\0';
    return strtod(digits, NULL);
}

static double seconds_of(const Format *format, double number, const char *unit, size_t unit_length,
                         double tokens_per_rank) {
    const bool thousands = unit_length == 1 && *unit == 'K', millions = unit_length == 1 && *unit == 'M';
    switch (format->quantity) {
    case SECONDS:
        return unit_length == 2 ? number * 1e-3 : number;
    case MILLISECONDS:
        return number * 1e-3 * (thousands ? 1e3 : millions ? 1e6 : 1);
    case TOKENS_PER_S:
        return number > 0 ? tokens_per_rank / number : 0;
    case STEPS_PER_S:
        return number > 0 ? 1 / number : 0;
    case BAR:
        return *unit == 's' ? number : number > 0 ? 1 / number : 0;
    }
    return 0;
}

static void read_line(const Format *format, const regex_t *regex, const char *line, double tokens_per_rank,
                      Arena *arena, size_t *capacity, StepLog *log) {
    regmatch_t match[GROUPS];
    if (regexec(regex, line, GROUPS, match, 0) != 0) {
        return;
    }
    const bool has_unit = match[4].rm_so >= 0;
    const double seconds = seconds_of(format, number_of(line, match[2]), has_unit ? line + match[4].rm_so : "",
                                      has_unit ? (size_t)(match[4].rm_eo - match[4].rm_so) : 0, tokens_per_rank);
    if (seconds > 0 && isfinite(seconds)) {
        log->step_s = arena_grow(arena, log->step_s, (size_t)log->count, capacity, sizeof *log->step_s);
        log->step_s[log->count++] = seconds;
    }
}

static void read_format(const Format *format, const char *text, double tokens_per_rank, Arena *arena, StepLog *log) {
    regex_t regex;
    size_t capacity = 0;
    *log = (StepLog){.average = format->average};
    if (regcomp(&regex, format->pattern, REG_EXTENDED) != 0) {
        return;
    }
    char line[LINE_BYTES];
    for (const char *p = text; *p;) {
        const size_t length = strcspn(p, "\r\n");
        const size_t kept = length < sizeof line ? length : sizeof line - 1;
        memcpy(line, p, kept);
        line[kept] = '\0';
        read_line(format, &regex, line, tokens_per_rank, arena, &capacity, log);
        p += length + (p[length] != '\0');
    }
    regfree(&regex);
    log->format = log->count > 0 ? format->name : NULL;
}

// Formats that are no lines.
static void (*const files[])(const char *text, double tokens_per_rank, Arena *arena, StepLog *log) = {
    step_log_trainer_state,
};

void step_log_read(const char *text, double tokens_per_rank, Arena *arena, StepLog *log) {
    *log = (StepLog){0};
    for (size_t i = 0; i < sizeof files / sizeof files[0] && !log->format; i++) {
        files[i](text, tokens_per_rank, arena, log);
    }
    for (int i = 0; i < FORMATS && !log->format; i++) {
        read_format(&formats[i], text, tokens_per_rank, arena, log);
    }
}
