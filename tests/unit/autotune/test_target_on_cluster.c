// What a target takes from the machine it runs on.

#include <criterion/criterion.h>

#include "autotune/predict/target_on_cluster.h"
#include "autotune/result.h"
#include "sim/frameworks/target.h"
#include "sim/plan/plan_fields.h"
#include "tests/support/sizes.h"

// Times seen on a processor of their own stay what they were.
Test(target_on_cluster, host_time_of_todays_targets_is_the_processors) {
    static const struct {
        const char *target, *cluster;
        double pace;
    } rows[] = {
        {"megatron", "dgx-a100-80g", 1.44}, {"torchtitan", "dgx-a100-80g", 1.44}, {"megatron", "gb300-nvl72", 1.36},
        {"megatron", "dgx-h100", 0},        {"megatron@2022", "dgx-a100-80g", 0}, {"nanotron", "dgx-a100-80g", 0},
        {"ndtune", "dgx-a100-80g", 0},      {"megatron", "perlmutter", 1},        {"megatron", "aws-p5", 1.46}};
    Arena arena = {0};
    Error error = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Target *target;
        ClusterProfile cluster;
        cr_assert_eq(target_find(rows[i].target, &target, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(cluster_find(rows[i].cluster, &arena, &cluster, &error), STATUS_OK, "%s", error.message);
        cr_expect_eq(target_on_cluster(target, &cluster, &arena)->runtime.host_pace, rows[i].pace, "row %zu", i);
    }
    arena_free(&arena);
}

// ndtune's own worker has no communicators to pay for.
Test(target_on_cluster, a_communicator_takes_more_where_each_pair_has_a_link) {
    static const struct {
        const char *target, *cluster;
        double bytes;
    } rows[] = {{"megatron", "oci-bm-gpu-mi355x", 512 << 20},
                {"torchtitan", "mi300x-8x", 512 << 20},
                {"megatron", "dgx-h100", 0.25e9},
                {"ndtune", "mi300x-8x", 0}};
    Arena arena = {0};
    Error error = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Target *target;
        ClusterProfile cluster;
        cr_assert_eq(target_find(rows[i].target, &target, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(cluster_find(rows[i].cluster, &arena, &cluster, &error), STATUS_OK, "%s", error.message);
        const double bytes = target_on_cluster(target, &cluster, &arena)->runtime.communicator_bytes;
        cr_expect_eq(bytes, rows[i].bytes, "row %zu: %.0f", i, bytes);
    }
    arena_free(&arena);
}

// scaled_dot_product_attention takes cuDNN's kernel before flash on Hopper and Blackwell: PyTorch from 2.11 on,
// torchtitan 0.2 by its own code. Not of a mask, which a window and documents are, of fp32, of heads that cuDNN has no
// kernel for, of sinks, of dropout by a tenth, nor where a framework calls another kernel.
Test(target_on_cluster, sdpa_takes_cudnns_kernel_where_the_chip_and_the_training_let_it) {
    static const struct {
        const char *target, *cluster, *model;
        int seq, pack, precision;
        bool cudnn;
    } rows[] = {{"accelerate", "dgx-h100", "llama-3.1-8b", 4096, 0, DTYPE_BF16, true},
                {"trainer", "dgx-h200", "qwen3-30b-a3b", 4096, 0, DTYPE_BF16, true},
                {"trl", "gb300-nvl72", "llama-3.1-8b", 1 << 20, 0, DTYPE_FP16, true},
                {"torchtitan", "dgx-b200", "llama-3.1-8b", 4096, 0, DTYPE_FP8, true},
                {"deepspeed", "dgx-h100", "llama-3.1-8b", 4096, 0, DTYPE_BF16, true},
                {"automodel", "dgx-h100", "mistral-7b", 4096, 0, DTYPE_BF16, true},
                {"trl", "dgx-a100-80g", "llama-3.1-8b", 4096, 0, DTYPE_BF16, false},
                {"trl", "mi300x-8x", "llama-3.1-8b", 4096, 0, DTYPE_BF16, false},
                {"trl", "pcie-5090-8x", "llama-3.1-8b", 4096, 0, DTYPE_BF16, false},
                {"trl", "dgx-h100", "llama-3.1-8b", 4096, 512, DTYPE_BF16, false},
                {"trl", "dgx-h100", "llama-3.1-8b", 4096, 0, DTYPE_FP32, false},
                {"trl", "dgx-h100", "gemma-7b", 4096, 0, DTYPE_BF16, false},
                {"trl", "dgx-h100", "mistral-7b", 8192, 0, DTYPE_BF16, false},
                {"trl", "dgx-h100", "gpt-oss-20b", 4096, 0, DTYPE_BF16, false},
                {"trl", "dgx-h100", "gpt2-xl", 1024, 0, DTYPE_BF16, false},
                {"torchtitan", "dgx-h100", "qwen3-30b-a3b", 4096, 0, DTYPE_BF16, false},
                {"torchtitan@0.3", "dgx-h100", "llama-3.1-8b", 4096, 0, DTYPE_BF16, false},
                {"accelerate@1.14", "dgx-h100", "llama-3.1-8b", 4096, 0, DTYPE_BF16, false},
                {"axolotl", "dgx-h100", "llama-3.1-8b", 4096, 0, DTYPE_BF16, false},
                {"megatron", "dgx-h100", "llama-3.1-8b", 4096, 0, DTYPE_BF16, false}};
    Arena arena = {0};
    Error error = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        TuneRequest request = {.seq = rows[i].seq};
        plan_fields_unsaid(request.asked);
        request.asked[PLAN_PRECISION] = rows[i].precision;
        request.asked[PLAN_PACK] = rows[i].pack > 0 ? rows[i].pack : TUNE_ANY;
        cr_assert_eq(target_find(rows[i].target, &request.target, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(cluster_find(rows[i].cluster, &arena, &request.cluster, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(model_find(rows[i].model, &arena, &request.model, &error), STATUS_OK, "%s", error.message);
        const Target *there = target_with_kernels(request.target, &request, &arena);
        cr_expect_eq(there->cudnn_here, rows[i].cudnn, "row %zu", i);
        cr_expect_eq(target_with_kernels(there, &request, &arena), there, "row %zu: asked again", i);
    }
    arena_free(&arena);
}
