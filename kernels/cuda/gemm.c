// cuBLASLt plans. The library is column-major: it multiplies the transposes, c' = b' a', in the same memory. Candidates
// are ranked by measured time, with the real beta: the library's own ranking ignores an addition to c. fp32 products
// are true fp32, without TF32.

#include "kernels/cuda/gemm.h"

#include <stdio.h>
#include <string.h>

enum { REPEATS = 5 };

static cudaDataType_t data_type(GemmType type) {
    return type == GEMM_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static bool well(const GemmWorkshop *shop, cublasStatus_t status, const char *what, char why[GEMM_WHY_BYTES]) {
    if (status != CUBLAS_STATUS_SUCCESS) {
        snprintf(why, GEMM_WHY_BYTES, "cuBLASLt: %s: %s", what, shop->library->status_words(status));
    }
    return status == CUBLAS_STATUS_SUCCESS;
}

static bool describe(const GemmWorkshop *shop, const GemmShape *shape, GemmPlan *plan, char why[GEMM_WHY_BYTES]) {
    const GemmLibrary *library = shop->library;
    const cublasOperation_t first = shape->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = shape->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    const cudaDataType_t bias = data_type(shape->input);
    const int32_t sms = shape->sms;
    bool done = well(shop, library->describe(&plan->descriptor, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a product", why) &&
                well(shop, library->set(plan->descriptor, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first),
                     "an operation", why) &&
                well(shop, library->set(plan->descriptor, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second),
                     "an operation", why);
    if (done && shape->bias) {  // the address comes with each call; the search needs one, but does not read it
        done = well(shop, library->set(plan->descriptor, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue),
                    "a bias", why) &&
               well(shop,
                    library->set(plan->descriptor, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &shop->workspace,
                                 sizeof shop->workspace),
                    "a bias", why) &&
               well(shop, library->set(plan->descriptor, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias, sizeof bias),
                    "a bias", why);
    }
    if (done && sms > 0) {
        done = well(shop, library->set(plan->descriptor, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &sms, sizeof sms),
                    "an SM target", why);
    }
    return done;
}

bool gemm_plan_begin(const GemmWorkshop *shop, const GemmShape *shape, GemmPlan *plan, char why[GEMM_WHY_BYTES]) {
    const GemmLibrary *library = shop->library;
    const cudaDataType_t input = data_type(shape->input), output = data_type(shape->output);
    const int64_t m = shape->m, n = shape->n, k = shape->k;
    const int64_t b_rows = shape->trans_b ? k : n, b_cols = shape->trans_b ? n : k;
    const int64_t a_rows = shape->trans_a ? m : k, a_cols = shape->trans_a ? k : m;
    *plan = (GemmPlan){.choice.shape = *shape};
    const bool done =
        describe(shop, shape, plan, why) &&
        well(shop, library->layout(&plan->first, input, (uint64_t)b_rows, (uint64_t)b_cols, b_rows), "b", why) &&
        well(shop, library->layout(&plan->second, input, (uint64_t)a_rows, (uint64_t)a_cols, a_rows), "a", why) &&
        well(shop, library->layout(&plan->result, output, (uint64_t)n, (uint64_t)m, n), "c", why);
    if (!done) {
        gemm_plan_end(shop, plan);
    }
    return done;
}

void gemm_plan_end(const GemmWorkshop *shop, GemmPlan *plan) {
    const cublasLtMatrixLayout_t layouts[] = {plan->first, plan->second, plan->result};
    for (int i = 0; i < 3; i++) {
        if (layouts[i]) {
            shop->library->layout_release(layouts[i]);
        }
    }
    if (plan->descriptor) {
        shop->library->release(plan->descriptor);
    }
    *plan = (GemmPlan){0};
}

bool gemm_plan_take(const GemmWorkshop *shop, const GemmChoice *choice, GemmPlan *plan) {
    cublasLtMatmulAlgo_t algorithm;
    cublasLtMatmulHeuristicResult_t result;
    _Static_assert(sizeof algorithm == sizeof choice->algorithm, "an algorithm is kept whole");
    memcpy(&algorithm, choice->algorithm, sizeof algorithm);
    if (shop->library->check(shop->handle, plan->descriptor, plan->first, plan->second, plan->result, plan->result,
                             &algorithm, &result) != CUBLAS_STATUS_SUCCESS ||
        result.workspaceSize > GEMM_WORKSPACE_BYTES) {
        return false;
    }
    plan->choice = *choice;
    return true;
}

static cublasStatus_t multiply(const GemmWorkshop *shop, const GemmPlan *plan, const cublasLtMatmulAlgo_t *algorithm,
                               const GemmData *data, cudaStream_t stream) {
    const float factor = data->factor != 0 ? (float)data->factor : 1, beta = plan->choice.shape.accumulate ? 1 : 0;
    if (plan->choice.shape.bias) {
        const cublasStatus_t status =
            shop->library->set(plan->descriptor, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &data->bias, sizeof data->bias);
        if (status != CUBLAS_STATUS_SUCCESS) {
            return status;
        }
    }
    return shop->library->multiply(shop->handle, plan->descriptor, &factor, data->b, plan->first, data->a, plan->second,
                                   &beta, data->c, plan->result, data->c, plan->result, algorithm, shop->workspace,
                                   GEMM_WORKSPACE_BYTES, stream);
}

// Seconds of each repeat, 0 in an untimed shop; the first call, which may load code, is not counted.
static bool time_candidate(const GemmWorkshop *shop, const GemmPlan *plan, const cublasLtMatmulAlgo_t *algorithm,
                           const GemmData *data, double seconds[REPEATS]) {
    if (multiply(shop, plan, algorithm, data, shop->stream) != CUBLAS_STATUS_SUCCESS) {
        return false;
    }
    for (int i = 0; i < REPEATS; i++) {
        float milliseconds = 0;
        seconds[i] = 0;
        if (shop->untimed) {
            continue;
        }
        if (cudaEventRecord(shop->begin, shop->stream) != cudaSuccess ||
            multiply(shop, plan, algorithm, data, shop->stream) != CUBLAS_STATUS_SUCCESS ||
            cudaEventRecord(shop->end, shop->stream) != cudaSuccess || cudaEventSynchronize(shop->end) != cudaSuccess ||
            cudaEventElapsedTime(&milliseconds, shop->begin, shop->end) != cudaSuccess) {
            return false;
        }
        seconds[i] = 1e-3 * (double)milliseconds;
    }
    return true;
}

static bool candidates(const GemmWorkshop *shop, const GemmPlan *plan, cublasLtMatmulHeuristicResult_t *results,
                       int *found, char why[GEMM_WHY_BYTES]) {
    const GemmLibrary *library = shop->library;
    const uint64_t workspace = GEMM_WORKSPACE_BYTES;
    const uint32_t alignment = (uint32_t)plan->choice.shape.alignment;
    static const cublasLtMatmulPreferenceAttributes_t sides[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    cublasLtMatmulPreference_t preference = NULL;
    bool done =
        well(shop, library->prefer(&preference), "a preference", why) &&
        well(shop,
             library->prefer_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace),
             "a workspace", why);
    for (size_t i = 0; done && i < sizeof sides / sizeof *sides; i++) {
        done = well(shop, library->prefer_set(preference, sides[i], &alignment, sizeof alignment), "an alignment", why);
    }
    done = done && well(shop,
                        library->candidates(shop->handle, plan->descriptor, plan->first, plan->second, plan->result,
                                            plan->result, preference, GEMM_MOST_CANDIDATES, results, found),
                        "algorithms", why);
    if (preference) {
        library->prefer_release(preference);
    }
    return done;
}

bool gemm_plan_time(const GemmWorkshop *shop, const GemmData *data, GemmPlan *plan, char why[GEMM_WHY_BYTES]) {
    cublasLtMatmulHeuristicResult_t results[GEMM_MOST_CANDIDATES];
    double seconds[GEMM_MOST_CANDIDATES][REPEATS];
    int found = 0, run = 0;
    if (!candidates(shop, plan, results, &found, why)) {
        return false;
    }
    for (int i = 0; i < found && !(shop->untimed && run > 0); i++) {
        if (results[i].state == CUBLAS_STATUS_SUCCESS &&
            time_candidate(shop, plan, &results[i].algo, data, seconds[run])) {
            results[run++] = results[i];
        }
    }
    if (run == 0) {
        char text[GEMM_SHAPE_TEXT_BYTES];
        snprintf(why, GEMM_WHY_BYTES, "cuBLASLt: none of %d algorithms runs %s", found,
                 gemm_shape_text(&plan->choice.shape, text));
        return false;
    }
    const int best = gemm_fastest(seconds[0], run, REPEATS);
    memcpy(plan->choice.algorithm, &results[best].algo, sizeof plan->choice.algorithm);
    plan->choice.seconds = seconds[best][0];
    for (int i = 1; i < REPEATS; i++) {
        plan->choice.seconds = seconds[best][i] < plan->choice.seconds ? seconds[best][i] : plan->choice.seconds;
    }
    return true;
}

const char *gemm_run(const GemmWorkshop *shop, const GemmPlan *plan, const GemmData *data, cudaStream_t stream) {
    cublasLtMatmulAlgo_t algorithm;
    memcpy(&algorithm, plan->choice.algorithm, sizeof algorithm);
    const cublasStatus_t status = multiply(shop, plan, &algorithm, data, stream);
    return status == CUBLAS_STATUS_SUCCESS ? NULL : shop->library->status_words(status);
}

// Column-major: our rows are the library's columns.
static cublasStatus_t rows_set(const GemmWorkshop *shop, GemmPlan *plan, int64_t rows) {
    const uint64_t cols = (uint64_t)rows;
    const cublasLtMatrixLayout_t other = plan->choice.shape.trans_a ? plan->first : plan->result;
    const cublasStatus_t status =
        shop->library->layout_set(plan->second, CUBLASLT_MATRIX_LAYOUT_COLS, &cols, sizeof cols);
    return status == CUBLAS_STATUS_SUCCESS
               ? shop->library->layout_set(other, CUBLASLT_MATRIX_LAYOUT_COLS, &cols, sizeof cols)
               : status;
}

static cublasStatus_t rows_multiply(const GemmWorkshop *shop, const GemmPlan *plan, const GemmData *data,
                                    cudaStream_t stream) {
    cublasLtMatmulAlgo_t algorithm;
    cublasLtMatmulHeuristicResult_t results[GEMM_MOST_CANDIDATES];
    char why[GEMM_WHY_BYTES];
    int found = 0;
    memcpy(&algorithm, plan->choice.algorithm, sizeof algorithm);
    cublasStatus_t status = multiply(shop, plan, &algorithm, data, stream);
    if (status != CUBLAS_STATUS_SUCCESS && candidates(shop, plan, results, &found, why)) {
        for (int i = 0; i < found && status != CUBLAS_STATUS_SUCCESS; i++) {
            status = results[i].state == CUBLAS_STATUS_SUCCESS ? multiply(shop, plan, &results[i].algo, data, stream)
                                                               : status;
        }
    }
    return status;
}

// After the call the plan's own layouts are restored: a product of no group may share the plan.
const char *gemm_run_rows(const GemmWorkshop *shop, GemmPlan *plan, const GemmData *data, int64_t rows,
                          cudaStream_t stream) {
    const GemmShape *shape = &plan->choice.shape;
    cublasStatus_t status = rows_set(shop, plan, rows);
    status = status == CUBLAS_STATUS_SUCCESS ? rows_multiply(shop, plan, data, stream) : status;
    const cublasStatus_t back = rows_set(shop, plan, shape->trans_a ? shape->k : shape->m);
    status = status == CUBLAS_STATUS_SUCCESS ? back : status;
    return status == CUBLAS_STATUS_SUCCESS ? NULL : shop->library->status_words(status);
}
