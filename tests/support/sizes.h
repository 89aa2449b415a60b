// Short notation for meshes: sizes and coordinates along dp_replicate, dp_shard, cp and tp. Any other axis is 1, at 0.

#pragma once

#include "sim/axes/mesh.h"

#pragma GCC diagnostic ignored "-Woverride-init"  // one for all, then the four

#define SIZES(replicate, shard, sequence, tensor)                                                                      \
    {                                                                                                                  \
        [0 ... AXIS_COUNT - 1] = 1, [AXIS_DP_REPLICATE] = replicate, [AXIS_DP_SHARD] = shard, [AXIS_CP] = sequence,    \
                            [AXIS_TP] = tensor                                                                         \
    }

#define PLACES(replicate, shard, sequence, tensor)                                                                     \
    { [AXIS_DP_REPLICATE] = replicate, [AXIS_DP_SHARD] = shard, [AXIS_CP] = sequence, [AXIS_TP] = tensor }
