// Pass 7: lanes. Tensors that are used become buffers, sections become segments, and data flow between lanes becomes
// events: a reader waits for the last write on every other lane that writes the buffer, a writer also for their last
// reads. Within a lane issue order suffices. Slots keep ring buffers separate, so double buffering follows from the
// index, without special cases.

#include "sim/step/carried.h"
#include "sim/step/lower_ops.h"
#include "sim/step/mixed.h"

#include <string.h>

#include "sim/step/slots.h"

typedef struct Assembly {
    Lowering *lowering;
    StepProgram *program;
    int32_t *buffer_of;  // per tensor, -1 = unused
    uint16_t *reads;     // per tensor: bit per lane
    uint16_t *writes;
    bool *awaited;                       // per tensor: it has an event
    int32_t (*event_of)[LANE_COUNT][2];  // of those: per tensor, lane, write; -1 = no task waits
    int32_t task_count, operand_count;   // that the program will have
    size_t ref_capacity, segment_capacity;
} Assembly;

// ---- which lanes touch what

static void note_lanes(Assembly *assembly, const Op *op) {
    const uint16_t lane = (uint16_t)(1u << op->task.lane);
    for (int k = 0; k < op->operand_count; k++) {
        const OpRef *ref = &op->operands[k];
        if (ref->tensor >= 0) {
            assembly->reads[ref->tensor] |= ref->access & ACCESS_READ ? lane : 0;
            assembly->writes[ref->tensor] |= ref->access & ACCESS_WRITE ? lane : 0;
        }
    }
}

// Also counts the maximum number of tasks and operands: where two kinds of layers run, once for each kind.
static void note_stretches(Assembly *assembly, const Stretch *stretches, int count) {
    const int times = assembly->lowering->in_turn ? LAYER_KIND_COUNT : 1;
    for (int s = 0; s < count; s++) {
        const OpList *list = &stretches[s].list;
        for (size_t i = 0; i < list->count; i++) {
            note_lanes(assembly, list->ops[i]);
            assembly->operand_count += list->ops[i]->operand_count * times;
        }
        assembly->task_count += (int32_t)list->count * times;
    }
}

static void note_ops(Assembly *assembly, const LoweredStep *step) {
    for (int v = 0; v < VARIANT_COUNT; v++) {
        note_stretches(assembly, step->variants[v].stretches, step->variants[v].stretch_count);
    }
    for (int32_t c = 0; c < assembly->lowering->held->chunk_count; c++) {
        note_stretches(assembly, step->messages[c].of, MESSAGE_COUNT);
    }
}

// ---- slots: a tensor that backward reads before it writes it must survive from forward, one slot per layer

// Tensors made in a section of backward get that many slots each.
static void choose_slots_of(Assembly *assembly, const Variant *variants, Section section, int32_t slots) {
    Lowering *lowering = assembly->lowering;
    bool *made = ARENA_UNCLEARED(lowering->arena, bool, lowering->tensor_count);
    for (int v = 0; v < VARIANT_COUNT; v++) {
        for (int s = 0; s < variants[v].stretch_count; s++) {
            const Stretch *stretch = &variants[v].stretches[s];
            if (stretch->section != section) {
                continue;
            }
            memset(made, 0, lowering->tensor_count * sizeof *made);
            for (size_t i = 0; i < stretch->list.count; i++) {
                const Op *op = stretch->list.ops[i];
                for (int k = 0; k < op->operand_count; k++) {
                    const OpRef *ref = &op->operands[k];
                    if (ref->tensor < 0) {
                        continue;
                    }
                    Tensor *tensor = &lowering->tensors[ref->tensor];
                    if (tensor->slots == 0 && (ref->access & ACCESS_READ) && !made[ref->tensor]) {
                        tensor->slots = slots;
                    }
                    made[ref->tensor] |= ref->access & ACCESS_WRITE;
                }
            }
        }
    }
}

// Slots of what kept layers read, numbered by layer: where these are the last ones, the others share slots among
// themselves. Every n-th and the last ones of several chunks have one each.
static int32_t kept_slots(const Lowering *lowering) {
    const bool last = lowering->held->chunk_count == 1;
    return lowering->model->layers - (last ? lowering->plan->recompute_layers : 0);
}

static void choose_slots(Assembly *assembly, const Variant *variants) {
    Lowering *lowering = assembly->lowering;
    const int32_t layers = lowering->model->layers;
    bool *chosen = ARENA_ARRAY(lowering->arena, bool, lowering->tensor_count);
    for (size_t t = 0; t < lowering->tensor_count; t++) {
        chosen[t] = lowering->tensors[t].slots == 0;
    }
    choose_slots_of(assembly, variants, SECTION_LAYER_BACKWARD, layers);
    choose_slots_of(assembly, variants, SECTION_LAYER_WEIGHTS, layers);
    choose_slots_of(assembly, variants, SECTION_KEPT_BACKWARD, kept_slots(lowering));
    choose_slots_of(assembly, variants, SECTION_KEPT_WEIGHTS, kept_slots(lowering));
    for (size_t t = 0; t < lowering->tensor_count; t++) {
        Tensor *tensor = &lowering->tensors[t];
        const bool kept = tensor->slots > 1 && chosen[t];  // a slot for each layer
        tensor->slots = tensor->slots == 0 ? 1 : tensor->slots;
        tensor->share = kept ? tensor->share : 0;
        tensor->whole_bytes = tensor->bytes;
        tensor->bytes = mixed_kept_bytes(lowering, tensor->bytes, tensor->share);
    }
}

// ---- buffers and events

static int64_t slot_needs(const Tensor *tensor) {
    return tensor->widest_bytes > tensor->bytes ? tensor->widest_bytes : tensor->bytes;
}

static void make_buffers(Assembly *assembly) {
    const Lowering *lowering = assembly->lowering;
    StepProgram *program = assembly->program;
    program->buffers = ARENA_UNCLEARED(lowering->arena, Buffer, lowering->tensor_count);
    for (size_t t = 0; t < lowering->tensor_count; t++) {
        const Tensor *tensor = &lowering->tensors[t];
        assembly->buffer_of[t] = -1;
        if (assembly->reads[t] || assembly->writes[t] || tensor->untouched) {
            assembly->buffer_of[t] = program->buffer_count;
            program->buffers[program->buffer_count++] =
                (Buffer){.name = tensor->name,
                         .role = tensor->role,
                         .dtype = tensor->dtype,
                         .slots = tensor->slots * (tensor->micro_steps > 0 ? tensor->micro_steps : 1),
                         .micro_steps = tensor->micro_steps,
                         .bytes = slot_needs(tensor),
                         .slot_bytes = step_slot_bytes(slot_needs(tensor)),
                         .persistent = tensor->persistent,
                         .host = tensor->host,
                         .held = tensor->held,
                         .pieces = tensor->pieces};
        }
    }
}

static void make_events(Assembly *assembly) {
    const Lowering *lowering = assembly->lowering;
    StepProgram *program = assembly->program;
    program->events = ARENA_UNCLEARED(lowering->arena, Event, lowering->tensor_count * LANE_COUNT * 2);
    for (size_t t = 0; t < lowering->tensor_count; t++) {
        const unsigned reads = assembly->reads[t], writes = assembly->writes[t], touched = reads | writes;
        if (writes == 0 || (touched & (touched - 1)) == 0) {  // no task writes it, or a single lane uses it
            continue;
        }
        assembly->awaited[t] = true;
        memset(assembly->event_of[t], -1, sizeof assembly->event_of[t]);
        for (unsigned left = touched; left; left &= left - 1) {
            const int lane = __builtin_ctz(left);
            const unsigned others = ~(1u << lane);
            const bool awaited[2] = {(reads >> lane & 1) && (writes & others),
                                     (writes >> lane & 1) && (touched & others)};
            for (int write = 0; write < 2; write++) {
                if (awaited[write]) {
                    assembly->event_of[t][lane][write] = program->event_count;
                    program->events[program->event_count++] =
                        (Event){.buffer = assembly->buffer_of[t], .lane = (int16_t)lane, .write = write == 1};
                }
            }
        }
    }
}

// ---- tasks

static bool section_is_layered(Section section) {
    return section == SECTION_LAYER_FORWARD || section == SECTION_LAYER_BACKWARD || section == SECTION_KEPT_BACKWARD ||
           section == SECTION_LAYER_WEIGHTS || section == SECTION_KEPT_WEIGHTS || section == SECTION_NORM_LAYER ||
           section == SECTION_UPDATE_LAYER;
}

static SlotIndex resolve_index(const Tensor *tensor, const Op *op, bool is_layered, const OpRef *ref) {
    return (SlotIndex){.layer_scale = tensor->slots > 1 && is_layered && !op->absolute,
                       .layer_offset = tensor->slots > 1 ? ref->index : 0,
                       .micro_scale = tensor->micro_steps > 0};
}

static void append_event_ref(Assembly *assembly, EventRef ref, int32_t first, int32_t *count) {
    StepProgram *program = assembly->program;
    for (int32_t i = first; i < first + *count; i++) {
        const EventRef *known = &program->event_refs[i];
        if (known->event == ref.event && slot_index_equal(known->index, ref.index)) {
            return;
        }
    }
    if ((size_t)program->event_ref_count == assembly->ref_capacity) {
        program->event_refs = arena_grow(assembly->lowering->arena, program->event_refs,
                                         (size_t)program->event_ref_count, &assembly->ref_capacity, sizeof(EventRef));
    }
    program->event_refs[program->event_ref_count++] = ref;
    (*count)++;
}

static void append_waits(Assembly *assembly, const Op *op, Task *task) {
    const Operand *operands = &assembly->program->operands[task->first_operand];
    task->first_wait = assembly->program->event_ref_count;
    for (int k = 0; k < op->operand_count; k++) {
        const OpRef *ref = &op->operands[k];
        if (ref->tensor < 0 || !assembly->awaited[ref->tensor]) {
            continue;
        }
        const bool write = ref->access & ACCESS_WRITE;
        const unsigned touched = assembly->writes[ref->tensor] | (write ? assembly->reads[ref->tensor] : 0);
        for (unsigned others = touched & ~(1u << task->lane); others; others &= others - 1) {
            const int32_t *events = assembly->event_of[ref->tensor][__builtin_ctz(others)];
            for (int written = write ? 0 : 1; written < 2; written++) {
                if (events[written] >= 0) {
                    const EventRef wait = {.event = events[written], .index = operands[k].ref.index};
                    append_event_ref(assembly, wait, task->first_wait, &task->wait_count);
                }
            }
        }
    }
}

static void append_records(Assembly *assembly, const Op *op, Task *task) {
    const Operand *operands = &assembly->program->operands[task->first_operand];
    task->first_record = assembly->program->event_ref_count;
    for (int k = 0; k < op->operand_count; k++) {
        const OpRef *ref = &op->operands[k];
        if (ref->tensor < 0 || !assembly->awaited[ref->tensor]) {
            continue;
        }
        for (int write = 0; write < 2; write++) {
            const int32_t event = assembly->event_of[ref->tensor][task->lane][write];
            if (event >= 0 && (ref->access & (write ? ACCESS_WRITE : ACCESS_READ))) {
                const EventRef record = {.event = event, .index = operands[k].ref.index};
                append_event_ref(assembly, record, task->first_record, &task->record_count);
            }
        }
    }
}

static void append_operands(Assembly *assembly, const Op *op, Section section, Task *task) {
    StepProgram *program = assembly->program;
    const bool is_layered = section_is_layered(section);
    task->first_operand = program->operand_count;
    task->operand_count = op->operand_count;
    for (int k = 0; k < op->operand_count; k++) {
        const OpRef *ref = &op->operands[k];
        Operand *operand = &program->operands[program->operand_count++];
        if (ref->tensor < 0) {
            *operand = (Operand){.access = ref->access, .ref = {.buffer = -1, .rank_group = -1}};
            continue;
        }
        const Tensor *tensor = &assembly->lowering->tensors[ref->tensor];
        *operand = (Operand){.access = ref->access,
                             .ref = {.buffer = assembly->buffer_of[ref->tensor],
                                     .index = resolve_index(tensor, op, is_layered, ref),
                                     .rank_group = ref->rank_group,
                                     .rank_shift = ref->rank_shift,
                                     .rank_stride_bytes = ref->rank_stride_bytes,
                                     .offset_bytes = ref->offset_bytes,
                                     .bytes = ref->bytes}};
        if (tensor->share > 0) {
            mixed_keep_share(tensor, &operand->ref);
        }
    }
}

static void append_task(Assembly *assembly, Op *op, Section section) {
    StepProgram *program = assembly->program;
    ASSERT(op->mark == MARK_NONE);
    Task *task = &program->tasks[program->task_count++];
    *task = op->task;
    append_operands(assembly, op, section, task);
    append_waits(assembly, op, task);
    append_records(assembly, op, task);
    op->place = program->task_count;
    const int32_t same = op->copy_of ? op->copy_of->place : 0;
    task_finish(program, same > 0 ? &program->tasks[same - 1] : NULL, task);
}

// Sized for append_task; event references number about as many as operands.
static void make_tables(Assembly *assembly) {
    Arena *arena = assembly->lowering->arena;
    StepProgram *program = assembly->program;
    program->tasks = ARENA_UNCLEARED(arena, Task, assembly->task_count);
    program->operands = ARENA_UNCLEARED(arena, Operand, assembly->operand_count);
    assembly->ref_capacity = (size_t)assembly->operand_count;
    program->event_refs = ARENA_UNCLEARED(arena, EventRef, assembly->operand_count);
}

// ---- segments

static int32_t append_segment(Assembly *assembly, Segment segment) {
    StepProgram *program = assembly->program;
    program->segments =
        arena_grow_uncleared(assembly->lowering->arena, program->segments, (size_t)program->segment_count,
                             &assembly->segment_capacity, sizeof(Segment));
    program->segments[program->segment_count] = segment;
    return program->segment_count++;
}

static bool has_part(const Op *op, LayerKind kind) {
    return op->only == 0 || op->only == 1 + (int)kind;
}

// The stretch as layers of this kind run it; one list for both if no operation is specific to a kind.
static LayerKind stretch_kind(const Stretch *stretch, LayerKind kind) {
    for (size_t i = 0; i < stretch->list.count; i++) {
        if (stretch->list.ops[i]->only > 0) {
            return kind;
        }
    }
    return LAYER_DENSE;
}

// Tasks are in the program once, however many loops they are in.
static int32_t append_tasks(Assembly *assembly, Stretch *stretch, LayerKind kind) {
    if (stretch->first_task[kind] < 0) {
        stretch->first_task[kind] = assembly->program->task_count;
        for (size_t i = 0; i < stretch->list.count; i++) {
            if (has_part(stretch->list.ops[i], kind)) {
                append_task(assembly, stretch->list.ops[i], stretch->section);
            }
        }
    }
    return stretch->first_task[kind];
}

static int32_t tasks_of(const Stretch *stretch, LayerKind kind) {
    int32_t count = 0;
    for (size_t i = 0; i < stretch->list.count; i++) {
        count += has_part(stretch->list.ops[i], kind);
    }
    return count;
}

static void append_leaf(Assembly *assembly, Stretch *stretch, const char *name, int32_t micro_offset, LayerKind of) {
    const LayerKind kind = stretch_kind(stretch, of);
    const int32_t leaf = append_segment(assembly, (Segment){.kind = SEGMENT_TASKS,
                                                            .name = name,
                                                            .first_task = append_tasks(assembly, stretch, kind),
                                                            .task_count = tasks_of(stretch, kind),
                                                            .micro_offset = micro_offset});
    assembly->program->segments[leaf].end = leaf + 1;
}

static void append_run(Assembly *assembly, Stretch *stretch, const char *name, int32_t micro_offset, bool down,
                       LayerRun run) {
    const int32_t loop = append_segment(assembly, (Segment){.kind = SEGMENT_LAYERS,
                                                            .name = name,
                                                            .count = run.count,
                                                            .first = run.first + (down ? run.count - 1 : 0),
                                                            .step = down ? -1 : 1});
    append_leaf(assembly, stretch, name, micro_offset, run.kind);
    assembly->program->segments[loop].end = assembly->program->segment_count;
}

// One loop per run of layers, over the same tasks.
static void append_runs(Assembly *assembly, Stretch *stretch, const char *name, int32_t micro_offset, int32_t first,
                        int32_t count) {
    const ModelSpec *model = assembly->lowering->model;
    for (int i = 0; i < model_run_count(model); i++) {
        LayerRun run = model_run(model, i);
        if (layer_run_cut(&run, first, count)) {
            append_run(assembly, stretch, name, micro_offset, false, run);
        }
    }
}

static bool is_usual(const Lowering *lowering, int layer, const StageChunk *chunk) {
    return !plan_keeps_layers(lowering->plan) ||
           target_recomputes(lowering->target, lowering->plan, layer, layer - chunk->first);
}

// From the last run to the first, each split where recomputed and kept layers meet.
static void append_runs_down(Assembly *assembly, Stretch *all, Stretch *kept, const char *name, int32_t micro_offset,
                             const StageChunk *chunk) {
    const Lowering *lowering = assembly->lowering;
    const ModelSpec *model = lowering->model;
    for (int i = model_run_count(model) - 1; i >= 0; i--) {
        LayerRun run = model_run(model, i);
        if (!layer_run_cut(&run, chunk->first, chunk->count)) {
            continue;
        }
        for (int end = run.first + run.count, first; end > run.first; end = first) {
            const bool usual = is_usual(lowering, end - 1, chunk);
            for (first = end - 1; first > run.first && is_usual(lowering, first - 1, chunk) == usual;) {
                first--;
            }
            append_run(assembly, usual ? all : kept, name, micro_offset, true,
                       (LayerRun){.kind = run.kind, .first = first, .count = end - first});
        }
    }
}

// Over a chunk's layers; NULL: over all.
static void append_stretch(Assembly *assembly, Stretch *stretch, int32_t micro_offset, const StageChunk *chunk) {
    const char *name = section_names[stretch->section];
    if (stretch->list.count == 0) {
        return;
    }
    if (stretch->section == SECTION_LAYER_BACKWARD || stretch->section == SECTION_LAYER_WEIGHTS) {
        append_runs_down(assembly, stretch, stretch + 1, name, micro_offset, chunk);
    } else if (section_is_layered(stretch->section)) {
        append_runs(assembly, stretch, name, micro_offset, chunk ? chunk->first : 0,
                    chunk ? chunk->count : assembly->lowering->model->layers);
    } else {
        append_leaf(assembly, stretch, name, micro_offset, LAYER_DENSE);
    }
}

static void append_message(Assembly *assembly, Stretch *stretch, int32_t micro_offset) {
    if (stretch->list.count > 0) {
        append_leaf(assembly, stretch, stretch->list.ops[0]->task.name, micro_offset, LAYER_DENSE);
    }
}

// The first chunk of a stage has what comes before the layers, the last one what comes after them.
static bool is_of_chunk(const Assembly *assembly, Section section, int32_t chunk) {
    const bool before = section == SECTION_BEGIN || section == SECTION_END || section == SECTION_END_WEIGHTS;
    const bool behind = section == SECTION_TAIL || section == SECTION_TAIL_WEIGHTS;
    return section != SECTION_KEPT_BACKWARD && section != SECTION_KEPT_WEIGHTS && (!before || chunk == 0) &&
           (!behind || chunk == assembly->lowering->held->chunk_count - 1);
}

static void append_work(Assembly *assembly, LoweredStep *step, const MicroWork *work) {
    const bool forward = work->work == WORK_FORWARD, sends = work->work != WORK_WEIGHTS;
    Variant *variant = &step->variants[work->kind];
    ChunkMessages *messages = &step->messages[work->chunk];
    if (sends) {
        append_message(assembly, &messages->of[forward ? MESSAGE_IN : MESSAGE_GRADIENT_IN], work->micro_offset);
    }
    for (int s = 0; s < variant->stretch_count; s++) {
        const Section section = variant->stretches[s].section;
        if (is_of_chunk(assembly, section, work->chunk) && section_work(section) == work->work) {
            append_stretch(assembly, &variant->stretches[s], work->micro_offset,
                           &assembly->lowering->held->chunks[work->chunk]);
        }
    }
    if (sends) {
        append_message(assembly, &messages->of[forward ? MESSAGE_OUT : MESSAGE_GRADIENT_OUT], work->micro_offset);
    }
}

static void append_loop(Assembly *assembly, LoweredStep *step, const MicroLoop *loop) {
    static const char *const names[MICRO_KINDS] = {[MICRO_ONLY] = "micro-step",
                                                   [MICRO_FIRST] = "first micro-step",
                                                   [MICRO_MIDDLE] = "middle micro-steps",
                                                   [MICRO_LAST] = "last micro-step",
                                                   [MICRO_ADD_ONLY] = "micro-step of a later schedule",
                                                   [MICRO_ADD_FIRST] = "first micro-step of a later schedule",
                                                   [MICRO_ADD_LAST] = "last micro-step of a later schedule"};
    const int32_t segment = append_segment(assembly, (Segment){.kind = SEGMENT_MICRO_STEPS,
                                                               .name = names[loop->kind],
                                                               .count = loop->count,
                                                               .first = loop->first,
                                                               .step = loop->step,
                                                               .steady = loop->steady});
    for (int32_t w = loop->first_work; w < loop->first_work + loop->work_count; w++) {
        append_work(assembly, step, &step->loops.works[w]);
    }
    const bool is_empty = assembly->program->segment_count == segment + 1;  // weights of a chunk without layers
    assembly->program->segments[segment].end = assembly->program->segment_count;
    assembly->program->segment_count -= is_empty;
}

// ---- the rest of the program

static void make_lanes(Assembly *assembly) {
#define LANE_ROW(symbol, name, communicator) [LANE_##symbol] = {#name, communicator},
    static const Lane lanes[LANE_COUNT] = {LANE_LIST(LANE_ROW)};
    StepProgram *program = assembly->program;
    program->lanes = ARENA_ARRAY(assembly->lowering->arena, Lane, LANE_COUNT);
    memcpy(program->lanes, lanes, sizeof lanes);
    // Without other stages there are no messages: their lanes are the last ones.
    program->lane_count = lowering_has_stages(assembly->lowering) ? LANE_COUNT : LANE_SEND;
    if (lowering_offloads_saved(assembly->lowering)) {
        program->lane_count = LANE_HOST + 1;
        program->lanes[LANE_HOST] = (Lane){"host", -1};
    }
    if (assembly->lowering->target->shared_shard_lane) {
        program->lanes[LANE_RS].communicator = program->lanes[LANE_AG].communicator;
    }
}

static int32_t buffer_or_none(const Assembly *assembly, int32_t tensor) {
    return tensor < 0 ? -1 : assembly->buffer_of[tensor];
}

static void copy_tables(Assembly *assembly) {
    const Lowering *lowering = assembly->lowering;
    StepProgram *program = assembly->program;
    program->groups = ARENA_ARRAY(lowering->arena, Group, lowering->group_count);
    for (int32_t i = 0; i < lowering->group_count; i++) {
        program->groups[i] = lowering->groups[i];
    }
    program->group_count = lowering->group_count;
    program->tp_group = lowering->tp_group;
    program->cp_group = lowering->cp_group;
    program->slices = ARENA_ARRAY(lowering->arena, ParamSlice, lowering->slice_count);
    for (int32_t i = 0; i < lowering->slice_count; i++) {
        program->slices[i] = lowering->slices[i];
    }
    program->slice_count = lowering->slice_count;
    program->units = ARENA_ARRAY(lowering->arena, Unit, lowering->unit_count);
    program->unit_count = lowering->unit_count;
    for (int32_t u = 0; u < lowering->unit_count; u++) {
        Unit unit = lowering->units[u];
        int32_t *const tensors[] = {&unit.master,  &unit.moment1,  &unit.moment2,       &unit.gradient_shard,
                                    &unit.working, &unit.gathered, &unit.gradient_full, &unit.gradient_half};
        for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
            *tensors[i] = buffer_or_none(assembly, *tensors[i]);
        }
        program->units[u] = unit;
    }
    program->loss_buffer = buffer_or_none(assembly, lowering->loss_tensor);
    program->norm_buffer = buffer_or_none(assembly, lowering->norm_tensor);
}

void lower_lanes(Lowering *lowering, LoweredStep *step, StepProgram *program) {
    Assembly assembly = {
        .lowering = lowering,
        .program = program,
        .buffer_of = ARENA_ARRAY(lowering->arena, int32_t, lowering->tensor_count),
        .reads = ARENA_ARRAY(lowering->arena, uint16_t, lowering->tensor_count),
        .writes = ARENA_ARRAY(lowering->arena, uint16_t, lowering->tensor_count),
        .awaited = ARENA_ARRAY(lowering->arena, bool, lowering->tensor_count),
        .event_of = arena_array_uncleared(lowering->arena, lowering->tensor_count, sizeof(int32_t[LANE_COUNT][2]))};
    note_ops(&assembly, step);
    choose_slots(&assembly, step->variants);
    carried_choose(lowering, step->variants, &step->loops);
    make_buffers(&assembly);
    make_events(&assembly);
    make_lanes(&assembly);
    copy_tables(&assembly);
    make_tables(&assembly);
    for (int32_t l = 0; l < step->loops.count; l++) {
        append_loop(&assembly, step, &step->loops.loops[l]);
    }
    Variant *optimizer = &step->variants[VARIANT_OPTIMIZER];
    for (int s = 0; s < optimizer->stretch_count; s++) {
        append_stretch(&assembly, &optimizer->stretches[s], 0, NULL);
    }
}
