// What the Python of Megatron-core's modules costs the host forward, in operations of 13 us (sim/SOURCES.md H7).
// Measured by running a TransformerLayer with experts of Megatron-core 0.16 (b0cc2706) and Transformer Engine 2.12 with
// their kernels and collectives replaced by functions that return at once (one thread, AMD EPYC, least of 400 in three
// runs, inside the layer, so that caches are as in training), scaled so that its TERowParallelLinear in bf16, 96.1 us
// there, is the 115 us that Transformer Engine's PR 1191 has for TEColumnParallelLinear in Megatron-LM. Attention's
// part comes to 1.73 ms so, and to 1.79 at least in a trace of Qwen3 30B on B200 (yanring/Megatron-MoE-ModelZoo issue
// 7). Linear layers were published as a whole (host.c), with the norm that is in them; backward is issued from C++ and
// comes to a tenth more than host.c has.

#include "sim/cost/compute.h"

static const double operations_per_us = 115.0 / 96.1 / 13;

// us, as measured: RMSNorm as a fusible operation; SelfAttention beside its parts, with rotary positions;
// DotProductAttention; bias, dropout and sum with the layer's own Python; RouterGatingLinear; TopKRouter beside it,
// with scores for the loss that balances; dispatch_preprocess of all-to-all
static const double norm_us = 140, rope_us = 140, attention_us = 447, add_us = 250, gate_us = 108, choose_us = 360,
                    count_us = 328;
// The same run of Moonlight's layer (its recipe in Megatron-Bridge 067f987df: neither router nor rotary positions
// fused), over what is fused there: TopKRouter by a sigmoid with a bias of its experts and a loss for each sequence;
// MLASelfAttention beside its parts.
static const double choose_apart_us = 690, latent_rope_us = 500;

// Tokens are put in order and counts sent in dispatch_preprocess as well; what is launched of it is counted apart.
enum { COUNTED_OF_PREPROCESS = 4 };

double module_forward_operations(const Target *target, const TrainPlan *plan, const Task *task) {
    if (task->phase != PHASE_FORWARD || task->part == 0) {
        return 0;
    }
    const bool of_router = task->part == GRAPHED_ROUTER;
    switch (task->kind) {
    case TASK_RMSNORM:
    case TASK_LAYERNORM:  // before a router; others are part of the linear layer behind them
        return of_router ? norm_us * operations_per_us : 0;
    case TASK_QK_NORM:
        return 2 * norm_us * operations_per_us;
    case TASK_ROPE:
        return (target->runtime.turns_apart ? latent_rope_us : rope_us) * operations_per_us;
    case TASK_ATTENTION:  // one module, whatever the blocks of a ring
        return task->ring_step == 0 ? attention_us * operations_per_us : 0;
    case TASK_ADD:
        return add_us * operations_per_us;
    case TASK_GEMM:
        return of_router ? gate_us * operations_per_us : 0;
    case TASK_ROUTE:  // with a fused router; one of PyTorch's operations is counted (expert_apart.c)
        return target->runtime.routes_apart
                   ? 0
                   : (target->runtime.chooses_apart ? choose_apart_us : choose_us) * operations_per_us;
    case TASK_ALL_TO_ALL:
        return task->awaited && target_dispatch(target, plan) == DISPATCH_ALLTOALL
                   ? count_us * operations_per_us - COUNTED_OF_PREPROCESS
                   : 0;
    default:
        return 0;
    }
}
