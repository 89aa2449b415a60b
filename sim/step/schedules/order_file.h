// The order of a pipeline in a file, as PyTorch's pipelining writes it (_dump_csv): a line for each rank, in each cell
// an action such as 2F0: forward of stage 2 for micro-batch 0 (B backward, I gradients of inputs, W of weights).
// Messages, gathers and reductions are left out: the lowering has its own.

#pragma once

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/step/schedules/schedule.h"

typedef struct OrderFile {
    int32_t stages, chunks, micro_steps;
    bool folded, splits;       // as Schedule's
    ScheduleAction **actions;  // of each stage
    int32_t *count;
} OrderFile;

// Every stage works off each chunk and micro-step once, and no stage waits for ever. Errors name line and cell.
Status order_file_read(const char *path, Arena *arena, OrderFile *file, Error *error);

// The schedule that has this order on all stages; NULL = none.
const Schedule *order_file_schedule(const OrderFile *file, Arena *arena);
