// Initial parameters: Irwin-Hall numbers from Philox (Salmon et al. 2011), keyed by seed, tensor and layer, counted by
// the global element index, times init_std. The only float operation is one multiply, so all meshes and all devices
// start bit-identical.

#include "exec/device/initial.h"

#include <string.h>

#include "kernels/half.h"

// The counter's high word: part of the model, tensor of the part, layer.
enum { PART_SHIFT = 56, TENSOR_SHIFT = 32 };

typedef struct Walk {
    const ParamSlice *slice;
    int tp_index, ep_index;
    InitialPiece piece;  // the next one
    InitialTake *take;
    void *context;
} Walk;

static int64_t global_index(const Walk *walk, int64_t local) {
    const ParamSlice *slice = walk->slice;
    const int64_t row = local / slice->local_cols, col = local % slice->local_cols;
    const SliceRow at = {walk->tp_index, walk->ep_index, row};
    const int64_t col0 = slice->split == SPLIT_COLS ? walk->tp_index * slice->local_cols : 0;
    return slice_global_row(slice, &at) * slice->global_cols + col0 + col;
}

// Local elements [begin, end) of the slice, in pieces with consecutive global indices: rows, or a whole block where
// rows are not split. shift: offset from a local element to its place in the stretch.
static void slice_walk(Walk *walk, int64_t begin, int64_t end, int64_t shift) {
    const ParamSlice *slice = walk->slice;
    InitialPiece *piece = &walk->piece;
    const bool whole_rows = slice->local_cols == slice->global_cols;
    const int64_t follow = whole_rows ? slice->local_rows / slice->blocks * slice->local_cols : slice->local_cols;
    for (int64_t at = begin; at < end; at += piece->count) {
        const int64_t last = (at / follow + 1) * follow;
        piece->at = shift + at;
        piece->count = (last < end ? last : end) - at;
        piece->numbers.first = (uint64_t)global_index(walk, at);
        walk->take(walk->context, piece);
    }
}

void initial_pieces(const StepProgram *program, uint64_t seed, const InitialStretch *stretch, InitialTake *take,
                    void *context) {
    const Unit *unit = stretch->unit;
    const int64_t first = stretch->first, count = stretch->count;
    const int layer = unit->layered ? stage_model_layer(&program->held, stretch->instance) : stretch->instance;
    for (int32_t s = 0; s < unit->slice_count; s++) {
        const ParamSlice *slice = &program->slices[unit->first_slice + s];
        const int64_t offset = slice->offset_elements, elements = slice->local_rows * slice->local_cols;
        const int64_t begin = offset > first ? offset : first;
        const int64_t end = offset + elements < first + count ? offset + elements : first + count;
        const KernelNormal numbers = {
            .key = seed,
            .stream = (uint64_t)slice->part << PART_SHIFT | (uint64_t)slice->tensor << TENSOR_SHIFT | (uint32_t)layer,
            .scale = (float)(slice->init_std / 65536.0)};  // 65536: philox_normal's standard deviation
        Walk walk = {.slice = slice,
                     .tp_index = stretch->tp_index,
                     .ep_index = stretch->ep_index,
                     .piece = {.random = slice->init_std != 0, .numbers = numbers, .value = (float)slice->init_value},
                     .take = take,
                     .context = context};
        slice_walk(&walk, begin - offset, end - offset, offset - first);
    }
}

static void piece_make(void *context, const InitialPiece *piece) {
    float *const out = (float *)context + piece->at;
    if (piece->random) {
        kernel_normal(&piece->numbers, piece->count, out);
        return;
    }
    for (int64_t i = 0; i < piece->count; i++) {
        out[i] = piece->value;
    }
}

void initial_parameters(const StepProgram *program, uint64_t seed, const InitialStretch *stretch, float *out) {
    kernel_zero(stretch->count, out);
    initial_pieces(program, seed, stretch, piece_make, out);
}

// Generated in fp32, piece by piece.
static void halves_make(void *context, const InitialPiece *piece) {
    enum { SOME = 1024 };
    uint16_t *const out = (uint16_t *)context + piece->at;
    float numbers[SOME];
    for (int64_t at = 0; at < piece->count; at += SOME) {
        InitialPiece some = *piece;
        some.at = 0;
        some.count = piece->count - at < SOME ? piece->count - at : SOME;
        some.numbers.first += (uint64_t)at;
        piece_make(numbers, &some);
        kernel_narrow(some.count, numbers, out + at);
    }
}

void initial_parameters_half(const StepProgram *program, uint64_t seed, const InitialStretch *stretch, uint16_t *out) {
    memset(out, 0, (size_t)stretch->count * sizeof *out);
    initial_pieces(program, seed, stretch, halves_make, out);
}
