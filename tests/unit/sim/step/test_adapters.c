// Low-rank adapters with frozen layers: what is trained, what remains of the rest, and that there are no races.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "sim/memory/memory.h"
#include "sim/memory/memory_breakdown.h"
#include "sim/step/lower_ops.h"
#include "tests/support/hazard_check.h"
#include "tests/support/lowered.h"

static Arena arena;

static void end(void) {
    arena_free(&arena);
}

TestSuite(adapters, .fini = end);

static LoweredRequest with_adapters(LoweredRequest request) {
    request.finetune = request.finetune ? request.finetune : FINETUNE_LORA;
    request.target = request.target ? request.target : "accelerate";
    request.bf16 = true;
    return request;
}

static const LoweredRequest requests[] = {
    {.mesh = "dp_shard=2"},
    {.mesh = "dp_shard=4", .grad_accum = 2, .recompute = RECOMPUTE_FULL},
    {.mesh = "dp_replicate=2,dp_shard=2", .eager = true},
    {.mesh = "dp_shard=2,cp=2", .lora_targets = LORA_ATTENTION},
    {.mesh = "dp_replicate=2", .zero = -1, .grad_accum = 3},
    {.mesh = "dp_shard=2", .target = "axolotl", .bf16_master = true, .grad_accum = 2},
    {.mesh = "dp_shard=2", .target = "trainer", .lora_targets = LORA_QUERY_VALUE, .tied = true},
    {.mesh = "dp_shard=2", .target = "trl", .offload = OFFLOAD_PARAMETERS},
    {.mesh = "dp_shard=4", .finetune = FINETUNE_QLORA, .grad_accum = 2},
    {.mesh = "dp_shard=2", .finetune = FINETUNE_QLORA, .bf16_master = true, .grad_accum = 2},
    {.mesh = "dp_shard=2", .finetune = FINETUNE_QLORA, .recompute = RECOMPUTE_FULL, .eager = true},
    {.mesh = "dp_replicate=2", .zero = -1, .finetune = FINETUNE_LORA_INT8, .recompute = RECOMPUTE_FULL},
    {.mesh = "dp_shard=2", .target = "accelerate@1.0", .recompute = RECOMPUTE_FULL, .grad_accum = 2},
    {.mesh = "dp_replicate=2",
     .target = "accelerate@1.0",
     .zero = -1,
     .finetune = FINETUNE_QLORA,
     .recompute = RECOMPUTE_FULL,
     .eager = true},
    {.mesh = "dp_shard=2", .model = "tiny-moe", .target = "trl", .eager = true, .grad_accum = 2},
    {.mesh = "dp_shard=2,tp=2", .target = "torchtitan@0.3"},
    {.mesh = "dp_shard=2,cp=2",
     .target = "torchtitan@0.3",
     .seq = 256,
     .cp_rotate = CP_ROTATE_ALLGATHER,
     .recompute = RECOMPUTE_FULL,
     .grad_accum = 2},
    {.mesh = "pp=2,dp_shard=2", .target = "torchtitan@0.3", .grad_accum = 4},
    {.mesh = "pp=2,dp_replicate=2", .target = "megatron@bridge-0.6", .zero = -1, .grad_accum = 4},
    {.mesh = "dp_shard=2,tp=2", .target = "megatron@bridge-0.6", .zero = 1, .recompute = RECOMPUTE_FULL},
    {.mesh = "dp_shard=2,tp=2", .target = "megatron@bridge-0.6", .zero = 1, .fp8 = true, .fp8_recipe = FP8_TENSORWISE},
    {.mesh = "dp_shard=2,sp=2",
     .target = "megatron@bridge-0.6",
     .zero = 1,
     .fp8 = true,
     .fp8_recipe = FP8_DELAYED,
     .fp8_parameters = true,
     .lora_targets = LORA_ATTENTION,
     .grad_accum = 2},
    {.mesh = "dp_shard=2",
     .target = "megatron@bridge-0.6",
     .zero = 1,
     .fp8 = true,
     .fp8_recipe = FP8_DELAYED,
     .lora_targets = LORA_ATTENTION,
     .op_fuser = true,
     .fp8_activation = true,
     .grad_accum = 2}};
enum { REQUESTS = sizeof requests / sizeof requests[0] };

static int64_t trained_elements(const StepProgram *program) {
    int64_t elements = 0;
    for (int32_t u = 0; u < program->unit_count; u++) {
        const Unit *unit = &program->units[u];
        elements += unit->trainable ? unit->trained_elements * unit->instances : 0;
    }
    return elements;
}

// peft's print_trainable_parameters of Llama-3-8B with r=16 on all linear layers of the blocks: 41,943,040; by hand 32
// layers x 16 x (3 x (4096 + 14336) + 2 x (4096 + 4096) + 2 x (4096 + 1024)). On q and v, 32 x 16 x (8192 + 5120).
Test(adapters, of_llama_3_8b_are_as_many_as_peft_counts) {
    const LoweredRequest all = {.model = "llama-3-8b"};
    LoweredRequest two = all;
    two.lora_targets = LORA_QUERY_VALUE;
    const StepProgram with_all = lowered(&arena, with_adapters(all)), with_two = lowered(&arena, with_adapters(two));
    cr_assert_eq(trained_elements(&with_all), 41943040);
    cr_assert_eq(trained_elements(&with_two), 6815744);
}

// torchtitan 0.3.0 counts 37,748,736 parameters that require gradients in what we export (its model_registry, on the
// meta device): q, k and v are one layer, 32 x 16 x 2 x 4096 fewer than peft's.
Test(adapters, of_llama_3_8b_are_as_many_as_torchtitan_counts_beside_its_fused_qkv) {
    const StepProgram program =
        lowered(&arena, (LoweredRequest){.model = "llama-3-8b", .target = "torchtitan@0.3", .finetune = FINETUNE_LORA});
    cr_assert_eq(trained_elements(&program), 37748736);
}

// By hand 48 layers x 16 x (2 x (2048 + 4096) + 2 x (2048 + 512)): routers and experts are no linear layers.
Test(adapters, of_qwen3_30b_a3b_are_of_attention_alone) {
    const StepProgram program =
        lowered(&arena, with_adapters((LoweredRequest){.model = "qwen3-30b-a3b", .target = "trl"}));
    cr_assert_eq(trained_elements(&program), 13369344);
}

Test(adapters, alone_have_gradients_moments_and_masters) {
    for (int i = 0; i < REQUESTS; i++) {
        const StepProgram program = lowered(&arena, with_adapters(requests[i]));
        for (int32_t u = 0; u < program.unit_count; u++) {
            const Unit *unit = &program.units[u];
            cr_expect_eq(unit->trainable, u == UNIT_LAYER);
            cr_expect(unit->trainable || (unit->moment1 < 0 && unit->gradient_full < 0 && unit->gradient_shard < 0),
                      "%d %s", i, unit->name);
        }
        const Unit *layer = &program.units[UNIT_LAYER];
        cr_expect_lt(layer->trained_elements, layer->elements / 2);
        cr_expect_eq(program.buffers[layer->moment1].bytes,
                     layer->trained_shard * dtype_bytes(program.buffers[layer->moment1].dtype));
        cr_expect_eq(program.buffers[layer->gradient_full].bytes,
                     layer->trained_padded * dtype_bytes(program.buffers[layer->gradient_full].dtype));
    }
}

// bf16 weights of all parameters, cut in two; fp32 masters and two moments of the adapters.
Test(adapters, keep_two_bytes_of_a_frozen_parameter_and_fourteen_of_a_trained_one) {
    const StepProgram program = lowered(&arena, with_adapters((LoweredRequest){.mesh = "dp_shard=2"}));
    int64_t bytes = 0, expected = 0;
    for (int32_t i = 0; i < program.buffer_count; i++) {
        const Buffer *buffer = &program.buffers[i];
        const bool is_state = buffer->role == ROLE_PARAMETER || buffer->role == ROLE_OPTIMIZER;
        bytes += is_state && buffer->persistent ? buffer->bytes * buffer->slots : 0;
    }
    for (int32_t u = 0; u < program.unit_count; u++) {
        const Unit *unit = &program.units[u];
        expected += unit->instances * (2 * unit->shard_elements + (unit->trainable ? 12 * unit->trained_shard : 0));
    }
    cr_assert_eq(bytes, expected);
}

// 218,103,808 parameters of matrices in a layer of Llama-3-8B: 4096 x (2 x 4096 + 2 x 1024 + 3 x 14336); nf4 has half a
// byte of each and 4 bytes for each 64, which two ranks share; two norms and the adapters stay as they are.
Test(adapters, beside_weights_of_4_bits_gather_a_layer_of_117_MiB) {
    LoweredRequest request = {.model = "llama-3-8b", .mesh = "dp_shard=2", .finetune = FINETUNE_QLORA};
    const StepProgram program = lowered(&arena, with_adapters(request));
    const Unit *layer = &program.units[UNIT_LAYER];
    const int64_t matrices = INT64_C(4096) * (2 * 4096 + 2 * 1024 + 3 * 14336);
    const int64_t bytes = matrices / 2 + matrices / 64 * 4 + 2 * (2 * 4096 + layer->trained_elements);
    cr_assert_eq(matrices, 218103808);
    cr_assert_eq(program.buffers[layer->gathered].bytes, bytes);
    cr_assert_eq(program.buffers[layer->working].bytes, bytes / 2);
    request.bf16_master = true;
    const StepProgram lone = lowered(&arena, with_adapters(request));
    cr_assert_lt(lone.units[UNIT_LAYER].working, 0);
    cr_assert_eq(lone.buffers[lone.units[UNIT_LAYER].master].bytes, bytes / 2);
}

// peft's Linear.forward: x.to(lora_A.weight.dtype), which does nothing where the model was made bf16 with its adapters.
Test(adapters, in_bf16_read_their_inputs_without_a_cast) {
    LoweredRequest request = {.mesh = "dp_shard=2", .eager = true};
    const StepProgram wide = lowered(&arena, with_adapters(request));
    request.bf16_master = true;
    const StepProgram half = lowered(&arena, with_adapters(request));
    cr_expect_gt(tasks_named(&wide, "adapter upcast"), 0);
    cr_expect_eq(tasks_named(&half, "adapter upcast") + tasks_named(&half, "adapter autocast"), 0);
    cr_expect_eq(tasks_named(&half, "adapter scale"), tasks_named(&wide, "adapter scale"));
}

static double flops_of(const StepProgram *program) {
    double flops = 0;
    StepCursor cursor = step_cursor_begin(program);
    StepInstance instance;
    while (step_cursor_next(&cursor, &instance)) {
        const Task *task = &program->tasks[instance.task];
        flops += task->kind == TASK_GEMM ? task->flops : 0;
    }
    return flops;
}

// Per token: forward and input gradient of what is frozen (2 + 2), all three of what is trained. The head's input
// gradient is made, the embedding multiplies nothing.
Test(adapters, leave_four_operations_of_a_frozen_parameter_and_take_six_of_their_own) {
    const StepProgram program = lowered(&arena, with_adapters((LoweredRequest){.model = "llama-3.2-1b", .layers = 2}));
    const double tokens = (double)plan_local_tokens(&program.plan);
    double expected = 4.0 * (double)program.model.vocab * (double)program.model.hidden;
    const Unit *layer = &program.units[UNIT_LAYER];
    for (int i = 0; i < layer->slice_count; i++) {
        const ParamSlice *slice = &program.slices[layer->first_slice + i];
        const double elements = (double)slice->global_rows * (double)slice->global_cols;
        expected += slice->decay ? layer->instances * elements * (i < layer->trained_slices ? 6 : 4) : 0;
    }
    cr_assert_float_eq(flops_of(&program), expected * tokens, 1e-6 * expected * tokens);
}

Test(adapters, are_all_that_data_ranks_reduce) {
    const StepProgram program = lowered(&arena, with_adapters((LoweredRequest){.mesh = "dp_replicate=2,dp_shard=2"}));
    int reductions = 0;
    for (int32_t i = 0; i < program.task_count; i++) {
        const Task *task = &program.tasks[i];
        if (task->kind == TASK_REDUCE_SCATTER) {
            const Unit *unit = &program.units[task->unit];
            cr_assert_eq(task->unit, UNIT_LAYER);
            cr_assert_eq(task->payload_bytes, unit->trained_padded * dtype_bytes(task->dtype));
            reductions++;
        }
        if (task->kind == TASK_ALL_GATHER && task->unit == UNIT_LAYER) {
            cr_assert_eq(task->payload_bytes, program.units[UNIT_LAYER].padded_elements * 2);
        }
    }
    cr_assert_gt(reductions, 0);
}

// Bytes that tp ranks exchange for adapters in a layer, forward and back.
static int64_t adapter_bytes_over_tp(const StepProgram *program, TaskKind kind) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        const bool counts = task->kind == kind && task->lane == LANE_TP && strstr(task->name, "adapter");
        bytes += counts ? task->payload_bytes : 0;
    }
    return bytes;
}

// Megatron-Bridge's ParallelLinearAdapter: A's results for qkv and gate with up are gathered, those for the two others
// reduced, and the results of these Bs are gathered both ways; every gradient entering A is reduced.
Test(adapters, of_megatron_core_exchange_what_a_rank_wide_and_two_hidden_wide_layers_make) {
    const LoweredRequest request = {.target = "megatron@bridge-0.6", .mesh = "tp=2", .zero = -1};
    const StepProgram program = lowered(&arena, with_adapters(request));
    const int64_t tokens = plan_local_tokens(&program.plan), rank = plan_lora_rank(&program.plan);
    const int64_t wide = tokens * program.model.hidden * 2, narrow = tokens * rank * 2;
    cr_expect_eq(adapter_bytes_over_tp(&program, TASK_ALL_GATHER), 2 * narrow + 2 * wide + 2 * wide);
    cr_expect_eq(adapter_bytes_over_tp(&program, TASK_ALL_REDUCE), 2 * narrow + 4 * narrow);
    const StepProgram other =
        lowered(&arena, (LoweredRequest){.target = "ndtune", .mesh = "tp=2", .finetune = FINETUNE_LORA});
    cr_expect_eq(adapter_bytes_over_tp(&other, TASK_ALL_GATHER) + adapter_bytes_over_tp(&other, TASK_ALL_REDUCE), 0);
}

static StepProgram with_target(const StepProgram *program, const Target *target) {
    StepProgram other;
    Error error = {0};
    cr_assert_eq(step_lower(&program->model, &program->plan, target, &arena, &other, &error), STATUS_OK, "%s",
                 error.message);
    return other;
}

// With a2a_experimental a rank sends its columns of what two layers made and has its rows, each way.
Test(adapters, of_megatron_core_may_exchange_what_they_would_gather) {
    const LoweredRequest request = {.target = "megatron@bridge-0.6", .mesh = "tp=2", .zero = -1};
    const StepProgram gathered = lowered(&arena, with_adapters(request));
    Target exchanges = *gathered.target;
    exchanges.adapters_exchange = true;
    const StepProgram program = with_target(&gathered, &exchanges);
    const int64_t tokens = plan_local_tokens(&program.plan), rank = plan_lora_rank(&program.plan);
    cr_expect_eq(adapter_bytes_over_tp(&program, TASK_ALL_TO_ALL), (2 + 2) * tokens * program.model.hidden / 2 * 2);
    cr_expect_eq(adapter_bytes_over_tp(&program, TASK_ALL_GATHER), 2 * tokens * rank * 2);
}

// Every rank has the whole results then, and their whole gradient.
Test(adapters, of_megatron_core_gather_results_forward_alone_where_no_sequence_is_split) {
    const LoweredRequest request = {
        .target = "megatron@bridge-0.6", .mesh = "tp=2", .zero = -1, .sequence_parallel = SEQUENCE_PARALLEL_OFF};
    const StepProgram program = lowered(&arena, with_adapters(request));
    const int64_t tokens = plan_local_tokens(&program.plan), rank = plan_lora_rank(&program.plan);
    cr_expect_eq(adapter_bytes_over_tp(&program, TASK_ALL_GATHER),
                 2 * tokens * rank * 2 + 2 * tokens * program.model.hidden * 2);
}

// Each of a layer's gathers and scatters of what an adapter reads, and what adapters themselves move.
Test(adapters, of_megatron_core_move_over_tp_what_no_product_hides) {
    const LoweredRequest request = {
        .target = "megatron@bridge-0.6", .mesh = "tp=2", .zero = -1, .lora_targets = LORA_ATTENTION};
    const StepProgram program = lowered(&arena, with_adapters(request));
    int unhidden = 0;
    for (int32_t i = 0; i < program.task_count; i++) {
        const Task *task = &program.tasks[i];
        const bool of_adapter = strstr(task->name, "adapter") || strstr(task->name, "attention in");
        cr_expect_eq(task->unhidden, task->lane == LANE_TP && of_adapter, "%s", task->name);
        unhidden += task->unhidden;
    }
    cr_expect_gt(unhidden, 0);
    const StepProgram whole = lowered(&arena, (LoweredRequest){.target = "megatron", .mesh = "tp=2", .zero = -1});
    for (int32_t i = 0; i < whole.task_count; i++) {
        cr_expect_not(whole.tasks[i].unhidden, "%s", whole.tasks[i].name);
    }
}

Test(adapters, of_megatron_core_are_beside_experts_where_they_are_of_attention_alone) {
    LoweredRequest request = {.model = "tiny-moe",
                              .target = "megatron@bridge-0.6",
                              .mesh = "dp_shard=2",
                              .zero = 1,
                              .finetune = FINETUNE_LORA};
    cr_expect_not(lowered_is_legal(&request, &arena));
    request.lora_targets = LORA_ATTENTION;
    cr_expect(lowered_is_legal(&request, &arena));
}

static int32_t slots_of(const StepProgram *program, const char *name) {
    const Buffer *buffer = buffer_named(program, name);
    return buffer ? buffer->slots : 0;
}

// A frozen layer's input is kept only for its adapter.
Test(adapters, keep_the_inputs_of_the_layers_that_have_one) {
    LoweredRequest two = {.lora_targets = LORA_QUERY_VALUE, .eager = true};
    const StepProgram with_two = lowered(&arena, with_adapters(two));
    const StepProgram with_all = lowered(&arena, with_adapters((LoweredRequest){.eager = true}));
    cr_assert_eq(slots_of(&with_all, "wdown adapter input"), with_all.model.layers);
    cr_assert_eq(slots_of(&with_all, "activation_out"), 1);
    cr_assert_eq(slots_of(&with_two, "activation_out"), 1);
    cr_assert_eq(slots_of(&with_two, "wq adapter input"), with_two.model.layers);
    cr_assert_eq(slots_of(&with_two, "wk adapter input"), 0);
    cr_assert_eq(slots_of(&with_two, "attention_in"), 1);
}

static const Buffer *buffer_of(const StepProgram *program, const char *name) {
    const Buffer *buffer = buffer_named(program, name);
    cr_assert_not_null(buffer, "%s", name);
    return buffer;
}

static StepProgram beside_fp8(bool parameters) {
    const LoweredRequest request = {.target = "megatron@bridge-0.6",
                                    .mesh = "dp_shard=2",
                                    .zero = 1,
                                    .fp8 = true,
                                    .fp8_recipe = FP8_DELAYED,
                                    .fp8_parameters = parameters,
                                    .lora_targets = LORA_ATTENTION};
    return lowered(&arena, with_adapters(request));
}

static int64_t passes_beside(const StepProgram *program, const char *product) {
    for (int32_t i = 0; i < program->task_count; i++) {
        if (strcmp(program->tasks[i].name, product) == 0) {
            return program->tasks[i].cast_bytes;
        }
    }
    cr_assert_fail("%s", product);
    return 0;
}

// NeMo's TEFusedLoRALinear: no pass scales or adds, where there is no tp.
Test(adapters, as_fused_operations_scale_and_add_in_their_products) {
    LoweredRequest request = {.target = "megatron@bridge-0.6",
                              .mesh = "dp_shard=2",
                              .bf16 = true,
                              .lora_targets = LORA_ATTENTION,
                              .op_fuser = true};
    const StepProgram fused = lowered(&arena, with_adapters(request));
    int products = 0;
    for (int32_t i = 0; i < fused.task_count; i++) {
        cr_expect_str_neq(fused.tasks[i].name, "adapter scale");
        products += fused.tasks[i].kind == TASK_GEMM && fused.tasks[i].accumulate;
    }
    cr_expect_eq(products, 4);  // of results and of inputs' gradients
    request.mesh = "tp=2";
    const StepProgram split = lowered(&arena, with_adapters(request));
    cr_expect_not_null(buffer_of(&split, "wq adapter scaled"));
}

// Transformer Engine hands them the norm's result unquantized; what no adapter reads is quantized by what makes it.
Test(adapters, beside_fp8_layers_read_bf16) {
    const StepProgram program = beside_fp8(false);
    cr_expect_eq(buffer_of(&program, "attention_in")->dtype, DTYPE_BF16);
    cr_expect_eq(buffer_of(&program, "attention_in")->slots, program.model.layers);
    cr_expect_eq(slots_of(&program, "attention_out_fp8"), 0);
    cr_expect_eq(buffer_of(&program, "mlp_in")->dtype, DTYPE_FP8);
    cr_expect_eq(buffer_of(&program, "mlp_in")->slots, 1);
}

// The product of the frozen layer casts that itself: a byte of fp8 written for each element of bf16 read.
Test(adapters, beside_fp8_layers_leave_the_cast_to_the_frozen_product) {
    const StepProgram program = beside_fp8(false);
    const int64_t elements = plan_local_tokens(&program.plan) * program.model.hidden;
    cr_expect_eq(passes_beside(&program, "qkv"), 3 * elements);
    cr_expect_eq(passes_beside(&program, "wq adapter a"), 0);
}

Test(adapters, beside_weights_kept_in_fp8_cast_none_of_them_in_a_step) {
    const StepProgram cast = beside_fp8(false), kept = beside_fp8(true);
    cr_expect_gt(tasks_named(&cast, "cast weights to fp8"), 0);
    cr_expect_eq(tasks_named(&kept, "cast weights to fp8"), 0);
    cr_expect_gt(tasks_named(&kept, "transpose fp8 weights"), 0);
    cr_expect_eq(buffer_of(&kept, "layer fp8 weights")->slots, 1, "one layer's transposed copy at a time");
}

static MemoryBreakdown breakdown_of(const StepProgram *program) {
    Error error = {0};
    MemoryBreakdown breakdown;
    cr_assert_eq(memory_breakdown(program, &arena, &breakdown, &error), STATUS_OK, "%s", error.message);
    return breakdown;
}

// peft's adapters are in fp32: each of seven casts its input, and its gradient, unless all is in fp32.
Test(adapters, of_peft_cast_their_inputs_to_fp32_and_back) {
    const StepProgram eager = lowered(&arena, with_adapters((LoweredRequest){.eager = true}));
    cr_assert_eq(tasks_named(&eager, "adapter upcast"), 7);
    cr_assert_eq(tasks_named(&eager, "adapter autocast gradient"), 7);
    cr_assert_eq(buffer_of(&eager, "wq adapter input fp32")->dtype, DTYPE_FP32);
    cr_assert_eq(buffer_of(&eager, "wq adapter input")->dtype, DTYPE_BF16);
    const LoweredRequest whole = {.finetune = FINETUNE_LORA, .target = "accelerate"};
    const StepProgram in_fp32 = lowered(&arena, whole);
    cr_assert_eq(tasks_named(&in_fp32, "adapter upcast"), 0);
}

static StepProgram on_one(Finetune finetune, const char *target, const char *mesh) {
    return lowered(&arena, with_adapters((LoweredRequest){
                               .finetune = finetune, .target = target, .mesh = mesh, .zero = -1, .eager = true}));
}

static Dtype dtype_of(const StepProgram *program, const char *buffer) {
    return buffer_of(program, buffer)->dtype;
}

// Kept inputs of layers twice as large: TRL before 0.25, and not where ranks share the weights.
Test(adapters, of_packed_weights_with_norms_in_fp32_have_a_stream_in_fp32) {
    const StepProgram prepared = on_one(FINETUNE_QLORA, "accelerate@1.0", NULL);
    const StepProgram plain = on_one(FINETUNE_LORA, "accelerate@1.0", NULL);
    const StepProgram newer = on_one(FINETUNE_QLORA, "trl", NULL);
    const StepProgram sharded = lowered(
        &arena, with_adapters((LoweredRequest){
                    .finetune = FINETUNE_QLORA, .target = "accelerate@1.0", .mesh = "dp_shard=2", .eager = true}));
    cr_expect_eq(dtype_of(&prepared, "x"), DTYPE_FP32);
    cr_expect_eq(dtype_of(&plain, "x"), DTYPE_BF16);
    cr_expect_eq(dtype_of(&newer, "x"), DTYPE_BF16);
    cr_expect_eq(dtype_of(&sharded, "x"), DTYPE_BF16);
}

// Attention and the layer behind it are in bf16; gate and up cast what they read and what they write, 6 bytes each.
Test(adapters, beside_a_stream_in_fp32_have_attention_and_products_in_bf16) {
    const StepProgram program = on_one(FINETUNE_QLORA, "accelerate@1.0", NULL);
    const int64_t tokens = plan_local_tokens(&program.plan);
    cr_expect_eq(dtype_of(&program, "q_half"), DTYPE_BF16);
    cr_expect_eq(dtype_of(&program, "attention_out"), DTYPE_BF16);
    cr_expect_eq(tasks_named(&program, "adapter upcast"), 1, "of attention's result alone");
    cr_expect_eq(passes_beside(&program, "gate"), 6 * tokens * (program.model.hidden + program.model.ffn));
    cr_expect_eq(passes_beside(&program, "attention out"), 0);
}

// 9 bytes an element there and back in fp32, 5 and 8 where kernels for packed weights do it.
static void check_dropped(Finetune finetune, Fused fused, int forward, int back) {
    const StepProgram kept = lowered(&arena, with_adapters((LoweredRequest){.finetune = finetune, .eager = true}));
    TrainPlan plan = kept.plan;
    plan.fused = fused;
    Target drops = *kept.target;
    drops.adapters_drop = true;
    StepProgram dropped;
    Error error = {0};
    cr_assert_eq(step_lower(&kept.model, &plan, &drops, &arena, &dropped, &error), STATUS_OK, "%s", error.message);
    const int64_t elements = (int64_t)kept.plan.seq * kept.plan.micro_batch * kept.model.hidden;
    cr_expect_eq(passes_beside(&kept, "wq adapter a"), 0);
    cr_expect_eq(passes_beside(&dropped, "wq adapter a"), forward * elements);
    cr_expect_eq(passes_beside(&dropped, "wq adapter input gradient"), back * elements);
}

Test(adapters, that_drop_elements_of_their_input_move_it_once_more_there_and_back) {
    check_dropped(FINETUNE_LORA, FUSED_EAGER, 9, 9);
    check_dropped(FINETUNE_QLORA, FUSED_FUSED, 5, 8);
    check_dropped(FINETUNE_LORA, FUSED_COMPILED, 0, 0);
}

// PyTorch's dropout in bf16: read, written and its mask, both ways.
Test(adapters, of_megatron_core_drop_elements_in_bf16) {
    const StepProgram kept = beside_fp8(false);
    Target drops = *kept.target;
    drops.adapters_drop = true;
    const StepProgram dropped = with_target(&kept, &drops);
    const int64_t elements = plan_local_tokens(&kept.plan) * kept.model.hidden;
    cr_expect_eq(passes_beside(&dropped, "wq adapter a"), 5 * elements);
    cr_expect_eq(passes_beside(&dropped, "wq adapter input gradient"), 5 * elements);
}

// A byte of PyTorch's mask and what is left of the input; kernels of packed weights have the latter alone, and peft
// casts it for A anyway.
static void check_drop_kept(Finetune finetune, Fused fused, bool masked, bool copied) {
    StepProgram kept = lowered(&arena, with_adapters((LoweredRequest){.mesh = "dp_shard=2", .finetune = finetune}));
    TrainPlan plan = kept.plan;
    plan.fused = fused;
    Target drops = *kept.target;
    drops.adapters_drop = true;
    StepProgram dropped;
    Error error = {0};
    cr_assert_eq(step_lower(&kept.model, &plan, &drops, &arena, &dropped, &error), STATUS_OK, "%s", error.message);
    const int64_t elements = plan_local_tokens(&plan) * kept.model.hidden;
    const Buffer *mask = buffer_named(&dropped, "wq adapter input mask"),
                 *copy = buffer_named(&dropped, "wq adapter input dropped");
    cr_expect_eq(mask ? mask->slot_bytes : 0, masked ? elements : 0);
    cr_expect_eq(copy ? copy->slot_bytes : 0, copied ? 2 * elements : 0);
}

Test(adapters, that_drop_elements_of_their_input_keep_what_backward_reads_of_it) {
    check_drop_kept(FINETUNE_LORA, FUSED_EAGER, true, false);
    check_drop_kept(FINETUNE_QLORA, FUSED_FUSED, false, true);
    check_drop_kept(FINETUNE_LORA, FUSED_COMPILED, false, false);
}

// Embedding, norm and head, which have no gradient to wait for.
Test(adapters, of_fsdp_1_leave_the_root_gathered_until_backward_ends) {
    const StepProgram program = lowered(
        &arena,
        with_adapters((LoweredRequest){.mesh = "dp_shard=2", .target = "accelerate@1.0", .recompute = RECOMPUTE_FULL}));
    const int32_t root = program.units[UNIT_EMBEDDING].gathered;
    int readers = 0;
    for (int32_t i = 0; i < program.task_count; i++) {
        const Task *task = &program.tasks[i];
        const bool apart = task->unit != UNIT_EMBEDDING && task->unit != UNIT_HEAD && task->phase == PHASE_BACKWARD;
        for (int k = 0; k < task->operand_count && apart; k++) {
            readers += task_operand(&program, task, k)->ref.buffer == root;
        }
    }
    cr_expect_gt(readers, 0);
}

// Of FSDP 1: its hooks refer to them. When backward ends all inputs and gradients of layers are alive.
Test(adapters, in_recomputed_layers_of_fsdp_1_hold_a_gradient_per_layer) {
    enum { LAYERS = 200, TOKENS = 2048 };
    LoweredRequest request = {.mesh = "dp_shard=2",
                              .target = "accelerate@1.0",
                              .seq = TOKENS,
                              .recompute = RECOMPUTE_FULL,
                              .layers = LAYERS,
                              .loss = LOSS_FUSED};
    const StepProgram held = lowered(&arena, with_adapters(request));
    cr_assert_eq(buffer_of(&held, "dx")->slots, LAYERS + 1);
    cr_assert(buffer_of(&held, "dx")->held);
    cr_assert(buffer_of(&held, "x")->held);
    const MemoryBreakdown breakdown = breakdown_of(&held);
    cr_assert_str_eq(breakdown.peak_phase, "backward");
    cr_assert_geq(breakdown.activations, 2.0 * LAYERS * TOKENS * held.model.hidden * dtype_bytes(DTYPE_BF16));
    LoweredRequest other = request;
    other.target = "accelerate@1.13";
    const StepProgram freed = lowered(&arena, with_adapters(other));
    cr_assert_not(buffer_of(&freed, "x")->held);
    request.recompute = RECOMPUTE_NONE;
    const StepProgram kept = lowered(&arena, with_adapters(request));
    cr_assert_not(buffer_of(&kept, "x")->held);
}

Test(adapters, of_fsdp_1_are_the_same_in_cut_programs_and_whole_ones) {
    static const CutOptions whole = {.reach_factor = 0, .base_layers = 1 << 20, .max_micro_steps = 1 << 20};
    for (int layers = 2; layers <= 40; layers += 19) {
        Error error = {0};
        const LoweredRequest request = {.mesh = "dp_shard=2",
                                        .target = "accelerate@1.0",
                                        .grad_accum = 3,
                                        .recompute = RECOMPUTE_FULL,
                                        .layers = layers};
        const StepProgram program = lowered(&arena, with_adapters(request));
        MemoryBreakdown all;
        LiveTraces traces = {0};
        cr_assert_eq(memory_breakdown_cut(&program, &whole, &traces, &all, &error), STATUS_OK);
        cr_expect_eq(breakdown_of(&program).peak_bytes, all.peak_bytes, "%d layers", layers);
        live_traces_free(&traces);
    }
}

Test(adapters, race_with_nothing_and_every_memory_plan_is_proved) {
    for (int i = 0; i < REQUESTS; i++) {
        Error error = {0};
        MemoryPlan plan;
        const StepProgram program = lowered(&arena, with_adapters(requests[i]));
        cr_assert_eq(memory_plan(&program, &arena, &plan, &error), STATUS_OK, "%d: %s", i, error.message);
        cr_assert_eq(hazard_check(&program, &plan, &arena, NULL, &error), STATUS_OK, "%d: %s", i, error.message);
    }
}

// What is turned to fp32 is found by its name: each is that of a tensor of some model, whatever its dtype there.
Test(adapters, beside_packed_weights_name_tensors_that_there_are) {
    const StepProgram programs[] = {
        on_one(FINETUNE_QLORA, "accelerate@1.0", NULL),
        lowered(&arena, (LoweredRequest){.model = "pythia-1.4b", .target = "accelerate", .bf16 = true}),
        lowered(&arena, (LoweredRequest){.target = "megatron", .mesh = "tp=2", .bf16 = true}),
        lowered(&arena, (LoweredRequest){.target = "torchtitan",
                                         .mesh = "pp=2,tp=2",
                                         .pp_schedule = PP_ZERO_BUBBLE,
                                         .virtual_stages = 2,
                                         .grad_accum = 4,
                                         .bf16 = true,
                                         .eager = true}),
    };
    enum { PROGRAMS = sizeof programs / sizeof programs[0] };
    for (const char *const *name = upcast_tensors; *name; name++) {
        bool is = false;
        for (int i = 0; i < PROGRAMS; i++) {
            is = is || buffer_named(&programs[i], *name);
        }
        cr_expect(is, "%s", *name);
    }
}
