// What running a program costs beyond its tasks, explicit; is its runner's.

#pragma once

#include <stdbool.h>

// The loss over a split vocabulary by separate operations, bytes a logit (Megatron-LM's mpu/cross_entropy.py of 2020 to
// core's tensor_parallel/cross_entropy.py of today): to fp32 6, largest 4, less it 8, exp 8, sum 4, over it 8; backward
// times the gradient 8, to bf16 6. By its fused kernel largest and sum are no passes of their own.
#define SPLIT_LOSS_BYTES 52.0
#define SPLIT_LOSS_FUSED_BYTES 44.0

// Megatron-core's optimizer, us of a DGX H100's host for each parameter tensor of the rank (measured as its modules,
// sim/cost/module_host.c: 148 tensors, bf16, zero 0): gradients copied 6.8, norm 5.9, clipped 6.0, FusedAdam and copies
// back 16.7, zeroed and handed over 5.2. With --log-num-zeros-in-grad and --log-params-norm: 21.5 and three launches of
// 4.2 a tensor, and 3 (count_zeros_fp32 in optimizer/clip_grads.py, calc_params_l2_norm).
#define CORE_UPDATE_HOST_S 36e-6
#define CORE_COUNTED_HOST_S 34.5e-6

// FSDP 2 has hooks that go over a unit's parameters one by one, FSDP 1 one flat parameter, Megatron-core's own FSDP one
// more behind each gradient.
typedef enum ShardHooks {
    SHARD_HOOKS_NONE,
    SHARD_HOOKS_BY_PARAMETER,
    SHARD_HOOKS_FLAT,
    SHARD_HOOKS_BY_GRADIENT,
    SHARD_HOOKS_COUNT
} ShardHooks;

// Releases of Transformer Engine whose Python was timed (sim/cost/module_host.c).
typedef enum EngineRelease { ENGINE_2_12, ENGINE_2_11, ENGINE_2_9, ENGINE_2_7, ENGINE_RELEASE_COUNT } EngineRelease;

typedef struct TargetRuntime {
    double host_s_per_op;      // host time to issue one operation
    bool follows_processor;    // host_s_per_op is of a DGX H100's processor, not of the one that it was seen on
    double host_pace;          // of the cluster's processor (Node); 0 = that one's
    double module_operations;  // that one counts as in modules of Transformer Engine's layers, host late; 0 = one
    bool hooks_modules;        // stage 3: Python around each module of the model (sim/cost/hook_host.c)
    ShardHooks shard_hooks;    // the same around each unit that is sharded (sim/cost/shard_host.c)
    // Forward is under torch.autocast where nothing is sharded; and where it is (sim/cost/autocast.c)
    bool autocasts, autocasts_shards;
    bool checks_loss;              // of each micro-step, for which the host waits
    bool torch_linears;            // layers of Megatron-core are its own, not Transformer Engine's
    EngineRelease engine_release;  // 2.12: or later
    bool plain_gelu;     // an MLP without gate and bias has PyTorch's, where Megatron-core compiles the bias with it
    bool fills_results;  // deterministic: what is allocated is filled first
    // Experts without switches of Megatron-core: the router and the order of tokens are operations of PyTorch (neither
    // moe-router-fusion nor moe-permute-fusion); each expert is an MLP of modules (no moe-grouped-gemm); no loss
    // balances the choice (moe-aux-loss-coeff is 0, its default); rounds of Sinkhorn's balance, each read (0: none)
    bool routes_apart, experts_one_by_one, balances_nothing;
    int sinkhorn_rounds;
    bool scatters_rows;  // of experts, and the gradients of those picked, by scatter_add
    // Or rows are picked by an index, whose gradient is put in sorted order; so are their sums (scatter_add among
    // deterministic algorithms)
    bool indexes_rows, sums_sorted;
    bool indexes_experts;  // so are, of ranks that have all experts, results in the order of tokens and each row's bias
    bool repeats_biases;   // experts' biases are repeated for each row by an index, which a compiler leaves to PyTorch
    // Liger's fused loss casts a part's gradient of the head to fp32 and adds it by an operation of its own (0.6.2 to
    // 0.8.2, ops/fused_linear_cross_entropy.py; before and since, the product adds)
    bool casts_loss_sums;
    bool pads_alone;      // experts of one rank, too, have their rows ordered once more, to pad them
    bool routes_in_fp32;  // moe-router-dtype: where all ranks' tokens are gathered their results are summed in it
    // Neither moe-router-fusion nor rope-fusion; the order of tokens is a kernel
    bool router_rope_apart;
    // Host time of a collective that ranks check beforehand, and of each message of the check inside a node and between
    double check_s, check_message_s, check_message_between_s;
    bool checks_collectives;  // always (TORCH_DISTRIBUTED_DEBUG=DETAIL, sim/cost/checked.c); else where stages of a
                              // pipeline are on nodes of their own
    bool messages_stop_host;  // until a message between stages, of stages with one chunk, has ended, nothing is issued
    bool messages_announced;  // or until it is known of and what is sent is there: its data may still be on the way
    double message_sleep_s;   // both hosts sleep at each message from when they are there, where the job is on so many
    int stalls_from_nodes, stalls_from_tp_nodes;  // nodes, or a tp group
    bool sums_apart;      // an operation of its own adds to a weight's gradient what a later micro-step's product wrote
    bool launches_wait;   // nothing is issued until the kernel before has ended (CUDA_LAUNCH_BLOCKING=1)
    double lost_lead;     // of host time beyond a kernel's own, what the device idles after it (sim/cost/host.c)
    double other_share;   // of layers' device time on top: not explained by anything modelled
    double step_fixed_s;  // step edges: data, logging, zero_grad unless update_host_s_per_tensor has it
    // While the device waits: for each token of a micro-step; once a step for each tensor of trained parameters
    double host_s_per_token, host_s_per_tensor;
    double update_host_s_per_tensor;  // and for each that the rank updates, as it issues the update
    double hashed_s_per_parameter;    // of what a rank holds, where replicas are compared after each step
    double collective_share;          // of a collective's time on top: late ranks, the runner's work around it
    double crowding_share;            // of a task's time on top per rank that waits for the same core of a CPU
    double memory_passes;  // traffic of norms, rotary and activation over the minimum; 0 = by the plan's fused mode
    double loss_bytes_per_logit;  // traffic of the loss per logit, both ways; 0 = by the plan's fused mode
    const char *cudnn_since;      // its runs since that date have SDPA pick cuDNN's kernel first; NULL = never
    const char *masks_since;      // its runs since that date mask the documents of a sequence; NULL = never
    int masked_tokens;            // of a document in the data of its recipes, in the mean
    bool joins_apart;     // what attention reads is put together by operations of their own; layer norms are PyTorch's
    bool strided_rotary;  // eager, queries and keys are turned once heads are before tokens
    bool pads_rows;       // the model is compiled as a whole, its head with it: TorchInductor pads rows to whole loads
    bool loss_by_row;     // eager, the loss is PyTorch's log_softmax, which reads each row of logits several times
    double bucket_parameters;           // that one collective of gradients or weights moves, at least; 0 = a unit's
    double bucket_parameters_per_rank;  // and at least this many for each rank of its group
    bool gathers_beside_forward, gathers_fp8;  // stage 1: updated weights arrive during forward; 3: weights in fp8
    bool cuda_13;                              // its containers' cuBLAS is of CUDA 13
    bool fp8_one_layout;  // the chip multiplies fp8 of one scale in any layout: no second one is made of a tensor
    bool scatters_by_all_reduce;  // stages 1 and 2: buckets are reduced whole, and each rank takes its part
    double optimizer_bytes_per_parameter;
    double whole_bytes_per_parameter;  // and for those of the rank's gradients that other ranks update
    double bucket_stop_operations;     // host operations while the device waits at each bucket that backward reduces
    bool copies_buckets;  // plain replicas: gradients are copied into buckets, reduced there and copied back
    double part_copy_s;   // gathers_flat: each rank's part of each parameter is copied into place by a call of its own
    // memory beyond live bytes
    double context_bytes, communicator_bytes;  // CUDA context and libraries; per communicator
    // Of context_bytes, what the allocator hands out for good: to each of PyTorch's two cuBLAS handles (of the main
    // thread and of autograd's) and to Transformer Engine, from Hopper on (target_on_cluster.h for chips before)
    double blas_workspace_bytes, engine_workspace_bytes;
    double allocator_slack;       // reserved / allocated - 1
    double stage_slack;           // on a pipeline's stages, of what is not resident, on top
    double ahead_bytes;           // and, of a host that does not stop there, of each micro-step in flight but two: what
                                  // layers gather over tp, a hidden unit, token and layer
    double reduce_buffer;         // stages 1 to 3: elements of the buffer that gradients are copied into to be reduced
    double relative_uncertainty;  // one-sigma of step time, added in quadrature to the profile's
} TargetRuntime;

static inline double runtime_host_pace(const TargetRuntime *runtime) {
    return runtime->host_pace > 0 ? runtime->host_pace : 1;
}

static inline double runtime_workspace_bytes(const TargetRuntime *runtime) {
    enum { HANDLES = 2 };
    return HANDLES * runtime->blas_workspace_bytes + runtime->engine_workspace_bytes;
}
