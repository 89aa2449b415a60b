// Megatron-LM and frameworks built on its core (NeMo, Megatron-Bridge).

#include "sim/frameworks/framework.h"
#include "sim/frameworks/megatron/megatron_files.h"
#include "sim/frameworks/pytorch.h"

// Megatron-DeepSpeed and its time: no sequence parallelism, no flash attention. Its flat buffers need no copies
// (megatron/core/distributed/param_and_grad_buffer.py).
static const TargetVersion megatron_2022 = {
    .version = "2022",
    .extends = &pytorch,
    .evidence = "57 published runs",
    .settings = SETTINGS(
        SET(tp_flavour, TP_AR), SET(axes, AXES_DP | AXES_TP | AXES_PP),
        SET(pp_schedules, PP_BIT(PP_1F1B) | PP_BIT(PP_INTERLEAVED)), SET(group_rule, GROUPS_OF_STAGES),
        // scatter_gather_tensors_in_pipeline (p2p_communication.py of Megatron-LM 2.2 to 3.0), DeepSpeed's
        // pipe_partitioned
        SET(slices_messages, true),
        SET(messages_in_turn, true),            // send_forward_recv_backward (pipeline_parallel/schedules.py)
        SET(runtime.messages_stop_host, true),  // batch_p2p_sync: torch.cuda.synchronize() after batch_isend_irecv
                                                // (pipeline_parallel/p2p_communication.py); overlap_p2p_comm has none
        SET(layer_rule, LAYERS_EDGES_IF_UNEVEN), SET(splits, PP_BIT(SPLIT_EVEN)),
        SET(ties_stages, true),  // _allreduce_word_embedding_grads (distributed/finalize_model_grads.py)
        SET(selective_flavour, SELECTIVE_CORE), SET(fused_projections, true),
        SET(deferred_reduce, true),   // main gradients are summed locally, reduced with the last micro-step
        SET(serial_stages, 1u << 0),  // behind its backward: allreduce_gradients of train_step (training.py of 2.2 to
                                      // 3.0), one call for the buffer (model/distributed.py)
        SET(fp16_sums,
            true),  // accumulate_allreduce_grads_in_fp32 follows bf16 alone (arguments.py, 2.2 to core_v0.12)
        SET_TEXT(grad_sync_note, "main gradients are reduced with the last micro-batch"),
        SET_TEXT(loss_note, "its fused cross-entropy keeps the logits"),
        SET(gradient_buffer, true),  // its ParamAndGradBuffer; 2+g+12/F bytes, g 3.1 to 3.5 (sim/SOURCES.md A7)
        SET(fused_softmax, true), SET(max_zero, 1),  // --use-distributed-optimizer
        SET(vocab_multiple, 128),  // make-vocab-size-divisible-by, times tp (Megatron-LM arguments.py)
        SET(default_attention, ATTENTION_EAGER), SET(runtime.follows_processor, false),
        SET(runtime.host_s_per_op, PYTHON_2023_HOST_S),  // no step constant: no measured steps are short enough to tell
        SET(runtime.loss_bytes_per_logit, SPLIT_LOSS_BYTES),
        SET(loss_fp32_copies[FUSED_FUSED], 2),  // fp32 logits and their softmax
        // In place since 2024-06 (Megatron-LM 9634c0e4a3, tensor_parallel/cross_entropy.py). Two are kept before, and
        // by --cross-entropy-loss-fusion, whose compiled parts change nothing in place (fusions/
        // fused_cross_entropy.py): on in NeMo, Megatron-Bridge and what we export. Here, as later runs of separate
        // operations are of this row
        SET(losses_by_call, LOSS_BIT(LOSS_ONE_COPY)), SET(loss_fp32_copies[FUSED_EAGER], 2),
        SET(loss_fp32_copies[FUSED_COMPILED], 2),
        SET(runtime.optimizer_bytes_per_parameter, 50.0),  // sim/SOURCES.md A6
        SET(runtime.relative_uncertainty, 0.08)),
};

// NeMo of 2022 on apex: ColumnParallelLinear reduces its input's gradient beside the weight's unless told not to
// (NVIDIA/apex a0ed4151 of 2022-06, transformer/tensor_parallel/layers.py; NeMo v1.9.0 tells it nothing).
static const TargetVersion megatron_2022_06 = {
    .version = "2022-06",
    .extends = &megatron_2022,
    .evidence = "7 published runs, none fitted",
    .settings = SETTINGS(SET(tp_reduce_overlaps, true),
                         // async_grad_allreduce: each parameter in its hook (core/optim/optimizer_with_main_params.py)
                         SET(serial_stages, 0)),
};

// Its layers in DeepSpeed's pipelines with ZeRO-1 (bigscience-workshop/Megatron-DeepSpeed@541b967f of 2022-02 on
// microsoft/DeepSpeed@2151c787a): gradients are autograd's, in the weights' dtype, and reduced in it behind the last
// backward, each bucket to the ranks that have a part of it (runtime/pipe/engine.py, _exec_reduce_grads;
// runtime/zero/stage_1_and_2.py, reduce_gradients).
static const TargetVersion bigscience = {
    .version = "bigscience",
    .extends = &megatron_2022,
    .evidence = "27 published runs, none fitted",
    .settings = SETTINGS(
        SET(recompute_whole, true),  // CheckpointFunction.backward (runtime/activation_checkpointing/checkpointing.py)
        SET(half_sums, true), SET(reduce_dtype_bf16, DTYPE_BF16), SET(gradient_buffer, false), SET(late_reduce, true),
        // All modules loaded at once, 1,573 MiB on an A100 (bigscience, its chronicles-prequel);
        // PyTorch 2.0 and newer load what is called (CUDA_MODULE_LOADING=LAZY)
        SET(runtime.context_bytes, 1573.0 * (1 << 20)),
        SET(runtime.sums_apart, true),  // autograd's (PyTorch, csrc/autograd/functions/accumulate_grad.h)
        // FusedAdam 28; the rank's gradients cast 6, unscaled and clipped 8 (step, unscale_and_clip_grads)
        SET(runtime.optimizer_bytes_per_parameter, 28.0 + 6 + 8),
        SET(runtime.reduce_buffer, 5e8),               // reduce_bucket_size (runtime/zero/constants.py)
        SET(runtime.whole_bytes_per_parameter, 8.0)),  // into the bucket 4, divided 4 (average_tensor)
};

// The same with BF16_Optimizer (microsoft/DeepSpeed@77b649d16 of 2022-03, runtime/bf16_optimizer.py): each micro-step's
// gradients are added to whole ones in fp32 (update_hp_grads), which all ranks reduce whole (_bf16_reduce_grads).
static const TargetVersion bigscience_bf16 = {
    .version = "bigscience-bf16",
    .extends = &bigscience,
    .evidence = "7 published runs, none fitted",
    .settings = SETTINGS(SET(half_sums, false), SET(half_gradients, true), SET(reduce_dtype_bf16, DTYPE_FP32),
                         SET(runtime.sums_apart, false), SET(gradient_buffer, true),
                         SET(runtime.scatters_by_all_reduce, true), SET(runtime.reduce_buffer, 0)),
};

// GPT-NeoX, Megatron's layers on DeepSpeed 0.3.15 (EleutherAI/gpt-neox v1.0 of 2023-03 with EleutherAI/DeeperSpeed
// eb7f5cff): its pipelines of one stage too reduce gradients whole behind the last backward, in the weights' dtype
// (runtime/pipe/engine.py, _exec_reduce_grads: buffered_allreduce_fallback).
static const TargetVersion megatron_neox = {
    .version = "neox",
    .extends = &bigscience,
    .evidence = "8 published runs, none fitted",
    .settings = SETTINGS(SET(runtime.scatters_by_all_reduce, true),
                         SET(runtime.joins_apart, true),  // megatron/model/transformer.py, norms.py
                         // into the bucket 4, divided 4, back 4 (runtime/engine.py, allreduce_and_copy)
                         SET(runtime.whole_bytes_per_parameter, 12.0)),
};

static const TargetVersion megatron_core = {
    .version = "core",
    .extends = &megatron_2022,
    .evidence = "41 published runs",
    .settings = SETTINGS(
        SET(tp_flavour, TP_SP), SET(sp_switch, true),  // --sequence-parallel
        SET(slices_messages, false),                   // get_tensor_shapes (pipeline_parallel/schedules.py)
        // account_for_embedding_ and account_for_loss_in_pipeline_split, num_layers_in_first_ and
        // num_layers_in_last_pipeline_stage, pipeline_model_parallel_layout (transformer/transformer_config.py)
        SET(splits, PP_BIT(SPLIT_EVEN) | PP_BIT(SPLIT_WEIGHTED) | PP_BIT(SPLIT_ENDS) | PP_BIT(SPLIT_CHUNKS)),
        SET(p2p_switch, true),  // --no-overlap-p2p-communication
        SET(edges_weigh_one, true), SET(group_rule, GROUPS_ANY),
        SET_TEXT(group_switch, "--microbatch-group-size-per-virtual-pipeline-stage"),
        SET(expert_flavour, EXPERTS_PERMUTE_KERNELS),  // --moe-permute-fusion, in NeMo's and Megatron-Bridge's recipes
        SET(cuts_experts, true),                       // --expert-tensor-parallel-size, --moe-expert-capacity-factor
        SET(predicts_further, true),                   // --mtp-num-layers
        // --cross-entropy-fusion-impl te since 0.12 (0f60adbd30). Its bf16 gradients trained unstably: Megatron-LM's
        // arguments refuse it since 168cb15d70 (2026-06), its core warns of it; so no search tries it
        SET(losses_by_call, LOSS_BIT(LOSS_IN_PLACE) | LOSS_BIT(LOSS_ONE_COPY)),
        SET(runtime.loss_bytes_per_logit, SPLIT_LOSS_FUSED_BYTES),
        // --moe-token-dispatcher-type allgather, or flex with --moe-flex-dispatcher-backend
        SET(dispatchers,
            DISPATCH_BIT(DISPATCH_ALLGATHER) | DISPATCH_BIT(DISPATCH_DEEPEP) | DISPATCH_BIT(DISPATCH_HYBRIDEP)),
        // DeepSeek's profile of a chunk forward with one backward: 129 ms, of them 124 compute; 113 of exchanges
        // (deepseek-ai/profile-data, train.json; sim/SOURCES.md E2)
        SET(ep_overlap_exposed, (129.0 - 124) / 113), SET(axes, AXES_DP | AXES_TP | AXES_CP | AXES_PP | AXES_EP),
        SET(zigzag, true),  // DualChunkSwap of Transformer Engine (its context_parallel.py)
        // --optimizer-cpu-offload (optimizer_config.py), --cpu-offloading-num-layers (transformer_block.py)
        SET(offloads, 1u << OFFLOAD_OPTIMIZER | 1u << OFFLOAD_ACTIVATIONS), SET(offloads_saved, true),
        // --optimizer muon, with --use-distributed-optimizer (or dist_muon) of whole matrices (optimizer/muon.py,
        // layer_wise_optimizer.py)
        SET(optimizers, OPTIMIZER_BIT(OPTIMIZER_MUON)), SET(deals_matrices, true), SET(serial_stages, 0),
        SET(overlap_stages, 1u << 0 | 1u << 1),    // --overlap-grad-reduce, in what we export and NeMo's recipes;
                                                   // else all is reduced in finish_grad_sync (param_and_grad_buffer.py)
        SET(recompute_counts, RECOMPUTE_FIRST_N),  // --recompute-method block (transformer_block.py)
        SET(experts_recompute_whole, true),        // CheckpointFunction.backward (tensor_parallel/random.py)
        // --recompute-modules (transformer_config.py)
        SET(recompute_modules, RECOMPUTE_CORE_ATTENTION | RECOMPUTE_NORMS | RECOMPUTE_MLP |
                                   RECOMPUTE_EXPERT_ACTIVATION | RECOMPUTE_LATENT_UP | RECOMPUTE_EXPERTS),
        SET(cp_ring, true), SET(cp_allgather, true),
        SET(cp_scatters, true),         // _attn_cp_kv_allgather_bwd_reduce_scatter of Transformer Engine
        SET(cp_gathers_first, true),    // its AttnFuncWithCPAndKVAllGather, on the compute stream
        SET(cp_half_gradients, true),   // Transformer Engine context_parallel.py: p2p buffers of kv.dtype
        SET(reduces_often_bf16, true),  // NeMo's bf16_mixed (grad_reduce_in_fp32=False), --grad-reduce-in-bf16 of
                                        // Megatron-LM examples/llama/train_llama3_8b_h100_fp8.sh
        SET(shares_keys, true),         // since f7dfb99795 of 2025-12 (transformer/attention.py)
        SET(dummy_gradients, true),     // get_dummy_wgrad of Transformer Engine, since 2025-04
        SET(tp_reduce_overlaps, true),  // input gradient reduced concurrently with the weight gradient
        SET(tp_regathers, true),        // its linear layer keeps the split input only
        SET(fused_softmax, false), SET(default_attention, ATTENTION_CUDNN), SET(engine_attention, true),
        SET(fp8_flavour, FP8_TRANSFORMER_ENGINE),  // --fp8-format, Transformer Engine layers
        SET(fp8_recipes, FP8_BIT(FP8_TENSORWISE) | FP8_BIT(FP8_DELAYED) | FP8_BIT(FP8_MX) | FP8_BIT(FP8_BLOCK) |
                             FP8_BIT(FP8_NVFP4)),  // Fp8Recipe, Fp4Recipe (megatron/core/enums.py of 0.19)
        // --fp8-param-gather, --fp4-param-gather (distributed/param_and_grad_buffer.py, optimizer/distrib_optimizer.py)
        SET(fp8_parameters,
            FP8_BIT(FP8_TENSORWISE) | FP8_BIT(FP8_DELAYED) | FP8_BIT(FP8_MX) | FP8_BIT(FP8_BLOCK) | FP8_BIT(FP8_NVFP4)),
        // activation_func_fp8_input_store, use_transformer_engine_op_fuser, since 0.15 fused_single_qkv_rope
        // (transformer/transformer_config.py)
        SET(fp8_activation, true), SET(op_fuser, true), SET(qkv_rope, true),
        // RankGenerator takes the tokens of order= as they come; instances are slices of its dp-cp groups
        // (NVIDIA/Megatron-LM 00caa53, megatron/core/parallel_state.py)
        SET(rank_order_rule, RANK_ORDER_DP_AS_ONE),
        SET_TEXT(rank_order_note, "Megatron-LM has no flag for it: pass order= to initialize_model_parallel"),
        SET(runtime.cuda_13, true),  // built on PyTorch 25.09 (Megatron-Bridge 2550d8a5a, 2025-10-27)
        SET(runtime.follows_processor, true),
        SET(runtime.host_s_per_op, 13e-6),  // as any PyTorch of today; layers of Transformer Engine are few operations
        // Its layers as before: in Megatron-LM TEColumnParallelLinear takes 115 us forward, ColumnParallelLinear 74, 41
        // and 44 for each operation that is counted of them (NVIDIA/TransformerEngine PR 1191)
        SET(runtime.module_operations, PYTHON_2023_HOST_S / 13e-6), SET(runtime.bucket_parameters, 40e6),
        SET(runtime.bucket_parameters_per_rank, 1e6),  // its bucket_size
        SET(runtime.whole_bytes_per_parameter, 4.0),   // zeroed for each step (zero_grad_buffer)
        SET(runtime.gathers_beside_forward, true),     // --overlap-param-gather, in what we export and NeMo's recipes
        SET(runtime.step_fixed_s, 6e-3),               // sim/SOURCES.md A6: 3 to 9 ms, some of it the update's
        SET(runtime.update_host_s_per_tensor, CORE_UPDATE_HOST_S),
        // From Hopper on: 4096 KiB eight times (PyTorch's CublasHandlePool.cpp), and as much (Transformer Engine's
        // pytorch/cpp_extensions/gemm.py, get_cublas_workspace_size_bytes)
        SET(runtime.blas_workspace_bytes, 32 << 20), SET(runtime.engine_workspace_bytes, 32 << 20),
        SET(tp_overlap_exposed, 0.2),  // user buffers (sim/SOURCES.md A6; chosen there, not fitted)
        // One of all tokens for each of 12 products of a layer, 8 of them of what is gathered, which fp8 has in a byte
        // (Transformer Engine 2.8, pytorch/module/base.py, initialize_ub)
        SET(tp_overlap_bytes, 12 * 2), SET(tp_overlap_fp8_bytes, 8 * 1 + 4 * 2)),
};

// Before #2236 of 2026-01-06 (a56a0b001). Runs are dated when they were published: what ran on it has to name it.
static const TargetVersion megatron_0_15 = {
    .version = "0.15",
    .extends = &megatron_core,
    .evidence = "9 published runs, none fitted",
    .settings = SETTINGS(
        SET(ep_overlap_keeps, true),
        // of NeMo 25.11, with core 0.15; 2.7 of 25.09 with core 0.14 (Megatron-Bridge, software versions by release)
        SET(runtime.engine_release, ENGINE_2_9),
        // flex had no HybridEP before 3df200905e of 2025-11, beside another micro-batch none before #2236
        SET(dispatchers, DISPATCH_BIT(DISPATCH_ALLGATHER) | DISPATCH_BIT(DISPATCH_DEEPEP)), SET(graph_switch, true),
        SET_TEXT(graphs_note, "the memory that graphs of stages keep is not modelled"),
        SET(graph_parts, true)),  // cuda_graph_impl and cuda_graph_scope (transformer/transformer_config.py)
};

// Megatron-core 0.4 and before, 2023.
static const TargetVersion megatron_0_4 = {
    .version = "0.4",
    .until = "2024-02",
    .extends = &megatron_core,
    .evidence = "18 published runs",
    // --overlap-param-gather came with 0.5, buckets that grow with the ranks with 0.7, groups of micro-batches with
    // 0.9, --recompute-modules with 0.12
    .settings = SETTINGS(SET(runtime.follows_processor, false), SET(runtime.gathers_beside_forward, false),
                         SET(runtime.bucket_parameters_per_rank, 0), SET(recompute_modules, 0),
                         SET(fp8_activation, false), SET(op_fuser, false), SET(qkv_rope, false),
                         SET(shares_keys, false), SET(group_rule, GROUPS_OF_STAGES), SET(dummy_gradients, false),
                         // its layers are its own unless told, and so no release of Transformer Engine is asked for
                         // (sim/cost/host.c: until is set); get_global_memory_buffer, "mpu", since 2022-05
                         // (transformer/dot_product_attention.py)
                         SET(scores_buffer, true), SET(runtime.cuda_13, false),
                         SET(runtime.loss_bytes_per_logit, SPLIT_LOSS_BYTES)),
};

// Read in the wheel of megatron-core 0.19.2, whose steps need a GPU: nothing is recorded. Buckets, overlap, recompute
// (uniform, block, modules), offload of the optimizer and cp are as before; what else is new there (another
// axis of tensor parallelism) is off unless asked for, and no plan holds it.
static const TargetVersion megatron_0_19 = {
    .version = "0.19",
    .extends = &megatron_core,
    .evidence = "unvalidated",
    .settings = SETTINGS(
        // --cp-comm-type a2a, and a2a+p2p with --hierarchical-context-parallel-sizes: the first of them is sp
        SET(axes, AXES_DP | AXES_TP | AXES_CP | AXES_SP | AXES_PP | AXES_EP),
        // cuda_graph_impl full_iteration: forward and backward, not the optimizer (transformer_config.py); gradients
        // have their buffer anyway. With stages it takes over 10 GiB more (Megatron-Bridge docs/training/cuda-graphs)
        SET(graph_switch, true), SET_TEXT(graphs_note, "the memory that graphs of stages keep is not modelled"),
        SET(graph_parts, true),  // cuda_graph_impl local or transformer_engine, with cuda_graph_modules (the same)
        SET(masters_beside_remainders, true),  // store_param_remainders, true (optimizer/optimizer_config.py)
        // --optimizer sgd, with --sgd-momentum 0.9
        SET(optimizers, OPTIMIZER_BIT(OPTIMIZER_SGD_MOMENTUM) | MEGATRON_AWARE | OPTIMIZER_BIT(OPTIMIZER_MUON))),
};

// Its own FSDP: parameters, gradients and states are sharded (data_parallel_sharding_strategy optim_grads_params). Read
// at NVIDIA/Megatron-LM 00caa53, megatron/core/distributed/fsdp. What is not in a transformer layer stays gathered. Its
// buffers are flat, and gradients are reduced on every micro-batch. Experts of ep are sharded over the ranks with the
// same ones (param_and_grad_buffer.py). It takes stages too; no plan here does.
static const TargetVersion megatron_fsdp = {
    .version = "fsdp",
    .extends = &megatron_0_19,
    .evidence = "22 published runs, none fitted",
    .settings = SETTINGS(
        SET(axes, AXES_DP | AXES_TP | AXES_CP | AXES_EP), SET(pp_schedules, 0), SET(splits, 0),
        SET_TEXT(stages_note,
                 "Megatron-FSDP takes stages, which ndtune does not model yet, --target megatron has them"),
        SET(max_zero, 3), SET(shard_needs_fsdp, true),
        // "Emerging optimizer does not support Megatron-FSDP for now" (megatron/training/arguments.py)
        SET(optimizers, OPTIMIZER_BIT(OPTIMIZER_SGD_MOMENTUM) | OPTIMIZER_BIT(OPTIMIZER_ADAMW_BF16)),
        SET(masters_beside_remainders, false),       // main_weight_buffer, in main_params_dtype
        SET(always_reshards, true),                  // gathers again for backward whatever it recomputes
        SET(root_unit, true), SET(root_kept, true),  // fsdp_unit_modules = [TransformerLayer]
        SET(backward_prefetch, true),                // AllGatherPipeline, PrefetchOrder
        SET(deferred_reduce, false), SET_TEXT(grad_sync_note, "sharded gradients are reduced on every micro-batch"),
        SET(gradient_buffer, false), SET(overlap_stages, 0), SET(offloads, 1u << OFFLOAD_ACTIVATIONS),
        SET(graph_switch, false), SET(graph_parts, false),
        // model_weight_buffer (megatron_fsdp/param_and_grad_buffer.py); MX has another for its second layout
        // (transpose_weight_buffer), which is not modelled
        SET(fp8_parameters, FP8_BIT(FP8_TENSORWISE) | FP8_BIT(FP8_DELAYED) | FP8_BIT(FP8_BLOCK)),
        SET(runtime.gathers_beside_forward, false), SET(runtime.shard_hooks, SHARD_HOOKS_BY_GRADIENT),
        // What the allocator holds is replayed, in place of the 5 % that is estimated (sim/SOURCES.md P9): holes of its
        // few large buffers are 1 to 2 %
        SET(allocator, ALLOCATOR_SEGMENTS), SET(replayed_slack, 0.05)),
};

// Megatron-Bridge 0.6.2 on the same core, read in its wheel.
static const TargetVersion megatron_bridge_0_6 = {
    .version = "bridge-0.6",
    .extends = &megatron_0_19,
    .evidence = "unvalidated",
    .settings =
        SETTINGS(SET(pack_flavour, PACKS_ONE_ROW),  // packed_sequence_specs (data/datasets/packed_sequence.py)
                 SET(finetunes, 1u << FINETUNE_LORA), SET(adapters_of_core, true),  // peft/lora.py, utils.py
                 // bf16_mixed reduces in fp32 (training/mixed_precision.py)
                 SET(reduces_often_bf16, false), SET_TEXT(group_switch, "model.microbatch_group_size_per_vp_stage"),
                 SET(vocab_multiple, 0)),  // should_pad_vocab is false (models/gpt_provider.py)
};

// Its context-parallel group is sp x cp, of which each rank has a chunk from either end of a sequence
// (get_batch_on_this_cp_rank, training/utils.py), and the outer ranks of a2a+p2p are a ring (Transformer Engine,
// attn_forward_func_with_cp).
static const char *refuse_sp(const TrainPlan *plan, Arena *arena) {
    const int sp = plan->mesh.size[AXIS_SP], cp = plan->mesh.size[AXIS_CP], chunks = 2 * sp * cp;
    REFUSE_IF(arena, cp > 1 && plan->cp_rotate != CP_ROTATE_RING,
              "a2a+p2p (sp=%d with cp=%d) moves keys and values in a ring: use cp_rotate ring", sp, cp);
    REFUSE_IF(arena, plan->seq % chunks != 0,
              "seq=%d cannot be cut into the %d equal chunks of sp x cp = %d: use seq %d", plan->seq, chunks, sp * cp,
              plan->seq - plan->seq % chunks + chunks);
    return NULL;
}

// TransformerConfig asserts it, the second aside (transformer/transformer_config.py, d98e8a64d).
static const char *refuse_parts(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const bool experts = model->experts.count > 0, layers = plan->cuda_graphs == CUDA_GRAPHS_LAYERS;
    bool dense = false;
    for (int i = 0; i < model_run_count(model); i++) {
        dense = dense || model_run(model, i).kind == LAYER_DENSE;
    }
    const unsigned parts = plan_graphed_parts(plan);
    REFUSE_IF(arena, plan->recompute == RECOMPUTE_FULL,
              "full recompute is only supported with full iteration CUDA graph: use cuda_graphs off");
    REFUSE_IF(arena, layers && experts, "cuda_graphs=layers of experts is not predicted yet: use cuda_graphs %s",
              cuda_graphs_names[CUDA_GRAPHS_LAYERS + GRAPHED_ATTENTION + GRAPHED_ROUTER]);
    REFUSE_IF(arena, !layers && (parts & GRAPHED_ROUTER) && !experts,
              "cuda_graphs=%s of %s, which has no router: moe cuda graph is only supported for MoE",
              cuda_graphs_names[plan->cuda_graphs], model->name);
    REFUSE_IF(arena, !layers && (parts & GRAPHED_MLP) && !dense,
              "cuda_graphs=%s of %s: mlp cuda graph is only supported for dense layers, but not found in the model",
              cuda_graphs_names[plan->cuda_graphs], model->name);
    REFUSE_IF(arena, (parts & GRAPHED_ROUTER) && target_recompute_modules(target, plan) & RECOMPUTE_EXPERTS,
              "moe recompute is not supported with moe_router CUDA graph: use recompute_modules without moe");
    return NULL;
}

// attn_forward_func_with_cp of Transformer Engine at d0067d0da asserts it (pytorch/attention/dot_product_attention/
// context_parallel.py). Its a2a is sp.
static const char *refuse_sinks(const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    REFUSE_IF(arena, model->sinks && plan->mesh.size[AXIS_CP] > 1,
              "Context parallelism only supports softmax_type='learnable', the sinks of %s, with cp_comm_type = 'a2a', "
              "which is axis sp here: use cp=1",
              model->name);
    return NULL;
}

// arguments.py asserts it.
static const char *refuse(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const char *sinks = refuse_sinks(model, plan, arena);
    if (sinks) {
        return sinks;
    }
    const char *graphed = plan_graphed_parts(plan) ? refuse_parts(target, model, plan, arena) : NULL;
    if (graphed) {
        return graphed;
    }
    if (plan->mesh.size[AXIS_SP] > 1) {
        const char *reason = refuse_sp(plan, arena);
        if (reason) {
            return reason;
        }
    }
    const bool whole = plan->zero == 0 && mesh_group_size(&plan->mesh, AXES_DATA_GROUP) > 1;
    REFUSE_IF(arena, OPTIMIZER_BIT(plan->optimizer) & MEGATRON_AWARE && whole,
              "the precision-aware optimizer of %s only works with its distributed optimizer: use zero 1 or optimizer "
              "adamw",
              target->name);
    return NULL;
}

static const FrameworkSynonym synonyms[] = {
    {"megatron-lm", NULL},
    {"verl", "verl trains by it"},
    {"ms-swift", "ms-swift trains by it"},
    {"nemo", "NeMo and Megatron-Bridge train by Megatron"},
    {"megatron-bridge", "NeMo and Megatron-Bridge train by Megatron"},
    {NULL, NULL},
};

static const SourceName sources[] = {
    {.name = "nemo"},
    {.name = "nvidia", .maker = true},
    {.name = NULL},
};

// training_log of Megatron-LM.
static const LogPattern logs[] = {
    {.name = "Megatron-LM",
     .pattern = "elapsed time per iteration \\(ms\\)(): *" LOG_NUMBER "()",
     .quantity = STEP_MILLISECONDS,
     .words = "elapsed time per iteration (ms):"},
    {.name = NULL},
};

static const MeasuredChip measured[] = {
    {"A100-SXM4-80GB", 23, 64, 0.077, -0.077},
    {"V100-SXM2-32GB", 34, 32, 0.034, -0.021},
    {"H100-SXM5-80GB", 28, 512, 0.026, -0.014},
    {"A800-SXM4-80GB", 6, 8, 0.021, -0.012},
    {0},
};

// H100: 0.38, but its two sources are one submitter's; on 512 to 2048 ranks 80 % are within 6 to 10 %. Blackwell:
// rows of MLPerf alone (0.29, 0.33, 0.49), so half as much again and more.
static const ChipWidth widths[] = {
    {"A100-SXM4-80GB", 0.8, 0.2},   // 0.75; vTrain's 47 runs with stages on 512
    {"V100-SXM2-32GB", 0.8, 0.25},  // 0.79
    {"H100-SXM5-80GB", 1, 0},
    {"B200-SXM-180GB", 0.55, 0.1},
    {"GB200-186GB", 0.7, 0.1},
    {"GB300-288GB", 0.8, 0.1},
    {0},
};

const Framework framework_megatron = {
    .name = "megatron",
    .measured = measured,
    .widths = widths,
    // tests/accuracy/runs/RESULTS.md: all but two on one B300 lie within the width of their chips; two sources
    .experts = {50, 0.037, 0.004, 0.08},
    .refuse = refuse,
    .versions = (const TargetVersion *const[]){&megatron_core, &megatron_0_19, &megatron_bridge_0_6, &megatron_fsdp,
                                               &megatron_0_15, &megatron_0_4, &megatron_2022, &megatron_2022_06,
                                               &bigscience, &bigscience_bf16, &megatron_neox, NULL},
    .formats = (const ExportFormat *const[]){&export_megatron_flags, &export_megatron_bridge, NULL},
    .config = &import_megatron,
    .synonyms = synonyms,
    .sources = sources,
    .logs = logs,
    .log_name = "Megatron-LM",
    .micro_batch = "--micro-batch-size",
    .accumulation = "--global-batch-size",
    .accumulation_is_batch = true,
    .has_pipelines = true,
    // Only the last rank has a tensorboard (_set_tensorboard_writer of training/global_vars.py), to which training_log
    // writes mem-max-allocated-bytes
    .logged_stage = LOGS_LAST,
};
