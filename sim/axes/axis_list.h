// The axes from slow to fast: AXIS(symbol, name, role, lenders). An axis is a row here and a file of its name with its
// AxisRow, axis_<name>. Roles and masks are in axes.h; lenders: NONE, or STAGE_RANKS and the like for a borrowed axis.

#pragma once

#define AXIS_LIST(AXIS)                                                                                                \
    AXIS(PP, pp, STAGE, NONE)                                                                                          \
    AXIS(DP_REPLICATE, dp_replicate, REPLICATE, NONE)                                                                  \
    AXIS(DP_SHARD, dp_shard, SHARD, NONE)                                                                              \
    AXIS(CP, cp, SEQUENCE, NONE)                                                                                       \
    AXIS(SP, sp, SEQUENCE, NONE)                                                                                       \
    AXIS(TP, tp, TENSOR, NONE)                                                                                         \
    AXIS(EP, ep, EXPERT, STAGE_RANKS)
