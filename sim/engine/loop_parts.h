// Which simulated ranks a loop joins: two are in one part when collectives of the loop's tasks connect them, directly
// or through others. Parts do not notice each other while all of them are inside the loop. Private to sim/engine.

#pragma once

#include "sim/engine/engine_program.h"
#include "sim/engine/rank_classes.h"

enum { LOOP_MAX_PARTS = 16 };  // any more are merged, which is always correct and only skips less

typedef struct LoopParts {
    int32_t count;
    int32_t *of_actor;
    int32_t marker[LOOP_MAX_PARTS];  // the actor whose compute lane marks the part's progress
} LoopParts;

// One row per segment; rows of segments that are no loop are empty. observed: marks the part that it is in.
LoopParts *loop_parts_find(const EngineProgram *program, const RankClasses *classes, int32_t observed, Arena *arena);
