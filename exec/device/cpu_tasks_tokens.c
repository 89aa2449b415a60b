// Tasks that map tokens and positions to rows, and back, on the CPU.

#include "exec/device/cpu.h"

#include "sim/base/bf16.h"

void cpu_load_tokens(const TaskCall *call) {
    call_load_tokens(call, call_ints(call, AT_LOAD_TOKENS), call_ints(call, AT_LOAD_TARGETS));
}

// Rows of a bf16 table.
static void embed_halves(const KernelEmbed *shape, const int32_t *entries, const uint16_t *table, uint16_t *x) {
    for (int64_t row = 0; row < shape->rows; row++, x += shape->cols) {
        const int64_t entry = entries[row] - shape->first;
        const uint16_t *from = table + entry * shape->cols;
        for (int64_t i = 0; i < shape->cols; i++) {
            x[i] = entry >= 0 && entry < shape->range ? bf16_of(shape->scale * bf16_value(from[i])) : 0;
        }
    }
}

void cpu_embed(const TaskCall *call) {
    const KernelEmbed shape = call_vocabulary(call);
    if (call_dtype(call, AT_EMBED_X) == DTYPE_BF16 && call_dtype(call, AT_EMBED_TABLE) == DTYPE_BF16) {
        embed_halves(&shape, call_ints(call, AT_EMBED_TOKENS), call_halves(call, AT_EMBED_TABLE),
                     call_halves(call, AT_EMBED_X));
        return;
    }
    kernel_embed(&shape, call_ints(call, AT_EMBED_TOKENS), call_floats(call, AT_EMBED_TABLE),
                 call_floats(call, AT_EMBED_X), false);
}

void cpu_embed_backward(const TaskCall *call) {
    const KernelEmbed shape = call_vocabulary(call);
    kernel_embed_backward(&shape, call_ints(call, AT_EMBED_BACKWARD_TOKENS), call_floats(call, AT_EMBED_BACKWARD_DX),
                          call_floats(call, AT_EMBED_BACKWARD_DTABLE), call->task->accumulate);
}

void cpu_position(const TaskCall *call) {
    const KernelEmbed shape = call_position_table(call);
    kernel_embed(&shape, call_position_entries(call), call_floats(call, AT_POSITION_TABLE),
                 call_floats(call, AT_POSITION_X), true);
}

void cpu_position_backward(const TaskCall *call) {
    const KernelEmbed shape = call_position_table(call);
    kernel_embed_backward(&shape, call->positions, call_floats(call, AT_POSITION_X),
                          call_floats(call, AT_POSITION_TABLE), call->task->accumulate);
}
