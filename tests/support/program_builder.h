// Hand-made StepPrograms for tests: name buffers, lanes and groups, then tasks in issue order with what they access,
// wait for and record. The mesh is one rank and the target a plain row unless the test changes program fields
// afterwards.

#pragma once

#include "sim/step/step.h"

typedef struct ProgramBuilder {
    Arena *arena;
    StepProgram program;
    size_t buffer_capacity, task_capacity, operand_capacity, event_capacity, event_ref_capacity, segment_capacity;
    size_t lane_capacity, group_capacity;
    EventRef waits[32], records[32];  // of the task being described
    int wait_count, record_count;
    int32_t open[STEP_MAX_DEPTH];  // loop segments
    int depth;
    bool in_task, in_tasks;
} ProgramBuilder;

// layers: the bound that layer guards refer to.
ProgramBuilder builder_begin(Arena *arena, int layers);

int32_t builder_buffer(ProgramBuilder *builder, const char *name, BufferRole role, int slots, int64_t slot_bytes);
int32_t builder_persistent(ProgramBuilder *builder, const char *name, BufferRole role, int slots, int64_t slot_bytes);
int16_t builder_lane(ProgramBuilder *builder, const char *name, int communicator);
int16_t builder_group(ProgramBuilder *builder, const char *name, AxisMask axes, int size);
int32_t builder_event(ProgramBuilder *builder, int32_t buffer, int16_t lane, bool write);

void builder_loop(ProgramBuilder *builder, SegmentKind kind, const char *name, int first, int count, int step);
void builder_end(ProgramBuilder *builder);  // of the innermost loop

// Starts the description of the next task; the calls below add to it. Returned task pointers die with the next call.
Task *builder_task(ProgramBuilder *builder, const char *name, TaskKind kind, int16_t lane, Phase phase);
void builder_touch(ProgramBuilder *builder, Access access, int32_t buffer);  // slot 0, whole
// Slot layer + offset, whole.
void builder_touch_layer(ProgramBuilder *builder, Access access, int32_t buffer, int offset);
void builder_touch_part(ProgramBuilder *builder, Access access, BufferRef ref);
void builder_wait(ProgramBuilder *builder, int32_t event, int layer_scale, int layer_offset);
void builder_record(ProgramBuilder *builder, int32_t event, int layer_scale, int layer_offset);
void builder_wait_at(ProgramBuilder *builder, int32_t event, SlotIndex index);
void builder_record_at(ProgramBuilder *builder, int32_t event, SlotIndex index);

// The finished program; it lives in the arena and in *builder.
StepProgram *builder_program(ProgramBuilder *builder);
