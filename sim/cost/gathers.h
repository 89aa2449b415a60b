// Inside sim/cost: gathers of weights, in which numbers they travel, what of them no kernel hides, and how
// they are copied into place.

#pragma once

#include "sim/cost/cost.h"

// Bytes of a number in a collective's payload: weights that are kept in 8 bits, or 4 and scales of 16, are gathered so.
double gather_number_bytes(const StepProgram *program, const Task *task);

// Of its payload, what a collective sends: stage 3 may gather weights of layers as products read them, where one scale
// is enough for both layouts.
double gather_sent_share(const CostModel *model, const StepProgram *program, const Task *task);

// Of `seconds` of any collective, those in the open: all but where a layer's updated weights are gathered beside the
// next step's forward, which shows what it does not hide at the rate of its products alone. A gather is beside the
// layer before it, so the first is exposed. A chunk's gathers start with the chunk before it, which a group of
// micro-steps goes through (Megatron-LM core 0.5 to 0.15, pipeline_parallel/schedules.py, param_sync_func, with
// --align-param-gather as NeMo and Bridge have it); the first chunk's are hidden by one micro-step, as without chunks.
double gather_open_s(const CostModel *model, const StepProgram *program, const Task *task, double seconds);

// Behind a gather into a flat block, beyond the bytes of its copies: each rank's part of each parameter is one.
double gather_copies_s(const CostModel *model, const StepProgram *program, const Task *task);
