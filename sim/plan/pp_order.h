// The order of a pipeline's micro-steps as a plan says it, by name or by a file of actions, and its split of layers.

#pragma once

#include <stdbool.h>
#include <stdint.h>

// The order in which pipeline stages process micro-steps; the orders are in sim/step/schedules. FILE: that of
// the plan's pp_order.
typedef enum {
    PP_1F1B,
    PP_GPIPE,
    PP_INTERLEAVED,
    PP_ZERO_BUBBLE,
    PP_ZBV,
    PP_DUALPIPEV,
    PP_FILE,
    PP_SCHEDULE_COUNT
} PpSchedule;

// Which layers each pipeline stage holds. TARGET: the target's default split. EVEN: equal counts. WEIGHTED: embedding
// and head count as pp_first and pp_last layers. ENDS: the first and the last stage hold these many, the others equal
// counts. CHUNKS: the same for the first and last chunk of layers.
typedef enum { SPLIT_TARGET, SPLIT_EVEN, SPLIT_WEIGHTED, SPLIT_ENDS, SPLIT_CHUNKS, SPLIT_COUNT } PpSplit;

// Chunks of layers that each stage of this schedule has, whatever a plan says; 0: as many as its virtual_stages.
int pp_own_chunks(PpSchedule schedule);

// An order read from a file (sim/step/schedules/order_file.h), for a number of ranks, chunks of layers on each, and
// micro-steps. It outlives the plans that point to it.
struct Schedule;
struct ScheduleAction;
typedef struct PpOrder {
    const char *path;
    const char **lines;  // of each rank: its actions
    uint64_t hash;       // of the lines
    int32_t stages, chunks, micro_steps;
    bool folded, splits;              // as a schedule's
    struct ScheduleAction **actions;  // of each rank
    int32_t *count;
    const struct Schedule *schedule;  // the same as one of sim/step/schedules
} PpOrder;
