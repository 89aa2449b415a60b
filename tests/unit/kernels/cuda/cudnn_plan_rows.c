#include "tests/unit/kernels/cuda/cudnn_plan_rows.h"

#include <criterion/criterion.h>
#include <dlfcn.h>

// As cuDNN 9 writes them (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION); values from the CUDA C++ Programming Guide,
// "Technical Specifications per Compute Capability", and the products' data sheets.
#define COMMON                                                                                                         \
    "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"                \
    "\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,\"reservedSharedMemoryPerBlock\":1024,"                         \
    "\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,"            \
    "\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,\"cudaDeviceId\":0,\"driverVer\":13000,"              \
    "\"memClockRateKHz\":3201000,"
const char *const plan_h200 =
    COMMON "\"multiProcessorCount\":132,\"maxSharedMemoryPerBlockOptin\":232448,\"totalGlobalMem\":150000000000,"
           "\"smClockRateKHz\":1980000,\"l2CacheSize\":62914560,\"deviceVer\":900,\"deviceName\":\"NVIDIA H200\"}";
const char *const plan_a100 =
    COMMON "\"multiProcessorCount\":108,\"maxSharedMemoryPerBlockOptin\":166912,\"totalGlobalMem\":85000000000,"
           "\"smClockRateKHz\":1410000,\"l2CacheSize\":41943040,\"deviceVer\":800,"
           "\"deviceName\":\"NVIDIA A100-SXM4-80GB\"}";

CudnnAttention *plan_opened(const char *device) {
    char why[ATTENTION_WHY_BYTES] = "";
    cr_assert_not_null(dlopen(NDTUNE_CUDA_DRIVER, RTLD_NOW | RTLD_GLOBAL), "%s", dlerror());
    CudnnAttention *cudnn = cudnn_attention_open(device, why);
    if (!cudnn) {
        cr_skip_test("%s", why);
    }
    return cudnn;
}

CudaAttention plan_call(const PlanRow *row, bool backward) {
    const int64_t width = (int64_t)(row->heads + 2 * row->kv_heads) * row->head_dim;
    const int64_t o_width = (int64_t)row->heads * row->head_dim;
    return (CudaAttention){
        .block = {row->queries, row->keys, row->q_first, row->k_first, row->heads, row->kv_heads, row->head_dim, width,
                  width, o_width, row->queries, 0, 0},
        .sequences = 2,
        .q_sequence = row->queries * width,
        .kv_sequence = row->keys * width,
        .o_sequence = row->queries * o_width,
        .lse_sequence = row->heads * row->queries,
        .input = KERNEL_BF16,
        .output = row->ring && !backward ? KERNEL_FP32 : KERNEL_BF16,
        .merge = row->ring && !backward,
        .backward = backward,
        .gradient = row->ring ? KERNEL_FP32 : KERNEL_BF16,
        .dq_stride = width,
        .dkv_stride = width,
        .dq_sequence = row->queries * width,
        .dkv_sequence = row->keys * width,
    };
}

void plan_expect(const char *device, const PlanRow *rows, int count) {
    CudnnAttention *cudnn = plan_opened(device);
    const AttentionMeans means = {.arch = 90, .shared_bytes = 227 * 1024, .cudnn = true};
    for (int i = 0; i < 2 * count; i++) {
        const CudaAttention call = plan_call(&rows[i / 2], i % 2);
        char why[ATTENTION_WHY_BYTES] = "";
        AttentionPlan plan;
        cr_expect(cuda_attention_plan(ATTENTION_TIER_CUDNN, &call, &means, cudnn, &plan, why), "row %d, %s: %s", i / 2,
                  i % 2 ? "backward" : "forward", why);
        cr_expect_geq(plan.workspace_bytes, 0);
    }
    cudnn_attention_close(cudnn);
}
