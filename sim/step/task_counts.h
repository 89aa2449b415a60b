// How often each task of a program runs in a step.

#pragma once

#include "sim/step/step.h"

// counts has program->task_count rows.
void step_task_counts(const StepProgram *program, int64_t *counts);
