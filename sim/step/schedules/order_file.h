// A pipeline order in a file, in the format of PyTorch's pipelining (_dump_csv): one line per rank, one action per
// cell, such as 2F0: forward of stage 2 for micro-batch 0 (B backward, I gradients of inputs, W of weights). Messages,
// gathers and reductions are skipped: the lowering generates its own.

#pragma once

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/step/schedules/schedule.h"

// Every stage works off each chunk and micro-step once, and no stage waits for ever. Errors name line and cell.
Status order_file_read(const char *path, Arena *arena, PpOrder *order, Error *error);

// The same of what a file says.
Status order_text_read(const char *path, const char *text, Arena *arena, PpOrder *order, Error *error);

// The schedule that has this order on all stages; NULL = none.
const Schedule *order_file_schedule(const PpOrder *order, Arena *arena);

// The same, where a plan may name it: one whose stages have several chunks is by its name refused with one.
const Schedule *order_file_named(const PpOrder *order, Arena *arena);
