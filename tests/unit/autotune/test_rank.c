// The order of choices.

#include <criterion/criterion.h>

#include "autotune/search/rank.h"
#include "tests/support/sizes.h"

static Prediction prediction(double tokens_per_s, double reserved_bytes, int micro_batch) {
    return (Prediction){.plan = {.mesh = {SIZES(1, 1, 1, 1)}, .seq = 8, .micro_batch = micro_batch, .grad_accum = 1},
                        .tokens_per_s = tokens_per_s,
                        .memory = {.reserved_bytes = reserved_bytes}};
}

Test(rank, the_faster_comes_first) {
    Prediction entries[] = {prediction(1, 1, 1), prediction(2, 9, 1)};
    rank_entries(entries, 2, OBJECTIVE_THROUGHPUT);
    cr_assert_eq(entries[0].tokens_per_s, 2);
}

Test(rank, of_equals_the_one_with_less_memory_comes_first) {
    Prediction entries[] = {prediction(1, 9, 1), prediction(1, 1, 2)};
    rank_entries(entries, 2, OBJECTIVE_THROUGHPUT);
    cr_assert_eq(entries[0].memory.reserved_bytes, 1);
}

Test(rank, then_the_plan_text_decides) {
    Prediction entries[] = {prediction(1, 1, 2), prediction(1, 1, 1)};
    rank_entries(entries, 2, OBJECTIVE_THROUGHPUT);
    cr_assert_eq(entries[0].plan.micro_batch, 1);
}
