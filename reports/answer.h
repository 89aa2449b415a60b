// An answer in each of the formats in which it may be asked for.

#pragma once

#include <stdio.h>

#include "sim/base/error.h"

typedef Status (*Renderer)(const void *answer, FILE *out, Error *error);

typedef struct Answer {
    Renderer table, json, csv, github;  // NULL where nothing asks for it
} Answer;
