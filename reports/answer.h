// An answer in each of the output formats.

#pragma once

#include <stdio.h>

#include "sim/base/error.h"

typedef Status (*Renderer)(const void *answer, FILE *out, Error *error);

typedef struct Answer {
    Renderer table, json, csv, github;  // NULL where the format is not offered
} Answer;
