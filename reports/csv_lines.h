// Writing CSV field by field.

#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/base/error.h"

typedef struct Csv {
    FILE *out;
    bool inside;  // a line is partly written
} Csv;

void csv_header(Csv *csv, const char *names);  // "a,b,c"
void csv_text(Csv *csv, const char *value);    // NULL is empty
void csv_integer(Csv *csv, int64_t value);
void csv_number(Csv *csv, bool known, double value);
void csv_end_line(Csv *csv);
// Fields by kind: s text, d int, I int64_t, n double (NaN is unknown); a '.' at the end ends the line.
void csv_row(Csv *csv, const char *kinds, ...);
static inline double csv_known(bool known, double value) {
    return known ? value : NAN;
}
Status csv_finish(const Csv *csv, Error *error);
