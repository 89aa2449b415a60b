// What the planner finds before it looks at sizes: which buffers share bytes, the places of their slots, and which of
// their slots are alive together. Programs of one structure have it in common.

#pragma once

#include "sim/base/error.h"
#include "sim/memory/conflicts.h"
#include "sim/memory/slot_places.h"
#include "sim/memory/structure.h"

typedef struct PlanShape {
    int32_t count;              // of the buffers that share bytes
    int32_t *buffers;           // which these are
    int32_t *lifetime, *birth;  // of each of them (layout.h)
    SlotPlaces places;          // of all buffers
    ConflictShape conflicts;    // of those that share
} PlanShape;

// The shape comes from arena, what it is found with from scratch. INTERNAL when an operand leaves its slot.
Status plan_shape_find(const StepProgram *program, Arena *arena, Arena *scratch, PlanShape *shape, Error *error);

// Shapes by structure; "PlanShapes s = {0}" is empty. Forgotten once they exceed PLAN_SHAPES_BYTES.
enum { PLAN_SHAPES_BYTES = 64 << 20 };

typedef struct PlanShapes {
    ByStructure by;
    Arena scratch;
} PlanShapes;

// *shape is the collection's, until the next call.
Status plan_shapes_find(PlanShapes *shapes, const StepProgram *program, const PlanShape **shape, Error *error);
void plan_shapes_free(PlanShapes *shapes);
