// Greedy best fit: blocks one after another, each into the smallest gap between the conflicting blocks placed so far.
// The order decides how good that is (Pisarchyk and Lee, "Efficient memory management for deep neural net inference",
// 2020: by size), so a few orders are tried and the best kept. Not optimal: the problem is NP-hard.

#include "sim/memory/layout.h"

#include <stdlib.h>
#include <string.h>

typedef struct Rank {
    int64_t key[2];  // placed by falling keys
    int32_t block;
} Rank;

typedef enum { ORDER_SIZE, ORDER_AREA, ORDER_CROWD, ORDER_COUNT } Order;

static int compare_ranks(const void *left, const void *right) {
    const Rank *a = left;
    const Rank *b = right;
    for (int i = 0; i < 2; i++) {
        if (a->key[i] != b->key[i]) {
            return a->key[i] > b->key[i] ? -1 : 1;
        }
    }
    return (a->block > b->block) - (a->block < b->block);
}

// Bytes of all blocks that a block conflicts with: who is hardest to place goes first.
static int64_t crowd_bytes(const LayoutProblem *problem, int32_t block) {
    int64_t bytes = problem->bytes[block];
    for (int32_t i = 0; i < problem->count; i++) {
        bytes += problem->conflicts[(size_t)block * (size_t)problem->count + (size_t)i] ? problem->bytes[i] : 0;
    }
    return bytes;
}

static void order_blocks(const LayoutProblem *problem, Order order, Rank *ranks) {
    for (int32_t i = 0; i < problem->count; i++) {
        const int64_t bytes = problem->bytes[i];
        const int64_t main_key = order == ORDER_SIZE ? bytes
                                 : order == ORDER_AREA
                                     ? bytes / 256 * problem->lifetime[i]  // in alignment units: no overflow
                                     : crowd_bytes(problem, i);
        ranks[i] = (Rank){.key = {main_key, order == ORDER_SIZE ? problem->lifetime[i] : bytes}, .block = i};
    }
    qsort(ranks, (size_t)problem->count, sizeof(Rank), compare_ranks);
}

// Smallest gap that holds the block among the conflicting blocks, walked by rising offset; behind all of them if none.
static int64_t find_gap(const LayoutProblem *problem, int32_t block, const int32_t *placed, int32_t placed_count,
                        const int64_t *offset_bytes) {
    const bool *conflicts = problem->conflicts + (size_t)block * (size_t)problem->count;
    int64_t best = -1;
    int64_t best_gap = INT64_MAX;
    int64_t free_from = 0;
    for (int32_t i = 0; i < placed_count; i++) {
        if (!conflicts[placed[i]]) {
            continue;
        }
        const int64_t gap = offset_bytes[placed[i]] - free_from;
        if (gap >= problem->bytes[block] && gap < best_gap) {
            best = free_from;
            best_gap = gap;
        }
        const int64_t end = offset_bytes[placed[i]] + problem->bytes[placed[i]];
        free_from = end > free_from ? end : free_from;
    }
    return best >= 0 ? best : free_from;
}

static int64_t place_blocks(const LayoutProblem *problem, const Rank *ranks, int32_t *placed, int64_t *offset_bytes) {
    int64_t total = 0;
    for (int32_t i = 0; i < problem->count; i++) {
        const int32_t block = ranks[i].block;
        const int64_t offset = find_gap(problem, block, placed, i, offset_bytes);
        offset_bytes[block] = offset;
        int32_t at = i;
        for (; at > 0 && offset_bytes[placed[at - 1]] > offset; at--) {
            placed[at] = placed[at - 1];
        }
        placed[at] = block;
        total = offset + problem->bytes[block] > total ? offset + problem->bytes[block] : total;
    }
    return total;
}

int64_t layout_solve(const LayoutProblem *problem, int64_t *offset_bytes, Arena *arena) {
    Rank *ranks = ARENA_ARRAY(arena, Rank, problem->count);
    int32_t *placed = ARENA_ARRAY(arena, int32_t, problem->count);
    int64_t *trial = ARENA_ARRAY(arena, int64_t, problem->count);
    int64_t best = INT64_MAX;
    for (int order = 0; order < ORDER_COUNT; order++) {
        order_blocks(problem, (Order)order, ranks);
        const int64_t total = place_blocks(problem, ranks, placed, trial);
        if (total < best) {
            best = total;
            memcpy(offset_bytes, trial, (size_t)problem->count * sizeof(int64_t));
        }
    }
    return best;
}
