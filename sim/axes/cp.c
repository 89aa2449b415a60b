// Ranks that cut each sequence between them: context parallelism, by ring or all-gather.

#include "sim/axes/axes.h"

const AxisRow axis_cp = {
    .number = 2,
    .definition = "ranks that cut each sequence between them (context parallelism, ring attention)",
    .as_option = "ndtune predict --mesh dp_shard=4,cp=2 is one shape; a search tries all",
    .words = {{"context", "did you mean cp?", NULL}},
};
