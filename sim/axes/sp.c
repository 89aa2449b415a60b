// Ranks that cut each sequence between them and exchange tokens for heads around attention (Jacobs et al. 2023,
// Ulysses, section 3).

#include "sim/axes/axes.h"

const AxisRow axis_sp = {
    .number = 5,
    .definition = "ranks that cut each sequence between them, and heads inside attention (Ulysses)",
    .as_option = "ndtune predict --mesh dp_shard=4,sp=2 is one shape; a search tries all of targets that have it. "
                 "Megatron's sequence parallelism is --sequence-parallel",
    .run_column = "sp_size",  // sp there is sequence parallelism with tp
    .words = {{"ulysses", "did you mean sp?", NULL}},
};
