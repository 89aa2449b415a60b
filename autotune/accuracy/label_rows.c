// Labels: rows that set what the code of a run did otherwise, as a version sets what a release does. What one must know
// of a run to say so is in run_labels.c and run_tests.c.

#include "autotune/accuracy/label_rows.h"

#include <stddef.h>
#include <string.h>

#include "autotune/accuracy/run_labels.h"
#include "autotune/accuracy/run_source.h"
#include "autotune/accuracy/run_tests.h"
#include "sim/frameworks/framework.h"

// CUDA graphs of a framework are older than the version that was read for its switch, and a run that had them of a
// pipeline had the memory.
static bool captured_before_its_switch(const RunRow *row, const Target *target) {
    int count = 0;
    bool has = false;
    const Target *rows = target_table(&count);
    for (int i = 0; i < count; i++) {
        has = has || (rows[i].graph_switch && strcmp(rows[i].name, target->name) == 0);
    }
    return row_graphs(row) >= CUDA_GRAPHS_ON && has && !target->own_graphs && strchr(row->target, '@') == NULL;
}

// Megatron pads the vocabulary that it trains; vTrain's model of it does not, and its head takes 4.7 times as long
// where tp does not split it, as products with an odd number of columns do.
static bool computed_unpadded(const RunRow *row, const Target *target) {
    return row_is_computed(row) && row->mesh[AXIS_TP] <= 1 && target->vocab_multiple > 0;
}

// Transformer Engine runs the experts' GEMMs as one launch since its PR 3119 of 2026-06, on request
// (NVTE_GROUPED_LINEAR_USE_FUSED_GROUPED_GEMM, off by its default at v2.17, and no recipe of Megatron-Bridge sets it;
// moe_use_grouped_tensor of Megatron-core), and fused with their activation (use_transformer_engine_op_fuser).
static bool launched_experts_at_once(const RunRow *row, const Target *target) {
    return target->expert_flavour == EXPERTS_PERMUTE_KERNELS && !row_is_of_experts(row) && row_fuses_experts(row);
}

// Experts by date of the target that weighs their results in fp32 (its e1f7f318a, 8bc267dea and 5242bdf71), and its
// traced graphs: with Inductor all of a step is compiled, without nothing, FlexAttention either, which its models
// with experts have (fca8ab7be: aot_eager, no passes).
static const char product_since[] = "2025-11-21", product_until[] = "2026-04-06", eager_until[] = "2026-04-14";

static bool routes_uncompiled(const RunRow *row, const Target *target) {
    return row->experts.count > 0 && target->routes_eagerly;
}

static bool summed_by_index(const RunRow *row, const Target *target) {
    const bool by_product = !row_ran_before(row, product_since) && row_ran_before(row, product_until);
    return routes_uncompiled(row, target) && target->sums_by_product && !by_product;
}

// Deterministically, since the same commit.
static bool summed_in_order(const RunRow *row, const Target *target) {
    return row->experts.count > 0 && target->runtime.indexes_rows && !row_ran_before(row, product_until);
}

// Products of experts want no rows padded to a multiple of 8 since its fe80b63cf.
static bool padded_no_more(const RunRow *row, const Target *target) {
    return row->experts.count > 0 && target->runtime.pads_alone && !row_ran_before(row, "2026-04-02");
}

// Rows are picked by torch.gather, whose gradient is a scatter_add, until the same commit puts an index in its place.
static bool scattered_rows(const RunRow *row, const Target *target) {
    return routes_uncompiled(row, target) && row_ran_before(row, product_since);
}

static bool compiled_routing(const RunRow *row, const Target *target) {
    return routes_uncompiled(row, target) && (!row_ran_before(row, eager_until) || row_has_full_inductor(row));
}

static bool traced_attention(const RunRow *row, const Target *target) {
    return routes_uncompiled(row, target) && !compiled_routing(row, target) && row_is_traced(row);
}

// One rank alone is a shard since its 00b7f5693, not under autocast.
static const char lone_shard_since[] = "2026-04-09";

static bool sharded_alone(const RunRow *row, const Target *target) {
    return target->runtime.autocasts && target->routes_eagerly && !row_ran_before(row, lone_shard_since);
}

// Nanotron's sweep has two tables. Runs with values that the later one (banner.html) has among the failed are those
// whose plan was run again and failed: the values are of the code before, which slept between looks for a message. They
// are the runs with stages that are cited from the other table.
static bool slept_on_one_node(const RunRow *row, const Target *target) {
    return row_cites(row, "benchmarks_interactive.html") && row->usable == 1 && target->runtime.message_sleep_s > 0;
}

// DeepSpeed's pipeline runs ATorch's layers with a single stage as well (ds_3d_parallel_optimization.py).
static bool recomputed_as_stage(const RunRow *row, const Target *target) {
    return row_cites(row, "dlrover@") && target->stages_recompute_whole;
}

static bool dropped_no_scores(const RunRow *row) {
    return strcmp(row->attention_dropout, "0") == 0;
}

static bool dropped_of_adapters(const RunRow *row) {
    return row->lora_dropout > 0;
}

// Megatron-core has moe-permute-fusion since its 8a71e3bc7d, and moe-router-fusion since later.
static bool predates_fused_order(const RunRow *row, const Target *target) {
    return row->experts.count > 0 && target->expert_flavour == EXPERTS_PERMUTE_KERNELS &&
           row_ran_before(row, "2025-02-10");
}

// Transformer Engine keeps its dummy gradients since its ba5dc5dde, of 2.4 and, a month before, 2.3.
static bool predates_dummies(const RunRow *row, const Target *target) {
    return target->dummy_gradients && row_ran_before(row, "2025-06-03");
}

static void take_workspaces(const RunRow *row, TargetRuntime *runtime) {
    runtime->blas_workspace_bytes = row_workspace_bytes(row);
}

// Python's garbage is collected every five steps (train.manual_gc_interval of recipes/moonlight/h100 in Megatron-Bridge
// 067f987df): 0.242 s, of a process with PyTorch, Transformer Engine 2.12 and Megatron-core 0.16 in it, 455 thousand
// objects (here, one thread's time, least of 25).
enum { STEPS_A_COLLECTION = 5 };
static const double collection_s = 0.242;

static void take_collections(const RunRow *row, TargetRuntime *runtime) {
    (void)row;
    runtime->step_fixed_s += collection_s / STEPS_A_COLLECTION;
}

// SHA-1 of each parameter in fp32, 2.1 ns, cast to it first, 0.1 to 1.9 (Megatron-LM at d98e8a64d, utils.py,
// check_param_hashes_across_dp_replicas): of a test's 51 million in tensors of 0.3 to 26 million, of PyTorch 2.6 and
// OpenSSL 3.0 on an EPYC with the instructions for it, one thread. Their copies from the device are not in it.
#define HASHED_S 3.2e-9

// One mark: a part of the citation, a column of the row that is 1, a predicate of the row, or one of row and target.
typedef struct Label {
    const char *cites;
    size_t flag;  // a number of RunRow; 0: none
    bool (*is)(const RunRow *row);
    bool (*holds)(const RunRow *row, const Target *target);
    const TargetSetting *settings;                            // NULL: none
    void (*take)(const RunRow *row, TargetRuntime *runtime);  // what is a number of the row; NULL: nothing
} Label;

#define FLAG(column) offsetof(RunRow, column)

// An activation that runs operation by operation, whose gate is kept.
#define APART SETTINGS(SET(gate_kept, true), SET(activation_apart, true))

// Each is looked at with what those before it have set.
static const Label labels[] = {
    {.holds = captured_before_its_switch,
     .settings = SETTINGS(SET(graph_switch, true), SET(graph_parts, true), SET_TEXT(graphs_note, NULL))},
    {.holds = computed_unpadded, .settings = SETTINGS(SET(vocab_multiple, 0))},
    // its traced optimizer is apex' FusedAdam of an fp16 model: weight and gradient in it, moments in fp32, 12 bytes
    // read and 10 written, nothing else (VIA-Research/vTrain at f8dda84, src/trainer.py, src/model/fused_adam.py)
    {.is = row_is_computed, .settings = SETTINGS(SET(runtime.optimizer_bytes_per_parameter, 22.0))},
    {.holds = row_is_fp8_recipe, .settings = SETTINGS(SET(runtime.gathers_fp8, true))},
    {.is = row_is_of_experts, .take = take_experts_of_test},
    {.holds = launched_experts_at_once, .settings = SETTINGS(SET(experts_at_once, true))},
    {.holds = sharded_alone, .settings = SETTINGS(SET(runtime.autocasts, false))},
    {.holds = summed_by_index, .settings = SETTINGS(SET(sums_by_product, false))},
    {.holds = summed_in_order, .settings = SETTINGS(SET(runtime.sums_sorted, true))},
    {.holds = padded_no_more, .settings = SETTINGS(SET(runtime.pads_alone, false))},
    {.holds = scattered_rows, .settings = SETTINGS(SET(runtime.scatters_rows, true))},
    {.holds = traced_attention, .settings = SETTINGS(SET(reference_attention, true))},
    {.holds = compiled_routing, .settings = SETTINGS(SET(routes_eagerly, false))},
    {.is = row_is_plain_trace,
     .settings = SETTINGS(SET(shards_wait, true), SET(backward_prefetch, false), SET(serial_stages, 1u << 3))},
    {.is = row_attends_in_fp8, .settings = SETTINGS(SET(fp8_attention, true))},
    {.is = row_has_fp8_head, .settings = SETTINGS(SET(fp8_head, true))},
    {.holds = slept_on_one_node, .settings = SETTINGS(SET(runtime.stalls_from_nodes, 1))},
    // its scenarios.yaml drops a tenth of adapters' inputs (lora_dropout: 0.1 in each, at every commit); its fused
    // kernels are of norms, rotary positions and the loss; of the MLP where that has adapters, which none has
    {.cites = "fms-acceleration@", .settings = SETTINGS(SET(adapters_drop, true), SET(activation_apart, true))},
    {.is = row_repeats_keys, .settings = SETTINGS(SET(repeats_keys, true))},
    {.is = row_keeps_logits, .settings = SETTINGS(SET(logits_kept, true))},
    {.is = row_casts_states, .settings = SETTINGS(SET(casts_half_states, true))},
    {.is = row_runs_casting_liger, .settings = SETTINGS(SET(runtime.casts_loss_sums, true))},
    {.is = row_runs_engine_2_11, .settings = SETTINGS(SET(runtime.engine_release, ENGINE_2_11))},
    {.is = row_runs_engine_2_7, .settings = SETTINGS(SET(runtime.engine_release, ENGINE_2_7))},
    {.is = row_skips_upcast, .settings = SETTINGS(SET(upcasts_norms, false))},
    // What PaddleNLP runs otherwise than Megatron: every projection reduces its own input gradient, and kernels wait
    // (ColumnParallelLinear of Paddle's mp_layers.py, mp_async_allreduce off), over a split vocabulary; silu and
    // product apart (llama/modeling.py of 2023). Its sharding stage 2 reduces gradients in the weights' dtype in every
    // backward, kernels wait again, and what another rank updates is freed (group_sharded_stage2.py; trainer.py: no
    // no_sync).
    {.cites = "PaddleNLP@",
     .settings = SETTINGS(SET(tp_apart, true), SET(tp_splits_head, true), SET(tp_splits_embedding, true),
                          SET(tp_reduce_overlaps, false), SET(activation_apart, true), SET(gate_kept, true),
                          SET(recompute_whole, true),  // RecomputeFunction.backward (fleet/recompute/recompute.py)
                          SET(max_zero, 2), SET(deferred_reduce, false), SET(gradient_buffer, false),
                          SET(serial_stages, 1u << 2), SET(half_sums, true), SET(reduce_dtype_bf16, DTYPE_BF16))},
    {.is = row_keeps_script_defaults,
     .settings = SETTINGS(SET(runtime.checks_loss, true)),
     .take = take_script_defaults},
    {.is = row_gathers_on_demand, .settings = SETTINGS(SET(runtime.gathers_beside_forward, false))},
    {.is = row_squares_apart, .settings = SETTINGS(SET(activation_apart, true))},
    // its swiglu is F.silu(x[0]) * x[1], keys and values are repeated for each query, and TorchScript keeps a mask of
    // dropout of 0 too (model/transformer.py; PyTorch 2.1, symbolic_script.cpp)
    {.is = row_is_flagscale,
     .settings =
         SETTINGS(SET(gate_kept, true), SET(activation_apart, true), SET(repeats_keys, true), SET(halves_drop, true))},
    {.is = row_drops, .settings = SETTINGS(SET(halves_drop, true), SET(attention_dropout, DROPOUT_SOME))},
    {.is = dropped_no_scores, .settings = SETTINGS(SET(attention_dropout, DROPOUT_NONE))},
    {.is = dropped_of_adapters, .settings = SETTINGS(SET(adapters_drop, true))},
    // ATorch's FSDP shows parameters in bf16 (amp_native, auto/model_context.py at a73153087), adapters too, which
    // share a unit (wrap_trainable_outmost): peft's cast of their input to their dtype does nothing. Its layers are
    // transformers' own (LlamaAttentionFA)
    {.cites = "dlrover@", .settings = SETTINGS(SET(adapters_cast, false), SET(runtime.strided_rotary, true))},
    {.holds = recomputed_as_stage, .settings = SETTINGS(SET(recompute_whole, true))},
    {.is = row_pads_rows, .settings = SETTINGS(SET(runtime.pads_rows, true))},
    {.flag = FLAG(lora_a2a), .settings = SETTINGS(SET(adapters_exchange, true))},
    // Its layers are no line of transformers, whose Trainer loses what nothing explains; keys and values are repeated,
    // and positions turned while tokens are before heads (model.py: repeat_kv, apply_rotary_emb)
    {.is = row_is_of_course,
     .settings = SETTINGS(SET(runtime.other_share, 0), SET(runtime.strided_rotary, false), SET(repeats_keys, true))},
    // model.py, train_gpt2.py: att.masked_fill(self.bias[:, :, :T, :T] == 0, float('-inf'))
    {.cites = "nanoGPT@", .settings = SETTINGS(SET(fills_masked, true))},
    {.cites = "build-nanogpt@", .settings = SETTINGS(SET(fills_masked, true))},
    {.flag = FLAG(launch_blocking), .settings = SETTINGS(SET(runtime.launches_wait, true))},
    {.flag = FLAG(checked_collectives), .settings = SETTINGS(SET(runtime.checks_collectives, true))},
    // without stages too
    {.flag = FLAG(gathers_again), .settings = SETTINGS(SET(tp_regathers, true))},
    {.flag = FLAG(routes_apart), .settings = SETTINGS(SET(runtime.routes_apart, true))},
    {.holds = predates_fused_order, .settings = SETTINGS(SET(runtime.routes_apart, true))},
    // gradient_accumulation_fusion: false there
    {.cites = "/deepseek_v3_4L-", .settings = SETTINGS(SET(adds_gradients, true))},
    {.is = row_adds_gradients, .settings = SETTINGS(SET(adds_gradients, true))},
    {.holds = predates_dummies, .settings = SETTINGS(SET(dummy_gradients, false))},
    {.flag = FLAG(router_fp32), .settings = SETTINGS(SET(runtime.routes_in_fp32, true))},
    {.flag = FLAG(activation_apart), .settings = APART},
    // no bias_activation_fusion in its recipes or bridge (Megatron-Bridge 619cc20bd, f3ae2767b)
    {.cites = "model_verification_cards/qwen3-8b/", .settings = APART},
    // nor in those of v0.4.2 that bench_qwen3_pretrain.py takes (recipes/qwen/qwen3_moe.py)
    {.cites = "/qwen3-235b/benchmarks/", .settings = APART},
    {.cites = "/qwen3-30b/benchmarks/", .settings = APART},
    {.cites = "qwen3-30b-a3b/card.yaml [pretrain H100]", .settings = APART},
    // its experts pick their biases by an index, whose gradient is a product (layers/gpt_oss.py, MoEExpertBiasGather)
    {.cites = "whitecircle/halo", .settings = SETTINGS(SET(biases_by_expert, false))},
    // pretrain_gpt.py, whose tests say nothing else
    {.is = row_is_of_core,
     .settings = SETTINGS(SET(runtime.checks_loss, true),
                          SET(runtime.update_host_s_per_tensor, CORE_UPDATE_HOST_S + CORE_COUNTED_HOST_S))},
    {.is = row_has_local_layers,
     .settings =
         SETTINGS(SET(runtime.torch_linears, true), SET(runtime.engine_workspace_bytes, 0), SET(scores_buffer, true))},
    {.is = row_sets_workspaces, .take = take_workspaces},
    {.is = row_hashes_weights, .settings = SETTINGS(SET(runtime.hashed_s_per_parameter, HASHED_S))},
    {.is = row_fuses_no_choice, .settings = SETTINGS(SET(runtime.router_rope_apart, true))},
    {.is = row_turns_apart, .settings = SETTINGS(SET(runtime.router_rope_apart, true))},
    {.is = row_has_plain_gelu, .settings = SETTINGS(SET(runtime.plain_gelu, true))},
    {.is = row_runs_moonlight, .take = take_collections},
    {.is = row_is_deterministic, .settings = SETTINGS(SET(runtime.fills_results, true))},
};

static bool is_flagged(const RunRow *row, size_t flag) {
    return *(const int64_t *)((const char *)row + flag) == 1;
}

static bool is_labelled(const Label *label, const RunRow *row, const Target *target) {
    return label->cites  ? row_cites(row, label->cites)
           : label->flag ? is_flagged(row, label->flag)
           : label->is   ? label->is(row)
                         : label->holds(row, target);
}

const Target *label_rows_apply(const RunRow *row, const Target *target, Arena *arena) {
    Target *own = ARENA_NEW(arena, Target);
    *own = *target;
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++) {
        const Label *label = &labels[i];
        if (!is_labelled(label, row, own)) {
            continue;
        }
        if (label->settings) {
            target_set(own, label->settings);
        }
        if (label->take) {
            label->take(row, &own->runtime);
        }
    }
    return own;
}
