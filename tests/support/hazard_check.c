// The checker: the whole program is unrolled and walked once in issue order over the bytes that it touches. Per cell of
// bytes the last writer and, per lane, the last reader since are enough: any earlier access is ordered before them. It
// detects
//   - two accesses to the same bytes, one of them a write, that happens-before leaves open;
//   - a read of bytes that another slot sharing them has overwritten, or that nobody has written;
//   - two operands of one task in different buffers on the same bytes; an access outside its buffer's slot.
// The first and the last rank are resolved. Not modelled: gaps between the rows of a strided access count as touched.

#include "tests/support/hazard_check.h"

#include <string.h>

#include "sim/memory/happens_before.h"
#include "sim/step/slots.h"
#include "tests/support/byte_cells.h"

enum { SLOTS_MOST = 1 << 12 };  // of a buffer

typedef struct Checker {
    const HappensBefore *order;
    const StepProgram *program;
    const MemoryPlan *plan;
    ByteCells cells;
    int32_t *writer;       // of each cell: instance, -1 = never written
    int32_t *writer_slot;  // numbered over all buffers
    int32_t *reader;       // [cells][lane]: latest reader since the last write, -1 = none
    HazardReport *report;
    Error *error;
} Checker;

// One operand of the current instance.
typedef struct Use {
    int32_t instance;
    const Operand *operand;
    ByteRange range;
    int32_t first_cell, slot;  // numbered over all buffers
} Use;

static const Task *instance_task(const Checker *checker, int32_t instance) {
    return &checker->program->tasks[checker->order->instances[instance].task];
}

// "'qkv' (layer 3, micro-step 0, lane compute)"
static const char *instance_text(const Checker *checker, int32_t instance, char out[160]) {
    const StepInstance *at = &checker->order->instances[instance];
    const Task *task = instance_task(checker, instance);
    snprintf(out, 160, "'%s' (layer %d, micro-step %d, lane %s)", task->name, at->layer, at->micro_step,
             checker->program->lanes[task->lane].name);
    return out;
}

// The buffer through which an earlier instance touched a byte range.
static const char *toucher_buffer_name(const Checker *checker, int32_t instance, ByteRange bytes, Access access) {
    const Task *task = instance_task(checker, instance);
    for (int32_t i = 0; i < task->operand_count; i++) {
        const Operand *operand = task_operand(checker->program, task, i);
        if (operand->ref.buffer < 0 || !((unsigned)operand->access & (unsigned)access)) {
            continue;
        }
        const ByteRange range = byte_cells_range(&checker->cells, &operand->ref, &checker->order->instances[instance]);
        if (range.begin < bytes.end && range.end > bytes.begin) {
            return checker->program->buffers[operand->ref.buffer].name;
        }
    }
    return "?";
}

static Status report_race(const Checker *checker, const Use *use, bool writes, int32_t cell, int32_t other,
                          Access other_access) {
    char first[160], second[160];
    const ByteRange bytes = {.begin = checker->cells.cut[cell], .end = checker->cells.cut[cell + 1]};
    return error_set(checker->error, STATUS_INTERNAL,
                     "nothing orders %s, which %s bytes %lld to %lld through '%s', and %s, which %s them through '%s'",
                     instance_text(checker, other, first), other_access == ACCESS_WRITE ? "writes" : "reads",
                     (long long)bytes.begin, (long long)bytes.end,
                     toucher_buffer_name(checker, other, bytes, other_access),
                     instance_text(checker, use->instance, second), writes ? "writes" : "reads",
                     checker->program->buffers[use->operand->ref.buffer].name);
}

static Status report_content(const Checker *checker, const Use *use, int32_t cell) {
    char reader[160], writer[160];
    const char *name = checker->program->buffers[use->operand->ref.buffer].name;
    const long long begin = (long long)checker->cells.cut[cell];
    const long long end = (long long)checker->cells.cut[cell + 1];
    instance_text(checker, use->instance, reader);
    if (checker->writer[cell] < 0) {
        return error_set(checker->error, STATUS_INTERNAL,
                         "%s reads bytes %lld to %lld of '%s', which starts at %lld: nothing has written them", reader,
                         begin, end, name, (long long)checker->cells.base[use->operand->ref.buffer]);
    }
    return error_set(checker->error, STATUS_INTERNAL,
                     "%s reads bytes %lld to %lld of '%s' after %s overwrote them through '%s'", reader, begin, end,
                     name, instance_text(checker, checker->writer[cell], writer),
                     checker->program->buffers[checker->writer_slot[cell] / SLOTS_MOST].name);
}

static int32_t slot_of(const Checker *checker, const BufferRef *ref, const StepInstance *at) {
    const int32_t slot = step_slot(&checker->program->buffers[ref->buffer], ref->index, at);
    ASSERT(slot < SLOTS_MOST);
    return ref->buffer * SLOTS_MOST + slot;
}

static bool ordered(Checker *checker, int32_t earlier, int32_t later) {
    checker->report->pairs_checked++;
    return earlier == later || happens_before(checker->order, earlier, later);
}

static Status check_read(Checker *checker, const Use *use) {
    const int32_t buffer = use->operand->ref.buffer;
    const int lane = happens_before_lane(checker->order, use->instance);
    for (int32_t cell = use->first_cell; checker->cells.cut[cell] < use->range.end; cell++) {
        const int32_t writer = checker->writer[cell];
        if (writer >= 0 && !ordered(checker, writer, use->instance)) {
            return report_race(checker, use, false, cell, writer, ACCESS_WRITE);
        }
        if (writer < 0 ? !checker->program->buffers[buffer].persistent : checker->writer_slot[cell] != use->slot) {
            return report_content(checker, use, cell);
        }
        checker->reader[cell * checker->order->stride + lane] = use->instance;
    }
    return STATUS_OK;
}

static Status check_write(Checker *checker, const Use *use) {
    for (int32_t cell = use->first_cell; checker->cells.cut[cell] < use->range.end; cell++) {
        if (checker->writer[cell] >= 0 && !ordered(checker, checker->writer[cell], use->instance)) {
            return report_race(checker, use, true, cell, checker->writer[cell], ACCESS_WRITE);
        }
        int32_t *readers = checker->reader + cell * checker->order->stride;
        for (int32_t lane = 0; lane < checker->program->lane_count; lane++) {
            if (readers[lane] >= 0 && !ordered(checker, readers[lane], use->instance)) {
                return report_race(checker, use, true, cell, readers[lane], ACCESS_READ);
            }
            readers[lane] = -1;
        }
        checker->writer[cell] = use->instance;
        checker->writer_slot[cell] = use->slot;
    }
    return STATUS_OK;
}

static Status check_inside_slot(Checker *checker, const Use *use) {
    const Buffer *buffer = &checker->program->buffers[use->operand->ref.buffer];
    const int64_t begin = use->range.begin - checker->cells.base[use->operand->ref.buffer];
    if (begin >= 0 && use->operand->ref.bytes > 0 &&
        begin % buffer->slot_bytes + use->operand->ref.bytes <= buffer->slot_bytes) {
        return STATUS_OK;
    }
    char text[160];
    return error_set(checker->error, STATUS_INTERNAL, "%s touches %lld bytes from %lld of '%s', whose slots have %lld",
                     instance_text(checker, use->instance, text), (long long)use->operand->ref.bytes, (long long)begin,
                     buffer->name, (long long)buffer->slot_bytes);
}

// Operands of one task in different buffers must not overlap; in one buffer that is the kernel's in-place form.
static Status check_operands_apart(Checker *checker, const Use *uses, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        for (int32_t j = 0; j < i; j++) {
            const bool meet = uses[i].range.begin < uses[j].range.end && uses[j].range.begin < uses[i].range.end;
            const bool reads = uses[i].operand->access == ACCESS_READ && uses[j].operand->access == ACCESS_READ;
            if (meet && !reads && uses[i].operand->ref.buffer != uses[j].operand->ref.buffer) {
                char text[160];
                return error_set(checker->error, STATUS_INTERNAL,
                                 "%s uses '%s' and '%s' at the same bytes %lld to %lld",
                                 instance_text(checker, uses[i].instance, text),
                                 checker->program->buffers[uses[j].operand->ref.buffer].name,
                                 checker->program->buffers[uses[i].operand->ref.buffer].name,
                                 (long long)uses[i].range.begin, (long long)uses[i].range.end);
            }
        }
    }
    return STATUS_OK;
}

enum { MAX_OPERANDS = 64 };

static Status check_instance(Checker *checker, int32_t instance) {
    const Task *task = instance_task(checker, instance);
    Use uses[MAX_OPERANDS];
    int32_t count = 0;
    ASSERT(task->operand_count <= MAX_OPERANDS);
    for (int32_t i = 0; i < task->operand_count; i++) {
        const Operand *operand = task_operand(checker->program, task, i);
        if (operand->ref.buffer >= 0) {
            const StepInstance *at = &checker->order->instances[instance];
            uses[count] = (Use){.instance = instance,
                                .operand = operand,
                                .range = byte_cells_range(&checker->cells, &operand->ref, at)};
            TRY(check_inside_slot(checker, &uses[count]));
            uses[count].first_cell = byte_cells_find(&checker->cells, uses[count].range.begin);
            uses[count].slot = slot_of(checker, &operand->ref, at);
            count++;
        }
    }
    checker->report->accesses += count;
    TRY(check_operands_apart(checker, uses, count));
    for (int32_t i = 0; i < count; i++) {
        if (uses[i].operand->access != ACCESS_WRITE) {
            TRY(check_read(checker, &uses[i]));
        }
    }
    for (int32_t i = 0; i < count; i++) {
        if (uses[i].operand->access != ACCESS_READ) {
            TRY(check_write(checker, &uses[i]));
        }
    }
    return STATUS_OK;
}

static Status check_rank(Checker *checker, int rank, Arena *arena) {
    const MeshCoordinates at = mesh_coordinates(&checker->program->plan.mesh, rank);
    byte_cells_build(checker->program, checker->plan, &at, arena, &checker->cells);
    const size_t count = (size_t)checker->cells.count;
    checker->writer = ARENA_ARRAY(arena, int32_t, count);
    checker->writer_slot = ARENA_ARRAY(arena, int32_t, count);
    checker->reader = ARENA_ARRAY(arena, int32_t, count * (size_t)checker->order->stride);
    memset(checker->writer, 0xff, count * sizeof(int32_t));  // -1
    memset(checker->reader, 0xff, count * (size_t)checker->order->stride * sizeof(int32_t));
    for (int32_t i = 0; i < checker->order->count; i++) {
        TRY(check_instance(checker, i));
    }
    checker->report->instances += checker->order->count;
    return STATUS_OK;
}

Status hazard_check(const StepProgram *program, const MemoryPlan *plan, Arena *arena, HazardReport *report,
                    Error *error) {
    HappensBefore order;
    HazardReport unwanted;
    Checker checker = {
        .order = &order, .program = program, .plan = plan, .report = report ? report : &unwanted, .error = error};
    *checker.report = (HazardReport){0};
    happens_before_build(program, arena, &order);
    const int last_rank = mesh_world(&program->plan.mesh) - 1;
    for (int rank = 0; rank <= last_rank; rank += last_rank > 0 ? last_rank : 1) {
        if (check_rank(&checker, rank, arena) != STATUS_OK) {
            return error_wrap(error, "hazard check, rank %d", rank);
        }
    }
    return STATUS_OK;
}
