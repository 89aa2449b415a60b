// Greedy best fit: blocks one after another, each where it makes the whole grow least, then into the tightest gap
// between the positions that the blocks placed so far forbid. Blocks may go below the first one; in the end all move
// up. The order decides how good that is (Pisarchyk and Lee, "Efficient memory management for deep neural net
// inference", 2020: by size), so a few orders are tried and the best kept. Not optimal: the problem is NP-hard.

#include "sim/memory/layout.h"

#include <stdbool.h>
#include <stdlib.h>

typedef struct Rank {
    int64_t key[2];  // placed by falling keys
    int32_t block;
} Rank;

typedef enum { ORDER_SIZE, ORDER_AREA, ORDER_CROWD, ORDER_BIRTH, ORDER_COUNT } Order;

typedef struct Placement {
    const LayoutProblem *problem;
    Rank *ranks;
    int64_t *offset;
    ForbiddenOffsets *walls;  // scratch: where the current block must not begin
    ForbiddenOffsets *spare;  // room for as many
    int64_t low, high;        // extent so far
} Placement;

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

static inline bool wall_after(const ForbiddenOffsets *a, const ForbiddenOffsets *b) {
    return a->low != b->low ? a->low > b->low : a->high > b->high;
}

// Where the ascending walls from `at` on end.
static int32_t run_end(const ForbiddenOffsets *walls, int32_t at, int32_t count) {
    int32_t end = at < count ? at + 1 : count;
    while (end < count && !wall_after(&walls[end - 1], &walls[end])) {
        end++;
    }
    return end;
}

// Two ascending runs, [begin, middle) and [middle, end).
static void merge_runs(const ForbiddenOffsets *walls, int32_t begin, int32_t middle, int32_t end,
                       ForbiddenOffsets *merged) {
    int32_t a = begin, b = middle;
    for (int32_t i = begin; i < end; i++) {
        const bool second = b < end && (a == middle || wall_after(&walls[a], &walls[b]));
        merged[i] = second ? walls[b++] : walls[a++];
    }
}

static const PairConflict *pair_of(const LayoutProblem *problem, int32_t a, int32_t b) {
    return &problem->pairs[(size_t)a * (size_t)problem->count + (size_t)b];
}

// Bytes of all blocks that a block conflicts with: the hardest to place goes first.
static int64_t crowd_bytes(const LayoutProblem *problem, int32_t block) {
    int64_t bytes = problem->bytes[block];
    for (int32_t i = 0; i < problem->count; i++) {
        const PairConflict *pair = pair_of(problem, block, i);
        bytes += pair->end > pair->begin ? problem->bytes[i] : 0;
    }
    return bytes;
}

static int64_t order_key(const LayoutProblem *problem, Order order, int32_t block) {
    switch (order) {
    case ORDER_AREA:
        return problem->bytes[block] / 256 * problem->lifetime[block];  // in alignment units: no overflow
    case ORDER_CROWD:
        return crowd_bytes(problem, block);
    case ORDER_BIRTH:
        return -(int64_t)problem->birth[block];
    default:
        return problem->bytes[block];
    }
}

static void order_blocks(const LayoutProblem *problem, Order order, Rank *ranks) {
    for (int32_t i = 0; i < problem->count; i++) {
        const int64_t second = order == ORDER_SIZE ? problem->lifetime[i] : problem->bytes[i];
        ranks[i] = (Rank){.key = {order_key(problem, order, i), second}, .block = i};
    }
    qsort(ranks, (size_t)problem->count, sizeof(Rank), compare_ranks);
}

// Pairs' rows are ascending: they are merged two and two, which qsort does with a call for each comparison.
static void sort_walls(Placement *placement, int32_t count) {
    for (int32_t runs = 2; runs > 1;) {
        runs = 0;
        for (int32_t begin = 0, end; begin < count; begin = end, runs++) {
            const int32_t middle = run_end(placement->walls, begin, count);
            end = run_end(placement->walls, middle, count);
            merge_runs(placement->walls, begin, middle, end, placement->spare);
        }
        ForbiddenOffsets *const merged = placement->spare;
        placement->spare = placement->walls;
        placement->walls = merged;
    }
}

static int32_t collect_walls(Placement *placement, int32_t block, int32_t placed) {
    const LayoutProblem *problem = placement->problem;
    int32_t count = 0;
    for (int32_t i = 0; i < placed; i++) {
        const int32_t other = placement->ranks[i].block;
        const PairConflict *pair = pair_of(problem, other, block);
        for (int32_t k = pair->begin; k < pair->end; k++) {
            const ForbiddenOffsets *forbidden = &problem->forbidden[k];
            placement->walls[count++] = (ForbiddenOffsets){.low = placement->offset[other] + forbidden->low,
                                                           .high = placement->offset[other] + forbidden->high};
        }
    }
    sort_walls(placement, count);
    return count;
}

typedef struct Choice {
    int64_t growth, slack, offset;
} Choice;

// Between two walls a block may begin anywhere in [from, to]: at the end nearer to what is there already, so at from,
// except below everything.
static void consider(const Placement *placement, int64_t bytes, int64_t from, int64_t to, Choice *best) {
    const int64_t low = placement->low;
    const int64_t high = placement->high;
    const int64_t offset = from > low ? from : to < low ? to : low;
    const int64_t above = offset + bytes > high ? offset + bytes - high : 0;
    const Choice choice = {.growth = above + (offset < low ? low - offset : 0),
                           .slack = (to < high - bytes ? to : high - bytes) - offset,
                           .offset = offset};
    const bool better = choice.growth != best->growth ? choice.growth < best->growth
                        : choice.slack != best->slack ? choice.slack < best->slack
                                                      : choice.offset < best->offset;
    *best = better ? choice : *best;
}

static int64_t choose_offset(Placement *placement, int32_t block, int32_t placed) {
    const int64_t bytes = placement->problem->bytes[block];
    const int32_t walls = collect_walls(placement, block, placed);
    const int64_t far = INT64_MAX / 4;
    Choice best = {.growth = INT64_MAX};
    int64_t from = -far;
    for (int32_t i = 0; i < walls; i++) {
        if (placement->walls[i].low >= from) {
            consider(placement, bytes, from, placement->walls[i].low, &best);
        }
        from = placement->walls[i].high > from ? placement->walls[i].high : from;
    }
    consider(placement, bytes, from, far, &best);
    return best.offset;
}

// Up to the limit: as it only grows, what reaches it is no better.
static int64_t place_blocks(Placement *placement, int64_t limit) {
    const LayoutProblem *problem = placement->problem;
    placement->low = placement->high = 0;
    for (int32_t i = 0; i < problem->count && placement->high - placement->low < limit; i++) {
        const int32_t block = placement->ranks[i].block;
        const int64_t offset = choose_offset(placement, block, i);
        const int64_t end = offset + problem->bytes[block];
        placement->offset[block] = offset;
        placement->low = offset < placement->low ? offset : placement->low;
        placement->high = end > placement->high ? end : placement->high;
    }
    return placement->high - placement->low;
}

// The longest list of walls that a block can encounter.
static int32_t most_walls(const LayoutProblem *problem) {
    int32_t most = 0;
    for (int32_t b = 0; b < problem->count; b++) {
        int32_t walls = 0;
        for (int32_t a = 0; a < problem->count; a++) {
            walls += pair_of(problem, a, b)->end - pair_of(problem, a, b)->begin;
        }
        most = walls > most ? walls : most;
    }
    return most;
}

int64_t layout_solve(const LayoutProblem *problem, int64_t *offset_bytes, Arena *arena) {
    const int32_t most = most_walls(problem);
    Placement placement = {.problem = problem,
                           .ranks = ARENA_ARRAY(arena, Rank, problem->count),
                           .offset = ARENA_ARRAY(arena, int64_t, problem->count),
                           .walls = ARENA_UNCLEARED(arena, ForbiddenOffsets, most),
                           .spare = ARENA_UNCLEARED(arena, ForbiddenOffsets, most)};
    int64_t best = INT64_MAX;
    for (int order = 0; order < ORDER_COUNT; order++) {
        order_blocks(problem, (Order)order, placement.ranks);
        const int64_t total = place_blocks(&placement, best);
        if (total < best) {
            best = total;
            for (int32_t i = 0; i < problem->count; i++) {
                offset_bytes[i] = placement.offset[i] - placement.low;
            }
        }
    }
    return best;
}
