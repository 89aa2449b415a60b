// Initial parameters: Irwin-Hall numbers from Philox, keyed by seed, tensor and layer, counted by the global element
// index (executor.md 7.6), times init_std. The only float operation is one multiply, so all meshes start bit-identical.

#include "exec/device/initial.h"

#include "kernels/kernels.h"

// The counter's high word: part of the model, tensor of the part, layer.
enum { PART_SHIFT = 56, TENSOR_SHIFT = 32 };

static int64_t global_index(const ParamSlice *slice, int tp_index, int64_t local) {
    const int64_t row = local / slice->local_cols, col = local % slice->local_cols;
    const int64_t row0 = slice->split == SPLIT_ROWS ? tp_index * slice->local_rows : 0;
    const int64_t col0 = slice->split == SPLIT_COLS ? tp_index * slice->local_cols : 0;
    return (row0 + row) * slice->global_cols + col0 + col;
}

static void fill(const ParamSlice *slice, const KernelNormal *numbers, int64_t count, float *out) {
    if (slice->init_std != 0) {
        kernel_normal(numbers, count, out);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        out[i] = (float)slice->init_value;
    }
}

// Local elements [begin, end) of a slice, in stretches whose global indices follow each other: rows, or all of it where
// rows are not cut.
static void fill_slice(const ParamSlice *slice, int tp_index, KernelNormal *numbers, int64_t begin, int64_t end,
                       float *out) {
    const bool whole_rows = slice->local_cols == slice->global_cols;
    for (int64_t at = begin; at < end;) {
        const int64_t row_end = whole_rows ? end : (at / slice->local_cols + 1) * slice->local_cols;
        const int64_t stop = row_end < end ? row_end : end;
        numbers->first = (uint64_t)global_index(slice, tp_index, at);
        fill(slice, numbers, stop - at, out + (at - begin));
        at = stop;
    }
}

void initial_parameters(const StepProgram *program, uint64_t seed, const InitialStretch *stretch, float *out) {
    const Unit *unit = stretch->unit;
    const int64_t first = stretch->first, count = stretch->count;
    kernel_zero(count, out);
    for (int32_t s = 0; s < unit->slice_count; s++) {
        const ParamSlice *slice = &program->slices[unit->first_slice + s];
        const int64_t offset = slice->offset_elements, elements = slice->local_rows * slice->local_cols;
        const int64_t begin = offset > first ? offset : first;
        const int64_t end = offset + elements < first + count ? offset + elements : first + count;
        KernelNormal numbers = {.key = seed,
                                .stream = (uint64_t)slice->part << PART_SHIFT |
                                          (uint64_t)slice->tensor << TENSOR_SHIFT | (uint32_t)stretch->instance,
                                .scale =
                                    (float)(slice->init_std / 65536.0)};  // 65536: philox_normal's standard deviation
        if (begin < end) {
            fill_slice(slice, stretch->tp_index, &numbers, begin - offset, end - offset, out + (begin - first));
        }
    }
}
