// What the Python of Megatron-core's modules costs the host, in operations of 13 us (sim/SOURCES.md H7), with what they
// launch. Measured by running GPTModel of Megatron-core 0.16 (b0cc2706) and Transformer Engine 2.12 under its DDP and
// schedule, kernels and NCCL replaced by functions that return at once, torch.compile by PyTorch 2.6's inductor (one
// thread of an AMD EPYC, the twentieth part of 60 to 400 calls inside the model, so that caches are as in training).
// TEColumnParallelLinear takes 115 us in Megatron-LM (Transformer Engine's PR 1191), of which a call of cuBLAS is 20.3
// (host.c); the rest is to the two TERowParallelLinear of a layer, 67.5 us there in the mean, as every other module's
// Python is to its own (TIMED_PYTHON); 20.3 and 10.3 us are added for each call of cuBLAS and each launch. Backward of
// a Linear comes to 98 us so, where PR 3523's 311 us both ways on Grace, 1.36 times as slow as that host, leave 114.
// That scale is one of three that can be defended, taken after Megatron's tests had been seen, whose bias on these (292
// steps, by estimate) was -1.8 % with it. 115 less the call over the 73 us of one TERowParallelLinear, 1.30, has -6.6,
// 115 over 73, 1.64, +9.1.
// tests/accuracy/megatron_ci/RESULTS.md, "The modules both ways".

#include "sim/cost/compute.h"

// Transformer Engine's PR 3523: 440.9 us in mxfp8, 311.3 in bf16.
static const double fp8_factor = 440.9 / 311.3;

typedef struct ModuleHost {
    float forward_us, backward_us;
} ModuleHost;

// Core attention (DotProductAttention), and the rest of SelfAttention beside the modules that it calls.
enum { CORE_ATTENTION_US = 431, REST_OF_ATTENTION_US = 135 };

// A layer's, by the task that stands for the module.
static const ModuleHost of_layer[TASK_KIND_COUNT] = {
    [TASK_RMSNORM] = {53, 0},  // part of the linear layer behind it
    [TASK_LAYERNORM] = {53, 0},
    [TASK_RMSNORM_BACKWARD] = {0, 41},
    [TASK_LAYERNORM_BACKWARD] = {0, 41},
    [TASK_GEMM] = {115, 49},  // backward two
    [TASK_COLUMN_SUM] = {0, 10},
    [TASK_QK_NORM] = {326, 0},  // two, as fusible operations
    [TASK_QK_NORM_BACKWARD] = {0, 182},
    [TASK_ROPE] = {30, 40},
    [TASK_ATTENTION] = {CORE_ATTENTION_US + REST_OF_ATTENTION_US, 0},  // heads put together again
    [TASK_ATTENTION_BACKWARD] = {0, 105},
    [TASK_ACTIVATION] = {115, 0},
    [TASK_ACTIVATION_BACKWARD] = {0, 76},
    [TASK_SWIGLU] = {115, 0},
    [TASK_SWIGLU_BACKWARD] = {0, 76},
    // bias, dropout and sum, with the layer's own Python; compiled, and what of autograd is no module's
    [TASK_ADD] = {265, 0},
    [TASK_COPY] = {0, 210},
};

// Back through bias, dropout and sum, and what of autograd is no module's: Python of a compiled function, called
// whether or not it drops (fusions/fused_bias_dropout.py; without dropout 450 of a layer's 755 us back were outside
// linear layers and SwiGLU). Where it drops there is a copy, which has it and its launch. It is called as well where
// sequences are split over ranks, but not charged: with tp something else is too much there, and what is not known
// (tests/accuracy/megatron_ci/RESULTS.md, "Without dropout").
static const double sum_backward_us = 200;

// Older releases take longer in Python: by what share in a loop (sim/SOURCES.md H12), of what a module above has
// without its launches. Attention of 2.11 was not timed and is as 2.12's.
static const ModuleHost linear_python = {94.7F, 28.7F}, norm_python = {42.7F, 30.7F};
static const float attention_python_us = 410;
typedef struct OlderPython {
    ModuleHost linear, norm;  // shares more
    float attention;
} OlderPython;

static const OlderPython older_python[ENGINE_RELEASE_COUNT] = {
    [ENGINE_2_11] = {{7 / 31.0F, 8 / 72.0F}, {0, 2 / 46.0F}, 0},
    [ENGINE_2_9] = {{20 / 31.0F, 16 / 72.0F}, {4 / 17.0F, 2 / 46.0F}, 6 / 128.0F},
    [ENGINE_2_7] = {{14 / 31.0F, 0}, {4 / 17.0F, 9 / 46.0F}, -16 / 128.0F},
};

static double share_us(const ModuleHost *share, const ModuleHost *python, bool forward) {
    return forward ? (double)(share->forward_us * python->forward_us)
                   : (double)(share->backward_us * python->backward_us);
}

// Of a layer's task, beyond what the newest takes.
static double older_us(const Target *target, const Task *task, bool forward) {
    const OlderPython *older = &older_python[target->runtime.engine_release];
    switch (task->kind) {
    case TASK_GEMM:
        return target->runtime.torch_linears ? 0 : share_us(&older->linear, &linear_python, forward);
    case TASK_RMSNORM:
    case TASK_LAYERNORM:
    case TASK_RMSNORM_BACKWARD:
    case TASK_LAYERNORM_BACKWARD:
        return share_us(&older->norm, &norm_python, forward);
    case TASK_ATTENTION:
        return (double)(older->attention * attention_python_us);
    default:
        return 0;
    }
}

// A half's, at the norm that it begins with.
static double undropped_sum_us(const Target *target, const TrainPlan *plan, const Task *task) {
    const bool norm = task->kind == TASK_RMSNORM_BACKWARD || task->kind == TASK_LAYERNORM_BACKWARD;
    const bool split = plan->mesh.size[AXIS_CP] > 1 || plan->mesh.size[AXIS_SP] > 1;
    return norm && task->part != 0 && !task->within && !target->halves_drop && !split ? sum_backward_us : 0;
}

// The way to experts: RMSNorm before the router as a fusible operation, RouterGatingLinear (backward two products).
static const ModuleHost of_router[TASK_KIND_COUNT] = {
    [TASK_RMSNORM] = {163, 0},           [TASK_LAYERNORM] = {163, 0}, [TASK_RMSNORM_BACKWARD] = {0, 91},
    [TASK_LAYERNORM_BACKWARD] = {0, 91}, [TASK_GEMM] = {124, 70},
};

// Around the layers, in each micro-step: embedding with positions and dropout; the last norm as a fusible operation;
// the head (ColumnParallelLinear, backward two products); the loss over a split vocabulary with loss_func of
// pretrain_gpt.py.
static const ModuleHost of_edges[TASK_KIND_COUNT] = {
    [TASK_EMBED] = {514, 0},     [TASK_EMBED_BACKWARD] = {0, 100},   [TASK_RMSNORM] = {307, 0},
    [TASK_LAYERNORM] = {307, 0}, [TASK_RMSNORM_BACKWARD] = {0, 153}, [TASK_LAYERNORM_BACKWARD] = {0, 153},
    [TASK_GEMM] = {365, 136},    [TASK_LOSS_SUM] = {1026, 0},        [TASK_LOSS_GRADIENT] = {155, 155},
};

// Experts in groups (TEGroupedMLP), in a layer as above, 2 to 32 of a rank: a product's GroupedLinear 98 us and 4.4 an
// expert forward, 66 and 4.7 back (two products); 140 between the products, with their rows' weights, back as a dense
// activation. Not at the scale above, which has a Linear of 2024 in it, 1.45 times as long in Python as the one that
// ran here; of these no figure is published. No product's launch is counted beside it.
static const ModuleHost of_experts[TASK_KIND_COUNT] = {
    [TASK_SWIGLU] = {140, 0},
    [TASK_ACTIVATION] = {140, 0},
    [TASK_SWIGLU_BACKWARD] = {0, 54},
    [TASK_ACTIVATION_BACKWARD] = {0, 54},
};
static const ModuleHost of_group = {98, 33}, of_grouped = {4.4F, 2.35F};

double module_grouped_operations(const Task *task) {
    if (task->kind != TASK_GROUPED_GEMM) {
        return 0;
    }
    const bool forward = task->phase != PHASE_BACKWARD;
    const double once_us = (double)(forward ? of_group.forward_us : of_group.backward_us);
    return (once_us + (double)(forward ? of_grouped.forward_us : of_grouped.backward_us) * (double)task->groups) /
           OPERATION_US;
}

// forward_step, DDP, GPTModel and TransformerBlock around a chunk's layers, and backward_step.
static const double chunk_forward_us = 755, chunk_backward_us = 120;

// A chunk's pass begins with tokens or a message, back with the last norm or a message.
static double chunk_us(const Task *task) {
    const bool message = task->kind == TASK_RECEIVE, forward = task->phase != PHASE_BACKWARD;
    const bool last_norm = task->kind == TASK_RMSNORM_BACKWARD || task->kind == TASK_LAYERNORM_BACKWARD;
    const bool begins = message || (forward ? task->kind == TASK_EMBED : last_norm);
    return task->part != 0 || !begins ? 0 : forward ? chunk_forward_us : chunk_backward_us;
}

// TopKRouter beside its product, with scores for the loss that balances; dispatch_preprocess of all-to-all.
// Moonlight's (its recipe in Megatron-Bridge 067f987df fuses neither router nor rotary positions) took 690 us for 360,
// by a sigmoid with a bias of its experts and a loss for each sequence, and MLASelfAttention beside its parts 500 for
// 140: _apply_rotary_pos_emb_bshd twice, 12 launches each, which other attention runs without a concatenation less.
static const double choose_us = 383, count_us = 348, choose_apart_us = 734, apart_rope_us = 400;

// Tokens are put in order and counts sent in dispatch_preprocess as well; what is launched of it is counted apart.
enum { COUNTED_OF_PREPROCESS = 4 };

static double on_the_way_us(const Target *target, const TrainPlan *plan, const Task *task) {
    if (task->phase != PHASE_FORWARD && task->phase != PHASE_RECOMPUTE) {
        return 0;
    }
    if (task->kind == TASK_ROUTE) {  // with a fused router; one of PyTorch's operations is counted (expert_apart.c)
        return target->runtime.routes_apart ? 0 : target->runtime.router_rope_apart ? choose_apart_us : choose_us;
    }
    const bool counts = task->kind == TASK_ALL_TO_ALL && task->awaited;
    return counts && target_dispatch(target, plan) == DISPATCH_ALLTOALL
               ? count_us - COUNTED_OF_PREPROCESS * OPERATION_US
               : 0;
}

// By separate operations beside FusedAttnFunc (UnfusedDotProductAttention, NVTE_FUSED_ATTN off): 420 us forward;
// Megatron-core's own DotProductAttention takes as long as Transformer Engine's with the kernel (286 and 284 us there).
// Back eight operations of autograd more.
static const double parts_us = 420, parts_backward_us = 110;

static double parts_us_of(const Target *target, const TrainPlan *plan, const Task *task) {
    if (plan->attention != ATTENTION_EAGER) {
        return 0;
    }
    const double forward_us = target->runtime.torch_linears ? 0 : parts_us;
    return task->kind == TASK_ATTENTION ? forward_us : task->kind == TASK_ATTENTION_BACKWARD ? parts_backward_us : 0;
}

// Blocks of a ring (AttnFuncWithCPAndKVP2P): in place of the one call what sets the ring up, beside its pack, gather
// and scatter, then a block's call, its order and sums.
static const double ring_set_up_us = 390, ring_block_us = 270, ring_block_backward_us = 30;

static bool is_later_block(const Task *task) {
    return task->ring_step > 0 && (task->kind == TASK_ATTENTION || task->kind == TASK_ATTENTION_BACKWARD);
}

static double ring_us(const TrainPlan *plan, const Task *task) {
    return task->kind == TASK_ATTENTION && plan->mesh.size[AXIS_CP] > 1 ? ring_set_up_us : 0;
}

// What is recomputed calls its modules anew (tensor_parallel/random.py, CheckpointFunction.backward: run_function).
// Core attention alone is without the rest of SelfAttention. The model's edges run once.
static double spared_us(const TrainPlan *plan, const Task *task) {
    const bool core = plan->recompute == RECOMPUTE_SELECTIVE && task->phase == PHASE_RECOMPUTE;
    return core && task->kind == TASK_ATTENTION ? REST_OF_ATTENTION_US : 0;
}

// Without a bias GELU is an operation of PyTorch, not compiled (transformer/mlp.py, bias_activation_fusion).
static bool is_plain_gelu(const Target *target, const Task *task) {
    return target->runtime.plain_gelu && (task->kind == TASK_ACTIVATION || task->kind == TASK_ACTIVATION_BACKWARD);
}

// In no part of a layer those between products of experts: a dense half's are in its own.
static bool is_of_experts(const Task *task) {
    return task->part == 0 && (task->kind == TASK_SWIGLU || task->kind == TASK_SWIGLU_BACKWARD ||
                               task->kind == TASK_ACTIVATION || task->kind == TASK_ACTIVATION_BACKWARD);
}

static bool calls_modules(const Task *task) {
    return task->phase == PHASE_FORWARD || task->phase == PHASE_LOSS || task->phase == PHASE_BACKWARD ||
           (task->phase == PHASE_RECOMPUTE && (task->part != 0 || is_of_experts(task)));
}

double module_host_operations(const Target *target, const TrainPlan *plan, const Task *task) {
    if (!calls_modules(task)) {
        return 0;
    }
    if (is_later_block(task)) {
        return (task->phase != PHASE_BACKWARD ? ring_block_us : ring_block_backward_us) / OPERATION_US;
    }
    const ModuleHost *apart = is_of_experts(task) && !target->runtime.experts_one_by_one ? of_experts : of_edges;
    const ModuleHost *rows = task->part == 0 ? apart : task->part == GRAPHED_ROUTER ? of_router : of_layer;
    const ModuleHost *row = &rows[task->kind];
    const bool forward = task->phase != PHASE_BACKWARD;
    if (forward && task->kind == TASK_ROPE && target->runtime.router_rope_apart) {
        return apart_rope_us / OPERATION_US;
    }
    if (is_plain_gelu(target, task)) {
        return 1;
    }
    const double newest_us = (double)(forward ? row->forward_us : row->backward_us);
    const double us = newest_us + (rows == of_layer ? older_us(target, task, forward) : 0);
    const double fp8 = task->kind == TASK_GEMM && task->dtype == DTYPE_FP8 ? fp8_factor : 1;
    const double called_us =
        us > 0 ? us * fp8 + ring_us(plan, task) + parts_us_of(target, plan, task) - spared_us(plan, task)
               : on_the_way_us(target, plan, task);
    return (called_us + chunk_us(task) + undropped_sum_us(target, plan, task)) / OPERATION_US;
}
