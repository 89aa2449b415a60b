// What validate found: the ranking beside what was measured, where the time went, kinds of tasks, agreement.

#pragma once

#include <stdio.h>

#include "autotune/validate/validate.h"

Status table_validation(const Validation *validation, FILE *out, Error *error);
Status json_validation(const Validation *validation, FILE *out, Error *error);  // ndtune.validate/1
Status csv_validation(const Validation *validation, FILE *out, Error *error);   // a line per row
