// Initial parameters: Irwin-Hall numbers from Philox, keyed by seed, tensor and layer, counted by the global element
// index (executor.md 7.6), times init_std. The only float operation is one multiply, so all meshes start bit-identical.

#include "exec/device/initial.h"

#include "exec/data/philox.h"

// The counter's high word: unit, tensor of the unit, layer.
enum { UNIT_SHIFT = 56, TENSOR_SHIFT = 32 };

static int64_t global_index(const ParamSlice *slice, int tp_index, int64_t local) {
    const int64_t row = local / slice->local_cols, col = local % slice->local_cols;
    const int64_t row0 = slice->split == SPLIT_ROWS ? tp_index * slice->local_rows : 0;
    const int64_t col0 = slice->split == SPLIT_COLS ? tp_index * slice->local_cols : 0;
    return (row0 + row) * slice->global_cols + col0 + col;
}

static float initial_value(const ParamSlice *slice, uint64_t seed, uint64_t stream, int64_t index) {
    if (slice->init_std == 0) {
        return (float)slice->init_value;
    }
    const float unit = (float)(slice->init_std / 65536.0);  // philox_normal's standard deviation
    return (float)philox_normal(seed, stream, (uint64_t)index) * unit;
}

void initial_parameters(const StepProgram *program, uint64_t seed, const InitialStretch *stretch, float *out) {
    const Unit *unit = stretch->unit;
    const int64_t first = stretch->first, count = stretch->count;
    for (int64_t i = 0; i < count; i++) {
        out[i] = 0;
    }
    for (int32_t s = 0; s < unit->slice_count; s++) {
        const ParamSlice *slice = &program->slices[unit->first_slice + s];
        const int64_t elements = slice->local_rows * slice->local_cols;
        const int64_t begin = slice->offset_elements > first ? slice->offset_elements : first;
        const int64_t slice_end = slice->offset_elements + elements;
        const int64_t end = slice_end < first + count ? slice_end : first + count;
        const uint64_t unit_index = (uint64_t)(unit - program->units);
        const uint64_t stream =
            unit_index << UNIT_SHIFT | (uint64_t)slice->tensor << TENSOR_SHIFT | (uint32_t)stretch->instance;
        for (int64_t i = begin; i < end; i++) {
            out[i - first] =
                initial_value(slice, seed, stream, global_index(slice, stretch->tp_index, i - slice->offset_elements));
        }
    }
}
