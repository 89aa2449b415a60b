// Products in bf16 by oneDNN, with its AMX and AVX512_BF16 kernels. As in gemm.c, c is split into blocks, one per
// thread, and each is one single-threaded oneDNN product, prepared in advance. What the library allocates in a call is
// small: a few hundred bytes, freed before it returns.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/core_type.h"
#include "kernels/cpu/grid.h"
#include "kernels/cpu/half_library.h"
#include "kernels/cpu/parallel.h"

enum { SCRATCH_ALIGN = 4096 };  // the alignment oneDNN uses for its scratchpads

enum { AT_A, AT_B, AT_C, AT_SCRATCH, OPERANDS };

// One thread's part of a product.
typedef struct HalfBlock {
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[OPERANDS];
    int64_t a_bytes, b_bytes, c_bytes;  // byte offsets of the block in each operand
} HalfBlock;

typedef struct HalfProduct {
    KernelHalfGemm shape;
    HalfBlock *blocks;
    int count;
} HalfProduct;

struct KernelHalves {
    HalfLibrary library;
    dnnl_engine_t engine;
    dnnl_stream_t *streams;  // one per thread's block
    int threads;
    HalfProduct *products;
    int count, most;
    size_t scratch_bytes;  // per block
    char *scratch;
};

static const int arguments[OPERANDS] = {
    [AT_A] = DNNL_ARG_SRC, [AT_B] = DNNL_ARG_WEIGHTS, [AT_C] = DNNL_ARG_DST, [AT_SCRATCH] = DNNL_ARG_SCRATCHPAD};

static bool library_begin(KernelHalves *halves) {
    const HalfLibrary *library = &halves->library;
    bool done = library->engine_create(&halves->engine, dnnl_cpu, 0) == dnnl_success;
    for (int t = 0; done && t < halves->threads; t++) {
        done = library->stream_create(&halves->streams[t], halves->engine, dnnl_stream_default_flags) == dnnl_success;
    }
    return done;
}

KernelHalves *kernel_halves_open(int most, char why[KERNEL_HALF_WHY_BYTES]) {
    Cpuid cpuid;
    HalfLibrary library;
    cpuid_read(&cpuid);
    if (!core_half_of(&cpuid)) {
        snprintf(why, KERNEL_HALF_WHY_BYTES,
                 "this processor multiplies in fp32 only: it has no AMX-BF16 or AVX512_BF16");
        return NULL;
    }
    if (!half_library_open(&library, why)) {
        return NULL;
    }
    const int threads = parallel_threads();
    KernelHalves *halves = calloc(1, sizeof *halves);
    HalfProduct *products = calloc((size_t)most + 1, sizeof *products);
    dnnl_stream_t *streams = calloc((size_t)threads, sizeof *streams);
    if (!halves || !products || !streams) {
        snprintf(why, KERNEL_HALF_WHY_BYTES, "no memory for products in bf16");
        free(halves);
        free(products);
        free(streams);
        return NULL;
    }
    *halves =
        (KernelHalves){.library = library, .streams = streams, .threads = threads, .products = products, .most = most};
    if (!library_begin(halves)) {
        snprintf(why, KERNEL_HALF_WHY_BYTES, "oneDNN has no engine for this processor");
        kernel_halves_close(halves);
        return NULL;
    }
    return halves;
}

static void block_close(const HalfLibrary *library, HalfBlock *block) {
    for (int i = 0; i < OPERANDS; i++) {
        if (block->memory[i]) {
            library->memory_destroy(block->memory[i]);
        }
    }
    if (block->primitive) {
        library->primitive_destroy(block->primitive);
    }
}

static void product_close(const HalfLibrary *library, HalfProduct *product) {
    for (int i = 0; i < product->count; i++) {
        block_close(library, &product->blocks[i]);
    }
    free(product->blocks);
}

void kernel_halves_close(KernelHalves *halves) {
    if (!halves) {
        return;
    }
    for (int i = 0; i < halves->count; i++) {
        product_close(&halves->library, &halves->products[i]);
    }
    for (int t = 0; t < halves->threads; t++) {
        if (halves->streams[t]) {
            halves->library.stream_destroy(halves->streams[t]);
        }
    }
    if (halves->engine) {
        halves->library.engine_destroy(halves->engine);
    }
    free(halves->streams);
    free(halves->products);
    free(halves->scratch);
    free(halves);
}

static dnnl_primitive_attr_t attributes_of(const HalfLibrary *library, const KernelHalfGemm *shape) {
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_post_ops_t after = NULL;
    bool done = library->attributes_create(&attributes) == dnnl_success &&
                library->set_scratch(attributes, dnnl_scratchpad_mode_user) == dnnl_success;
    if (done && shape->factor != 1) {
        done = library->set_scales(attributes, 1, 0, &shape->factor) == dnnl_success;
    }
    if (done && shape->accumulate) {
        done = library->post_ops_create(&after) == dnnl_success && library->post_ops_sum(after, 1) == dnnl_success &&
               library->set_post_ops(attributes, after) == dnnl_success;
        if (after) {
            library->post_ops_destroy(after);
        }
    }
    if (!done && attributes) {
        library->attributes_destroy(attributes);
    }
    return done ? attributes : NULL;
}

// The implementation that the library chooses for a block of m rows and n columns.
static dnnl_primitive_desc_t choice_of(const KernelHalves *halves, const KernelHalfGemm *shape, int64_t m, int64_t n) {
    const HalfLibrary *library = &halves->library;
    const dnnl_data_type_t result = shape->half_c ? dnnl_bf16 : dnnl_f32;
    const dnnl_dims_t a_size = {m, shape->k}, b_size = {shape->k, n}, c_size = {m, n};
    const dnnl_dims_t a_step = {shape->trans_a ? 1 : shape->k, shape->trans_a ? shape->m : 1},
                      b_step = {shape->trans_b ? 1 : shape->n, shape->trans_b ? shape->k : 1}, c_step = {shape->n, 1};
    dnnl_memory_desc_t a, b, c;
    dnnl_matmul_desc_t product;
    dnnl_primitive_desc_t choice = NULL;
    dnnl_primitive_attr_t attributes = attributes_of(library, shape);
    if (attributes && library->describe_memory(&a, 2, a_size, dnnl_bf16, a_step) == dnnl_success &&
        library->describe_memory(&b, 2, b_size, dnnl_bf16, b_step) == dnnl_success &&
        library->describe_memory(&c, 2, c_size, result, c_step) == dnnl_success &&
        library->describe_product(&product, &a, &b, NULL, &c) == dnnl_success &&
        library->choose(&choice, &product, attributes, halves->engine, NULL) != dnnl_success) {
        choice = NULL;
    }
    if (attributes) {
        library->attributes_destroy(attributes);
    }
    return choice;
}

static bool block_open(KernelHalves *halves, const KernelHalfGemm *shape, int64_t m, int64_t n, HalfBlock *block) {
    static const dnnl_query_t queries[OPERANDS] = {[AT_A] = dnnl_query_src_md,
                                                   [AT_B] = dnnl_query_weights_md,
                                                   [AT_C] = dnnl_query_dst_md,
                                                   [AT_SCRATCH] = dnnl_query_scratchpad_md};
    const HalfLibrary *library = &halves->library;
    dnnl_primitive_desc_t choice = choice_of(halves, shape, m, n);
    bool done = choice && library->primitive_create(&block->primitive, choice) == dnnl_success;
    for (int i = 0; done && i < OPERANDS; i++) {
        const dnnl_memory_desc_t *memory = library->choice_memory(choice, queries[i], 0);
        done = library->memory_create(&block->memory[i], memory, halves->engine, DNNL_MEMORY_NONE) == dnnl_success;
        const size_t bytes = library->memory_bytes(memory);
        if (i == AT_SCRATCH && bytes > halves->scratch_bytes) {
            halves->scratch_bytes = (bytes + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
        }
    }
    if (choice) {
        library->choice_destroy(choice);
    }
    return done;
}

static bool product_open(KernelHalves *halves, HalfProduct *product) {
    enum { HALF = sizeof(uint16_t) };
    const KernelHalfGemm *shape = &product->shape;
    const Grid grid = grid_choose(shape->m, shape->n, shape->k, halves->threads);
    product->blocks = calloc((size_t)(grid.rows * grid.cols), sizeof *product->blocks);
    bool done = product->blocks != NULL;
    for (int part = 0; done && part < grid.rows * grid.cols; part++) {
        const int row = part / grid.cols, col = part % grid.cols;
        const int64_t m0 = grid_cut(shape->m, row, grid.rows), n0 = grid_cut(shape->n, col, grid.cols);
        const int64_t m = grid_cut(shape->m, row + 1, grid.rows) - m0, n = grid_cut(shape->n, col + 1, grid.cols) - n0;
        if (m > 0 && n > 0) {
            HalfBlock *block = &product->blocks[product->count++];
            block->a_bytes = (shape->trans_a ? m0 : m0 * shape->k) * HALF;
            block->b_bytes = (shape->trans_b ? n0 * shape->k : n0) * HALF;
            block->c_bytes = (m0 * shape->n + n0) * (shape->half_c ? HALF : (int64_t)sizeof(float));
            done = block_open(halves, shape, m, n, block);
        }
    }
    return done;
}

static bool equal(const KernelHalfGemm *a, const KernelHalfGemm *b) {
    return a->trans_a == b->trans_a && a->trans_b == b->trans_b && a->accumulate == b->accumulate &&
           a->half_c == b->half_c && a->m == b->m && a->n == b->n && a->k == b->k && a->factor == b->factor;
}

int kernel_halves_prepare(KernelHalves *halves, const KernelHalfGemm *shape, char why[KERNEL_HALF_WHY_BYTES]) {
    for (int i = 0; i < halves->count; i++) {
        if (equal(&halves->products[i].shape, shape)) {
            return i;
        }
    }
    if (halves->count == halves->most) {
        snprintf(why, KERNEL_HALF_WHY_BYTES, "there is room for %d products in bf16", halves->most);
        return -1;
    }
    if (halves->library.own_threads) {
        halves->library.own_threads(1);  // the library plans for this number of threads
    }
    HalfProduct *product = &halves->products[halves->count++];
    product->shape = *shape;
    if (product_open(halves, product)) {
        return halves->count - 1;
    }
    const dnnl_version_t *version = halves->library.version();
    snprintf(why, KERNEL_HALF_WHY_BYTES, "oneDNN %d.%d.%d has no bf16 product of %lld x %lld x %lld", version->major,
             version->minor, version->patch, (long long)shape->m, (long long)shape->n, (long long)shape->k);
    return -1;
}

bool kernel_halves_ready(KernelHalves *halves) {
    const size_t bytes = halves->scratch_bytes * (size_t)halves->threads;
    halves->scratch = bytes > 0 ? aligned_alloc(SCRATCH_ALIGN, bytes) : NULL;
    if (halves->scratch) {
        memset(halves->scratch, 0, bytes);  // touches every page now, so that no step faults one in
    }
    return bytes == 0 || halves->scratch;
}

typedef struct HalfCall {
    const KernelHalves *halves;
    const HalfProduct *product;
    const char *a, *b;
    char *c;
} HalfCall;

static void half_blocks(const void *context, int64_t begin, int64_t end) {
    const HalfCall *call = context;
    const HalfLibrary *library = &call->halves->library;
    if (library->own_threads) {
        library->own_threads(1);  // for this thread
    }
    for (int64_t i = begin; i < end; i++) {
        const HalfBlock *block = &call->product->blocks[i];
        union {
            const char *read;
            void *any;
        } a = {call->a + block->a_bytes}, b = {call->b + block->b_bytes};
        void *const at[OPERANDS] = {[AT_A] = a.any,
                                    [AT_B] = b.any,
                                    [AT_C] = call->c + block->c_bytes,
                                    [AT_SCRATCH] = call->halves->scratch + i * (int64_t)call->halves->scratch_bytes};
        dnnl_exec_arg_t operands[OPERANDS];
        for (int o = 0; o < OPERANDS; o++) {
            library->memory_point(block->memory[o], at[o]);
            operands[o] = (dnnl_exec_arg_t){arguments[o], block->memory[o]};
        }
        library->execute(block->primitive, call->halves->streams[i], OPERANDS, operands);
    }
}

void kernel_halves_gemm(KernelHalves *halves, int product, const void *a, const void *b, void *c) {
    const HalfCall call = {halves, &halves->products[product], a, b, c};
    parallel_items(call.product->count, half_blocks, &call);
}
