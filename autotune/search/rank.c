// Ranks predictions. A total order, so that the same request always gives the same table. By throughput: tokens per
// second, then less memory, then plan text; by memory: the first two change places. By cost is by throughput, because
// one price holds for all accelerators of a request.

#include "autotune/search/rank.h"

#include <stdlib.h>
#include <string.h>

const char *const objective_names[OBJECTIVE_COUNT] = {"throughput", "memory", "cost"};

static int compare_speed(const Prediction *left, const Prediction *right) {
    return (left->tokens_per_s < right->tokens_per_s) - (left->tokens_per_s > right->tokens_per_s);
}

static int compare_memory(const Prediction *left, const Prediction *right) {
    const double l = left->memory.reserved_bytes, r = right->memory.reserved_bytes;
    return (l > r) - (l < r);
}

static int compare_text(const Prediction *left, const Prediction *right) {
    return strcmp(plan_text(&left->plan, PLAN_BUFFER), plan_text(&right->plan, PLAN_BUFFER));
}

// qsort comparison of Prediction, best first: throughput and cost.
static int rank_compare(const void *a, const void *b) {
    const int speed = compare_speed(a, b);
    const int memory = speed ? 0 : compare_memory(a, b);
    return speed ? speed : memory ? memory : compare_text(a, b);
}

static int rank_compare_memory(const void *a, const void *b) {
    const int memory = compare_memory(a, b);
    return memory ? memory : rank_compare(a, b);
}

int (*rank_order(Objective objective))(const void *, const void *) {
    return objective == OBJECTIVE_MEMORY ? rank_compare_memory : rank_compare;
}

void rank_entries(Prediction *entries, int count, Objective objective) {
    qsort(entries, (size_t)count, sizeof *entries, rank_order(objective));
}

void rank_mark_pareto(Prediction *entries, int count) {
    for (int i = 0; i < count; i++) {
        entries[i].pareto = true;
        for (int j = 0; j < count && entries[i].pareto; j++) {
            const int speed = compare_speed(&entries[j], &entries[i]);
            const int memory = compare_memory(&entries[j], &entries[i]);
            entries[i].pareto = !(speed <= 0 && memory <= 0 && speed + memory < 0);
        }
    }
}
