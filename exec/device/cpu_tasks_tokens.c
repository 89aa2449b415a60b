// Tasks that turn tokens and positions into rows, and back, on the CPU.

#include "exec/device/cpu.h"

void cpu_load_tokens(const TaskCall *call) {
    call_load_tokens(call, call_ints(call, AT_LOAD_TOKENS), call_ints(call, AT_LOAD_TARGETS));
}

void cpu_embed(const TaskCall *call) {
    const KernelEmbed shape = call_vocabulary(call);
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
