// Muon's update of a layer: five steps of Newton and Schulz on each matrix, in bf16 (Jordan et al. 2024,
// zeropower_via_newtonschulz5). With the shorter side m and the longer n a step is three products, X X' (m n m), A A
// (m m m) and B X (m m n), and sums of what they give: 14 bytes an entry of A, 10 of X; before them X is divided by its
// norm, 6 bytes an entry. Of several ranks each takes whole matrices, dealt out by their time (_ns_compute_cost of
// Megatron-core's layer_wise_optimizer.py): its part of all layers', but no less than the largest matrix. Not modelled:
// products that use that A is symmetric, or add what is summed themselves; matrices dealt out bucket by bucket; that
// Megatron's linear_fc1 is gate and up in one, which splits q, k and v alone (emerging_optimizers.py, orthogonalize):
// one A A less than the two taken here (of Llama-3-8B's layer 0.69e12 of 20.8e12 operations, 3 %), and one matrix of
// seven (step_edges.c's operations of the host).

#include <math.h>

#include "sim/cost/compute.h"

enum { STEPS = 5, BYTES_OF_A = 14, BYTES_OF_X = 10, BYTES_OF_NORM = 6, KERNELS_OF_STEP = 5 };

static void add(KernelTime *sum, KernelTime part) {
    sum->seconds += part.seconds;
    sum->memory_s += part.memory_s;
}

static void scale(KernelTime *time, double factor) {
    time->seconds *= factor;
    time->memory_s *= factor;
}

static KernelTime matrix_time(const Accelerator *accelerator, int64_t rows, int64_t cols) {
    const int64_t m = rows < cols ? rows : cols, n = rows < cols ? cols : rows;
    const GemmShape products[] = {
        {.m = m, .n = m, .k = n, .trans_b = true}, {.m = m, .n = m, .k = m}, {.m = m, .n = n, .k = m}};
    KernelTime time = stream_time(accelerator, BYTES_OF_NORM * (double)m * (double)n, 2);
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
            GemmShape product = products[i];
            product.output = DTYPE_BF16;
            product.output_bytes = dtype_bytes(DTYPE_BF16);
            add(&time, gemm_time(accelerator, DTYPE_BF16, &product));
        }
        const double bytes = BYTES_OF_A * (double)m * (double)m + BYTES_OF_X * (double)m * (double)n;
        add(&time, stream_time(accelerator, bytes, KERNELS_OF_STEP));
    }
    return time;
}

KernelTime orthogonal_time(const Accelerator *accelerator, const StepProgram *program, const Task *task) {
    const Unit *unit = &program->units[task->unit];
    KernelTime time = {.seconds = 0};
    double largest_s = 0;
    for (int32_t i = 0; i < unit->trained_slices; i++) {
        const ParamSlice *slice = &program->slices[unit->first_slice + i];
        if (slice_is_matrix(slice)) {
            KernelTime matrix = matrix_time(accelerator, slice->local_rows / slice->blocks, slice->local_cols);
            largest_s = fmax(largest_s, matrix.seconds);
            scale(&matrix, slice->blocks * (slice->share > 0 ? slice->share : 1));
            add(&time, matrix);
        }
    }
    if (unit->shards > 1 && time.seconds > 0) {
        scale(&time, fmax(1.0 / unit->shards, largest_s / unit->instances / time.seconds));
    }
    return time;
}
