// Launch shapes: legal on every GPU from sm_80 on for any size that a model can have, and neither empty nor larger than
// the work.

#include "kernels/cuda/launch_plan.h"

#include <criterion/criterion.h>

static const int64_t ROWS[] = {0, 1, 7, 8, 4096, 65535, 65536, 1048576, 100000007};
static const int64_t COLS[] = {1, 8, 64, 100, 1024, 4096, 8192, 14336, 28672, 40960};
static const int CHIPS[] = {1, 108, 132, 148};  // processors: anything small, A100, H100, B200
enum {
    ROW_COUNT = sizeof ROWS / sizeof *ROWS,
    COL_COUNT = sizeof COLS / sizeof *COLS,
    CHIP_COUNT = sizeof CHIPS / sizeof *CHIPS
};

typedef LaunchShape ShapeOf(int64_t rows, int64_t cols, int processors);

static void each_size(const char *name, ShapeOf *shape_of, uint32_t shared_most) {
    for (int r = 0; r < ROW_COUNT; r++) {
        for (int c = 0; c < COL_COUNT; c++) {
            for (int p = 0; p < CHIP_COUNT; p++) {
                const LaunchShape shape = shape_of(ROWS[r], COLS[c], CHIPS[p]);
                cr_assert(launch_shape_is_legal(&shape), "%s: %d rows, %d cols: %u x %u blocks of %u", name,
                          (int)ROWS[r], (int)COLS[c], shape.grid_x, shape.grid_y, shape.threads);
                cr_assert_eq(shape.threads % 32, 0, "%s: %u threads are no warps", name, shape.threads);
                cr_assert_leq(shape.shared_bytes, shared_most, "%s: %u bytes, %d cols", name, shape.shared_bytes,
                              (int)COLS[c]);
            }
        }
    }
}

static LaunchShape flat(int64_t rows, int64_t cols, int processors) {
    return launch_flat(rows * cols / PACK, processors);
}

static LaunchShape plane(int64_t rows, int64_t cols, int processors) {
    return launch_plane(rows, cols / PACK, processors);
}

static LaunchShape plane_narrow(int64_t rows, int64_t cols, int processors) {
    return launch_plane(rows, cols, processors);
}

static LaunchShape rows_each(int64_t rows, int64_t cols, int processors) {
    (void)processors;
    return launch_rows(rows, cols / PACK);
}

static LaunchShape row_sums(int64_t rows, int64_t cols, int processors) {
    return launch_row_sums(rows, cols, cols / PACK, processors);
}

static LaunchShape stretch_sums(int64_t rows, int64_t cols, int processors) {
    return launch_stretch_sums(rows, launch_stretch_room(cols, PACK), processors);
}

static LaunchShape columns(int64_t rows, int64_t cols, int processors) {
    return launch_columns(rows, cols, PACK, processors);
}

static LaunchShape finish(int64_t rows, int64_t cols, int processors) {
    (void)rows, (void)processors;
    return launch_columns_finish(cols);
}

static LaunchShape squares(int64_t rows, int64_t cols, int processors) {
    return launch_squares(rows * cols / PACK, processors);
}

static LaunchShape rope(int64_t rows, int64_t cols, int processors) {
    return launch_rope(rows, cols / PACK, 128, processors);
}

static LaunchShape runs(int64_t rows, int64_t cols, int processors) {
    (void)processors;
    return launch_runs(rows, cols / PACK);
}

static LaunchShape sort(int64_t rows, int64_t cols, int processors) {
    (void)cols, (void)processors;
    return launch_sort(rows);
}

Test(launch_plan, is_legal_for_every_size) {
    each_size("flat", flat, 0);
    each_size("plane", plane, 0);
    each_size("plane of single elements", plane_narrow, 0);
    each_size("rows", rows_each, 128);
    each_size("row sums", row_sums, LAUNCH_MAX_SHARED_BYTES);
    each_size("stretch sums", stretch_sums, LAUNCH_MAX_SHARED_BYTES);
    each_size("columns", columns, LAUNCH_SHARED_BYTES);
    each_size("finish", finish, LAUNCH_SHARED_BYTES);
    each_size("squares", squares, LAUNCH_SHARED_BYTES);
    each_size("rope", rope, LAUNCH_SHARED_BYTES);
    each_size("runs", runs, 0);
    each_size("sort", sort, LAUNCH_SHARED_BYTES);
}

Test(launch_plan, has_no_block_without_work) {
    for (int64_t packs = 1; packs < 3000; packs += 17) {
        const LaunchShape shape = launch_flat(packs, 132);
        cr_assert_geq((int64_t)shape.grid_x * shape.threads, packs);
        cr_assert_lt((int64_t)(shape.grid_x - 1) * shape.threads, packs);
    }
    cr_assert_eq(launch_row_sums(3, 4096, 512, 132).grid_x, 3);
    cr_assert_eq(launch_rows(16384, 512).grid_x, 16384);
    cr_assert_eq(launch_rows(16384, 512).threads, 128);  // four packs each
}

Test(launch_plan, fills_a_large_chip_with_large_work) {
    const LaunchShape flat_shape = launch_flat(1 << 24, 132), plane_shape = launch_plane(16384, 1792, 132);
    const LaunchShape sums = launch_row_sums(16384, 4096, 512, 132);
    cr_assert_geq((int64_t)flat_shape.grid_x * flat_shape.threads, 132 * 2048);  // threads that an H200 holds
    cr_assert_geq((int64_t)plane_shape.grid_x * plane_shape.grid_y * plane_shape.threads, 132 * 2048);
    cr_assert_geq((int64_t)sums.grid_x * sums.threads, 132 * 1024);  // half of them: each keeps sums
}

Test(launch_plan, sees_what_lies_at_16_byte_addresses) {
    cr_assert(launch_is_wide(0x1000, 4096));
    cr_assert_not(launch_is_wide(0x1008, 4096));
    cr_assert_not(launch_is_wide(0x1000, 50257));
    cr_assert_not(launch_is_wide(0x1000, 4));
}
