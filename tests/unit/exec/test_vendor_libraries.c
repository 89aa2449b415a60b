// NVIDIA's own libraries, where the toolkit has them, as far as they work without a GPU: every required function
// exists, and cuBLASLt accepts every descriptor, layout and size of attribute that a plan gives it.

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <string.h>

#include "exec/transport/nccl_library.h"
#include "kernels/cuda/gemm.h"

// By its full path: a later request for the library by name then gets this one.
static void load(const char *path) {
    if (!dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
        cr_skip_test("%s", dlerror());
    }
}

Test(vendor_libraries, cublaslt_takes_what_plans_are_made_of) {
    GemmLibrary library;
    char why[GEMM_WHY_BYTES] = "";
    load(CUDA_LIBRARIES "/libcublasLt.so");
    cr_assert(gemm_library_open(&library, why), "%s", why);
    const GemmWorkshop shop = {.library = &library, .workspace = &library};
    for (int i = 0; i < 64; i++) {  // including an 8B model's logits
        const GemmShape shape = {.m = i % 2 ? 8192 : 24,
                                 .n = i / 2 % 2 ? 128256 : 7,
                                 .k = i / 4 % 2 ? 4096 : 5,
                                 .trans_a = i / 8 % 2,
                                 .trans_b = i / 16 % 2,
                                 .input = i / 32 ? GEMM_BF16 : GEMM_FP32,
                                 .output = i / 32 ? GEMM_BF16 : GEMM_FP32,
                                 .bias = i % 3 == 0,
                                 .alignment = 2,
                                 .sms = i % 5 ? 116 : 0};
        GemmPlan plan;
        char text[GEMM_SHAPE_TEXT_BYTES];
        cr_assert(gemm_plan_begin(&shop, &shape, &plan, why), "%s: %s", gemm_shape_text(&shape, text), why);
        gemm_plan_end(&shop, &plan);
    }
    gemm_library_close(&library);
}

Test(vendor_libraries, nccl_has_every_function_and_from_2_27_on_those_of_windows) {
    NcclLibrary nccl;
    Error error = {0};
    load(CUDA_LIBRARIES "/libnccl.so.2");
    cr_assert(nccl_library_open(&nccl, &error) == STATUS_OK, "%s", error.message);
    cr_expect(nccl.version < 22700 || (nccl.mem_alloc && nccl.comm_window_register && nccl.comm_window_deregister));
}

// The toolkit's stub has the driver's functions and starts nothing.
Test(vendor_libraries, the_driver_has_every_function) {
    CudaDriver driver;
    Error error = {0};
    load(CUDA_LIBRARIES "/stubs/libcuda.so");
    const Status status = cuda_driver_open(&driver, &error);
    cr_expect(status == STATUS_OK || strstr(error.message, "does not start"), "%s", error.message);
}
