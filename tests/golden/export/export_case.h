// Input for the tests of exported files: a plan of each format, with predictions made by hand, so that no change of the
// cost model affects a file.

#pragma once

#include "reports/export/export.h"
#include "tests/support/sizes.h"

typedef struct Golden {
    const char *file, *format, *target, *model;
    TrainPlan plan;
} Golden;

#define PLAN(r, s, c, t, ...)                                                                                          \
    { .mesh = {.size = SIZES(r, s, c, t)}, .seq = 4096, .precision = DTYPE_BF16, .virtual_stages = 1, __VA_ARGS__ }
#define STAGES(p, s, t, ...)                                                                                           \
    {                                                                                                                  \
        .mesh = {.size = {[0 ... AXIS_COUNT - 1] = 1, [AXIS_PP] = p, [AXIS_DP_SHARD] = s, [AXIS_TP] = t}},             \
        .seq = 4096, .precision = DTYPE_BF16, .virtual_stages = 1, __VA_ARGS__                                         \
    }
#define EXPERTS(s, e, ...)                                                                                             \
    {                                                                                                                  \
        .mesh = {.size = {[0 ... AXIS_COUNT - 1] = 1, [AXIS_DP_SHARD] = s, [AXIS_EP] = e}}, .seq = 4096,               \
        .precision = DTYPE_BF16, .zero = 3, .virtual_stages = 1, EAGER_FULL, __VA_ARGS__                               \
    }
#define EAGER_FULL .recompute = RECOMPUTE_FULL, .fused = FUSED_EAGER

extern const Golden goldens[];
extern const int golden_count;

// What a test exports: everything that a file depends on, by hand.
typedef struct Case {
    Arena arena;
    TuneRequest request;
    Target target;  // the table's, except for values that grow with every measured run
    Prediction prediction;
    ExportJob job;
} Case;

void case_fill(Case *made, const char *model, const char *target, const TrainPlan *plan);

// The text of a file, to be freed, or NULL where it is refused.
char *exported(const char *format_name, const Case *from, Error *error);
