// Number formats: how fp8 and bf16 masters change a layer's GEMMs, gathers, saved inputs and state. Sources: torchao
// 0.18 float8/, torchtitan 0.2.2 models/llama3/infra/parallelize.py, Transformer Engine pytorch/module/linear.py.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/memory/memory.h"
#include "sim/step/lower_ops.h"
#include "tests/support/hazard_check.h"
#include "tests/support/lowered.h"

static const double MIB = 1024.0 * 1024.0;

// Llama-2-7B: a layer has 202,375,168 matrix elements and 8,192 in its two norms.
static const double matrices = 202375168, norms = 8192;

static StepProgram fp8_program(Arena *arena, const char *target, const char *mesh, Fp8Recipe recipe) {
    return lowered(
        arena,
        (LoweredRequest){
            .model = "llama-2-7b", .target = target, .mesh = mesh, .seq = 8192, .fp8 = true, .fp8_recipe = recipe});
}

static const Task *task_named(const StepProgram *program, const char *name, Phase phase) {
    for (int32_t i = 0; i < program->task_count; i++) {
        if (strcmp(program->tasks[i].name, name) == 0 && program->tasks[i].phase == phase) {
            return &program->tasks[i];
        }
    }
    cr_assert_fail("no task %s", name);
    return NULL;
}

static const Buffer *operand_buffer(const StepProgram *program, const Task *task, int index) {
    return &program->buffers[task_operand(program, task, index)->ref.buffer];
}

Test(lowering_formats, fp8_is_the_layers_gemms_and_nothing_else) {
    static const char *const targets[] = {"torchtitan", "megatron", "accelerate", "axolotl"};
    for (size_t t = 0; t < sizeof targets / sizeof targets[0]; t++) {
        Arena arena = {0};
        const StepProgram program = fp8_program(&arena, targets[t], "dp_shard=2", FP8_TENSORWISE);
        for (int32_t i = 0; i < program.task_count; i++) {
            const Task *task = &program.tasks[i];
            const bool head = strncmp(task->name, "head", 4) == 0;
            if (task->kind == TASK_GEMM) {
                cr_assert_eq(task->dtype, head ? DTYPE_BF16 : DTYPE_FP8, "%s %s", targets[t], task->name);
            } else if (task->kind == TASK_ATTENTION || task->kind == TASK_RMSNORM || task->kind == TASK_SWIGLU) {
                cr_assert_eq(task->dtype, DTYPE_BF16, "%s %s", targets[t], task->name);
            }
        }
        arena_free(&arena);
    }
}

Test(lowering_formats, torchao_gathers_matrices_in_fp8_and_norms_in_bf16_when_scales_are_per_tensor) {
    Arena arena = {0};
    const StepProgram tensor = fp8_program(&arena, "torchtitan", "dp_shard=8", FP8_TENSORWISE);
    const StepProgram row = fp8_program(&arena, "torchtitan", "dp_shard=8", FP8_ROWWISE);
    const Task *gather = task_named(&tensor, "gather weights", PHASE_FORWARD);
    while (gather->unit != 1 || gather->kind != TASK_ALL_GATHER) {
        gather++;
    }
    cr_assert_float_eq((double)gather->payload_bytes, matrices + 2 * norms, 8 * 256 - 1);
    const Unit *layer = &tensor.units[1];
    cr_assert_eq(tensor.buffers[layer->gathered].dtype, DTYPE_FP8);
    cr_assert_eq(row.buffers[row.units[1].gathered].dtype, DTYPE_BF16);
    cr_assert_eq(row.buffers[row.units[1].gathered].slot_bytes, 2 * row.units[1].padded_elements);
    arena_free(&arena);
}

// PrepareFloat8ModuleInput and Float8RowwiseParallel cast before the gather: A/2 = 16 MiB at T=2, C=1, b=1, s=8192 is
// 2*8192*4096/2 = 32 MiB.
Test(lowering_formats, tensorwise_tp_gathers_one_byte_per_element_and_reduces_one_scale_each) {
    Arena arena = {0};
    static const char *const names[][2] = {{"attention in", "mlp in"}, {"attention gradient", "mlp gradient"}};
    const StepProgram tensor = fp8_program(&arena, "torchtitan", "tp=2", FP8_TENSORWISE);
    const StepProgram row = fp8_program(&arena, "torchtitan", "tp=2", FP8_ROWWISE);
    int scales = 0;
    for (int half = 0; half < 2; half++) {
        for (int way = 0; way < 2; way++) {
            const Phase phase = way == 0 ? PHASE_FORWARD : PHASE_BACKWARD;
            cr_assert_eq((double)task_named(&tensor, names[way][half], phase)->payload_bytes, 32 * MIB);
            cr_assert_eq((double)task_named(&row, names[way][half], phase)->payload_bytes, 64 * MIB);
        }
    }
    for (int32_t i = 0; i < tensor.task_count; i++) {
        scales += strcmp(tensor.tasks[i].name, "scale reduce") == 0 && tensor.tasks[i].lane == LANE_TP;
    }
    cr_assert_eq(scales, 4);
    cr_assert_eq((double)task_named(&tensor, "attention sum", PHASE_FORWARD)->payload_bytes, 64 * MIB);  // stays bf16
    arena_free(&arena);
}

Test(lowering_formats, transformer_engine_saves_inputs_in_fp8_and_keeps_two_copies_of_the_weights) {
    Arena arena = {0};
    static const char *const inputs[] = {"attention_in", "mlp_in", "activation_out", "attention_out_fp8"};
    const StepProgram program = fp8_program(&arena, "megatron", "dp_shard=2", FP8_DELAYED);
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        const Buffer *full = buffer_named(&program, arena_format(&arena, "%s_full", inputs[i]));
        const Buffer *buffer = full ? full : buffer_named(&program, inputs[i]);
        cr_assert_not_null(buffer, "%s", inputs[i]);
        cr_assert_eq(buffer->dtype, DTYPE_FP8, "%s", inputs[i]);
        cr_assert_eq(buffer->slots, program.model.layers, "%s is saved", inputs[i]);
    }
    const Buffer *copies = buffer_named(&program, "layer fp8 weights");
    cr_assert_float_eq((double)copies->slot_bytes, 2 * matrices, 256);
    cr_assert(copies->persistent);
    const Task *forward = task_named(&program, "qkv", PHASE_FORWARD);
    const Task *backward = task_named(&program, "qkv dgrad", PHASE_BACKWARD);
    cr_assert_eq(operand_buffer(&program, forward, AT_GEMM_B), copies);
    cr_assert_eq(operand_buffer(&program, backward, AT_GEMM_B), copies);
    cr_assert_eq(task_operand(&program, backward, AT_GEMM_B)->ref.offset_bytes -
                     task_operand(&program, forward, AT_GEMM_B)->ref.offset_bytes,
                 (int64_t)matrices);  // the transposed half
    arena_free(&arena);
}

static StepProgram fp8_parameters(Arena *arena, Fp8Recipe recipe) {
    return lowered(arena, (LoweredRequest){.model = "llama-2-7b",
                                           .target = "megatron@0.19",
                                           .mesh = "dp_shard=8",
                                           .seq = 8192,
                                           .fp8 = true,
                                           .fp8_recipe = recipe,
                                           .fp8_parameters = true});
}

// A byte per matrix element as read, gathered in this format after the update, and one transposed; no bf16 weights.
// With MX each copy has its own scales: bf16 is gathered, where gradients are, and cast twice. nvfp4: 9/16.
Test(lowering_formats, fp8_parameters_are_two_bytes_of_a_matrix_element_and_one_of_its_gather) {
    static const struct {
        Fp8Recipe recipe;
        double gathered, kept;
    } cases[] = {
        {FP8_TENSORWISE, 1, 1}, {FP8_DELAYED, 1, 1}, {FP8_BLOCK, 1, 1}, {FP8_MX, 2, 1}, {FP8_NVFP4, 0.5625, 0.5625}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const StepProgram program = fp8_parameters(&arena, cases[i].recipe);
        const Buffer *weights = buffer_named(&program, "layer weights");
        const Buffer *transposed = buffer_named(&program, "layer fp8 weights");
        const char *name = fp8_recipe_names[cases[i].recipe];
        const Task *gather = program.tasks;
        while (gather->unit != UNIT_LAYER || gather->kind != TASK_ALL_GATHER) {
            gather++;
        }
        cr_expect_float_eq((double)weights->bytes, cases[i].kept * matrices + 2 * norms, 4096, "%s", name);
        cr_expect_float_eq((double)transposed->bytes, cases[i].kept * matrices, 4096, "%s", name);
        cr_expect_float_eq((double)gather->payload_bytes, cases[i].gathered * matrices + 2 * norms, 4096, "%s", name);
        cr_expect_eq(operand_buffer(&program, task_named(&program, "qkv", PHASE_FORWARD), AT_GEMM_B), weights);
        cr_expect_eq(operand_buffer(&program, task_named(&program, "qkv dgrad", PHASE_BACKWARD), AT_GEMM_B),
                     transposed);
        arena_free(&arena);
    }
}

// Megatron-FSDP: each rank stores its shard of them, a layer is gathered in a byte per element for forward and for
// backward, which makes the transposed copy of one layer.
Test(lowering_formats, fp8_parameters_of_stage_3_are_sharded_and_leave_no_copy_behind) {
    Arena arena = {0};
    LoweredRequest request = {.model = "llama-2-7b",
                              .target = "megatron@fsdp",
                              .mesh = "dp_shard=8",
                              .seq = 8192,
                              .zero = 3,
                              .fp8 = true,
                              .fp8_recipe = FP8_TENSORWISE,
                              .fp8_parameters = true};
    const StepProgram program = lowered(&arena, request);
    const Buffer *weights = buffer_named(&program, "layer weights");
    const Buffer *transposed = buffer_named(&program, "layer fp8 weights");
    const Task *gather = program.tasks;
    while (gather->unit != UNIT_LAYER || gather->kind != TASK_ALL_GATHER) {
        gather++;
    }
    cr_expect_float_eq((double)gather->payload_bytes, matrices + 2 * norms, 8192);
    cr_expect_float_eq((double)weights->bytes, matrices + 2 * norms, 8192);
    cr_expect_eq(weights->slots, 2);
    cr_expect_float_eq((double)program.buffers[program.units[UNIT_LAYER].working].bytes, (matrices + 2 * norms) / 8,
                       8192);
    cr_expect_not(transposed->persistent);
    cr_expect_eq(transposed->slots, 1);
    cr_expect_eq(operand_buffer(&program, task_named(&program, "qkv", PHASE_FORWARD), AT_GEMM_B), weights);
    cr_expect_eq(operand_buffer(&program, task_named(&program, "qkv dgrad", PHASE_BACKWARD), AT_GEMM_B), transposed);
    cr_expect_not_null(task_named(&program, "transpose fp8 weights", PHASE_BACKWARD));
    request.fp8_recipe = FP8_MX;  // gathers its other layout from a buffer that is not modelled
    cr_expect_not(lowered_is_legal(&request, &arena));
    arena_free(&arena);
}

Test(lowering_formats, fp8_parameters_race_with_nothing) {
    static const Fp8Recipe recipes[] = {FP8_DELAYED, FP8_MX, FP8_NVFP4, FP8_TENSORWISE};
    for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++) {
        Arena arena = {0};
        Error error = {0};
        MemoryPlan plan;
        const bool sharded = recipes[i] == FP8_TENSORWISE;
        const StepProgram program =
            lowered(&arena, (LoweredRequest){.target = sharded ? "megatron@fsdp" : "megatron@0.19",
                                             .mesh = "dp_shard=2",
                                             .zero = sharded ? 3 : 0,
                                             .fp8 = true,
                                             .grad_accum = 2,
                                             .fp8_recipe = recipes[i],
                                             .fp8_parameters = true});
        cr_assert_eq(memory_plan(&program, &arena, &plan, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(hazard_check(&program, &plan, &arena, NULL, &error), STATUS_OK, "%s", error.message);
        arena_free(&arena);
    }
}

// Megatron-core's activation_func_fp8_input_store, beside bf16 products too: a byte for each value that gate and up
// give, where else there are two, and nothing else of them behind the activation; cast back one by one.
Test(lowering_formats, an_activation_keeps_its_input_in_fp8_a_byte_an_element) {
    static const struct {
        const char *model, *kept, *given, *back;
    } cases[] = {{"tiny", "gate_up_fp8", "gate_up", "gate up from fp8"},
                 {"tiny-moe", "experts_gate_up_fp8", "experts_gate_up", "experts gate up from fp8"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Error error = {0};
        MemoryPlan plan;
        LoweredRequest request = {
            .model = cases[i].model, .target = "megatron@0.19", .mesh = "dp_shard=2", .bf16 = true, .grad_accum = 2};
        const StepProgram before = lowered(&arena, request);
        request.fp8_activation = true;
        const StepProgram program = lowered(&arena, request);
        const Buffer *in_bf16 = buffer_named(&before, cases[i].given), *kept = buffer_named(&program, cases[i].kept);
        cr_expect_eq(in_bf16->slots, program.model.layers);
        cr_expect_eq(kept->slots, program.model.layers);
        cr_expect_eq(2 * kept->slot_bytes, in_bf16->slot_bytes);
        cr_expect_eq(buffer_named(&program, cases[i].given)->slots, 1);
        cr_expect_eq(task_named(&program, cases[i].back, PHASE_BACKWARD)->apart_elements, kept->slot_bytes);
        cr_assert_eq(memory_plan(&program, &arena, &plan, &error), STATUS_OK, "%s", error.message);
        cr_expect_eq(hazard_check(&program, &plan, &arena, NULL, &error), STATUS_OK, "%s", error.message);
        arena_free(&arena);
    }
}

// Scales known beforehand: SwiGLU writes a byte for each of its values, not two, and leaves nothing to cast (3); so its
// backward does of the gradients of gate and up, whose cast was 4: the other layout is made of them by 2.
Test(lowering_formats, fused_operations_cast_where_they_compute) {
    Arena arena = {0};
    LoweredRequest request = {.target = "megatron@0.19",
                              .mesh = "dp_shard=2",
                              .fp8 = true,
                              .fp8_recipe = FP8_DELAYED,
                              .fp8_activation = true};
    const StepProgram before = lowered(&arena, request);
    request.op_fuser = true;
    const StepProgram program = lowered(&arena, request);
    const int64_t inner = task_named(&program, "swiglu", PHASE_FORWARD)->rows * program.model.ffn;
    static const struct {
        const char *task;
        Phase phase;
        int less;
    } cases[] = {{"swiglu", PHASE_FORWARD, 1},
                 {"mlp down", PHASE_FORWARD, 3},
                 {"swiglu backward", PHASE_BACKWARD, 2},
                 {"gate up dgrad", PHASE_BACKWARD, 2 * (4 - 2)},
                 {"gate up to fp8", PHASE_FORWARD, -2 * 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const Task *was = task_named(&before, cases[i].task, cases[i].phase);
        const Task *is = task_named(&program, cases[i].task, cases[i].phase);
        cr_expect_eq(was->cast_bytes - is->cast_bytes, cases[i].less * inner, "%s", cases[i].task);
    }
    cr_expect_eq(task_named(&program, "gate up from fp8", PHASE_BACKWARD)->apart_elements, 0);
    arena_free(&arena);
}

// Read and written, beside queries and keys, which turn.
Test(lowering_formats, one_kernel_of_queries_keys_and_values_copies_values) {
    Arena arena = {0};
    const StepProgram program =
        lowered(&arena, (LoweredRequest){.target = "megatron@0.19", .mesh = "dp_shard=2", .qkv_rope = true});
    const int64_t width = (int64_t)program.model.kv_heads * program.model.head_dim;
    for (Phase phase = PHASE_FORWARD; phase <= PHASE_BACKWARD; phase += PHASE_BACKWARD - PHASE_FORWARD) {
        const Task *turns = task_named(&program, phase == PHASE_FORWARD ? "rope" : "rope backward", phase);
        cr_expect_eq(turns->cast_bytes, 2 * turns->rows * width * dtype_bytes(turns->dtype));
    }
    arena_free(&arena);
}

// Experts of a rank with mxfp8 parameters: a byte a weight, another of the transposed copy and none in bf16, where else
// there are two of bf16 beside both copies. 128 / 4 experts of three matrices of 2048 by 768.
Test(lowering_formats, fp8_parameters_of_experts_are_two_bytes_of_a_matrix_element) {
    Arena arena = {0};
    Error error = {0};
    MemoryPlan plan;
    LoweredRequest request = {.model = "qwen3-30b-a3b",
                              .target = "megatron@0.19",
                              .mesh = "dp_shard=8,ep=4",
                              .fp8 = true,
                              .grad_accum = 2,
                              .fp8_recipe = FP8_MX,
                              .fp8_parameters = true};
    const double elements = 32.0 * 3 * 2048 * 768;
    const StepProgram program = lowered(&arena, request);
    const Buffer *weights = buffer_named(&program, "experts weights");
    const Buffer *transposed = buffer_named(&program, "expert fp8 weights");
    cr_expect_float_eq((double)weights->bytes, elements, 4096);
    cr_expect_float_eq((double)transposed->bytes, elements, 4096);
    cr_expect_eq(operand_buffer(&program, task_named(&program, "experts down", PHASE_FORWARD), AT_GEMM_B), weights);
    cr_expect_eq(operand_buffer(&program, task_named(&program, "experts down dgrad", PHASE_BACKWARD), AT_GEMM_B),
                 transposed);
    cr_assert_eq(memory_plan(&program, &arena, &plan, &error), STATUS_OK, "%s", error.message);
    cr_expect_eq(hazard_check(&program, &plan, &arena, NULL, &error), STATUS_OK, "%s", error.message);
    request.fp8_parameters = false;
    const StepProgram copied = lowered(&arena, request);
    cr_expect_float_eq((double)buffer_named(&copied, "experts weights")->bytes, 2 * elements, 4096);
    cr_expect_float_eq((double)buffer_named(&copied, "expert fp8 weights")->bytes, 2 * elements, 4096);
    request.fp8_parameters = true;
    request.fp8_recipe = FP8_TENSORWISE;  // one of the layouts would be made of the other: not predicted
    cr_expect_not(lowered_is_legal(&request, &arena));
    arena_free(&arena);
}

// Megatron-LM's arguments.py asserts its distributed optimizer, and delayed scales with states on the host.
Test(lowering_formats, fp8_parameters_are_of_the_distributed_optimizer) {
    Arena arena = {0};
    LoweredRequest request = {.target = "megatron@0.19",
                              .mesh = "dp_shard=2",
                              .fp8 = true,
                              .fp8_recipe = FP8_TENSORWISE,
                              .fp8_parameters = true};
    cr_expect(lowered_is_legal(&request, &arena));
    request.zero = -1;
    cr_expect_not(lowered_is_legal(&request, &arena));
    request.zero = 1;
    request.offload = OFFLOAD_OPTIMIZER;
    cr_expect_not(lowered_is_legal(&request, &arena));
    request.fp8_recipe = FP8_DELAYED;
    cr_expect(lowered_is_legal(&request, &arena));
    request.target = "torchtitan";
    cr_expect_not(lowered_is_legal(&request, &arena));
    arena_free(&arena);
}

// Of each 16 elements 8 bytes and a scale of one.
Test(lowering_formats, nvfp4_saves_and_keeps_nine_sixteenths_of_a_byte_per_element) {
    Arena arena = {0};
    const StepProgram four = fp8_program(&arena, "megatron", "dp_shard=2", FP8_NVFP4);
    const StepProgram eight = fp8_program(&arena, "megatron", "dp_shard=2", FP8_MX);
    static const char *const kept[] = {"layer fp8 weights", "attention_in", "activation_out", "attention_out_fp8"};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        cr_assert_eq(buffer_named(&four, kept[i])->slot_bytes * 16, buffer_named(&eight, kept[i])->slot_bytes * 9, "%s",
                     kept[i]);
    }
    cr_assert_eq(task_named(&four, "qkv", PHASE_FORWARD)->dtype, DTYPE_NVFP4);
    cr_assert_eq(task_named(&eight, "qkv", PHASE_FORWARD)->dtype, DTYPE_FP8);
    arena_free(&arena);
}

// Rows of an input, or of its gradient both layouts where they have scales of their own.
Test(lowering_formats, tp_ranks_gather_what_their_products_read) {
    static const struct {
        Fp8Recipe recipe;
        double input, gradient;  // bytes of an element
    } expected[] = {{FP8_DELAYED, 1, 1}, {FP8_MX, 1, 2}, {FP8_NVFP4, 9.0 / 16, 9.0 / 8}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        Arena arena = {0};
        const StepProgram program = fp8_program(&arena, "megatron", "tp=2", expected[i].recipe);
        const double elements = (double)plan_local_tokens(&program.plan) * (double)program.model.hidden;
        cr_expect_float_eq(task_named(&program, "mlp in", PHASE_FORWARD)->payload_bytes, expected[i].input * elements,
                           1);
        cr_expect_float_eq(task_named(&program, "mlp gradient", PHASE_BACKWARD)->payload_bytes,
                           expected[i].gradient * elements, 1);
        arena_free(&arena);
    }
}

Test(lowering_formats, rowwise_bf16_leaves_gradients_of_weights_in_bf16_without_casts) {
    Arena arena = {0};
    const StepProgram program = fp8_program(&arena, "torchtitan", "dp_shard=8", FP8_ROWWISE_BF16);
    const Task *forward = task_named(&program, "gate", PHASE_FORWARD);
    const Task *input = task_named(&program, "gate dgrad", PHASE_BACKWARD);
    const Task *weight = task_named(&program, "gate wgrad", PHASE_BACKWARD);
    cr_assert_eq(forward->dtype, DTYPE_FP8);
    cr_assert_eq(input->dtype, DTYPE_FP8);
    cr_assert_eq(weight->dtype, DTYPE_BF16);
    cr_assert_eq(weight->cast_bytes, 0);
    cr_assert_gt(input->cast_bytes, 0);
    arena_free(&arena);
}

// 2 + 1 of x and of w, of the other product's dy and w the same (mxfp8_cublas of torchao's own account); Transformer
// Engine makes both layouts at once, 2 + 1 + 1, weights with the first micro-step.
Test(lowering_formats, torchao_casts_mx_operands_for_each_product_and_transformer_engine_both_layouts_at_once) {
    Arena arena = {0};
    const StepProgram ao = fp8_program(&arena, "torchtitan@0.3", "dp_shard=8", FP8_MX);
    const StepProgram te = fp8_program(&arena, "megatron", "dp_shard=8", FP8_MX);
    const double x = 8192.0 * 4096, y = 8192.0 * 11008, w = 4096.0 * 11008;
    cr_assert_eq((double)task_named(&ao, "mlp down", PHASE_FORWARD)->cast_bytes, 3 * y + 3 * w);
    cr_assert_eq((double)task_named(&ao, "mlp down dgrad", PHASE_BACKWARD)->cast_bytes, 3 * x + 3 * w);
    cr_assert_eq((double)task_named(&ao, "mlp down wgrad", PHASE_BACKWARD)->cast_bytes, 3 * x + 3 * y);
    cr_assert_eq((double)task_named(&te, "mlp down", PHASE_FORWARD)->cast_bytes, 4 * y);
    cr_assert_eq((double)task_named(&te, "mlp down dgrad", PHASE_BACKWARD)->cast_bytes, 4 * x);
    cr_assert_eq((double)task_named(&te, "mlp down wgrad", PHASE_BACKWARD)->cast_bytes, 0);
    arena_free(&arena);
}

Test(lowering_formats, weights_are_cast_once_a_step) {
    Arena arena = {0};
    const StepProgram program = lowered(
        &arena,
        (LoweredRequest){
            .target = "megatron", .mesh = "dp_shard=2", .grad_accum = 4, .fp8 = true, .fp8_recipe = FP8_DELAYED});
    StepCursor cursor = step_cursor_begin(&program);
    StepInstance instance;
    int casts = 0;
    while (step_cursor_next(&cursor, &instance)) {
        casts += strcmp(program.tasks[instance.task].name, "cast weights to fp8") == 0;
    }
    cr_assert_eq(casts, program.model.layers);
    arena_free(&arena);
}

static double role_bytes(const StepProgram *program, BufferRole role) {
    double bytes = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const Buffer *buffer = &program->buffers[i];
        bytes += buffer->role == role ? (double)buffer->slots * (double)buffer->slot_bytes : 0;
    }
    return bytes;
}

// sim/SOURCES.md A7: 6 + 2 + 2 bytes per parameter: weights and moments, gradient, foreach temporary.
Test(lowering_formats, bf16_masters_take_ten_bytes_per_parameter) {
    static const char *const meshes[] = {"dp_shard=1", "dp_shard=4"};
    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
        Arena arena = {0};
        const StepProgram program = lowered(
            &arena,
            (LoweredRequest){
                .model = "mistral-7b", .target = "accelerate", .mesh = meshes[i], .bf16 = true, .bf16_master = true});
        const double shard = (double)model_parameters(&program.model) / (i == 0 ? 1 : 4);
        cr_assert_float_eq(role_bytes(&program, ROLE_PARAMETER) / shard, 2, 0.001, "%s", meshes[i]);
        cr_assert_float_eq(role_bytes(&program, ROLE_OPTIMIZER) / shard, 6, 0.001, "%s", meshes[i]);
        for (int u = 0; u < program.unit_count; u++) {
            cr_assert_eq(program.buffers[program.units[u].gradient_shard].dtype, DTYPE_BF16);
        }
        arena_free(&arena);
    }
}

Test(lowering_formats, formats_do_not_change_what_is_computed) {
    Arena arena = {0};
    const StepProgram bf16 =
        lowered(&arena, (LoweredRequest){.target = "torchtitan", .mesh = "dp_shard=2,tp=2", .bf16 = true});
    const StepProgram fp8 =
        lowered(&arena, (LoweredRequest){.target = "torchtitan", .mesh = "dp_shard=2,tp=2", .fp8 = true});
    double flops[2] = {0, 0};
    const StepProgram *programs[] = {&bf16, &fp8};
    for (int i = 0; i < 2; i++) {
        for (int32_t t = 0; t < programs[i]->task_count; t++) {
            flops[i] += programs[i]->tasks[t].flops;
        }
    }
    cr_assert_eq(flops[0], flops[1]);
    arena_free(&arena);
}

// Elements of Llama-2-7B at 8192 tokens: x and dy of q 8192 * 4096, its weights 4096 * 4096.
static const int64_t activations = 8192LL * 4096, square = 4096LL * 4096;

static void check_casts(const StepProgram *program, const char *name, Phase phase, int64_t bytes) {
    cr_expect_eq(task_named(program, name, phase)->cast_bytes, bytes, "%s: %lld, not %lld", name,
                 (long long)task_named(program, name, phase)->cast_bytes, (long long)bytes);
}

// torchao's roofline_utils.py: x 2 + 2 + 1, dy 2 + 2 + 2, the other layout of x 1; weights arrive in fp8.
Test(lowering_formats, a_scale_per_tensor_is_a_pass_before_the_cast) {
    Arena arena = {0};
    const StepProgram program = fp8_program(&arena, "torchtitan", "dp_shard=8", FP8_TENSORWISE);
    check_casts(&program, "q", PHASE_FORWARD, 5 * activations);
    check_casts(&program, "q dgrad", PHASE_BACKWARD, 6 * activations);
    check_casts(&program, "q wgrad", PHASE_BACKWARD, activations);
    arena_free(&arena);
}

// The same file: x 2 + 1 and w 2 + 1; dy 2 + 1, w transposed 2 + 2 and cast 2 + 1; for the weight gradient x and dy are
// written transposed with their first cast, 2, and cast again, 2 + 1. Gradients are scaled in a separate pass, 2 + 2
// (pytorch/ao 1325).
Test(lowering_formats, a_scale_per_row_casts_weights_and_both_layouts_apart) {
    Arena arena = {0};
    const StepProgram program = fp8_program(&arena, "torchtitan", "dp_shard=8", FP8_ROWWISE);
    check_casts(&program, "q", PHASE_FORWARD, 3 * activations + 3 * square);
    check_casts(&program, "q dgrad", PHASE_BACKWARD, 3 * activations + 7 * square + 4 * activations);
    check_casts(&program, "q wgrad", PHASE_BACKWARD, 5 * activations + 5 * activations + 4 * square);
    arena_free(&arena);
}

Test(lowering_formats, compiled_gemms_of_one_input_share_its_cast) {
    Arena arena = {0};
    const StepProgram program = fp8_program(&arena, "torchtitan", "dp_shard=8", FP8_TENSORWISE);
    check_casts(&program, "k", PHASE_FORWARD, 0);
    check_casts(&program, "up", PHASE_FORWARD, 0);
    check_casts(&program, "k dgrad", PHASE_BACKWARD, 6 * activations);
    check_casts(&program, "k wgrad", PHASE_BACKWARD, 0);
    const StepProgram eager = fp8_program(&arena, "accelerate", "dp_shard=8", FP8_TENSORWISE);
    check_casts(&eager, "k", PHASE_FORWARD, 5 * activations);
    arena_free(&arena);
}

Test(lowering_formats, what_arrives_or_is_saved_in_fp8_is_not_cast_by_its_gemm) {
    Arena arena = {0};
    const StepProgram titan = fp8_program(&arena, "torchtitan", "tp=2,dp_shard=4", FP8_TENSORWISE);
    check_casts(&titan, "q", PHASE_FORWARD, 0);
    check_casts(&titan, "attention out", PHASE_FORWARD, 5 * activations / 2);
    const StepProgram megatron = fp8_program(&arena, "megatron", "dp_shard=2", FP8_DELAYED);
    check_casts(&megatron, "qkv", PHASE_FORWARD, 0);
    check_casts(&megatron, "qkv dgrad", PHASE_BACKWARD, 4 * 3 * activations);
    check_casts(&megatron, "qkv wgrad", PHASE_BACKWARD, 2 * activations);  // the norm's output transposed
    check_casts(&megatron, "attention out", PHASE_FORWARD, 3 * activations);
    arena_free(&arena);
}

// Both layouts of a tensor are cast at once from bf16: read once, written twice, and not transposed later.
Test(lowering_formats, scales_of_32_elements_cast_both_layouts_at_once) {
    Arena arena = {0};
    const StepProgram program = fp8_program(&arena, "megatron", "dp_shard=2", FP8_MX);
    check_casts(&program, "qkv dgrad", PHASE_BACKWARD, 4 * 3 * activations);
    check_casts(&program, "qkv wgrad", PHASE_BACKWARD, 0);
    check_casts(&program, "attention out", PHASE_FORWARD, 4 * activations);
    arena_free(&arena);
}

// 64 tokens visit 8 experts each: 512 rows.
Test(lowering_formats, products_of_experts_are_fp8_and_those_of_their_router_are_not) {
    enum { EXPERT_ROWS = 64 * 8, HIDDEN = 2048, FFN = 768 };
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.model = "qwen3-30b-a3b",
                                                                 .target = "megatron",
                                                                 .mesh = "dp_shard=8,ep=4",
                                                                 .fp8 = true,
                                                                 .fp8_recipe = FP8_MX});
    cr_assert_eq(task_named(&program, "router", PHASE_FORWARD)->dtype, DTYPE_BF16);
    cr_assert_eq(task_named(&program, "router wgrad", PHASE_BACKWARD)->dtype, DTYPE_BF16);
    cr_assert_eq(task_named(&program, "experts gate up", PHASE_FORWARD)->dtype, DTYPE_FP8);
    check_casts(&program, "experts gate up", PHASE_FORWARD, 4 * EXPERT_ROWS * HIDDEN);
    check_casts(&program, "experts gate up dgrad", PHASE_BACKWARD, 4 * EXPERT_ROWS * 2 * FFN);
    check_casts(&program, "experts gate up wgrad", PHASE_BACKWARD, 0);
    cr_assert_eq(buffer_named(&program, "experts_in")->dtype, DTYPE_FP8);
    cr_assert_eq(buffer_named(&program, "expert fp8 weights")->slot_bytes, 2 * program.units[UNIT_EXPERTS].elements);
    arena_free(&arena);
}

// Gate and up write the activation in both layouts, down's gradient becomes theirs: neither is cast, none runs alone.
Test(lowering_formats, fused_products_of_experts_have_the_activation_in_them) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.model = "qwen3-30b-a3b",
                                                                 .target = "megatron",
                                                                 .mesh = "dp_shard=8,ep=4",
                                                                 .fp8 = true,
                                                                 .fp8_recipe = FP8_MX,
                                                                 .op_fuser = true});
    check_casts(&program, "experts down", PHASE_FORWARD, 0);
    check_casts(&program, "experts gate up dgrad", PHASE_BACKWARD, 0);
    cr_expect_eq(task_named(&program, "experts gate up", PHASE_FORWARD)->epilogue_bytes, 1);
    cr_expect_eq(task_named(&program, "experts down dgrad", PHASE_BACKWARD)->epilogue_bytes, 4 + 4 - 2);
    for (int32_t i = 0; i < program.task_count; i++) {
        cr_expect_neq(program.tasks[i].kind, TASK_SWIGLU);
    }
    arena_free(&arena);
}

// What is in fp8, and who casts it, is found by its name: each is that of a tensor of some program.
Test(lowering_formats, fp8_names_tensors_that_there_are) {
    Arena arena = {0};
    const StepProgram programs[] = {
        fp8_program(&arena, "megatron", "tp=2", FP8_TENSORWISE),
        lowered(&arena, (LoweredRequest){.model = "gpt2", .target = "megatron", .fp8 = true}),
        lowered(&arena, (LoweredRequest){.model = "qwen3-30b-a3b", .target = "megatron", .fp8 = true}),
    };
    for (const Fp8Tensor *row = fp8_tensors; row->name; row++) {
        bool is = false;
        for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
            is = is || buffer_named(&programs[i], row->name);
        }
        cr_expect(is, "%s", row->name);
    }
    arena_free(&arena);
}
