// Reports of ndtune check, for people, programs and the annotations of GitHub.

#pragma once

#include <stdio.h>

#include "autotune/check/check.h"

Status table_check(const CheckReport *report, FILE *out, Error *error);
Status json_check(const CheckReport *report, FILE *out, Error *error);  // ndtune.check/1
Status csv_check(const CheckReport *report, FILE *out, Error *error);
// A workflow command a note: "::error file=train.yaml,line=7::sentence".
Status github_check(const CheckReport *report, FILE *out, Error *error);

Status table_check_pair(const CheckPair *pair, FILE *out, Error *error);
Status json_check_pair(const CheckPair *pair, FILE *out, Error *error);  // ndtune.check-pair/1
Status csv_check_pair(const CheckPair *pair, FILE *out, Error *error);
Status github_check_pair(const CheckPair *pair, FILE *out, Error *error);
