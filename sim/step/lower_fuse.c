// Pass 5b: fusion, for targets whose kernels do it. A residual add and the norm that reads its result become one task:
// x + y is written to memory once and normalized on the fly, saving a pass over memory. The add at a layer's end is
// deferred to the norm that begins the next layer, or the head; the first layer's norm has nothing to add. What
// backward recomputes is fused likewise. Not fused: sums with a bias, and norms after the halves (olmo2).

#include "sim/step/lower.h"

static bool touches(const Op *op, int32_t tensor, Access access) {
    bool found = false;
    for (int k = 0; k < op->operand_count; k++) {
        found |= op->operands[k].tensor == tensor && (op->operands[k].access & access);
    }
    return found;
}

static bool is_norm(const Op *op) {
    return op->task.kind == TASK_RMSNORM || op->task.kind == TASK_LAYERNORM;
}

// a, b -> c without a bias.
static bool is_sum(const Op *op) {
    return op->task.kind == TASK_ADD && op->operand_count == AT_ADD_BIAS;
}

static bool same_place(const OpRef *a, const OpRef *b) {
    return a->tensor == b->tensor && a->index == b->index && a->offset_bytes == b->offset_bytes && a->bytes == b->bytes;
}

// The norm adds a and b itself; `index` is their slot relative to the norm.
static void join(Op *norm, const Op *sum, int index) {
    OpRef a = sum->operands[AT_ADD_A], b = sum->operands[AT_ADD_B], c = norm->operands[AT_NORM_X];
    a.index = (int16_t)(a.index + index);
    b.index = (int16_t)(b.index + index);
    norm->task.name = "add norm";
    norm->operands[AT_NORM_X] = a;
    op_operand(norm, b, ACCESS_READ);
    op_operand(norm, c, ACCESS_WRITE);
}

static void list_remove(OpList *list, size_t at) {
    list->count--;
    for (size_t i = at; i < list->count; i++) {
        list->ops[i] = list->ops[i + 1];
    }
}

static bool changes_between(const OpList *list, size_t from, size_t to, const Op *sum) {
    bool changed = false;
    for (size_t i = from + 1; i < to; i++) {
        changed |= touches(list->ops[i], sum->operands[AT_ADD_A].tensor, ACCESS_WRITE) ||
                   touches(list->ops[i], sum->operands[AT_ADD_B].tensor, ACCESS_WRITE);
    }
    return changed;
}

// The operation before `at` that last touched the tensor; list->count = none did.
static size_t last_touch(const OpList *list, size_t at, int32_t tensor) {
    while (at-- > 0) {
        if (touches(list->ops[at], tensor, ACCESS_UPDATE)) {
            return at;
        }
    }
    return list->count;
}

static bool same_layers(const Op *a, const Op *b) {
    return a->only == b->only && a->task.share >= b->task.share && a->task.share <= b->task.share;
}

static void fuse_inside(OpList *list) {
    for (size_t i = 0; i < list->count; i++) {
        Op *norm = list->ops[i];
        const size_t at = is_norm(norm) ? last_touch(list, i, norm->operands[AT_NORM_X].tensor) : list->count;
        const Op *sum = at < list->count ? list->ops[at] : NULL;
        if (sum && is_sum(sum) && same_layers(sum, norm) &&
            same_place(&sum->operands[AT_ADD_C], &norm->operands[AT_NORM_X]) && !changes_between(list, at, i, sum)) {
            join(norm, sum, 0);
            list_remove(list, at);
            i--;
        }
    }
}

// The norm that reads the stream at this index before anything else touches it.
static size_t first_norm(const OpList *list, int32_t stream, int index) {
    size_t at = 0;
    while (at < list->count && !touches(list->ops[at], stream, ACCESS_UPDATE)) {
        at++;
    }
    const Op *op = at < list->count ? list->ops[at] : NULL;
    const bool reads =
        op && is_norm(op) && op->operands[AT_NORM_X].tensor == stream && op->operands[AT_NORM_X].index == index;
    return reads ? at : list->count;
}

// One task for the first layer only, and one for all others.
static void guard_apart(const Lowering *lowering, Op *first, Op *others) {
    first->task.layer_guard = (int16_t)(lowering->model->layers - 1);
    others->task.layer_guard = -1;
}

static void fuse_between_layers(Lowering *lowering) {
    OpList *forward = &lowering->lists[SECTION_LAYER_FORWARD], *tail = &lowering->lists[SECTION_TAIL];
    const int layers = lowering->model->layers;
    const Op *sum = forward->count > 0 ? forward->ops[forward->count - 1] : NULL;  // NULL: a stage without layers
    const int32_t stream = sum && is_sum(sum) && sum->only == 0 ? sum->operands[AT_ADD_C].tensor : -1;
    const size_t head = first_norm(forward, stream, 0), end = first_norm(tail, stream, layers);
    if (lowering_has_stages(lowering) || stream < 0 || layers < 2 || sum->operands[AT_ADD_C].index != 1 ||
        head == forward->count || end == tail->count) {
        return;
    }
    OpList fused = {0};
    for (size_t i = 0; i + 1 < forward->count; i++) {
        op_list_pass(lowering->arena, &fused, forward->ops[i]);
        if (i == head) {
            Op *joined = op_list_append(lowering->arena, &fused, forward->ops[i]);
            join(joined, sum, -1);
            guard_apart(lowering, forward->ops[i], joined);
        }
    }
    join(tail->ops[end], sum, layers - 1);
    *forward = fused;
}

void lower_fuse(Lowering *lowering) {
    if (!lowering_fuses(lowering)) {
        return;
    }
    fuse_inside(&lowering->lists[SECTION_LAYER_FORWARD]);
    fuse_inside(&lowering->lists[SECTION_LAYER_BACKWARD]);
    fuse_inside(&lowering->lists[SECTION_KEPT_BACKWARD]);
    fuse_between_layers(lowering);
}
