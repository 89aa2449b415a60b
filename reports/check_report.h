// Reports of ndtune check, for people, programs and the annotations of GitHub.

#pragma once

#include <stdio.h>

#include "autotune/check/check.h"
#include "reports/record.h"

Status table_check(const CheckReport *report, FILE *out, Error *error);
Status json_check(const CheckReport *report, FILE *out, Error *error);  // ndtune.check/1
Status csv_check(const CheckReport *report, FILE *out, Error *error);
// A workflow command a note: "::error file=train.yaml,line=7::sentence".
Status github_check(const CheckReport *report, FILE *out, Error *error);

// A line that differs; line numbers 0 and texts NULL where a file does not have it.
typedef struct CheckLine {
    const char *key, *before, *after;
    int line_before, line;
    bool alone, priced;
    double slower, more_bytes;
} CheckLine;
extern const RecordSchema schema_check_lines;
CheckLine *check_pair_lines(const CheckPair *pair, Arena *arena);

Status table_check_pair(const CheckPair *pair, FILE *out, Error *error);
Status json_check_pair(const CheckPair *pair, FILE *out, Error *error);  // ndtune.check-pair/1
Status csv_check_pair(const CheckPair *pair, FILE *out, Error *error);
Status github_check_pair(const CheckPair *pair, FILE *out, Error *error);
