// Arrays grow in the arena; waits and records of the current task are kept aside until it is complete, because a task's
// waits and its records must each be one run.

#include "tests/support/program_builder.h"
#include "tests/support/sizes.h"

static const Target plain_target = {.name = "plain", .version = "1", .evidence = "none"};

ProgramBuilder builder_begin(Arena *arena, int layers) {
    ProgramBuilder builder = {.arena = arena};
    builder.program.target = &plain_target;
    builder.program.layers = layers;
    builder.program.model.layers = layers;
    builder.program.plan.mesh = (Mesh){.size = SIZES(1, 1, 1, 1)};
    builder.program.loss_buffer = builder.program.norm_buffer = -1;
    return builder;
}

static void *grow(ProgramBuilder *builder, void *array, int32_t count, size_t *capacity, size_t element_bytes) {
    return arena_grow(builder->arena, array, (size_t)count, capacity, element_bytes);
}

int32_t builder_buffer(ProgramBuilder *builder, const char *name, BufferRole role, int slots, int64_t slot_bytes) {
    StepProgram *program = &builder->program;
    program->buffers =
        grow(builder, program->buffers, program->buffer_count, &builder->buffer_capacity, sizeof(Buffer));
    program->buffers[program->buffer_count] = (Buffer){.name = arena_text(builder->arena, name),
                                                       .role = role,
                                                       .dtype = DTYPE_FP32,
                                                       .slots = slots,
                                                       .slot_bytes = slot_bytes};
    return program->buffer_count++;
}

int32_t builder_persistent(ProgramBuilder *builder, const char *name, BufferRole role, int slots, int64_t slot_bytes) {
    const int32_t buffer = builder_buffer(builder, name, role, slots, slot_bytes);
    builder->program.buffers[buffer].persistent = true;
    return buffer;
}

int16_t builder_lane(ProgramBuilder *builder, const char *name, int communicator) {
    StepProgram *program = &builder->program;
    program->lanes = grow(builder, program->lanes, program->lane_count, &builder->lane_capacity, sizeof(Lane));
    program->lanes[program->lane_count] =
        (Lane){.name = arena_text(builder->arena, name), .communicator = (int16_t)communicator};
    return (int16_t)program->lane_count++;
}

int16_t builder_group(ProgramBuilder *builder, const char *name, AxisMask axes, int size) {
    StepProgram *program = &builder->program;
    program->groups = grow(builder, program->groups, program->group_count, &builder->group_capacity, sizeof(Group));
    program->groups[program->group_count] =
        (Group){.name = arena_text(builder->arena, name), .axes = axes, .size = size};
    return (int16_t)program->group_count++;
}

int32_t builder_event(ProgramBuilder *builder, int32_t buffer, int16_t lane, bool write) {
    StepProgram *program = &builder->program;
    program->events = grow(builder, program->events, program->event_count, &builder->event_capacity, sizeof(Event));
    program->events[program->event_count] = (Event){.buffer = buffer, .lane = lane, .write = write};
    return program->event_count++;
}

static int32_t add_event_refs(ProgramBuilder *builder, const EventRef *refs, int count) {
    StepProgram *program = &builder->program;
    const int32_t first = program->event_ref_count;
    for (int i = 0; i < count; i++) {
        program->event_refs = grow(builder, program->event_refs, program->event_ref_count, &builder->event_ref_capacity,
                                   sizeof(EventRef));
        program->event_refs[program->event_ref_count++] = refs[i];
    }
    return first;
}

static void finish_task(ProgramBuilder *builder) {
    if (!builder->in_task) {
        return;
    }
    Task *task = &builder->program.tasks[builder->program.task_count - 1];
    task->first_wait = add_event_refs(builder, builder->waits, builder->wait_count);
    task->wait_count = builder->wait_count;
    task->first_record = add_event_refs(builder, builder->records, builder->record_count);
    task->record_count = builder->record_count;
    builder->wait_count = builder->record_count = 0;
    builder->in_task = false;
}

static Segment *add_segment(ProgramBuilder *builder, SegmentKind kind, const char *name) {
    StepProgram *program = &builder->program;
    program->segments =
        grow(builder, program->segments, program->segment_count, &builder->segment_capacity, sizeof(Segment));
    Segment *segment = &program->segments[program->segment_count++];
    *segment = (Segment){.kind = kind, .name = arena_text(builder->arena, name), .end = program->segment_count};
    return segment;
}

void builder_loop(ProgramBuilder *builder, SegmentKind kind, const char *name, int first, int count, int step) {
    finish_task(builder);
    Segment *loop = add_segment(builder, kind, name);
    loop->first = first;
    loop->count = count;
    loop->step = step;
    ASSERT(builder->depth < STEP_MAX_DEPTH);
    builder->open[builder->depth++] = builder->program.segment_count - 1;
    builder->in_tasks = false;
}

void builder_end(ProgramBuilder *builder) {
    finish_task(builder);
    builder->program.segments[builder->open[--builder->depth]].end = builder->program.segment_count;
    builder->in_tasks = false;
}

Task *builder_task(ProgramBuilder *builder, const char *name, TaskKind kind, int16_t lane, Phase phase) {
    finish_task(builder);
    StepProgram *program = &builder->program;
    if (!builder->in_tasks) {
        add_segment(builder, SEGMENT_TASKS, "tasks")->first_task = program->task_count;
        builder->in_tasks = true;
    }
    program->segments[program->segment_count - 1].task_count++;
    program->tasks = grow(builder, program->tasks, program->task_count, &builder->task_capacity, sizeof(Task));
    Task *task = &program->tasks[program->task_count++];
    *task = (Task){.name = arena_text(builder->arena, name),
                   .kind = kind,
                   .phase = phase,
                   .lane = lane,
                   .group = -1,
                   .unit = -1,
                   .first_operand = program->operand_count};
    builder->in_task = true;
    return task;
}

void builder_touch_part(ProgramBuilder *builder, Access access, BufferRef ref) {
    StepProgram *program = &builder->program;
    program->operands =
        grow(builder, program->operands, program->operand_count, &builder->operand_capacity, sizeof(Operand));
    program->operands[program->operand_count++] = (Operand){.ref = ref, .access = access};
    program->tasks[program->task_count - 1].operand_count++;
}

void builder_touch(ProgramBuilder *builder, Access access, int32_t buffer) {
    builder_touch_part(
        builder, access,
        (BufferRef){.buffer = buffer, .rank_group = -1, .bytes = builder->program.buffers[buffer].slot_bytes});
}

void builder_touch_layer(ProgramBuilder *builder, Access access, int32_t buffer, int offset) {
    builder_touch_part(builder, access,
                       (BufferRef){.buffer = buffer,
                                   .index = {.layer_scale = 1, .layer_offset = (int16_t)offset},
                                   .rank_group = -1,
                                   .bytes = builder->program.buffers[buffer].slot_bytes});
}

void builder_wait_at(ProgramBuilder *builder, int32_t event, SlotIndex index) {
    ASSERT(builder->wait_count < 32);
    builder->waits[builder->wait_count++] = (EventRef){event, index};
}

void builder_record_at(ProgramBuilder *builder, int32_t event, SlotIndex index) {
    ASSERT(builder->record_count < 32);
    builder->records[builder->record_count++] = (EventRef){event, index};
}

static SlotIndex layer_index(int scale, int offset) {
    return (SlotIndex){.layer_scale = (int16_t)scale, .layer_offset = (int16_t)offset};
}

void builder_wait(ProgramBuilder *builder, int32_t event, int layer_scale, int layer_offset) {
    builder_wait_at(builder, event, layer_index(layer_scale, layer_offset));
}

void builder_record(ProgramBuilder *builder, int32_t event, int layer_scale, int layer_offset) {
    builder_record_at(builder, event, layer_index(layer_scale, layer_offset));
}

StepProgram *builder_program(ProgramBuilder *builder) {
    finish_task(builder);
    return &builder->program;
}
