// The packer alone: blocks, forbidden offsets, total.

#include <criterion/criterion.h>

#include "sim/memory/layout.h"

enum { MAX_BLOCKS = 4 };

typedef struct Puzzle {
    int64_t bytes[MAX_BLOCKS];
    int32_t zeros[MAX_BLOCKS];
    PairConflict pairs[MAX_BLOCKS * MAX_BLOCKS];
    ForbiddenOffsets forbidden[2 * MAX_BLOCKS * MAX_BLOCKS];
    int32_t count, rows;
} Puzzle;

static void forbid(Puzzle *puzzle, int a, int b, int64_t low, int64_t high) {
    puzzle->forbidden[puzzle->rows] = (ForbiddenOffsets){low, high};
    puzzle->pairs[a * puzzle->count + b] = (PairConflict){puzzle->rows, puzzle->rows + 1};
    puzzle->rows++;
    puzzle->forbidden[puzzle->rows] = (ForbiddenOffsets){-high, -low};
    puzzle->pairs[b * puzzle->count + a] = (PairConflict){puzzle->rows, puzzle->rows + 1};
    puzzle->rows++;
}

static int64_t solve(const Puzzle *puzzle, int64_t *offset_bytes) {
    Arena arena = {0};
    const LayoutProblem problem = {.count = puzzle->count,
                                   .bytes = puzzle->bytes,
                                   .lifetime = puzzle->zeros,
                                   .birth = puzzle->zeros,
                                   .pairs = puzzle->pairs,
                                   .forbidden = puzzle->forbidden};
    const int64_t total = layout_solve(&problem, offset_bytes, &arena);
    arena_free(&arena);
    return total;
}

Test(layout, no_blocks_need_no_bytes) {
    cr_assert_eq(solve(&(Puzzle){0}, NULL), 0);
}

Test(layout, blocks_without_conflict_lie_on_top_of_each_other) {
    int64_t offset[MAX_BLOCKS];
    cr_assert_eq(solve(&(Puzzle){.count = 3, .bytes = {256, 1024, 512}}, offset), 1024);
}

Test(layout, blocks_in_conflict_lie_side_by_side) {
    Puzzle puzzle = {.count = 2, .bytes = {256, 1024}};
    int64_t offset[MAX_BLOCKS];
    forbid(&puzzle, 0, 1, -1024, 256);
    cr_assert_eq(solve(&puzzle, offset), 1280);
    const int64_t distance = offset[1] - offset[0];
    cr_assert(distance <= -1024 || distance >= 256);
}

// Only slots of one end meet: one step further is enough.
Test(layout, a_partial_conflict_costs_only_its_part) {
    Puzzle puzzle = {.count = 2, .bytes = {4096, 4096}};
    int64_t offset[MAX_BLOCKS];
    forbid(&puzzle, 0, 1, -256, 4096);
    cr_assert_eq(solve(&puzzle, offset), 4096 + 256);
    cr_assert_eq(offset[1] - offset[0], -256);
}

Test(layout, offsets_begin_at_zero) {
    Puzzle puzzle = {.count = 2, .bytes = {4096, 4096}};
    int64_t offset[MAX_BLOCKS];
    forbid(&puzzle, 0, 1, -256, 4096);
    solve(&puzzle, offset);
    cr_assert_eq(offset[0] < offset[1] ? offset[0] : offset[1], 0);
}

Test(layout, a_block_takes_the_tightest_gap) {
    // 0 (1024) and 1 (512) conflict with 3 but not with each other; 2 (512) conflicts with everybody but 0.
    Puzzle puzzle = {.count = 4, .bytes = {1024, 512, 512, 256}};
    int64_t offset[MAX_BLOCKS];
    forbid(&puzzle, 0, 3, -256, 1024);
    forbid(&puzzle, 1, 3, -256, 512);
    forbid(&puzzle, 1, 2, -512, 512);
    forbid(&puzzle, 2, 3, -256, 512);
    cr_assert_eq(solve(&puzzle, offset), 1024 + 256);
}
