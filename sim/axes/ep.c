// Ranks that hold different experts, borrowed from dp_shard x cp x tp, of tp first: expert parallelism. What is left of
// those shares each expert (efsdp, edp of experts that tp does not cut).

#include "sim/axes/axes.h"

const AxisRow axis_ep = {
    .number = 6,
    .definition =
        "ranks of dp_shard x cp x tp that hold different experts (expert parallelism); adds none to the world",
    .as_option = "ndtune predict --mesh dp_shard=8,ep=4 is one shape: ep takes its ranks from dp_shard x cp x tp",
    .words = {{"expert", "did you mean ep?", NULL},
              {"expert_parallel", "did you mean ep?", NULL},
              {"edp", "what ep leaves of dp_shard x cp x tp: it follows from the other sizes", NULL},
              {"efsdp", "what ep leaves of dp_shard x cp x tp: it follows from the other sizes", NULL}},
};
