// Tasks that turn tokens and positions into rows, and back, on the CPU.

#include "exec/device/cpu.h"

void cpu_load_tokens(const TaskCall *call) {
    call_load_tokens(call, call_ints(call, 0), call_ints(call, 1));
}

void cpu_embed(const TaskCall *call) {
    const KernelEmbed shape = call_vocabulary(call);
    kernel_embed(&shape, call_ints(call, 0), call_floats(call, 1), call_floats(call, 2), false);
}

void cpu_embed_backward(const TaskCall *call) {
    const KernelEmbed shape = call_vocabulary(call);
    kernel_embed_backward(&shape, call_ints(call, 0), call_floats(call, 1), call_floats(call, 2),
                          call->task->accumulate);
}

void cpu_position(const TaskCall *call) {
    const KernelEmbed shape = call_position_table(call);
    kernel_embed(&shape, call_position_entries(call), call_floats(call, 1), call_floats(call, 0), true);
}

void cpu_position_backward(const TaskCall *call) {
    const KernelEmbed shape = call_position_table(call);
    kernel_embed_backward(&shape, call->positions, call_floats(call, 0), call_floats(call, 1), call->task->accumulate);
}
