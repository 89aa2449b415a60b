// Which tier serves which attention call, as a table; nothing here needs a GPU.

#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_own.h"

#include <criterion/criterion.h>
#include <string.h>

enum { SMALL = 99 * 1024, SM80 = 163 * 1024, SM90 = 227 * 1024 };

// An 8B-like layer: causal, 4096 tokens, packed q, k, v.
static CudaAttention usual(bool backward) {
    return (CudaAttention){
        .block = {4096, 4096, 0, 0, 32, 8, 128, 6144, 6144, 4096, 4096, 0, 0},
        .sequences = 2,
        .q_sequence = 4096 * 6144,
        .kv_sequence = 4096 * 6144,
        .o_sequence = 4096 * 4096,
        .lse_sequence = 32 * 4096,
        .input = KERNEL_BF16,
        .output = KERNEL_BF16,
        .backward = backward,
        .gradient = KERNEL_BF16,
        .dq_stride = 6144,
        .dkv_stride = 6144,
        .dq_sequence = 4096 * 6144,
        .dkv_sequence = 4096 * 6144,
    };
}

static void plain(CudaAttention *call) {
    (void)call;
}
static void fp32(CudaAttention *call) {
    call->input = KERNEL_FP32;
}
static void alibi(CudaAttention *call) {
    call->block.alibi_heads = 32;
}
static void head_80(CudaAttention *call) {
    call->block.head_dim = 80;
}
static void head_256(CudaAttention *call) {
    call->block.head_dim = 256;
}
static void head_12(CudaAttention *call) {
    call->block.head_dim = 12;
}
static void ring_before(CudaAttention *call) {  // keys of an earlier rank
    call->block.q_first = 4096;
    call->output = call->backward ? KERNEL_BF16 : KERNEL_FP32;
    call->gradient = KERNEL_FP32;
    call->merge = true;
}
static void wide_o(CudaAttention *call) {
    call->output = KERNEL_FP32;
}
static void ring_same(CudaAttention *call) {  // a zigzag half against itself
    call->block.q_first = call->block.k_first = 12288;
}
static void shifted(CudaAttention *call) {  // the causal diagonal begins inside
    call->block.q_first = 1000;
}
static void shifted_head_80(CudaAttention *call) {
    shifted(call);
    head_80(call);
}
static void deterministic(CudaAttention *call) {
    call->deterministic = true;
}
static void odd_rows(CudaAttention *call) {
    call->block.q_stride = 6148;
}
static void merge_bf16(CudaAttention *call) {
    call->merge = true;
}

#define NONE ATTENTION_TIER_AUTO
#define ANY ATTENTION_TIER_AUTO
#define SCALAR ATTENTION_TIER_SCALAR
#define OWN ATTENTION_TIER_OWN
#define CUDNN ATTENTION_TIER_CUDNN

static const struct {
    const char *name;
    void (*change)(CudaAttention *call);
    AttentionMeans means;
    AttentionTier asked, forward, backward;
} rows[] = {
    {"H200 with cuDNN", plain, {90, SM90, true}, ANY, CUDNN, CUDNN},
    {"H200 without cuDNN", plain, {90, SM90, false}, ANY, OWN, OWN},
    {"B200 with cuDNN", plain, {100, SM90, true}, ANY, CUDNN, CUDNN},
    {"A100 with cuDNN", plain, {80, SM80, true}, ANY, CUDNN, CUDNN},
    {"A100 without", plain, {80, SM80, false}, ANY, OWN, OWN},
    {"A100, head_dim 80", head_80, {80, SM80, true}, ANY, CUDNN, CUDNN},
    {"little shared memory: forward still fits", plain, {89, SMALL, false}, ANY, OWN, SCALAR},
    {"little shared memory, cuDNN", plain, {89, SMALL, true}, ANY, CUDNN, CUDNN},
    {"no bf16 cores", plain, {75, SMALL, true}, ANY, SCALAR, SCALAR},
    {"a ring's earlier keys, merged", ring_before, {90, SM90, true}, ANY, CUDNN, CUDNN},
    {"o in fp32, which cuDNN does not read", wide_o, {90, SM90, true}, ANY, CUDNN, OWN},
    {"a zigzag half against itself", ring_same, {90, SM90, true}, ANY, CUDNN, CUDNN},
    {"a border that cuDNN's graphs do not know", shifted, {90, SM90, true}, ANY, OWN, OWN},
    {"such a border and head_dim 80", shifted_head_80, {90, SM90, true}, ANY, SCALAR, SCALAR},
    {"deterministic", deterministic, {90, SM90, true}, ANY, CUDNN, OWN},
    {"fp32", fp32, {90, SM90, true}, ANY, SCALAR, SCALAR},
    {"ALiBi", alibi, {90, SM90, true}, ANY, SCALAR, SCALAR},
    {"head_dim 256", head_256, {90, SM90, true}, ANY, SCALAR, SCALAR},
    {"head_dim 12", head_12, {90, SM90, true}, ANY, NONE, NONE},
    {"rows at odd places", odd_rows, {90, SM90, true}, ANY, SCALAR, SCALAR},
    {"a merge into bf16", merge_bf16, {90, SM90, true}, ANY, NONE, CUDNN},
    {"own, asked for", plain, {90, SM90, true}, OWN, OWN, OWN},
    {"scalar, asked for", plain, {90, SM90, true}, SCALAR, SCALAR, SCALAR},
    {"own, asked for in fp32", fp32, {90, SM90, true}, OWN, NONE, NONE},
    {"cuDNN, asked for and not there", plain, {90, SM90, false}, CUDNN, NONE, NONE},
    {"cuDNN, asked for, deterministic", deterministic, {90, SM90, true}, CUDNN, CUDNN, NONE},
};

Test(attention_tier, every_row_of_the_table_holds) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int backward = 0; backward < 2; backward++) {
            CudaAttention call = usual(backward);
            rows[i].change(&call);
            const AttentionTier got = attention_tier(rows[i].asked, &call, &rows[i].means);
            const AttentionTier want = backward ? rows[i].backward : rows[i].forward;
            cr_expect_eq(got, want, "%s, %s: %s, not %s", rows[i].name, backward ? "backward" : "forward",
                         attention_tier_name(got), attention_tier_name(want));
        }
    }
}

Test(attention_tier, a_refusal_names_the_call_and_the_reason) {
    CudaAttention call = usual(false);
    head_12(&call);
    AttentionPlan plan;
    char why[ATTENTION_WHY_BYTES];
    cr_assert_not(cuda_attention_plan(ATTENTION_TIER_AUTO, &call, &(AttentionMeans){90, SM90, true}, NULL, &plan, why));
    cr_assert_str_eq(why, "attention scalar cannot serve head_dim 12, 4096 queries at 0, keys at 0: head_dim is a "
                          "multiple of 8 up to 256");
}

Test(attention_tier, a_plan_knows_its_workspace) {
    const AttentionMeans means = {90, SM90, false};
    CudaAttention call = usual(true);
    AttentionPlan plan;
    char why[ATTENTION_WHY_BYTES];
    const int64_t rows_of_dq = 2 * 4096, turns = 1 + 2 * 32 * (4096 / 64);
    cr_assert(cuda_attention_plan(ATTENTION_TIER_AUTO, &call, &means, NULL, &plan, why));
    cr_assert_eq(plan.workspace_bytes, 4 * rows_of_dq * 32 * 128);  // dq in fp32
    call.deterministic = true;
    cr_assert(cuda_attention_plan(ATTENTION_TIER_AUTO, &call, &means, NULL, &plan, why));
    cr_assert_eq(plan.workspace_bytes, 4 * rows_of_dq * 32 * 128 + (4 * turns + 255) / 256 * 256);
    call.gradient = KERNEL_FP32;
    call.deterministic = false;
    cr_assert(cuda_attention_plan(ATTENTION_TIER_AUTO, &call, &means, NULL, &plan, why));
    cr_assert_eq(plan.workspace_bytes, 0);
}

Test(attention_tier, launches_of_our_own_kernel_have_these_shapes) {
    CudaAttention call = usual(false);
    LaunchShape shape = attention_own_shape(&call);
    cr_assert(launch_shape_is_legal(&shape));
    cr_assert_eq(shape.grid_x, 64u);           // heads of two sequences
    cr_assert_eq(shape.grid_y, 4096u / 128u);  // query tiles
    cr_assert_eq(shape.threads, 128u);
    cr_assert_eq(shape.shared_bytes, 80u * 1024u);  // two blocks per SM on sm_80: at most 163 KB / 2
    call.backward = true;
    shape = attention_own_shape(&call);
    cr_assert(launch_shape_is_legal(&shape));
    cr_assert_eq(shape.grid_x, 4096u / 128u * 8u * 2u);
    cr_assert_eq(shape.threads, 256u);
    cr_assert_leq(shape.shared_bytes, 163u * 1024u);
}
