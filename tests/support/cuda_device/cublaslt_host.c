// Matrix products on the stand-in runtime: three loops, queued on a stream as a host function. It is strict where a
// real library may crash or be silently slow: an algorithm must be one that it has offered for the actual alignment of
// the addresses, and one of those offered never runs. Types must match as in the table of cublasLtMatmul for fp32 sums:
// a bias has the type of the result (cublasLt.h, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE).

#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/gemm.h"
#include "sim/base/bf16.h"
#include "tests/support/cuda_device/cublaslt_host.h"

enum { OFFERED = 3, UNABLE = 0, MAGIC = 0x6C74 };

typedef struct HostWork HostWork;

struct HostBlas {
    HostWork *works;  // graphs may rerun them: kept until the end
};

struct HostProduct {
    cublasOperation_t first, second;
    cublasLtEpilogue_t epilogue;
    cudaDataType_t bias_type;
    const void *bias;
    int32_t sms;
};

struct HostLayout {
    cudaDataType_t type;
    int64_t rows, cols, leading;
};

struct HostPreference {
    uint64_t workspace_bytes;
    uint32_t alignment;
};

struct HostWork {
    HostWork *next;
    struct HostProduct product;
    struct HostLayout a_layout, b_layout, d_layout;
    const void *a, *b, *c;
    void *d;
    float alpha, beta;
};

static GemmCounts counts;

GemmCounts cublaslt_host_counts(void) {
    return counts;
}

// ---------------------------------------------------------------------------------------------- the product

static float value(const void *data, cudaDataType_t type, int64_t at) {
    return type == CUDA_R_16BF ? bf16_value(((const uint16_t *)data)[at]) : ((const float *)data)[at];
}

static float element(const void *data, const struct HostLayout *layout, cublasOperation_t op, int64_t row,
                     int64_t col) {
    return value(data, layout->type, op == CUBLAS_OP_N ? col * layout->leading + row : row * layout->leading + col);
}

// The first matrix a column of all its rows at a time, so that the sums of a column of the result go on side by side.
static double *rows_by_inner(const HostWork *w, int64_t inner) {
    const int64_t rows = w->d_layout.rows;
    double *values = malloc((size_t)(rows * inner) * sizeof *values);
    for (int64_t i = 0; i < inner; i++) {
        for (int64_t row = 0; row < rows; row++) {
            values[i * rows + row] = (double)element(w->a, &w->a_layout, w->product.first, row, i);
        }
    }
    return values;
}

static void store_sum(const HostWork *w, int64_t row, int64_t col, double sum) {
    const int64_t at = col * w->d_layout.leading + row;
    sum *= (double)w->alpha;
    sum += w->beta != 0 ? (double)w->beta * (double)value(w->c, w->d_layout.type, at) : 0;
    if (w->product.epilogue == CUBLASLT_EPILOGUE_BIAS) {
        sum += (double)value(w->product.bias, w->product.bias_type, row);
    }
    if (w->d_layout.type == CUDA_R_16BF) {
        ((uint16_t *)w->d)[at] = bf16_of((float)sum);
    } else {
        ((float *)w->d)[at] = (float)sum;
    }
}

static void work_run(void *context) {
    const HostWork *w = context;
    const int64_t inner = w->product.first == CUBLAS_OP_N ? w->a_layout.cols : w->a_layout.rows;
    const int64_t rows = w->d_layout.rows;
    double *first = rows_by_inner(w, inner), *sums = malloc((size_t)rows * sizeof *sums);
    for (int64_t col = 0; col < w->d_layout.cols; col++) {
        memset(sums, 0, (size_t)rows * sizeof *sums);
        for (int64_t i = 0; i < inner; i++) {
            const double factor = (double)element(w->b, &w->b_layout, w->product.second, i, col);
            const double *const of_rows = first + i * rows;
            for (int64_t row = 0; row < rows; row++) {
                sums[row] += of_rows[row] * factor;
            }
        }
        for (int64_t row = 0; row < rows; row++) {
            store_sum(w, row, col, sums[row]);
        }
    }
    free(first);
    free(sums);
}

static bool aligned(const void *address, uint64_t bytes) {
    return ((uint64_t)(uintptr_t)address & (bytes - 1)) == 0;
}

static bool types_fit(const struct HostProduct *product, const struct HostLayout *a, const struct HostLayout *b,
                      const struct HostLayout *d) {
    return a->type == b->type && (d->type == a->type || (d->type == CUDA_R_32F && a->type == CUDA_R_16BF)) &&
           (product->epilogue != CUBLASLT_EPILOGUE_BIAS || product->bias_type == d->type);
}

static cublasStatus_t multiply(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void *alpha, const void *a,
                               cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
                               const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                               cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                               size_t workspace_bytes, cudaStream_t stream) {
    const uint64_t alignment = algorithm->data[1];
    (void)c_layout;
    if (algorithm->data[0] >> 8 != MAGIC || !workspace || workspace_bytes < algorithm->data[2] ||
        !aligned(workspace, 256) || !types_fit(product, a_layout, b_layout, d_layout) || !aligned(a, alignment) ||
        !aligned(b, alignment) || !aligned(d, alignment)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if ((algorithm->data[0] & 0xFF) == UNABLE) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    HostWork *work = malloc(sizeof *work);
    *work = (HostWork){.next = handle->works,
                       .product = *product,
                       .a_layout = *a_layout,
                       .b_layout = *b_layout,
                       .d_layout = *d_layout,
                       .a = a,
                       .b = b,
                       .c = c,
                       .d = d};
    memcpy(&work->alpha, alpha, sizeof work->alpha);
    memcpy(&work->beta, beta, sizeof work->beta);
    handle->works = work;
    counts.products++;
    counts.with_target += product->sms > 0;
    return cudaLaunchHostFunc(stream, work_run, work) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                                     : CUBLAS_STATUS_EXECUTION_FAILED;
}

// ---------------------------------------------------------------------------------------------- descriptors

static size_t version(void) {
    return 130000;
}

static const char *status_words(cublasStatus_t status) {
    return status == CUBLAS_STATUS_SUCCESS         ? "success"
           : status == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported"
                                                   : "invalid";
}

static cublasStatus_t create(cublasLtHandle_t *handle) {
    *handle = calloc(1, sizeof **handle);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t destroy(cublasLtHandle_t handle) {
    while (handle->works) {
        HostWork *next = handle->works->next;
        free(handle->works);
        handle->works = next;
    }
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t describe(cublasLtMatmulDesc_t *product, cublasComputeType_t compute, cudaDataType_t scale) {
    *product = calloc(1, sizeof **product);
    return compute == CUBLAS_COMPUTE_32F && scale == CUDA_R_32F ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

static cublasStatus_t release(cublasLtMatmulDesc_t product) {
    free(product);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t name, const void *what,
                          size_t bytes) {
    void *const places[] = {[CUBLASLT_MATMUL_DESC_TRANSA] = &product->first,
                            [CUBLASLT_MATMUL_DESC_TRANSB] = &product->second,
                            [CUBLASLT_MATMUL_DESC_EPILOGUE] = &product->epilogue,
                            [CUBLASLT_MATMUL_DESC_BIAS_POINTER] = &product->bias,
                            [CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET] = &product->sms,
                            [CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE] = &product->bias_type};
    const size_t size = name == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? sizeof(void *) : sizeof(int32_t);
    if ((size_t)name >= sizeof places / sizeof *places || !places[name] || bytes != size) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    memcpy(places[name], what, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t layout(cublasLtMatrixLayout_t *made, cudaDataType type, uint64_t rows, uint64_t cols,
                             int64_t leading) {
    *made = malloc(sizeof **made);
    **made = (struct HostLayout){type, (int64_t)rows, (int64_t)cols, leading};
    return (int64_t)rows <= leading ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

static cublasStatus_t layout_set(cublasLtMatrixLayout_t made, cublasLtMatrixLayoutAttribute_t name, const void *what,
                                 size_t bytes) {
    uint64_t cols;
    if (name != CUBLASLT_MATRIX_LAYOUT_COLS || bytes != sizeof cols) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    memcpy(&cols, what, sizeof cols);
    made->cols = (int64_t)cols;
    return cols > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

static cublasStatus_t layout_release(cublasLtMatrixLayout_t made) {
    free(made);
    return CUBLAS_STATUS_SUCCESS;
}

// ---------------------------------------------------------------------------------------------- algorithms

static cublasStatus_t prefer(cublasLtMatmulPreference_t *preference) {
    *preference = calloc(1, sizeof **preference);
    (*preference)->alignment = 256;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t prefer_release(cublasLtMatmulPreference_t preference) {
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t prefer_set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t name,
                                 const void *what, size_t bytes) {
    const bool room = name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
    if (bytes != (room ? sizeof preference->workspace_bytes : sizeof preference->alignment)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    memcpy(room ? (void *)&preference->workspace_bytes : (void *)&preference->alignment, what, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

static bool fit(const struct HostProduct *product, const struct HostLayout *a, const struct HostLayout *b,
                const struct HostLayout *d) {
    const bool first = product->first == CUBLAS_OP_N, second = product->second == CUBLAS_OP_N;
    const bool biased = product->epilogue != CUBLASLT_EPILOGUE_BIAS || product->bias;  // which bias, before any call
    return biased && types_fit(product, a, b, d) && (first ? a->rows : a->cols) == d->rows &&
           (second ? b->cols : b->rows) == d->cols && (first ? a->cols : a->rows) == (second ? b->rows : b->cols);
}

static cublasStatus_t candidates(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                                 cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                 cublasLtMatmulPreference_t preference, int wanted,
                                 cublasLtMatmulHeuristicResult_t *results, int *found) {
    (void)handle, (void)c;
    if (!fit(product, a, b, d)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    counts.searches++;
    for (*found = 0; *found < OFFERED && *found < wanted; (*found)++) {
        results[*found] = (cublasLtMatmulHeuristicResult_t){
            .algo = {{(uint64_t)MAGIC << 8 | (uint64_t)*found, preference->alignment, preference->workspace_bytes}}};
    }
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                            cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                            const cublasLtMatmulAlgo_t *algorithm, cublasLtMatmulHeuristicResult_t *result) {
    (void)handle, (void)c;
    *result = (cublasLtMatmulHeuristicResult_t){.algo = *algorithm};
    return algorithm->data[0] >> 8 == MAGIC && fit(product, a, b, d) ? CUBLAS_STATUS_SUCCESS
                                                                     : CUBLAS_STATUS_NOT_SUPPORTED;
}

bool gemm_library_open(GemmLibrary *library, char why[GEMM_WHY_BYTES]) {
    (void)why;
    *library = (GemmLibrary){.version = version,
                             .status_words = status_words,
                             .create = create,
                             .destroy = destroy,
                             .describe = describe,
                             .release = release,
                             .set = set,
                             .layout = layout,
                             .layout_set = layout_set,
                             .layout_release = layout_release,
                             .prefer = prefer,
                             .prefer_release = prefer_release,
                             .prefer_set = prefer_set,
                             .candidates = candidates,
                             .check = check,
                             .multiply = multiply};
    return true;
}

void gemm_library_close(GemmLibrary *library) {
    *library = (GemmLibrary){0};
}
