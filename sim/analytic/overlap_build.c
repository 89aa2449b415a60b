// From a lowered program to a micro-step's operations: sections are recognised by the loop structure (before, in,
// between and after the two layer loops of a micro-step), sharding tasks by lane and unit, and everything between two
// of them becomes one block.

#include "sim/analytic/overlap.h"

#include "sim/step/slots.h"

#include <string.h>

// A block of the first micro-step: later ones mostly have the same block at the same place.
typedef struct FirstBlock {
    int32_t *tasks;
    int32_t count;
    KnownBlock *measured;
} FirstBlock;

enum { FIRST_BLOCKS = 32 };  // of a section; further ones are measured as they come

typedef struct Builder {
    Overlap *overlap;
    const StepProgram *program;
    const TaskCost *costs;
    Arena *arena;
    size_t op_capacity, block_capacity;
    int32_t *pending;  // tasks of the block being collected
    int32_t pending_count;
    int32_t *before;  // of the block before it
    int32_t before_count;
    bool opened;            // the section has had a block
    int32_t section_first;  // operation
    BlockMemo *known;
    OverlapPatterns *patterns;
    Arena *scratch;
    SlotNumber *numbers;
    int32_t compiled;  // stretches
    FirstBlock first[OVERLAP_SECTIONS][FIRST_BLOCKS];
    int32_t first_count[OVERLAP_SECTIONS];
    int32_t closed;  // blocks of the section
    MicroVariant variant;
    bool is_first;    // micro-step
    bool like_first;  // the block closed last
    const int32_t *first_slot;
    OverlapSection section;
} Builder;

// With a root unit the tail is its too.
static int section_unit(const Builder *builder) {
    static const uint8_t units[OVERLAP_SECTIONS] = {UNIT_EMBEDDING, UNIT_LAYER, UNIT_HEAD, UNIT_LAYER, UNIT_EMBEDDING};
    const int unit = units[builder->section];
    return unit == UNIT_HEAD && builder->program->target->root_unit ? UNIT_EMBEDDING : unit;
}

static OverlapOp *append_op(Builder *builder, OverlapOp op) {
    Overlap *overlap = builder->overlap;
    ARENA_PUSH(builder->arena, overlap->ops, overlap->op_count, &builder->op_capacity) = op;
    return &overlap->ops[overlap->op_count - 1];
}

// A slot per instance is never written twice in a micro-step, so nothing waits.
static uint8_t ring_depth(int32_t slots, int32_t instances) {
    return (uint8_t)(slots >= instances && instances > 1 ? 0 : slots > 2 ? 2 : slots);
}

static uint8_t gradient_depth(const Builder *builder, int unit) {
    const Unit *row = &builder->program->units[unit];
    const int32_t slots = row->gradient_full >= 0 ? builder->program->buffers[row->gradient_full].slots : 1;
    return ring_depth(slots, row->instances);
}

// A layer in the middle of the section's way; the first one, which may have less to do (lower_fuse.c), counts as it
// does.
static int32_t section_layer(const Builder *builder, OverlapSection section) {
    const int32_t layers = builder->program->layers;
    return section == OVERLAP_FORWARD ? 1 : section == OVERLAP_BACKWARD ? layers - 2 : 0;
}

// What the compute lane did just before: the block before, or the same block one layer earlier.
static TaskRun run_before(const Builder *builder) {
    const int32_t last = builder->program->layers - 1;
    if (builder->opened) {
        return (TaskRun){builder->before, builder->before_count, section_layer(builder, builder->section)};
    }
    switch (builder->section) {
    case OVERLAP_FORWARD:
        return (TaskRun){builder->pending, builder->pending_count, 0};
    case OVERLAP_BACKWARD:
        return (TaskRun){builder->pending, builder->pending_count, last};
    case OVERLAP_TAIL:
        return (TaskRun){builder->before, builder->before_count, last};
    default:
        return (TaskRun){builder->before, builder->before_count, 0};
    }
}

// Variants of a micro-step mostly have the same blocks and sections: shared, they stay in the cache.
static int32_t block_index(Builder *builder, const Block *block) {
    Overlap *overlap = builder->overlap;
    for (int32_t i = 0; i < overlap->block_count; i++) {
        if (memcmp(&overlap->blocks[i], block, sizeof *block) == 0) {  // doubles only
            return i;
        }
    }
    ARENA_PUSH(builder->arena, overlap->blocks, overlap->block_count, &builder->block_capacity) = *block;
    return overlap->block_count - 1;
}

static bool same_op(const OverlapOp *a, const OverlapOp *b) {
    return a->kind == b->kind && a->unit == b->unit && a->ring == b->ring && a->offset == b->offset &&
           a->releases == b->releases && a->replica_lane == b->replica_lane && a->in_line == b->in_line &&
           a->guarded == b->guarded && a->gathers_ahead == b->gathers_ahead && a->block == b->block &&
           a->copied_in == b->copied_in && a->after == b->after && a->host_s == b->host_s &&
           a->copy_host_s == b->copy_host_s;
}

// The same section of an earlier variant, if it has the same operations; else this one.
static OpRange shared_range(Overlap *overlap, MicroVariant variant, OverlapSection section, OpRange range) {
    for (MicroVariant other = OVERLAP_MICRO_FIRST; other < variant; other++) {
        const OpRange known = overlap->sections[other][section];
        bool same = known.count == range.count;
        for (int32_t i = 0; same && i < range.count; i++) {
            same = same_op(&overlap->ops[known.first + i], &overlap->ops[range.first + i]);
        }
        if (same) {
            overlap->op_count = range.first;
            return known;
        }
    }
    return range;
}

static bool same_task(const StepProgram *program, const Task *a, const Task *b) {
    return a->key == b->key && a->lane == b->lane && a->phase == b->phase && a->wait_count == b->wait_count &&
           a->record_count == b->record_count && a->operand_count == b->operand_count &&
           memcmp(&program->event_refs[a->first_wait], &program->event_refs[b->first_wait],
                  (size_t)a->wait_count * sizeof(EventRef)) == 0 &&
           memcmp(&program->event_refs[a->first_record], &program->event_refs[b->first_record],
                  (size_t)a->record_count * sizeof(EventRef)) == 0;
}

static bool same_touch(const StepProgram *program, const Task *a, const Task *b) {
    for (int i = 0; i < a->operand_count; i++) {
        const Operand *x = task_operand(program, a, i), *y = task_operand(program, b, i);
        if (x->ref.buffer != y->ref.buffer || x->access != y->access) {
            return false;
        }
    }
    return true;
}

// The block at this place of the first micro-step, if all that is measured is the same: its tasks, and those before it,
// which are another block's or, at the beginning of a pass, its own.
static KnownBlock *block_of_first(const Builder *builder) {
    const bool in_layers = builder->section == OVERLAP_FORWARD || builder->section == OVERLAP_BACKWARD;
    const bool before_too = builder->like_first || (in_layers && !builder->opened);
    if (builder->is_first || !before_too || builder->closed >= builder->first_count[builder->section]) {
        return NULL;
    }
    const FirstBlock *first = &builder->first[builder->section][builder->closed];
    const StepProgram *program = builder->program;
    bool same = first->count == builder->pending_count;
    for (int32_t i = 0; same && i < first->count; i++) {
        const Task *a = &program->tasks[first->tasks[i]], *b = &program->tasks[builder->pending[i]];
        same = same_task(program, a, b) && same_touch(program, a, b);
    }
    return same ? first->measured : NULL;
}

static void keep_first(Builder *builder, KnownBlock *measured) {
    int32_t *count = &builder->first_count[builder->section];
    if (builder->is_first && *count < FIRST_BLOCKS) {
        FirstBlock *first = &builder->first[builder->section][(*count)++];
        *first = (FirstBlock){.tasks = ARENA_UNCLEARED(builder->scratch, int32_t, builder->pending_count),
                              .count = builder->pending_count,
                              .measured = measured};
        memcpy(first->tasks, builder->pending, (size_t)builder->pending_count * sizeof *first->tasks);
    }
}

static BlockPattern compile_pending(Builder *builder, Arena *arena) {
    const BlockTasks tasks = {
        .program = builder->program,
        .before = run_before(builder),
        .run = {builder->pending, builder->pending_count, section_layer(builder, builder->section)},
        .numbers = builder->numbers,
        .stamp = ++builder->compiled,
        .first_slot = builder->first_slot,
        .joins = builder->section == OVERLAP_BEGIN};  // the first layer waits for the embedding's sum
    return block_compile(&tasks, arena);
}

static BlockCode price_pending(Builder *builder) {
    if (!builder->patterns || builder->closed >= PATTERN_BLOCKS) {
        const BlockPattern pattern = compile_pending(builder, builder->scratch);
        return block_price(&pattern, builder->program, builder->costs, builder->scratch);
    }
    BlockPattern **pattern = &builder->patterns->blocks[builder->variant][builder->section][builder->closed];
    if (!*pattern) {
        *pattern = ARENA_NEW(builder->patterns->arena, BlockPattern);
        **pattern = compile_pending(builder, builder->patterns->arena);
    }
    return block_price(*pattern, builder->program, builder->costs, builder->scratch);
}

static KnownBlock *measure_pending(Builder *builder) {
    KnownBlock *same = block_of_first(builder);
    builder->like_first = builder->is_first || same;
    if (same) {
        return same;
    }
    const BlockCode code = price_pending(builder);
    KnownBlock *measured = block_memo_find(builder->known, &code, builder->scratch);
    keep_first(builder, measured);
    return measured;
}

static bool gathers_ahead(const Builder *builder, int unit) {
    const bool layers = builder->section == OVERLAP_FORWARD || builder->section == OVERLAP_BACKWARD;
    for (int32_t i = builder->section_first; layers && i < builder->overlap->op_count; i++) {
        const OverlapOp *op = &builder->overlap->ops[i];
        if (op->kind == SHARD_GATHER && op->unit == unit && op->offset != 0) {
            return true;
        }
    }
    return false;
}

static void close_block(Builder *builder) {
    Overlap *overlap = builder->overlap;
    if (builder->pending_count == 0) {
        return;
    }
    KnownBlock *measured = measure_pending(builder);
    const int32_t block = block_index(builder, &measured->block);
    const int unit = section_unit(builder);
    append_op(builder, (OverlapOp){.kind = SHARD_KINDS,
                                   .unit = (uint8_t)unit,
                                   .ring = gradient_depth(builder, unit),
                                   .gathers_ahead = gathers_ahead(builder, unit),
                                   .block = block,
                                   .host_s = measured->block.host_s});
    if (builder->section == OVERLAP_FORWARD || builder->section == OVERLAP_BACKWARD) {
        const int pass = builder->section == OVERLAP_FORWARD ? LAYERS_FORWARD : LAYERS_BACKWARD;
        overlap->fluid[pass] = *known_block_fluid(builder->known, measured, builder->scratch);
        overlap->isolated_s[pass] = measured->block.device_s;
        if (pass == LAYERS_BACKWARD && gradient_depth(builder, unit) == 1) {
            overlap->before_gradient_s =
                measured->block.device_s - measured->block.delay_s[BLOCK_COMPUTE_FREE][BLOCK_GRADIENTS];
        }
    }
    int32_t *spare = builder->before;
    builder->before = builder->pending;
    builder->before_count = builder->pending_count;
    builder->pending = spare;
    builder->pending_count = 0;
    builder->opened = true;
    builder->closed++;
}

static bool keeps_weights(const Builder *builder) {
    return builder->program->plan.reshard == RESHARD_NEVER;
}

// Kept weights have a slot per layer, free again after the layer's backward: of all layers the first one's comes last,
// and gathers are in order, so the latest release is what counts.
static uint8_t gather_depth(const Builder *builder, const Task *task) {
    const Operand *out = task_operand(builder->program, task, AT_COLLECTIVE_TO);
    const int32_t slots = builder->program->buffers[out->ref.buffer].slots;
    return keeps_weights(builder) && !builder->overlap->copies ? 1 : (uint8_t)(slots > 2 ? 2 : slots);
}

static uint8_t op_ring(const Builder *builder, const Task *task, ShardKind kind) {
    switch (kind) {
    case SHARD_GATHER:
        return gather_depth(builder, task);
    case SHARD_SCATTER:
        return builder->overlap->copies ? 1 : gradient_depth(builder, task->unit);
    default:
        return 0;
    }
}

// The tail gathers for the first layer of backward: the last one.
static int8_t op_offset(const Builder *builder, const Task *task, ShardKind kind) {
    if (kind != SHARD_GATHER || !builder->program->units[task->unit].layered) {
        return 0;
    }
    return (int8_t)(builder->section == OVERLAP_TAIL
                        ? (builder->program->layers - 1) & 1
                        : task_operand(builder->program, task, AT_COLLECTIVE_TO)->ref.index.layer_offset);
}

// A copy before a gather, a cast or sum after a reduction: one operation with it.
static bool joins_last_op(Builder *builder, const Task *task, ShardKind kind, double host_s) {
    Overlap *overlap = builder->overlap;
    OverlapOp *last = overlap->op_count > builder->section_first ? &overlap->ops[overlap->op_count - 1] : NULL;
    if (last && kind == SHARD_GATHER && last->kind == SHARD_COPY_IN && last->unit == task->unit) {
        *last = (OverlapOp){.kind = SHARD_GATHER,
                            .unit = last->unit,
                            .after = SHARD_KINDS,
                            .ring = op_ring(builder, task, kind),
                            .offset = op_offset(builder, task, kind),
                            .guarded = task->layer_guard != 0,
                            .copied_in = true,
                            .copy_host_s = last->host_s,
                            .host_s = last->host_s + host_s};
        return true;
    }
    if (last && (kind == SHARD_CAST || kind == SHARD_ADD) && last->kind == SHARD_SCATTER && task->lane == LANE_RS) {
        last->after = (uint8_t)kind;
        last->host_s += host_s;
        return true;
    }
    return false;
}

static void add_task(Builder *builder, int32_t index) {
    const Task *task = &builder->program->tasks[index];
    if (overlap_is_host_copy(task)) {
        return;
    }
    const ShardKind kind = shard_kind(builder->program, task);
    if (kind == SHARD_KINDS) {
        if (step_guard_open(builder->program, task, section_layer(builder, builder->section))) {
            builder->pending[builder->pending_count++] = index;
        }
        return;
    }
    if (kind == SHARD_PAD) {
        return;  // whether there is padding depends on the mesh: runs with every reduction
    }
    close_block(builder);
    if (joins_last_op(builder, task, kind, builder->costs[index].host_s)) {
        return;
    }
    builder->overlap->guarded |= task->layer_guard != 0;
    append_op(builder, (OverlapOp){.kind = (uint8_t)kind,
                                   .after = SHARD_KINDS,
                                   .unit = (uint8_t)task->unit,
                                   .ring = op_ring(builder, task, kind),
                                   .offset = op_offset(builder, task, kind),
                                   .replica_lane = task->lane == LANE_REP,
                                   .in_line = task->lane == LANE_COMPUTE,
                                   .guarded = task->layer_guard != 0,
                                   .near = kind == SHARD_GATHER && shard_is_near(builder->program, task),
                                   .host_s = builder->costs[index].host_s});
}

// Where weights are read in place, not copied first, the section's last block that reads them frees their buffer.
static void mark_release(const Builder *builder, OpRange range) {
    const int unit = section_unit(builder);
    if (builder->program->units[unit].gathered < 0 || builder->overlap->copies) {
        return;
    }
    if (keeps_weights(builder) && builder->section == OVERLAP_FORWARD) {
        return;
    }
    for (int32_t i = range.first + range.count - 1; i >= range.first; i--) {
        OverlapOp *op = &builder->overlap->ops[i];
        if (op->kind == SHARD_KINDS &&
            builder->overlap->blocks[op->block].delay_s[BLOCK_READ][BLOCK_COMPUTE] > block_never_s / 2) {
            op->releases = true;
            return;
        }
    }
}

static void add_section(Builder *builder, MicroVariant variant, OverlapSection section, int32_t from, int32_t to) {
    OpRange range = {.first = builder->overlap->op_count};
    builder->section = section;
    builder->opened = false;
    builder->closed = 0;
    builder->section_first = range.first;
    for (int32_t s = from; s < to; s++) {
        const Segment *segment = &builder->program->segments[s];
        for (int32_t t = 0; segment->kind == SEGMENT_TASKS && t < segment->task_count; t++) {
            add_task(builder, segment->first_task + t);
        }
    }
    close_block(builder);
    range.count = builder->overlap->op_count - range.first;
    mark_release(builder, range);
    builder->overlap->sections[variant][section] = shared_range(builder->overlap, variant, section, range);
}

static int section_pass(int section) {
    return section == OVERLAP_FORWARD ? LAYERS_FORWARD : section == OVERLAP_BACKWARD ? LAYERS_BACKWARD : LAYER_PASSES;
}

static void add_sums(Overlap *overlap, MicroVariant variant) {
    for (int section = 0; section < OVERLAP_SECTIONS; section++) {
        const OpRange range = overlap->sections[variant][section];
        const int pass = section_pass(section);
        const int times = pass < LAYER_PASSES ? overlap->layers : 1;
        for (int32_t i = range.first; i < range.first + range.count; i++) {
            const OverlapOp *op = &overlap->ops[i];
            if (op->kind != SHARD_KINDS) {
                ShardKernels *kernels = &overlap->kernels_run[variant][pass][op->unit];
                kernels->copies_out += op->kind == SHARD_COPY_OUT ? times : 0;
                kernels->reduce_copies += op->kind == SHARD_REDUCE_COPY ? times : 0;
                kernels->casts += op->in_line && op->kind == SHARD_CAST ? times : 0;
                kernels->adds += op->in_line && op->kind == SHARD_ADD ? times : 0;
                kernels->pads += op->kind == (overlap->copies ? SHARD_REDUCE_COPY : SHARD_SCATTER) ? times : 0;
                continue;
            }
            const Block *block = &overlap->blocks[op->block];
            overlap->busy_s[variant][pass] += block->busy_s * times;
            for (int axis = 0; axis < AXIS_COUNT; axis++) {
                overlap->exposed_s[variant][pass][axis] += block->exposed_s[axis] * times;
            }
        }
    }
}

// Is there a sum over replicas, and nothing scattered before it?
static bool sums_whole(const Overlap *overlap) {
    bool sums = false, scatters = false;
    for (int32_t i = 0; i < overlap->op_count; i++) {
        sums |= overlap->ops[i].kind == SHARD_REPLICA;
        scatters |= overlap->ops[i].kind == SHARD_SCATTER;
    }
    return sums && !scatters;
}

static int background_of(uint8_t kind) {
    return kind == SHARD_GATHER    ? BACKGROUND_GATHER
           : kind == SHARD_SCATTER ? BACKGROUND_SCATTER
           : kind == SHARD_REPLICA ? BACKGROUND_REPLICA
                                   : BACKGROUNDS;
}

// Which collectives overlap the layers of a pass: those of the pass, and of edge units those that are issued just
// around it.
static void find_beside(Overlap *overlap, MicroVariant variant) {
    for (int section = 0; section < OVERLAP_SECTIONS; section++) {
        const OpRange range = overlap->sections[variant][section];
        for (int32_t i = range.first; i < range.first + range.count; i++) {
            const OverlapOp *op = &overlap->ops[i];
            const int background = background_of(op->kind);
            const bool in_line = background == BACKGROUND_GATHER ? overlap->gathers_wait : overlap->in_line;
            if (background == BACKGROUNDS || in_line) {
                continue;
            }
            if (section_pass(section) < LAYER_PASSES && op->unit == UNIT_EXPERTS) {
                overlap->experts_beside[variant][section_pass(section)][background]++;
            } else if (section_pass(section) < LAYER_PASSES) {
                overlap->beside[variant][section_pass(section)][background]++;
            } else if (section == OVERLAP_TAIL && op->unit == UNIT_HEAD) {
                const int pass = op->kind == SHARD_GATHER ? LAYERS_FORWARD : LAYERS_BACKWARD;
                overlap->edge_beside[variant][pass][op->unit][background]++;
            }
        }
    }
}

static void add_micro_step(Builder *builder, MicroVariant variant, int32_t loop) {
    const Segment *segments = builder->program->segments;
    int section = OVERLAP_BEGIN;
    int32_t from = loop + 1;
    builder->variant = variant;
    builder->is_first = variant == OVERLAP_MICRO_FIRST;
    builder->like_first = false;
    for (int32_t s = loop + 1; s < segments[loop].end; s++) {
        if (segments[s].kind != SEGMENT_LAYERS) {
            continue;
        }
        const bool turns = section == OVERLAP_TAIL && segments[s].step < 0;  // of a stage without a head
        if (s > from || section == OVERLAP_BEGIN || turns) {                 // else a further run of the same layers
            overlap_add_copies(builder->overlap, section == OVERLAP_BEGIN ? LAYERS_FORWARD : LAYERS_BACKWARD,
                               builder->program, builder->costs, s, builder->arena);
            add_section(builder, variant, (OverlapSection)section++, from, s);
            add_section(builder, variant, (OverlapSection)section++, s, segments[s].end);
        }
        from = segments[s].end;
    }
    add_section(builder, variant, (OverlapSection)section, from, segments[loop].end);
    ASSERT(section == OVERLAP_END);
    add_sums(builder->overlap, variant);
    find_beside(builder->overlap, variant);
}

// A table that another stage has too is reduced behind their sum (lower_tied.c).
static unsigned late_units(const StepProgram *program) {
    const int tied = stage_tied_unit(&program->held, program->target, &program->plan);
    const unsigned all = (1u << UNIT_COUNT) - 1;
    return target_reduces_late(program->target, &program->plan) ? all : tied >= 0 ? 1u << tied : 0;
}

void overlap_add(Overlap *overlap, const StepProgram *program, const TaskCost *costs, OverlapPatterns *patterns,
                 BlockMemo *known, Arena *scratch) {
    Builder builder = {.overlap = overlap,
                       .program = program,
                       .costs = costs,
                       .arena = known->arena,
                       .known = known,
                       .patterns = patterns,
                       .scratch = scratch,
                       .op_capacity = (size_t)overlap->op_count,
                       .block_capacity = (size_t)overlap->block_count,
                       .pending = ARENA_UNCLEARED(scratch, int32_t, program->task_count),
                       .before = ARENA_UNCLEARED(scratch, int32_t, program->task_count),
                       .first_slot = step_event_slots(program, scratch)};
    builder.numbers = ARENA_ARRAY(scratch, SlotNumber, builder.first_slot[program->event_count] + 1);
    overlap->layers = program->layers;
    overlap->experts = program->unit_count > UNIT_EXPERTS;
    overlap->shared_communicator = program->lanes[LANE_AG].communicator == program->lanes[LANE_RS].communicator;
    overlap->copies = program->target->shard_copies;
    overlap->late_units = late_units(program);
    overlap->near_gathers = program->plan.reshard_ranks > 1;
    overlap->in_line = target_reduce_overlap(program->target, &program->plan) == REDUCE_OVERLAP_OFF;
    overlap->gathers_wait = program->target->shards_wait;
    overlap->reduce_axis = program->plan.mesh.size[AXIS_DP_REPLICATE] > 1 ? AXIS_DP_REPLICATE : AXIS_DP_SHARD;
    MicroVariant variant = program->plan.grad_accum == 1 ? OVERLAP_MICRO_ONLY : OVERLAP_MICRO_FIRST;
    for (int32_t s = 0; s < program->segment_count; s = program->segments[s].end) {
        if (program->segments[s].kind == SEGMENT_MICRO_STEPS) {
            add_micro_step(&builder, variant++, s);
        }
    }
    overlap->sums_whole = sums_whole(overlap);
}
