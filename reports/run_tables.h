// The tables of a run that several reports print.

#pragma once

#include <stdio.h>

#include "autotune/run_record.h"

Status table_run_steps(const RunRecord *run, FILE *out, Error *error);
Status table_run_tasks(const RunRecord *run, FILE *out, Error *error);
Status table_run_stages(const RunRecord *run, FILE *out, Error *error);  // nothing without a pipeline

// What the two times of a collective are.
void table_waiting(FILE *out);
