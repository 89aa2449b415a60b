// Cost of the tasks of families other than Llama: kernels that the host issues, traffic that is really moved.

#include <criterion/criterion.h>
#include <math.h>

#include "sim/cost/compute.h"

static const Target bare = {.name = "bare", .runtime.host_s_per_op = 1e-6};
static const TrainPlan eager = {.fused = FUSED_EAGER}, fused = {.fused = FUSED_FUSED};

static int kernels(const TrainPlan *plan, TaskKind kind, Activation activation) {
    const Task task = {.kind = kind, .activation = activation, .phase = PHASE_FORWARD};
    return task_kernels(&bare, plan, &task);
}

static double passes(const TrainPlan *plan, TaskKind kind, Activation activation) {
    const Task task = {.kind = kind, .activation = activation};
    return traffic_passes(&bare, plan, &task);
}

// PyTorch has a kernel for layer norm and for gelu, none for Hugging Face's RMSNorm.
Test(cost_models, an_eager_layer_norm_is_one_kernel_where_an_rms_norm_is_eight) {
    cr_assert_eq(kernels(&eager, TASK_LAYERNORM, ACTIVATION_SILU), 1);
    cr_assert_eq(kernels(&eager, TASK_RMSNORM, ACTIVATION_SILU), 8);
    cr_assert_eq(passes(&eager, TASK_LAYERNORM, ACTIVATION_SILU), 1);
    cr_assert_gt(passes(&eager, TASK_RMSNORM, ACTIVATION_SILU), 3);
}

// PyTorch 2.9: _fused_rms_norm_cuda; both ways 21.99 / 14.35 of the 6 planes that Inductor's move (2 x 1.2, 3 x 1.2),
// and the residual's gradient is added apart (3 planes), over the 2 and 4 that are counted.
Test(cost_models, an_rms_norm_of_pytorch_itself_is_one_operation_when_eager) {
    const Target own = {.aten_norms = true};
    const Task norm = {.kind = TASK_RMSNORM}, back = {.kind = TASK_RMSNORM_BACKWARD};
    cr_assert_eq(task_kernels(&own, &eager, &norm), 1);
    cr_assert_eq(task_kernels(&own, &eager, &back), 2);
    cr_assert_float_eq(traffic_passes(&own, &eager, &norm), 1.2, 1e-9);
    cr_assert_float_eq(traffic_passes(&own, &eager, &back), (21.99 / 14.35 * 6 - 2.4 + 3) / 4, 1e-9);
    cr_assert_eq(traffic_passes(&own, &(TrainPlan){.fused = FUSED_COMPILED}, &back), 1.2);
}

// transformers' NewGELUActivation: pow, scale, add, scale, tanh, add, halve, multiply.
Test(cost_models, a_gelu_that_is_written_out_is_eight_kernels_until_it_is_fused) {
    cr_assert_eq(kernels(&eager, TASK_ACTIVATION, ACTIVATION_GELU), 1);
    cr_assert_eq(kernels(&eager, TASK_ACTIVATION, ACTIVATION_GELU_NEW), 8);
    cr_assert_eq(kernels(&fused, TASK_ACTIVATION, ACTIVATION_GELU_NEW), 1);
    cr_assert_eq(passes(&eager, TASK_ACTIVATION, ACTIVATION_GELU_NEW), 9);
    cr_assert_eq(passes(&fused, TASK_ACTIVATION, ACTIVATION_GELU_NEW), 1);
    cr_assert_eq(passes(&eager, TASK_ACTIVATION_BACKWARD, ACTIVATION_GELU), 1);
}

// relu 2 planes, pow 2, where one kernel has 2; back: a copy 2, doubled 2, times the gradient 3, masked 3, where one
// has 3.
Test(cost_models, a_squared_relu_in_two_operations_moves_twice_as_much_forward_and_ten_planes_back) {
    const Target apart = {.activation_apart = true};
    const Task forward = {.kind = TASK_ACTIVATION}, back = {.kind = TASK_ACTIVATION_BACKWARD};
    cr_assert_eq(traffic_passes(&apart, &fused, &forward), 2);
    cr_assert_float_eq(traffic_passes(&apart, &fused, &back), 10.0 / 3, 1e-9);
    cr_assert_eq(traffic_passes(&apart, &(TrainPlan){.fused = FUSED_COMPILED}, &forward), 1);
}

Test(cost_models, scaled_embeddings_are_one_more_kernel_when_eager) {
    const Task plain = {.kind = TASK_EMBED}, scaled = {.kind = TASK_EMBED, .scaled = true};
    cr_assert_eq(task_kernels(&bare, &eager, &scaled), task_kernels(&bare, &eager, &plain) + 1);
    cr_assert_eq(task_kernels(&bare, &fused, &scaled), task_kernels(&bare, &fused, &plain));
}

Test(cost_models, a_target_with_traffic_of_its_own_keeps_it_for_its_chains_only) {
    const Target measured = {.runtime.memory_passes = 3};
    const Task rms = {.kind = TASK_QK_NORM}, layer = {.kind = TASK_LAYERNORM};
    cr_assert_eq(traffic_passes(&measured, &eager, &rms), 3);
    cr_assert_eq(traffic_passes(&measured, &eager, &layer), 1);
}

Test(cost_models, gradients_of_head_norms_are_summed_as_long_whatever_the_tokens) {
    const Target layers = {.fp8_flavour = FP8_TRANSFORMER_ENGINE};
    const Accelerator chip = {.norm_sums_s = 1e-4};
    Task task = {.kind = TASK_QK_NORM_BACKWARD, .dtype = DTYPE_BF16, .inner = 128};
    cr_expect_float_eq(traffic_issue_s(&chip, &layers, &fused, &task), 2e-4, 1e-12);  // queries', keys'
    cr_expect_eq(traffic_issue_s(&chip, &bare, &fused, &task), 0);
    task.inner = 4096;
    cr_expect_eq(traffic_issue_s(&chip, &layers, &fused, &task), 0);
}

Test(cost_models, norms_of_widths_without_a_tuned_kernel_take_their_measured_time_an_element) {
    const Target layers = {.fp8_flavour = FP8_TRANSFORMER_ENGINE};
    const Accelerator chip = {.memory_bytes_per_s = 8e12,
                              .memory_efficiency = 0.75,
                              .norm_element_s = 2e-12,
                              .norm_backward_element_s = 16e-12,
                              .norm_backward_sums_s = 2e-7};
    const struct {
        TaskKind kind;
        int64_t cols;
        const Target *target;
        double element_s;
    } rows[] = {{TASK_RMSNORM, 6144, &layers, 2e-12},
                {TASK_RMSNORM_BACKWARD, 6144, &layers, 16e-12},
                {TASK_RMSNORM_BACKWARD, 4096, &layers, 0},
                {TASK_RMSNORM_BACKWARD, 6144, &bare, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const double bytes = 3e6, elements = 1000.0 * (double)rows[i].cols;
        const Task task = {.kind = rows[i].kind, .rows = 1000, .cols = rows[i].cols, .traffic_bytes = (int64_t)bytes};
        const double sums_s = rows[i].element_s == 16e-12 ? 2e-7 * 6144 / 2 : 0;
        const double priced = bytes * traffic_passes(rows[i].target, &fused, &task) / 6e12;
        cr_expect_float_eq(traffic_issue_s(&chip, rows[i].target, &fused, &task),
                           fmax(0, elements * rows[i].element_s - priced) + sums_s, 1e-12, "row %zu", i);
    }
}

Test(cost_models, every_kind_is_at_least_one_kernel) {
    for (int kind = 0; kind < TASK_KIND_COUNT; kind++) {
        cr_assert_geq(kernels(&eager, (TaskKind)kind, ACTIVATION_SILU), 1, "%s", task_kind_name((TaskKind)kind));
        cr_assert_geq(kernels(&fused, (TaskKind)kind, ACTIVATION_SILU), 1, "%s", task_kind_name((TaskKind)kind));
        cr_assert_not_null(task_kind_name((TaskKind)kind));
    }
}

// The stream is fp32, products read halves: inputs, weights and gradients are cast. Of whole bf16 weights none is, nor
// of stages.
Test(cost_models, autocast_casts_around_products_of_replicated_fp32_weights_alone) {
    const Target target = {.runtime.autocasts = true};
    const TrainPlan plan = {.precision = DTYPE_BF16, .fused = FUSED_EAGER},
                    bf16 = {.precision = DTYPE_BF16, .fused = FUSED_EAGER, .bf16_master = true},
                    sharded = {.precision = DTYPE_BF16, .fused = FUSED_EAGER, .zero = 3};
    TrainPlan staged = plan;
    staged.mesh.size[AXIS_PP] = 2;
    const struct {
        Task task;
        double bytes;
    } rows[] = {
        {{.kind = TASK_GEMM, .m = 8, .n = 3, .k = 5, .trans_b = true}, 6 * 15},
        {{.kind = TASK_GEMM, .m = 8, .n = 5, .k = 3, .phase = PHASE_BACKWARD}, 0},
        {{.kind = TASK_GEMM, .m = 3, .n = 5, .k = 8, .phase = PHASE_BACKWARD, .trans_a = true}, 4 * 15},
        {{.kind = TASK_GEMM, .m = 3, .n = 5, .k = 8, .trans_a = true, .accumulate = true}, 12 * 15},
        {{.kind = TASK_LAYERNORM, .rows = 8, .cols = 5}, 10 * 40},
        {{.kind = TASK_LAYERNORM_BACKWARD, .rows = 8, .cols = 5}, 22 * 40},
        {{.kind = TASK_RMSNORM, .rows = 8, .cols = 5, .part = GRAPHED_ATTENTION}, (3 * 6 - 8) * 40},
        {{.kind = TASK_ACTIVATION, .rows = 8, .cols = 5, .activation = ACTIVATION_GELU_NEW}, 40 * 40},
        {{.kind = TASK_ACTIVATION, .rows = 8, .cols = 5, .activation = ACTIVATION_GELU_TANH}, 0},
        {{.kind = TASK_ADAMW, .rows = 8, .cols = 5}, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect_eq(autocast_bytes(&target, &plan, &rows[i].task), rows[i].bytes, "row %zu", i);
        cr_expect_eq(autocast_bytes(&target, &bf16, &rows[i].task), 0, "row %zu", i);
        cr_expect_eq(autocast_bytes(&target, &sharded, &rows[i].task), 0, "row %zu", i);
        cr_expect_eq(autocast_bytes(&target, &staged, &rows[i].task), 0, "row %zu", i);
        cr_expect_eq(autocast_bytes(&bare, &plan, &rows[i].task), 0, "row %zu", i);
    }
}

// Norms that are of fp32 cast in and out, whatever weights are; products and the stream are halves already.
Test(cost_models, autocast_casts_around_norms_alone_where_weights_are_halves) {
    const Target fsdp1 = {.runtime.autocasts = true, .runtime.autocasts_shards = true},
                 fsdp2 = {.runtime.autocasts = true};
    const TrainPlan sharded = {.precision = DTYPE_BF16, .fused = FUSED_EAGER, .zero = 3};
    const Task norm = {.kind = TASK_LAYERNORM, .rows = 8, .cols = 5},
               rms = {.kind = TASK_RMSNORM, .rows = 8, .cols = 5},
               product = {.kind = TASK_GEMM, .m = 8, .n = 3, .k = 5, .trans_b = true};
    cr_expect_eq(autocast_bytes(&fsdp1, &sharded, &norm), 16 * 40);
    cr_expect_eq(autocast_bytes(&fsdp1, &sharded, &rms), 0);
    cr_expect_eq(autocast_bytes(&fsdp1, &sharded, &product), 0);
    cr_expect_eq(autocast_bytes(&fsdp2, &sharded, &norm), 0);
}
