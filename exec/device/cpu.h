// The CPU device, and what its task files share.

#pragma once

#include "exec/device/task_call.h"

extern const DeviceTable device_cpu;

typedef void CpuTask(const TaskCall *call);

// Indexed by TaskKind; NULL for collectives and for kinds a bitwise run does not support.
extern CpuTask *const cpu_exact_tasks[TASK_KIND_COUNT];

// cpu_tasks_tokens.c
CpuTask cpu_load_tokens, cpu_embed, cpu_embed_backward, cpu_position, cpu_position_backward;
// cpu_tasks_layer.c
CpuTask cpu_norm, cpu_norm_backward, cpu_qk_norm, cpu_qk_norm_backward, cpu_column_sum, cpu_gemm, cpu_rope, cpu_gated,
    cpu_gated_backward, cpu_activation, cpu_activation_backward;
// cpu_tasks_experts.c
CpuTask cpu_route, cpu_route_backward, cpu_permute, cpu_unpermute, cpu_unpermute_backward, cpu_grouped_gemm,
    cpu_expert_bias_gradient;
// cpu_tasks_attention.c
CpuTask cpu_attention, cpu_attention_backward;
// cpu_tasks_cast.c
CpuTask cpu_copy, cpu_unpack, cpu_accumulate, cpu_zero;
// cpu_tasks_step.c
CpuTask cpu_add, cpu_loss_max, cpu_loss_sum, cpu_loss_gradient, cpu_loss, cpu_square_sum, cpu_exact_square_sum,
    cpu_clip, cpu_adamw;
