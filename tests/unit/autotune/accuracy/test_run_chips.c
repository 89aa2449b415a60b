// Families of chips, and what runs on AMD's had of kernels.

#include <criterion/criterion.h>
#include <stdio.h>

#include "autotune/accuracy/run_case.h"
#include "autotune/accuracy/run_chips.h"
#include "sim/cost/compute.h"
#include "tests/unit/autotune/accuracy/runs.h"

static Arena arena;

static void forget(void) {
    arena_free(&arena);
}

TestSuite(run_chips, .fini = forget);

static RunCase case_of(const char *cluster, const char *target, const char *date, const char *locator) {
    const RunCase run =
        line_case(&arena, (RunLine){.cluster = cluster, .target = target, .zero = "1", .step_time_s = 1},
                  "date,source_locator", arena_format(&arena, "%s,%s", date, locator));
    cr_assert_null(run.skipped, "%s", run.skipped);
    return run;
}

Test(run_chips, are_of_a_family_by_their_name) {
    static const struct {
        const char *name;
        bool hopper, cdna3;
    } cases[] = {{"H200-SXM-141GB", true, false},
                 {"MI325X-256GB", false, true},
                 {"MI300X-192GB", false, true},
                 {"MI355X-288GB", false, false},
                 {"B200-SXM-180GB", false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Accelerator chip = {0};
        snprintf(chip.name, sizeof chip.name, "%s", cases[i].name);
        cr_expect_eq(chip_is_of(&chip, CHIPS_HOPPER), cases[i].hopper, "%s", chip.name);
        cr_expect_eq(chip_is_of(&chip, CHIPS_CDNA3), cases[i].cdna3, "%s", chip.name);
    }
}

// mi300x-8x has 0.45 and 0.378 of AMD's asm kernels and 0.27 of FlashAttention 2's forward.
Test(run_chips, mlperf_on_mi300x_has_the_kernels_that_its_code_asks_for) {
    static const struct {
        const char *date, *locator;
        double forward, backward;
    } cases[] = {{"2025-05", "mlcommons/training_results_v5.0@0fdc28f:AMD/results", 0.27, 0.378},
                 {"2025-10", "mlcommons/training_results_v5.1@441d65f:Krai/results/n1_v5.0/lora", 0.27, 0.378},
                 {"2025-10", "mlcommons/training_results_v5.1@441d65f:AMD/results", 0.45, 0.378 * 1.11},
                 {"", "", 0.45, 0.378}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const RunCase run = case_of("mi300x-8x", "megatron", cases[i].date, cases[i].locator);
        const Accelerator *chip = &run.request.cluster.accelerator;
        const AttentionRate *rate = attention_rate(chip, "ck", 128);
        cr_expect_float_eq(rate->forward_efficiency, cases[i].forward, 1e-9, "%s", cases[i].locator);
        cr_expect_float_eq(rate->backward_efficiency, cases[i].backward, 1e-9, "%s", cases[i].locator);
        const double kept = 370e12 * cases[i].backward / 0.378;
        cr_expect_float_eq(chip->attention_backward_flop_per_s, kept, 1, "%s", cases[i].locator);
    }
}

Test(run_chips, mlperf_on_mi325x_ran_the_container_of_mi300x) {
    const RunCase before = case_of("mi325x-8x", "megatron", "2025-05", "mlcommons/training_results_v5.0@0fdc28f:AMD");
    const RunCase since = case_of("mi325x-8x", "megatron", "2025-10", "mlcommons/training_results_v5.1@441d65f:AMD");
    const AttentionRate *own = attention_rate(&before.request.cluster.accelerator, "ck", 128);
    const AttentionRate *asm_rate = attention_rate(&since.request.cluster.accelerator, "ck", 128);
    cr_expect_float_eq(own->forward_efficiency, 0.317, 1e-9);
    cr_expect_float_eq(asm_rate->backward_efficiency, 0.378 * 1.11, 1e-9);
}

// oci-bm-gpu-mi355x has 4.6 ps an element of a norm's gradients by Transformer Engine's general kernels.
Test(run_chips, recipes_of_primus_with_norms_of_their_own_do_not_take_the_engines) {
    static const struct {
        const char *locator;
        bool engine;
    } cases[] = {{"AMD-AGI/Primus@f3d33dc3:examples/megatron/configs/MI355X/deepseek_v3_4L-FSEP-perf.yaml", true},
                 {"AMD-AGI/Primus@fd1eeabb:examples/megatron/configs/MI355X/minimax_m2.5-BF16-pretrain.yaml", false},
                 {"AMD-AGI/Primus@68256bd3:examples/mlperf/gpt_oss_20b/config_MI355X_1x8x1.sh", false},
                 {"file 61082536843 of the stored index", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const RunCase run = case_of("oci-bm-gpu-mi355x", "megatron", "2026-06", cases[i].locator);
        const Accelerator *chip = &run.request.cluster.accelerator;
        cr_expect_eq(chip->norm_backward_element_s > 0, cases[i].engine, "%s", cases[i].locator);
        cr_expect_eq(chip->norm_element_s > 0, cases[i].engine, "%s", cases[i].locator);
    }
}

Test(run_chips, primus_layers_of_deepseek_add_gradients_by_a_launch) {
    static const char folder[] = "AMD-AGI/Primus@f3d33dc3:examples/megatron/configs/MI355X/";
    static const struct {
        const char *file;
        bool adds;
    } cases[] = {{"deepseek_v3_4L-FSEP-perf.yaml", true}, {"minimax_m2.5-BF16-pretrain.yaml", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const RunCase run =
            case_of("oci-bm-gpu-mi355x", "megatron", "2026-06", arena_format(&arena, "%s%s", folder, cases[i].file));
        cr_expect_eq(run.request.target->adds_gradients, cases[i].adds, "%s", cases[i].file);
    }
}
