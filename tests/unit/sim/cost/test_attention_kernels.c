// What attention's kernels pay for the size of a head and for dropout.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/cost/compute.h"
#include "tests/unit/sim/cost/machines.h"

static AttentionShape shape_of(AttentionKernel kernel, int head_dim) {
    return (AttentionShape){.kernel = kernel,
                            .sequences = 8,
                            .heads = 16,
                            .head_dim = head_dim,
                            .queries = 1024,
                            .keys = 1024,
                            .visible_share = 0.5,
                            .diagonal = true};
}

static double seconds(const AttentionShape *shape) {
    const ClusterProfile machine = machine_h100();
    return attention_time(&machine.accelerator, DTYPE_BF16, shape).seconds;
}

Test(attention_kernels, cudnn_takes_the_tiles_of_the_next_64_elements_of_a_head) {
    AttentionShape of_96 = shape_of(ATTENTION_CUDNN, 96);
    const AttentionShape of_128 = shape_of(ATTENTION_CUDNN, 128);
    cr_expect_float_eq(seconds(&of_96), seconds(&of_128), 1e-12);
    of_96.uneven_heads = true;  // the mean of 128 and 64
    cr_expect_lt(seconds(&of_96), seconds(&of_128));
    const AttentionShape flash_96 = shape_of(ATTENTION_FLASH, 96), flash_128 = shape_of(ATTENTION_FLASH, 128);
    cr_expect_lt(seconds(&flash_96), seconds(&flash_128));
}

// 12.1 instructions for each of 8 x 16 x 1,024 x 512 scores on 132 multiprocessors of four schedulers: 26 us, and what
// is lost on the diagonal.
Test(attention_kernels, dropout_takes_issue_slots_for_each_score) {
    for (int head_dim = 64; head_dim <= 128; head_dim += 64) {
        AttentionShape shape = shape_of(ATTENTION_CUDNN, head_dim);
        const double kept = seconds(&shape);
        shape.drops = true;
        const double more_s = seconds(&shape) - kept;
        const double least_s = 12.1 * 8 * 16 * 1024 * 512 / (128 * 132 * 1.83e9);
        cr_expect_gt(more_s, least_s);
        cr_expect_lt(more_s, 1.3 * least_s);
    }
}

Test(attention_kernels, flashattention_draws_sixteen_numbers_at_once_for_dropout) {
    AttentionShape cudnn = shape_of(ATTENTION_CUDNN, 64), flash = shape_of(ATTENTION_FLASH, 64);
    const double cudnn_kept = seconds(&cudnn), flash_kept = seconds(&flash);
    cudnn.drops = flash.drops = true;
    cr_expect_lt(seconds(&flash) - flash_kept, 0.6 * (seconds(&cudnn) - cudnn_kept));
}

Test(attention_kernels, dropout_takes_longer_at_a_slower_clock) {
    ClusterProfile machine = machine_h100();
    const AttentionShape keeps = shape_of(ATTENTION_CUDNN, 64);
    AttentionShape drops = keeps;
    drops.drops = true;
    double more_s[2];
    for (int slow = 0; slow < 2; slow++) {
        machine.accelerator.clock_hz = slow ? 1e9 : 2e9;
        more_s[slow] = attention_time(&machine.accelerator, DTYPE_BF16, &drops).seconds -
                       attention_time(&machine.accelerator, DTYPE_BF16, &keeps).seconds;
    }
    cr_expect_float_eq(more_s[1], 2 * more_s[0], 1e-9);
}

// Its asm kernels ("ck" in a profile) refuse dropout.
Test(attention_kernels, dropout_on_amd_runs_the_kernels_of_composable_kernel) {
    ClusterProfile machine = machine_h100();
    strcpy(machine.accelerator.attention[0].kernel, "ck");  // FlashAttention 3's rates
    AttentionShape fused = shape_of(ATTENTION_CUDNN, 128), flash = shape_of(ATTENTION_FLASH, 128);
    const double kept_s = attention_time(&machine.accelerator, DTYPE_BF16, &fused).seconds;
    cr_expect_lt(kept_s, 0.9 * attention_time(&machine.accelerator, DTYPE_BF16, &flash).seconds);
    fused.drops = flash.drops = true;
    cr_expect_float_eq(attention_time(&machine.accelerator, DTYPE_BF16, &fused).seconds,
                       attention_time(&machine.accelerator, DTYPE_BF16, &flash).seconds, 1e-12);
}

// Forward takes 8.25 slots for each of 8 x 16 x 1,024 x 512 scores, backward 26: it uses 4 of 16 bytes that it draws.
Test(attention_kernels, composable_kernel_draws_four_times_what_its_backward_uses) {
    ClusterProfile machine = machine_h100();
    strcpy(machine.accelerator.attention[0].kernel, "ck");
    machine.accelerator.clock_hz = 2.4e9;
    const double scores = 8.0 * 16 * 1024 * 512, slots_per_s = 64 * 132 * 2.4e9;
    double more_s[2];
    for (int backward = 0; backward < 2; backward++) {
        AttentionShape shape = shape_of(ATTENTION_FLASH, 128);
        shape.backward = backward;
        const double kept_s = attention_time(&machine.accelerator, DTYPE_BF16, &shape).seconds;
        shape.drops = true;
        more_s[backward] = attention_time(&machine.accelerator, DTYPE_BF16, &shape).seconds - kept_s;
    }
    cr_expect_gt(more_s[0], 8.25 * scores / slots_per_s);
    cr_expect_lt(more_s[0], 1.3 * 8.25 * scores / slots_per_s);
    cr_expect_float_eq(more_s[1], more_s[0] * 26 / 8.25, 1e-9);
}
