// A small hand-made answer for tests of reports: two entries, two rejections, numbers that add up.

#pragma once

#include "reports/reports.h"

typedef struct Fixture {
    TuneRequest request;
    TuneResult result;
    Prediction entries[2];
    Rejection rejected[2];
    const char *assumptions[1];
} Fixture;

void fixture_fill(Fixture *fixture);

// Runs `print(out)` and gives back what it wrote; the caller frees.
typedef Status (*FixturePrint)(const Fixture *fixture, FILE *out, Error *error);
char *fixture_printed(const Fixture *fixture, FixturePrint print);
