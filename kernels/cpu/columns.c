// Column sums. Each thread adds all rows of its columns in order,
// in two levels of partial sums, so that the rounding error grows with the square root of the number of rows.

#include "kernels/cpu/columns.h"
#include "kernels/kernels.h"

typedef struct Columns {
    int64_t rows, cols;
    const float *x;
    float *out;
    bool accumulate;
} Columns;

static void sum_columns(const void *context, int64_t begin, int64_t end) {
    const Columns *c = context;
    for (int64_t first = begin; first < end; first += COLUMNS) {
        const int64_t width = end - first < COLUMNS ? end - first : COLUMNS;
        ColumnSums sums = {0};
        for (int64_t row = 0; row < c->rows; row++) {
            const float *restrict x = c->x + row * c->cols + first;
            for (int64_t col = 0; col < width; col++) {
                sums.part[col] += x[col];
            }
            column_sums_fold(&sums, row, c->rows, width);
        }
        column_sums_store(&sums, width, c->accumulate, c->out + first);
    }
}

void kernel_column_sum(int64_t rows, int64_t cols, const float *x, float *sums, bool accumulate) {
    const Columns columns = {rows, cols, x, sums, accumulate};
    parallel_columns(rows, cols, sum_columns, &columns);
}
