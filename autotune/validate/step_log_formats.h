// Inside the step logs: a format is a function and a row of the table in step_log.c.

#pragma once

#include "autotune/validate/step_log.h"

// log->format stays NULL where the text is of another format.
void step_log_trainer_state(const char *text, double tokens_per_rank, Arena *arena, StepLog *log);
