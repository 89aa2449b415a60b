// Ranks that cut each layer's matrices between them: tensor parallelism.

#include "sim/axes/axes.h"

const AxisRow axis_tp = {
    .number = 3,
    .definition = "ranks that cut each layer between them (tensor parallelism)",
    .as_option = "ndtune predict --mesh dp_shard=4,tp=2 is one shape; --max-tp N bounds a search",
    .words = {{"tensor", "did you mean tp?", NULL}},
};
