// Matrix products on a GPU by cuBLASLt. A plan is made once per shape (descriptors, layouts, the library's fastest
// algorithm on real data); a step only passes addresses to it. The choice and its time are data: they are saved and
// reused on the same chip with the same library.

#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { GEMM_FP32, GEMM_BF16, GEMM_TYPES } GemmType;

// c[m,n] (+)= op(a)[m,k] op(b)[k,n] (+ bias[n]), rows packed: as kernel_gemm of kernels.h. Sums are always in fp32.
// Equal shapes have equal plans.
typedef struct GemmShape {
    int64_t m, n, k;
    bool trans_a, trans_b;
    GemmType input, output;  // of a, b and the bias; of c
    bool accumulate;
    bool bias;
    int alignment;  // bytes: every address is a multiple of it; a power of two, at most 256
    int sms;        // multiprocessors it may use; 0 = all
} GemmShape;

enum { GEMM_ALGORITHM_WORDS = 8, GEMM_WHY_BYTES = 256, GEMM_MOST_CANDIDATES = 16 };

// The tuning result for a shape; GEMM_TEXT_BYTES hold it as text.
typedef struct GemmChoice {
    GemmShape shape;
    uint64_t algorithm[GEMM_ALGORITHM_WORDS];  // cublasLtMatmulAlgo_t, valid for one version of the library
    double seconds;                            // per product
} GemmChoice;

enum { GEMM_SHAPE_TEXT_BYTES = 112 };

bool gemm_shape_equal(const GemmShape *a, const GemmShape *b);
// "4096x14336x4096 nt bf16>fp32 add align 256 sms 116": identifies a shape in files and in the store.
const char *gemm_shape_text(const GemmShape *shape, char out[GEMM_SHAPE_TEXT_BYTES]);
bool gemm_shape_parse(const char *text, GemmShape *shape);
// Largest power of two up to 256 that divides an address.
int gemm_alignment(uint64_t address);
// The saved choice for that shape, or NULL.
const GemmChoice *gemm_choice_find(const GemmChoice *choices, int count, const GemmShape *shape);
// Of candidates with several times each, the one with the lowest median; ties: the first, ranked best by the library.
int gemm_fastest(const double *seconds, int candidates, int repeats);

// ---------------------------------------------------------------------------------------------- the library

typedef struct GemmLibrary {
    void *file;
    size_t (*version)(void);
    const char *(*status_words)(cublasStatus_t status);
    cublasStatus_t (*create)(cublasLtHandle_t *handle);
    cublasStatus_t (*destroy)(cublasLtHandle_t handle);
    cublasStatus_t (*describe)(cublasLtMatmulDesc_t *descriptor, cublasComputeType_t compute, cudaDataType_t scale);
    cublasStatus_t (*release)(cublasLtMatmulDesc_t descriptor);
    cublasStatus_t (*set)(cublasLtMatmulDesc_t descriptor, cublasLtMatmulDescAttributes_t name, const void *value,
                          size_t bytes);
    cublasStatus_t (*layout)(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows, uint64_t cols,
                             int64_t leading);
    cublasStatus_t (*layout_set)(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name, const void *value,
                                 size_t bytes);
    cublasStatus_t (*layout_release)(cublasLtMatrixLayout_t layout);
    cublasStatus_t (*prefer)(cublasLtMatmulPreference_t *preference);
    cublasStatus_t (*prefer_release)(cublasLtMatmulPreference_t preference);
    cublasStatus_t (*prefer_set)(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t name,
                                 const void *value, size_t bytes);
    cublasStatus_t (*candidates)(cublasLtHandle_t handle, cublasLtMatmulDesc_t descriptor, cublasLtMatrixLayout_t a,
                                 cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                 cublasLtMatmulPreference_t preference, int wanted,
                                 cublasLtMatmulHeuristicResult_t *results, int *found);
    cublasStatus_t (*check)(cublasLtHandle_t handle, cublasLtMatmulDesc_t descriptor, cublasLtMatrixLayout_t a,
                            cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                            const cublasLtMatmulAlgo_t *algorithm, cublasLtMatmulHeuristicResult_t *result);
    cublasStatus_t (*multiply)(cublasLtHandle_t handle, cublasLtMatmulDesc_t descriptor, const void *alpha,
                               const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                               cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                               cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
                               const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t workspace_bytes,
                               cudaStream_t stream);
} GemmLibrary;

// False, with a sentence in why, when no libcublasLt of this build's major version is found, or it lacks a function.
bool gemm_library_open(GemmLibrary *library, char why[GEMM_WHY_BYTES]);
void gemm_library_close(GemmLibrary *library);

// ---------------------------------------------------------------------------------------------- plans

// 32 MiB: NVIDIA's recommendation for Hopper and newer (cuBLAS documentation, cublasSetWorkspace).
enum { GEMM_WORKSPACE_BYTES = 32 << 20 };

typedef struct GemmPlan {
    GemmChoice choice;
    cublasLtMatmulDesc_t descriptor;
    cublasLtMatrixLayout_t first, second, result;  // column-major: b, a and c of the shape
} GemmPlan;

typedef struct GemmWorkshop {
    const GemmLibrary *library;
    cublasLtHandle_t handle;
    void *workspace;  // GEMM_WORKSPACE_BYTES on the device
    cudaStream_t stream;
    cudaEvent_t begin, end;  // for timing
    bool untimed;            // takes the library's first algorithm that runs: other work runs on the GPU meanwhile, or
                             // every run must take the same one
} GemmWorkshop;

// Addresses of one product.
typedef struct GemmData {
    const void *a, *b;
    void *c;
    const void *bias;  // NULL unless the shape has one
    double factor;     // of the product; 0 = 1
} GemmData;

// Makes descriptors and layouts; the choice is still empty. False with the reason in why.
bool gemm_plan_begin(const GemmWorkshop *shop, const GemmShape *shape, GemmPlan *plan, char why[GEMM_WHY_BYTES]);
// Takes a saved choice; false when this library does not accept it.
bool gemm_plan_take(const GemmWorkshop *shop, const GemmChoice *choice, GemmPlan *plan);
// Times the library's candidates on the operands as they are (which should hold realistic data, not zeros: zeros draw
// less power) and keeps the fastest; in an untimed shop the first that runs. Overwrites c. False with the reason in why
// when none runs.
bool gemm_plan_time(const GemmWorkshop *shop, const GemmData *data, GemmPlan *plan, char why[GEMM_WHY_BYTES]);
void gemm_plan_end(const GemmWorkshop *shop, GemmPlan *plan);

// NULL, or why it could not be launched. One call at a time per workspace.
const char *gemm_run(const GemmWorkshop *shop, const GemmPlan *plan, const GemmData *data, cudaStream_t stream);

// With this many rows of a and c (trans_a: of a and b) instead of the plan's own number; the row width stays. If the
// plan's algorithm does not support them, the library's first that does is used for this call.
const char *gemm_run_rows(const GemmWorkshop *shop, GemmPlan *plan, const GemmData *data, int64_t rows,
                          cudaStream_t stream);
