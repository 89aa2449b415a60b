// Reports of ndtune check, for people, programs and GitHub annotations.

#pragma once

#include "autotune/check/check.h"
#include "reports/answer.h"
#include "reports/record.h"

// For GitHub one workflow command per note: "::error file=train.yaml,line=7::sentence".
extern const Answer answer_check;       // CheckReport; ndtune.check/1
extern const Answer answer_check_pair;  // CheckPair; ndtune.check-pair/1

// A differing line; line number 0 and text NULL where a file does not have it.
typedef struct CheckLine {
    const char *key, *before, *after;
    int line_before, line;
    bool alone, priced;
    double slower, more_bytes;
} CheckLine;
extern const RecordSchema schema_check_lines;
