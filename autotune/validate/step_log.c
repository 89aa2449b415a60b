// Line-based logs, by the patterns of the frameworks (sim/frameworks) and a generic one for any program.

#include "autotune/validate/step_log.h"

#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/validate/step_log_formats.h"
#include "sim/frameworks/framework.h"

static const LogPattern of_any_program = {
    .name = "step_time=", .pattern = "step[_ ]time(_s)?[\"']?[ =:]+" LOG_NUMBER " *(ms|s)?", .quantity = STEP_SECONDS};

enum { GROUPS = 5, LINE_BYTES = 4096 };

// The n-th pattern in the order in which they are tried; NULL past the last.
static const LogPattern *pattern_at(int n) {
    int count = 0, at = 1;
    const Framework *const *frameworks = framework_list(&count);
    if (n == 0) {
        return &of_any_program;
    }
    for (int anybodys = 0; anybodys < 2; anybodys++) {
        for (int i = 0; i < count; i++) {
            for (const LogPattern *row = frameworks[i]->logs; row && row->name; row++) {
                if (row->anybodys == anybodys && at++ == n) {
                    return row;
                }
            }
        }
    }
    return NULL;
}

static const Framework *framework_of_pattern(const LogPattern *pattern) {
    int count = 0;
    const Framework *const *frameworks = framework_list(&count);
    for (int i = 0; i < count; i++) {
        for (const LogPattern *row = frameworks[i]->logs; row && row->name; row++) {
            if (row == pattern) {
                return frameworks[i];
            }
        }
    }
    return NULL;
}

char *step_log_formats(char out[STEP_LOG_FORMATS_BYTES]) {
    size_t used = (size_t)snprintf(out, STEP_LOG_FORMATS_BYTES, "step_time=SECONDS (or ms with the unit behind it)");
    const LogPattern *pattern;
    for (int n = 1; (pattern = pattern_at(n)) && used < STEP_LOG_FORMATS_BYTES; n++) {
        if (pattern->words) {
            used += (size_t)snprintf(out + used, STEP_LOG_FORMATS_BYTES - used, ", %s (%s)",
                                     framework_of_pattern(pattern)->log_name, pattern->words);
        }
    }
    return out;
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

static double seconds_of(const LogPattern *format, double number, const char *unit, size_t unit_length,
                         double tokens_per_rank) {
    const bool thousands = unit_length == 1 && *unit == 'K', millions = unit_length == 1 && *unit == 'M';
    switch (format->quantity) {
    case STEP_SECONDS:
        return unit_length == 2 ? number * 1e-3 : number;
    case STEP_MILLISECONDS:
        return number * 1e-3 * (thousands ? 1e3 : millions ? 1e6 : 1);
    case STEP_TOKENS_PER_S:
        return number > 0 ? tokens_per_rank / number : 0;
    case STEP_STEPS_PER_S:
        return number > 0 ? 1 / number : 0;
    case STEP_BAR:
        return *unit == 's' ? number : number > 0 ? 1 / number : 0;
    }
    return 0;
}

static void read_line(const LogPattern *format, const regex_t *regex, const char *line, double tokens_per_rank,
                      Arena *arena, size_t *capacity, StepLog *log) {
    regmatch_t match[GROUPS];
    if (regexec(regex, line, GROUPS, match, 0) != 0) {
        return;
    }
    const bool has_unit = match[4].rm_so >= 0;
    const double seconds = seconds_of(format, number_of(line, match[2]), has_unit ? line + match[4].rm_so : "",
                                      has_unit ? (size_t)(match[4].rm_eo - match[4].rm_so) : 0, tokens_per_rank);
    if (seconds > 0 && isfinite(seconds)) {
        ARENA_PUSH(arena, log->step_s, log->count, capacity) = seconds;
    }
}

static void read_format(const LogPattern *format, const char *text, double tokens_per_rank, Arena *arena,
                        StepLog *log) {
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
    const LogPattern *pattern;
    for (int n = 0; !log->format && (pattern = pattern_at(n)); n++) {
        read_format(pattern, text, tokens_per_rank, arena, log);
    }
}
