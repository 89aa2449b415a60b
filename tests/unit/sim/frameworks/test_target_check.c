// Legality: both sides of every rule, the whole message, and the published count of legal shapes.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/frameworks/target.h"
#include "sim/frameworks/target_choices.h"
#include "tests/support/sizes.h"
#include "tests/unit/sim/frameworks/plan_on.h"

static Arena arena;
static ModelSpec model;
static const Target *accelerate;
static const Target *ndtune;

static void begin(void) {
    Error error = {0};
    cr_assert_eq(target_find("accelerate", &accelerate, &error), STATUS_OK);
    cr_assert_eq(target_find("ndtune", &ndtune, &error), STATUS_OK);
    cr_assert_eq(model_find("llama-3-8b", NULL, &model, &error), STATUS_OK);
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(target_check, .init = begin, .fini = end);

static TrainPlan plan_of(const Target *target, int replicate, int shard, int cp, int tp) {
    return plan_on(target, &(Mesh){.size = SIZES(replicate, shard, cp, tp)});
}

static const char *reason_of(const Target *target, const TrainPlan *plan) {
    const char *reason = "not touched";
    target_check(target, &model, plan, &arena, &reason);
    return reason;
}

static void check_legal(const Target *target, const TrainPlan *plan) {
    const char *reason = reason_of(target, plan);
    cr_assert_null(reason, "%s", reason);
}

static void check_reason(const Target *target, const TrainPlan *plan, const char *sentence) {
    const char *reason = reason_of(target, plan);
    cr_assert_not_null(reason, "legal, although: %s", sentence);
    cr_assert_str_eq(reason, sentence);
}

Test(target_check, of_56_power_of_two_shapes_of_32_accelerate_takes_42) {
    Mesh meshes[56];
    Error error = {0};
    int legal = 0;
    cr_assert_eq(model_find("llama-2-7b", NULL, &model, &error), STATUS_OK);
    cr_assert_eq(mesh_enumerate(32, AXES_FIRST, meshes, 56), 56);
    for (int i = 0; i < 56; i++) {
        const TrainPlan plan = plan_on(accelerate, &meshes[i]);
        legal += reason_of(accelerate, &plan) == NULL;
    }
    cr_assert_eq(legal, 42);  // sim/SOURCES.md P1: R > 1 with S = 1 next to cp or tp is refused, 14 shapes
}

Test(target_check, the_executor_takes_all_56) {
    Mesh meshes[56];
    Error error = {0};
    cr_assert_eq(model_find("llama-2-7b", NULL, &model, &error), STATUS_OK);
    mesh_enumerate(32, AXES_FIRST, meshes, 56);
    for (int i = 0; i < 56; i++) {
        const TrainPlan plan = plan_on(ndtune, &meshes[i]);
        check_legal(ndtune, &plan);
    }
}

Test(target_check, the_tiny_model_runs_on_every_shape_of_eight) {
    Mesh meshes[20];
    Error error = {0};
    cr_assert_eq(model_find("tiny", NULL, &model, &error), STATUS_OK);
    cr_assert_eq(mesh_enumerate(8, AXES_FIRST, meshes, 20), 20);
    for (int i = 0; i < 20; i++) {
        TrainPlan plan = plan_on(ndtune, &meshes[i]);
        plan.seq = 128;
        check_legal(ndtune, &plan);
    }
}

Test(target_check, replicas_without_shards_are_fine_alone_but_not_beside_tp_or_cp) {
    TrainPlan plan = plan_of(accelerate, 8, 1, 1, 1);
    check_legal(accelerate, &plan);
    plan = plan_of(accelerate, 4, 1, 1, 2);
    check_reason(
        accelerate, &plan,
        "accelerate refuses dp_replicate=4 with dp_shard=1 beside cp=1, tp=2: use dp_shard=4 with dp_replicate=1");
    plan = plan_of(accelerate, 4, 1, 2, 1);
    check_reason(
        accelerate, &plan,
        "accelerate refuses dp_replicate=4 with dp_shard=1 beside cp=2, tp=1: use dp_shard=4 with dp_replicate=1");
    plan = plan_of(accelerate, 4, 2, 1, 2);
    check_legal(accelerate, &plan);
}

Test(target_check, tp_must_divide_the_key_value_heads) {
    TrainPlan plan = plan_of(accelerate, 1, 1, 1, 8);
    check_legal(accelerate, &plan);
    plan = plan_of(accelerate, 1, 1, 1, 16);
    check_reason(accelerate, &plan, "tp=16 does not divide the model's 8 key-value heads: use tp 1, 2, 4 or 8");
}

Test(target_check, the_suggested_tp_sizes_divide_everything_that_is_split) {
    model.ffn = 14334;  // 2 * 3 * 2389
    TrainPlan plan = plan_of(accelerate, 1, 1, 1, 4);
    check_reason(accelerate, &plan, "tp=4 does not divide the model's 14334 feed-forward columns: use tp 1 or 2");
    model.ffn = 14336;
    model.heads = 36;
    model.kv_heads = 12;
    plan = plan_of(accelerate, 1, 1, 1, 3);
    check_reason(accelerate, &plan, "tp=3 does not divide the model's 14336 feed-forward columns: use tp 1, 2 or 4");
}

Test(target_check, only_targets_that_split_the_vocabulary_mind_its_size) {
    model.vocab = 128255;
    TrainPlan plan = plan_of(accelerate, 1, 1, 1, 2);
    check_legal(accelerate, &plan);
    plan = plan_of(ndtune, 1, 1, 1, 2);
    check_reason(ndtune, &plan, "tp=2 does not divide the model's 128255 vocabulary entries: use tp 1");
}

static const Target *target_of(const char *name) {
    const Target *target = NULL;
    Error error = {0};
    cr_assert_eq(target_find(name, &target, &error), STATUS_OK);
    return target;
}

Test(target_check, torchtitan_splits_any_vocabulary_and_counts_the_fullest_rank) {
    const Target *torchtitan = target_of("torchtitan@0.2");
    model.vocab = 1003;
    TrainPlan plan = plan_of(torchtitan, 1, 1, 1, 2);
    check_legal(torchtitan, &plan);
    cr_expect_eq(target_vocab(torchtitan, &model, 2), 2 * 502);
    cr_expect_eq(target_vocab(torchtitan, &model, 1), 1003);
    cr_expect_null(target_vocab_note(torchtitan, &model, 2, &arena));
}

Test(target_check, a_padded_vocabulary_is_said) {
    model.vocab = 1005;
    cr_expect_str_eq(target_vocab_note(target_of("megatron"), &model, 3, &arena),
                     "megatron pads the vocabulary from 1005 to 1152 entries, a multiple of 128 x tp: the padded ones "
                     "take part in the loss");
    model.vocab = 1152;
    cr_expect_null(target_vocab_note(target_of("megatron"), &model, 3, &arena));
}

// torchtitan 0.2.2 asserts ParallelDims.seq_len_divisor, tp * 2 * cp, on every mesh; 0.1 and what follows do not.
Test(target_check, a_sequence_of_torchtitan_divides_by_2_x_cp_x_tp) {
    const Target *torchtitan = target_of("torchtitan@0.2");
    TrainPlan plan = plan_of(torchtitan, 1, 2, 2, 2);
    check_legal(torchtitan, &plan);
    plan.seq = 4100;
    plan.micro_batch = 2;
    check_reason(torchtitan, &plan,
                 "torchtitan takes sequences that are a multiple of 2 x cp x tp = 8, and seq is 4100: use seq 4096 or "
                 "4104");
    plan.seq = 4097;
    check_reason(torchtitan, &plan,
                 "seq=4097 cannot be cut into the 4 equal chunks of cp=2: use seq 4096 or 4104, or a smaller cp");
    plan = plan_of(torchtitan, 1, 8, 1, 1);
    plan.seq = 45;
    check_reason(torchtitan, &plan,
                 "torchtitan takes sequences that are a multiple of 2 x cp x tp = 2, and seq is 45: use seq 44 or 46");
    plan.seq = 1;
    check_reason(torchtitan, &plan,
                 "torchtitan takes sequences that are a multiple of 2 x cp x tp = 2, and seq is 1: use seq 2");
    plan.seq = 45;
    check_legal(target_of("torchtitan@0.1"), &plan);
    check_legal(target_of("torchtitan@head"), &plan);
}

// FlexAttention's mask is of blocks of 128 tokens, which context parallelism does not cut.
Test(target_check, a_sequence_of_torchtitan_0_3_is_whole_blocks_on_every_cp_rank) {
    const Target *torchtitan = target_of("torchtitan@0.3");
    TrainPlan plan = plan_of(torchtitan, 1, 2, 4, 1);
    check_legal(torchtitan, &plan);
    plan.seq = 4160;
    check_reason(torchtitan, &plan,
                 "torchtitan takes sequences that are a multiple of cp x 128 = 512, and seq is 4160: use seq 4096 or "
                 "4608");
    plan = plan_of(torchtitan, 1, 8, 1, 1);
    plan.seq = 4160;
    check_legal(torchtitan, &plan);
}

Test(target_check, zigzag_cuts_the_sequence_into_twice_cp_chunks) {
    TrainPlan plan = plan_of(ndtune, 1, 1, 4, 1);
    plan.seq = 4096 + 8;
    check_legal(ndtune, &plan);
    plan.seq = 4096 + 4;
    check_reason(ndtune, &plan,
                 "seq=4100 cannot be cut into the 8 equal chunks of cp=4: use seq 4096 or 4104, or a smaller cp");
    plan.seq = 5;
    check_reason(ndtune, &plan, "seq=5 cannot be cut into the 8 equal chunks of cp=4: use seq 8, or a smaller cp");
}

Test(target_check, without_cp_any_sequence_length_goes) {
    TrainPlan plan = plan_of(accelerate, 1, 8, 1, 1);
    plan.seq = 4097;
    check_legal(accelerate, &plan);
}

Test(target_check, contiguous_targets_need_only_cp_chunks) {
    Target contiguous = *ndtune;
    contiguous.zigzag = false;
    TrainPlan plan = plan_of(&contiguous, 1, 1, 4, 1);
    plan.seq = 4100;
    check_legal(&contiguous, &plan);
    plan.seq = 4098;
    check_reason(&contiguous, &plan,
                 "seq=4098 cannot be cut into the 4 equal chunks of cp=4: use seq 4096 or 4100, or a smaller cp");
}

Test(target_check, sequence_parallelism_splits_the_local_tokens) {
    TrainPlan plan = plan_of(ndtune, 1, 1, 1, 8);
    plan.seq = 4092;  // 4 * 1023
    check_reason(
        ndtune, &plan,
        "tp=8 does not divide the 4092 tokens that a rank holds (micro_batch 1 x seq 4092 / cp 1), which sequence "
        "parallelism splits: use a micro_batch that is a multiple of 2");
    plan.micro_batch = 2;
    check_legal(ndtune, &plan);
    plan.micro_batch = 1;
    check_legal(accelerate, &plan);
}

Test(target_check, stages_are_all_or_nothing_under_fsdp) {
    TrainPlan plan = plan_of(accelerate, 1, 8, 1, 1);
    for (int zero = 0; zero < 3; zero++) {
        plan.zero = zero;
        cr_assert_not_null(reason_of(accelerate, &plan), "zero=%d", zero);
        plan.zero = zero;
        check_legal(ndtune, &plan);
    }
    plan.zero = 1;
    check_reason(accelerate, &plan,
                 "accelerate shards fully over dp_shard x cp = 8, zero=1 does not exist there: use zero=3");
}

Test(target_check, a_stage_needs_something_to_shard_over) {
    TrainPlan plan = plan_of(ndtune, 8, 1, 1, 1);
    plan.zero = 1;
    check_reason(ndtune, &plan, "zero=1 has nothing to shard over, dp_shard x cp is 1: use zero=0");
    plan = plan_of(ndtune, 1, 1, 2, 1);
    plan.zero = 1;
    check_legal(ndtune, &plan);
}

Test(target_check, stages_beyond_three_do_not_exist) {
    TrainPlan plan = plan_of(ndtune, 1, 8, 1, 1);
    plan.zero = 4;
    check_reason(ndtune, &plan, "zero=4 does not exist for ndtune: use zero 0 to 3");
    plan.zero = -1;
    check_reason(ndtune, &plan, "zero=-1 does not exist for ndtune: use zero 0 to 3");
}

Test(target_check, a_stage_that_another_version_has_names_it) {
    const Target *megatron;
    Error error = {0};
    cr_assert_eq(target_find("megatron", &megatron, &error), STATUS_OK);
    TrainPlan plan = plan_of(megatron, 1, 8, 1, 1);
    plan.zero = 3;
    check_reason(megatron, &plan, "zero=3 does not exist for megatron: use zero 0 to 1, or --target megatron@fsdp");
}

Test(target_check, a_rotation_must_be_one_that_the_target_runs) {
    TrainPlan plan = plan_of(ndtune, 1, 1, 2, 1);
    plan.cp_rotate = CP_ROTATE_ALLGATHER;
    check_reason(ndtune, &plan, "ndtune does not run cp_rotate=allgather: use cp_rotate=ring");
    plan = plan_of(accelerate, 1, 1, 2, 1);
    plan.cp_rotate = CP_ROTATE_RING;
    check_legal(accelerate, &plan);
}

Test(target_check, bf16_masters_are_refused_where_the_target_keeps_fp32_ones) {
    TrainPlan plan = plan_of(accelerate, 1, 8, 1, 1);
    plan.bf16_master = true;
    check_legal(accelerate, &plan);
    check_reason(ndtune, &plan, "ndtune has no bf16 master weights: use master weights fp32");
}

Test(target_check, parameters_cannot_be_kept_where_the_configuration_says_always) {
    const Target *axolotl;
    Error error = {0};
    cr_assert_eq(target_find("axolotl", &axolotl, &error), STATUS_OK);
    TrainPlan plan = plan_of(axolotl, 1, 8, 1, 1);
    plan.zero = 3;
    plan.reshard = RESHARD_NEVER;
    plan.bf16_master = true;
    check_legal(accelerate, &plan);
    check_reason(axolotl, &plan,
                 "axolotl frees gathered parameters after forward whatever its file says: use reshard always");
}

Test(target_check, who_trains_in_the_format_that_it_loads_has_no_fp32_masters) {
    const Target *axolotl;
    Error error = {0};
    cr_assert_eq(target_find("axolotl", &axolotl, &error), STATUS_OK);
    TrainPlan plan = plan_of(axolotl, 1, 8, 1, 1);
    check_reason(axolotl, &plan,
                 "axolotl trains in the number format that it loads, without fp32 masters: use master weights bf16");
    cr_assert_eq(target_usual(axolotl, &plan, PLAN_MASTER_WEIGHTS), true);
    cr_assert_eq(target_usual(accelerate, &plan, PLAN_MASTER_WEIGHTS), false);
    plan.bf16_master = true;
    check_legal(axolotl, &plan);
    plan.precision = DTYPE_FP32;
    cr_assert_eq(target_usual(axolotl, &plan, PLAN_MASTER_WEIGHTS), false);
}

// accelerate 1.15, big_modeling.py: _attach_context_parallel_hooks.
Test(target_check, a_sliding_window_is_not_split_along_the_sequence_where_masks_are_dropped) {
    const Target *older;
    Error error = {0};
    cr_assert_eq(target_find("accelerate@1.14", &older, &error), STATUS_OK);
    cr_assert_eq(model_find("mistral-7b", NULL, &model, &error), STATUS_OK);
    const TrainPlan plan = plan_of(accelerate, 1, 4, 4, 1);
    check_reason(accelerate, &plan,
                 "accelerate refuses cp=4 for mistral-7b, whose attention slides over 4096 tokens: its context "
                 "parallelism has full causal attention only; use cp=1");
    check_legal(older, &plan);
    const TrainPlan whole = plan_of(accelerate, 1, 16, 1, 1);
    check_legal(accelerate, &whole);
}

Test(target_check, bf16_reductions_are_refused_where_the_target_has_none) {
    const Target *torchtitan;
    Error error = {0};
    cr_assert_eq(target_find("torchtitan", &torchtitan, &error), STATUS_OK);
    TrainPlan plan = plan_of(torchtitan, 1, 8, 1, 1);
    plan.reduce_dtype = REDUCE_DTYPE_BF16;
    check_reason(torchtitan, &plan, "torchtitan reduces gradients in fp32 only: use reduce_dtype fp32 or auto");
    check_legal(ndtune, &plan);
    plan.precision = DTYPE_FP16;
    check_reason(ndtune, &plan, "fp16 gradients do not fit bf16's digits: use reduce_dtype fp32 or auto");
    plan.reduce_dtype = REDUCE_DTYPE_FP32;
    check_legal(ndtune, &plan);
}

Test(target_check, gradients_are_reduced_when_the_target_can) {
    TrainPlan plan = plan_of(accelerate, 2, 8, 1, 1);
    plan.grad_accum = 4;
    for (int sync = GRAD_SYNC_TARGET; sync < GRAD_SYNC_COUNT; sync++) {
        plan.grad_sync = (GradSync)sync;
        check_legal(ndtune, &plan);
    }
    plan.grad_sync = GRAD_SYNC_EACH;
    check_legal(accelerate, &plan);
    plan.grad_sync = GRAD_SYNC_LAST;
    check_legal(accelerate, &plan);
    plan.grad_sync = GRAD_SYNC_SHARDS;
    check_reason(accelerate, &plan,
                 "accelerate has no grad_sync=shards: sync_each_batch reduces over shards and replicas alike; use "
                 "grad_sync target, each or last");
    plan.mesh = (Mesh){.size = SIZES(1, 16, 1, 1)};  // without replicas it is each
    check_legal(accelerate, &plan);
    plan.grad_sync = GRAD_SYNC_LAST;
    const Target *torchtitan = NULL, *megatron = NULL;
    Error error = {0};
    cr_assert_eq(target_find("torchtitan", &torchtitan, &error), STATUS_OK);
    cr_assert_eq(target_find("megatron", &megatron, &error), STATUS_OK);
    check_reason(torchtitan, &plan,
                 "torchtitan has no grad_sync=last: its trainer reduces on every micro-step and has no switch for it; "
                 "use grad_sync target");
    plan.zero = 1;
    check_legal(megatron, &plan);
    plan.grad_sync = GRAD_SYNC_EACH;
    check_reason(megatron, &plan,
                 "megatron has no grad_sync=each: main gradients are reduced with the last micro-batch; use grad_sync "
                 "target");
    check_reason(ndtune, &plan,
                 "sharding stage 1 keeps whole gradients to the last micro-step, grad_sync=each is stage 2: use zero=2 "
                 "or grad_sync last");
}

Test(target_check, reductions_overlap_as_the_framework_lets_them) {
    const Target *deepspeed = NULL;
    Error error = {0};
    cr_assert_eq(target_find("deepspeed", &deepspeed, &error), STATUS_OK);
    TrainPlan plan = plan_of(accelerate, 1, 8, 1, 1);
    plan.reduce_overlap = REDUCE_OVERLAP_ON;
    check_legal(accelerate, &plan);  // its own
    plan.reduce_overlap = REDUCE_OVERLAP_OFF;
    check_reason(accelerate, &plan,
                 "accelerate has no reduce_overlap=off at sharding stage 3: use reduce_overlap target");
    check_reason(deepspeed, &plan,
                 "deepspeed has no reduce_overlap=off at sharding stage 3: use reduce_overlap target");
    plan.zero = 2;
    check_legal(deepspeed, &plan);
    cr_expect_eq(target_reduce_overlap(deepspeed, &(TrainPlan){.zero = 2}), REDUCE_OVERLAP_OFF);
    cr_expect_eq(target_reduce_overlap(deepspeed, &(TrainPlan){.zero = 3}), REDUCE_OVERLAP_ON);
    plan.reduce_overlap = REDUCE_OVERLAP_ON;
    check_legal(deepspeed, &plan);
    plan.zero = 0;
    check_reason(deepspeed, &plan, "deepspeed has no reduce_overlap=on at sharding stage 0: use reduce_overlap target");
}

Test(target_check, head_and_loss_come_in_the_forms_that_the_target_has) {
    TrainPlan plan = plan_of(accelerate, 1, 8, 1, 1);
    plan.loss = LOSS_FUSED;
    check_legal(accelerate, &plan);
    check_reason(
        ndtune, &plan,
        "ndtune has no loss=fused: it has no kernel for head and loss, and its own is in place; use loss target");
    plan.loss = LOSS_CHUNKED;
    check_legal(ndtune, &plan);
    check_reason(accelerate, &plan, "accelerate has no loss=chunked: Liger's kernel is loss=fused; use loss target");
    plan.seq = 1004;
    check_reason(
        ndtune, &plan,
        "loss=chunked cuts the 1004 tokens of a rank and micro-step into 8 equal parts: use a sequence that is "
        "a multiple of 8 x cp, or loss whole");
    TrainPlan split = plan_of(accelerate, 1, 4, 1, 2);
    split.loss = LOSS_FUSED;
    check_reason(accelerate, &split, "loss=fused reads the whole head, which tp=2 splits: use tp=1 or another loss");
    const Target *megatron = NULL;
    Error error = {0};
    cr_assert_eq(target_find("megatron", &megatron, &error), STATUS_OK);
    TrainPlan other = plan_of(megatron, 1, 8, 1, 1);
    other.loss = LOSS_FUSED;
    check_reason(megatron, &other,
                 "megatron has no loss=fused: its fused cross-entropy keeps the logits; use loss target");
    other.loss = LOSS_IN_PLACE;
    check_legal(megatron, &other);
    cr_expect_not(target_offers(megatron, &other, PLAN_LOSS, LOSS_IN_PLACE), "no search tries it");
}

Test(target_check, sizes_must_be_positive) {
    TrainPlan plan = plan_of(ndtune, 1, 8, 1, 1);
    plan.micro_batch = 0;
    check_reason(ndtune, &plan, "seq, micro_batch and grad_accum must be at least 1, got 4096, 0 and 1");
    plan = plan_of(ndtune, 1, 8, 1, 1);
    plan.mesh.size[AXIS_CP] = 0;
    check_reason(ndtune, &plan, "cp must be at least 1, got 0");
}

Test(target_check, a_micro_step_that_no_index_could_hold_is_refused) {
    TrainPlan plan = plan_of(accelerate, 1, 8, 1, 1);
    plan.seq = 1 << 20;
    plan.micro_batch = 1 << 10;
    check_legal(accelerate, &plan);
    plan.micro_batch = (1 << 10) + 1;
    check_reason(accelerate, &plan,
                 "a rank would hold 1074790400 tokens per micro-step, more than 1073741824: use a smaller micro_batch");
}

Test(target_check, layers_are_counted_as_the_framework_counts_them) {
    const Target *megatron, *titan;
    Error error = {0};
    cr_assert_eq(target_find("megatron", &megatron, &error), STATUS_OK);
    cr_assert_eq(target_find("torchtitan@0.2", &titan, &error), STATUS_OK);
    TrainPlan plan = plan_of(megatron, 1, 8, 1, 1);
    plan.recompute = RECOMPUTE_FULL;
    plan.recompute_layers = 20;
    check_legal(megatron, &plan);
    TrainPlan sharded = plan;
    sharded.zero = 3;
    check_reason(accelerate, &sharded, "accelerate has no recompute_layers=20: use recompute_layers 0");
    check_reason(titan, &sharded, "torchtitan has no recompute_layers=20: use recompute_layers 0, or recompute_every");
    plan.recompute_layers = 32;
    check_reason(
        megatron, &plan,
        "recompute_layers=32 does not fit the 32 layers of llama-3-8b: use less, or recompute_layers 0 for all "
        "of them");
    plan.recompute_layers = 0;
    plan.recompute_every = 2;
    sharded.recompute_layers = 0;
    sharded.recompute_every = 2;
    check_legal(titan, &sharded);
    check_reason(megatron, &plan, "megatron has no recompute_every=2: use recompute_every 0, or recompute_layers");
}

Test(target_check, what_is_checkpointed_is_the_targets_own_unit_where_it_has_no_other) {
    const Target *titan;
    Error error = {0};
    cr_assert_eq(target_find("torchtitan@0.2", &titan, &error), STATUS_OK);
    TrainPlan plan = plan_of(titan, 1, 8, 1, 1);
    plan.recompute = RECOMPUTE_FULL;
    plan.recompute_unit = RECOMPUTE_UNIT_LAYER;
    check_legal(titan, &plan);
    plan.recompute_unit = RECOMPUTE_UNIT_CHILDREN;
    check_legal(ndtune, &plan);
    check_reason(titan, &plan, "torchtitan recomputes with recompute_unit=layer: use recompute_unit layer or auto");
}

Test(target_check, what_is_offloaded_is_what_the_framework_can_offload) {
    const Target *megatron, *deepspeed, *torchtitan;
    Error error = {0};
    cr_assert_eq(target_find("megatron", &megatron, &error), STATUS_OK);
    cr_assert_eq(target_find("deepspeed", &deepspeed, &error), STATUS_OK);
    cr_assert_eq(target_find("torchtitan", &torchtitan, &error), STATUS_OK);
    TrainPlan plan = plan_of(accelerate, 1, 8, 1, 1);
    plan.offload = OFFLOAD_PARAMETERS;
    check_legal(accelerate, &plan);
    check_reason(ndtune, &plan, "ndtune has no offload=parameters,optimizer: use offload none");
    plan.offload = OFFLOAD_ACTIVATIONS;
    check_reason(accelerate, &plan,
                 "offload=activations moves the inputs of recomputed layers, recompute=none has none: use "
                 "recompute=full");
    plan.recompute = RECOMPUTE_FULL;
    check_legal(accelerate, &plan);
    check_reason(torchtitan, &plan, "torchtitan has no offload=activations: use offload parameters,optimizer");
    plan.recompute = RECOMPUTE_NONE;
    plan.offload = OFFLOAD_OPTIMIZER;
    check_reason(accelerate, &plan, "accelerate has no offload=optimizer: use offload parameters,optimizer");
    check_legal(deepspeed, &plan);
    plan.zero = 1;
    check_legal(megatron, &plan);
    plan.offload = OFFLOAD_PARAMETERS;
    check_reason(deepspeed, &plan,
                 "offload=parameters,optimizer keeps shards of parameters on the host, zero=1 has none: use zero=3");
}

static TrainPlan staged_plan(const Target *target, PpSchedule schedule, int chunks, int micro_steps) {
    Mesh mesh = {.size = SIZES(1, 1, 1, 1)};
    mesh.size[AXIS_PP] = 4;
    TrainPlan plan = plan_on(target, &mesh);
    plan.pp_schedule = schedule;
    plan.virtual_stages = chunks;
    plan.grad_accum = micro_steps;
    return plan;
}

Test(target_check, torchtitan_has_weight_gradients_apart_with_two_stages_on_each_rank_that_are_not_compiled) {
    Error error = {0};
    const Target *torchtitan;
    cr_assert_eq(target_find("torchtitan", &torchtitan, &error), STATUS_OK);
    TrainPlan plan = staged_plan(torchtitan, PP_ZERO_BUBBLE, 1, 8);
    plan.fused = FUSED_EAGER;
    check_reason(torchtitan, &plan,
                 "torchtitan runs zero-bubble with at least 2 stages on each rank: use virtual_stages 2");
    plan.virtual_stages = 2;
    check_legal(torchtitan, &plan);
    plan.pp_schedule = PP_ZBV;
    check_legal(torchtitan, &plan);
    plan.pp_schedule = PP_ZERO_BUBBLE;
    plan.precision = DTYPE_FP8;
    check_reason(torchtitan, &plan,
                 "pp_schedule=zero-bubble has gradients of weights apart, which is not predicted in fp8: use precision "
                 "bf16");
    plan.precision = DTYPE_BF16;
    plan.fused = FUSED_COMPILED;
    check_reason(torchtitan, &plan, "PyTorch refuses zero-bubble of compiled stages: use fused eager");
}

Test(target_check, nanotron_has_the_loss_on_the_last_stage_or_does_not_run) {
    Error error = {0};
    const Target *nanotron;
    cr_assert_eq(target_find("nanotron", &nanotron, &error), STATUS_OK);
    cr_assert_eq(model_find("llama-3.2-1b", NULL, &model, &error), STATUS_OK);
    TrainPlan plan = staged_plan(nanotron, PP_1F1B, 1, 16);
    plan.mesh.size[AXIS_PP] = 16;
    check_reason(nanotron, &plan,
                 "nanotron balances stages by cost, which puts the loss on stage 14 of 0 to 15 and nothing on the "
                 "last, where its labels are: use pp 8");
    plan.mesh.size[AXIS_PP] = 8;
    check_legal(nanotron, &plan);
}

Test(target_check, dualpipev_needs_twice_as_many_micro_steps_as_stages) {
    const TrainPlan few = staged_plan(ndtune, PP_DUALPIPEV, 2, 7), enough = staged_plan(ndtune, PP_DUALPIPEV, 2, 8);
    check_reason(ndtune, &few, "pp_schedule=dualpipev needs at least 2 pp = 8 micro-steps, grad_accum is 7");
    check_legal(ndtune, &enough);
}

Test(target_check, a_version_without_adapters_names_the_one_that_has_them) {
    const Target *titan, *without;
    cr_assert_eq(target_find("torchtitan@0.2", &titan, NULL), STATUS_OK);
    cr_assert_eq(target_find("nanotron", &without, NULL), STATUS_OK);
    TrainPlan plan = plan_of(titan, 1, 8, 1, 1);
    plan.finetune = FINETUNE_LORA;
    cr_expect_str_eq(reason_of(titan, &plan),
                     "adapters (finetune=lora) of torchtitan@0.2 are not predicted yet: use torchtitan@0.3");
    plan.zero = target_default_zero(without, &plan.mesh);
    cr_assert_not_null(reason_of(without, &plan));
    cr_expect(strstr(reason_of(without, &plan), ": use finetune full"), "%s", reason_of(without, &plan));
}

Test(target_check, adapters_of_megatron_core_have_a_rank_that_tp_divides) {
    const Target *bridge;
    cr_assert_eq(target_find("megatron@bridge-0.6", &bridge, NULL), STATUS_OK);
    TrainPlan plan = plan_of(bridge, 1, 2, 1, 4);
    plan.finetune = FINETUNE_LORA;
    plan.lora_rank = 8;
    check_legal(bridge, &plan);
    plan.lora_rank = 6;
    check_reason(bridge, &plan, "the rank of adapters, 6, is cut over tp=4: use a --lora-rank that it divides");
}
