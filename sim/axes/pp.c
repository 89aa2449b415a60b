// Ranks that hold different layers, one stage of the model each, and pass micro-batches on: pipeline parallelism.

#include "sim/axes/axes.h"

const AxisRow axis_pp = {
    .number = 4,
    .definition = "stages that hold different layers and pass micro-batches on (pipeline parallelism)",
    .as_option = "ndtune predict --mesh pp=4,dp_shard=2 is one shape; a search tries all of targets that have stages",
    .words = {{"pipeline", "did you mean pp?", NULL}, {"stages", "did you mean pp?", NULL}},
};
