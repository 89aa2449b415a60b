// Step times from the output of a training framework.

#pragma once

#include <stdbool.h>

#include "sim/base/arena.h"

typedef struct StepLog {
    const char *format;  // "step_time="; NULL = no line of any known format
    double *step_s;      // one per line that told one, in order
    int count;
    bool average;         // one number for the whole run, its warm-up included
    const char *nothing;  // why a log of a known format holds no step time; NULL = it holds some
} StepLog;

// tokens_per_rank: of one step, for frameworks that print tokens per second and device. Lines end with \n or \r. Files
// of a form of their own come first, then the first format of the table that matches any line.
void step_log_read(const char *text, double tokens_per_rank, Arena *arena, StepLog *log);

// The formats as text, for the manual page and for the message when nothing was found.
enum { STEP_LOG_FORMATS_BYTES = 1024 };
char *step_log_formats(char out[STEP_LOG_FORMATS_BYTES]);
