// The programs mirror what lowering makes: events per (buffer, lane, access), waits on the slot that is touched.

#include "tests/unit/sim/memory/examples.h"

#include <string.h>

StepProgram *example_chain(ProgramBuilder *builder, int temporaries) {
    const int16_t compute = builder_lane(builder, "compute", -1);
    const int32_t input = builder_persistent(builder, "input", ROLE_PARAMETER, 1, EXAMPLE_SLOT_BYTES);
    int32_t before = input;
    for (int i = 0; i < temporaries; i++) {
        const int32_t next =
            builder_buffer(builder, arena_format(builder->arena, "t%d", i), ROLE_ACTIVATION, 1, EXAMPLE_SLOT_BYTES);
        builder_task(builder, arena_format(builder->arena, "make t%d", i), TASK_ADD, compute, PHASE_FORWARD);
        builder_touch(builder, ACCESS_READ, before);
        builder_touch(builder, ACCESS_WRITE, next);
        before = next;
    }
    const int32_t loss = builder_buffer(builder, "loss", ROLE_RUNTIME, 1, STEP_ALIGN_BYTES);
    builder_task(builder, "loss", TASK_ADD, compute, PHASE_LOSS);
    builder_touch(builder, ACCESS_READ, before);
    builder_touch(builder, ACCESS_WRITE, loss);
    builder->program.loss_buffer = loss;
    return builder_program(builder);
}

typedef struct Prefetch {
    ProgramBuilder *builder;
    const PrefetchOptions *options;
    int16_t compute, ag;
    int32_t shard, gathered, x, dx;
    int32_t ready, read;  // events: gathered written, gathered read
} Prefetch;

// scale 0: slot `offset`; 1: the layer's, `offset` further.
static void prefetch_gather(const Prefetch *prefetch, const char *name, int scale, int offset) {
    ProgramBuilder *builder = prefetch->builder;
    Task *task = builder_task(builder, name, TASK_ALL_GATHER, prefetch->ag, PHASE_FORWARD);
    task->layer_guard = (int16_t)(scale ? offset : 0);
    task->group = 0;
    const BufferRef shard = {.buffer = prefetch->shard,
                             .index = {.layer_scale = (int16_t)scale, .layer_offset = (int16_t)offset},
                             .rank_group = -1,
                             .bytes = EXAMPLE_SLOT_BYTES};
    BufferRef gathered = shard;
    gathered.buffer = prefetch->gathered;
    builder_touch_part(builder, ACCESS_READ, shard);
    builder_touch_part(builder, ACCESS_WRITE, gathered);
    if (!prefetch->options->drop_free_wait) {
        builder_wait(builder, prefetch->read, scale, offset + (prefetch->options->wrong_slot ? 1 : 0));
    }
    builder_record(builder, prefetch->ready, scale, offset);
}

static void prefetch_compute(const Prefetch *prefetch, const char *name, Phase phase) {
    ProgramBuilder *builder = prefetch->builder;
    builder_task(builder, name, TASK_GEMM, prefetch->compute, phase);
    builder_touch_layer(builder, ACCESS_READ, prefetch->gathered, 0);
    builder_touch_layer(builder, ACCESS_READ, prefetch->x, 0);
    if (phase == PHASE_FORWARD) {
        builder_touch_layer(builder, ACCESS_WRITE, prefetch->x, 1);
    } else {
        builder_touch(builder, ACCESS_UPDATE, prefetch->dx);
    }
    if (!prefetch->options->drop_ready_wait) {
        builder_wait(builder, prefetch->ready, 1, 0);
    }
    builder_record(builder, prefetch->read, 1, 0);
}

StepProgram *example_prefetch(ProgramBuilder *builder, const PrefetchOptions *options) {
    Prefetch prefetch = {.builder = builder, .options = options};
    const int layers = options->layers;
    prefetch.compute = builder_lane(builder, "compute", -1);
    prefetch.ag = builder_lane(builder, "ag", 0);
    builder_group(builder, "dp_shard", AXIS_BIT(AXIS_DP_SHARD), 1);
    prefetch.shard = builder_persistent(builder, "shard", ROLE_PARAMETER, layers, EXAMPLE_SLOT_BYTES);
    prefetch.gathered = builder_buffer(builder, "gathered", ROLE_GATHERED, 2, EXAMPLE_SLOT_BYTES);
    prefetch.x = builder_buffer(builder, "x", ROLE_ACTIVATION, layers + 1, EXAMPLE_SLOT_BYTES);
    prefetch.dx = builder_buffer(builder, "dx", ROLE_ACTIVATION, 1, 2 * EXAMPLE_SLOT_BYTES);
    prefetch.ready = builder_event(builder, prefetch.gathered, prefetch.ag, true);
    prefetch.read = builder_event(builder, prefetch.gathered, prefetch.compute, false);
    builder_loop(builder, SEGMENT_MICRO_STEPS, "micro-batches", 0, options->micro_batches, 1);
    prefetch_gather(&prefetch, "gather first", 0, 0);
    builder_task(builder, "embed", TASK_EMBED, prefetch.compute, PHASE_FORWARD);
    builder_touch(builder, ACCESS_WRITE, prefetch.x);
    builder_loop(builder, SEGMENT_LAYERS, "forward", 0, layers, 1);
    prefetch_gather(&prefetch, "gather next", 1, 1);
    prefetch_compute(&prefetch, "forward", PHASE_FORWARD);
    builder_end(builder);
    prefetch_gather(&prefetch, "gather last", 0, layers - 1);
    builder_task(builder, "loss", TASK_LOSS_GRADIENT, prefetch.compute, PHASE_LOSS);
    builder_touch_part(builder, ACCESS_READ,
                       (BufferRef){.buffer = prefetch.x,
                                   .index = {.layer_offset = (int16_t)layers},
                                   .rank_group = -1,
                                   .bytes = EXAMPLE_SLOT_BYTES});
    builder_touch(builder, ACCESS_WRITE, prefetch.dx);
    builder_loop(builder, SEGMENT_LAYERS, "backward", layers - 1, layers, -1);
    prefetch_gather(&prefetch, "gather previous", 1, -1);
    prefetch_compute(&prefetch, "backward", PHASE_BACKWARD);
    builder_end(builder);
    builder_end(builder);
    return builder_program(builder);
}

StepProgram *example_ring(ProgramBuilder *builder, int hops, bool drop_free_wait) {
    const int16_t compute = builder_lane(builder, "compute", -1);
    const int16_t cp = builder_lane(builder, "cp", 0);
    builder_group(builder, "cp", AXIS_BIT(AXIS_CP), 1);
    const int32_t local = builder_persistent(builder, "kv", ROLE_ACTIVATION, 1, EXAMPLE_SLOT_BYTES);
    const int32_t ring = builder_buffer(builder, "ring", ROLE_COMMUNICATION, 2, EXAMPLE_SLOT_BYTES);
    const int32_t out = builder_buffer(builder, "out", ROLE_ACTIVATION, 1, EXAMPLE_SLOT_BYTES);
    const int32_t arrived = builder_event(builder, ring, cp, true);
    const int32_t used = builder_event(builder, ring, compute, false);
    for (int hop = 0; hop < hops; hop++) {
        const BufferRef here = {.buffer = hop == 0 ? local : ring,
                                .index = {.layer_offset = (int16_t)(hop == 0 ? 0 : hop)},
                                .rank_group = -1,
                                .bytes = EXAMPLE_SLOT_BYTES};
        BufferRef next = here;
        next.buffer = ring;
        next.index.layer_offset = (int16_t)(hop + 1);
        if (hop + 1 < hops) {
            builder_task(builder, "send", TASK_SEND_RECV, cp, PHASE_FORWARD)->group = 0;
            builder_touch_part(builder, ACCESS_READ, here);
            builder_touch_part(builder, ACCESS_WRITE, next);
            if (!drop_free_wait) {
                builder_wait(builder, used, 0, hop + 1);
            }
            builder_record(builder, arrived, 0, hop + 1);
        }
        builder_task(builder, "attention", TASK_ATTENTION, compute, PHASE_FORWARD);
        builder_touch_part(builder, ACCESS_READ, here);
        builder_touch(builder, hop == 0 ? ACCESS_WRITE : ACCESS_UPDATE, out);
        if (hop > 0) {
            builder_wait(builder, arrived, 0, hop);
            builder_record(builder, used, 0, hop);
        }
    }
    return builder_program(builder);
}

int32_t example_buffer(const StepProgram *program, const char *name) {
    for (int32_t i = 0; i < program->buffer_count; i++) {
        if (strcmp(program->buffers[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}
