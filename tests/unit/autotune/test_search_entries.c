// What holds of the entries of an answer: of one that several claims look at.

#include <criterion/criterion.h>

#include "tests/support/kept.h"
#include "tests/support/search_all.h"
#include "tests/unit/autotune/requests.h"

enum { MOST_ENTRIES = 32 };

// Numbers alone: who reads them has no texts and no memory by stage.
typedef struct Entries {
    int count;
    Prediction entries[MOST_ENTRIES];
} Entries;

static Arena arena;
static TuneRequest request;
static TuneResult result;

static void search_usual(void *value) {
    Entries *found = value;
    Error error = {0};
    cr_assert_eq(search_run(&request, NULL, NULL, &arena, &result, &error), STATUS_OK, "%s", error.message);
    cr_assert_leq(result.entry_count, MOST_ENTRIES);
    found->count = result.entry_count;
    for (int i = 0; i < found->count; i++) {
        found->entries[i] = result.entries[i];
        found->entries[i].warning_count = 0;
        found->entries[i].memory.by_stage = NULL;
    }
}

static void begin(void) {
    arena = (Arena){0};
    request = request_for(&arena, 8, "7b", "dgx-h100", "accelerate");
    Entries *found = ARENA_NEW(&arena, Entries);
    kept("entries", found, sizeof *found, search_usual);
    result = (TuneResult){.request = &request, .entries = found->entries, .entry_count = found->count};
    cr_assert_gt(result.entry_count, 0);
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(search_entries, .init = begin, .fini = end);

Test(search_entries, behind_the_best_entries_are_ranked_by_tokens_per_second) {
    for (int i = 2; i < result.entry_count; i++) {
        cr_assert_geq(result.entries[i - 1].tokens_per_s, result.entries[i].tokens_per_s, "place %d", i);
    }
}

Test(search_entries, time_terms_sum_to_the_step) {
    for (int i = 0; i < result.entry_count; i++) {
        const Prediction *entry = &result.entries[i];
        double sum = entry->compute_s + entry->optimizer_s + entry->overhead_s;
        for (int axis = 0; axis < AXIS_COUNT; axis++) {
            sum += entry->exposed_s[axis];
        }
        cr_assert_float_eq(sum, entry->step_s, 1e-9 * entry->step_s, "place %d", i + 1);
    }
}

Test(search_entries, memory_terms_sum_to_the_peak) {
    for (int i = 0; i < result.entry_count; i++) {
        const MemoryBreakdown *memory = &result.entries[i].memory;
        const double sum = memory->parameters + memory->gradients + memory->optimizer + memory->activations +
                           memory->logits + memory->gathered_parameters + memory->communication + memory->runtime;
        cr_assert_float_eq(sum, memory->peak_bytes, 1.0, "place %d", i + 1);
    }
}

Test(search_entries, mfu_is_model_flops_over_the_peak) {
    const Prediction *best = &result.entries[0];
    const double flops = model_flops_per_token(&request.model, request.seq) * best->tokens_per_s / 8;
    cr_assert_float_eq(best->mfu, flops / request.cluster.accelerator.gemm[DTYPE_BF16].peak_flop_per_s, 1e-12);
}

Test(search_entries, the_front_is_what_nothing_beats_in_both) {
    cr_assert(result.entries[0].pareto);
    for (int i = 0; i < result.entry_count; i++) {
        bool beaten = false;
        for (int j = 0; j < result.entry_count; j++) {
            const Prediction *a = &result.entries[i], *b = &result.entries[j];
            beaten =
                beaten || (b->tokens_per_s >= a->tokens_per_s && b->memory.reserved_bytes <= a->memory.reserved_bytes &&
                           (b->tokens_per_s > a->tokens_per_s || b->memory.reserved_bytes < a->memory.reserved_bytes));
        }
        cr_assert_eq(result.entries[i].pareto, !beaten, "place %d", i + 1);
    }
}
