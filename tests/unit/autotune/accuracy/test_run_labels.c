// What a row ran and does not say: libraries by date and release, kernels by the chip.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/accuracy/run_case.h"
#include "tests/unit/autotune/accuracy/runs.h"

static Arena arena;

static void forget(void) {
    arena_free(&arena);
}

TestSuite(run_labels, .fini = forget);

// A row of `cluster` with more columns.
static RunCase case_with(const char *cluster, const char *target, const char *names, const char *values) {
    const char *columns = arena_format(&arena, "%.*s,%s\n", (int)strlen(RUNS_HEADER) - 1, RUNS_HEADER, names);
    const char *line = run_line(&arena, (RunLine){.cluster = cluster, .target = target, .step_time_s = 1});
    const RunFile file =
        run_file_of(&arena, arena_format(&arena, "%s%.*s,%s\n", columns, (int)strlen(line) - 1, line, values));
    RunCase run;
    run_case_build(run_mapper_new(&arena), &file.rows[0], &run);
    return run;
}

static RunCase case_of(const char *cluster, const char *target, const char *date, const char *locator) {
    return case_with(cluster, target, "date,source_locator", arena_format(&arena, "%s,%s", date, locator));
}

static double forward_ramp(const Accelerator *accelerator) {
    for (int k = 0; k < accelerator->attention_count; k++) {
        const AttentionRate *rate = &accelerator->attention[k];
        if (strcmp(rate->kernel, "cudnn") == 0 && rate->head_dim == 128) {
            return rate->forward_ramp;
        }
    }
    return 0;
}

// dgx-b200's cudnn-913-128 has a ramp of 714 keys, its cudnn-128 one of 401; a chip without the former keeps what it
// has. A summary's archive is dated by its last commit: its tables name the release that ran.
Test(run_labels, attention_of_2025_has_the_rate_of_its_cudnn) {
    static const struct {
        const char *date, *locator, *cluster;
        double forward_ramp;
    } cases[] = {{"2025-10", "", "dgx-b200", 714},
                 {"2026-01-07", "", "dgx-b200", 401},
                 {"", "", "dgx-b200", 401},
                 {"2026-04-01", "Megatron-Bridge@d4c36f7de:docs/archive.md L143 [25.11 pretrain]", "dgx-b200", 714},
                 {"2026-04-01", "Megatron-Bridge@d4c36f7de:docs/archive.md L60 [26.02 pretrain]", "dgx-b200", 401},
                 {"2025-10", "", "dgx-h100", 94}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const RunCase run = case_of(cases[i].cluster, "megatron", cases[i].date, cases[i].locator);
        cr_expect_float_eq(forward_ramp(&run.request.cluster.accelerator), cases[i].forward_ramp, 1e-9, "%s %s %s",
                           cases[i].date, cases[i].locator, cases[i].cluster);
    }
}

Test(run_labels, fp8_of_one_scale_has_one_layout_on_blackwell_only) {
    cr_expect(case_of("dgx-b200", "megatron", "", "").request.target->runtime.fp8_one_layout);
    cr_expect_not(case_of("dgx-h100", "megatron", "", "").request.target->runtime.fp8_one_layout);
    cr_expect_not(case_of("dgx-b200", "torchtitan", "", "").request.target->runtime.fp8_one_layout,
                  "torchao makes both");
}

// Megatron-LM's own scripts overlap only what they ask for (--overlap-grad-reduce), exports and recipes all.
Test(run_labels, gradients_are_reduced_behind_backward_where_the_row_says_so) {
    cr_expect_eq(case_with("dgx-b200", "megatron", "reduce_overlap", "off").plan.reduce_overlap, REDUCE_OVERLAP_OFF);
    cr_expect_eq(case_with("dgx-b200", "megatron", "reduce_overlap", "").plan.reduce_overlap, REDUCE_OVERLAP_TARGET);
}
