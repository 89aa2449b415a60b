// oneDNN is opened at run time, only by runs that use it: it loads slowly, and programs start on machines without it.
// Only major version 2, Debian 12's, is supported; version 3 has a different interface. It is never unloaded.

#include "kernels/cpu/half_library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernels/symbols.h"

static const Symbol functions[] = {
    {"dnnl_version", offsetof(HalfLibrary, version), false},
    {"dnnl_engine_create", offsetof(HalfLibrary, engine_create), false},
    {"dnnl_engine_destroy", offsetof(HalfLibrary, engine_destroy), false},
    {"dnnl_stream_create", offsetof(HalfLibrary, stream_create), false},
    {"dnnl_stream_destroy", offsetof(HalfLibrary, stream_destroy), false},
    {"dnnl_memory_desc_init_by_strides", offsetof(HalfLibrary, describe_memory), false},
    {"dnnl_memory_desc_get_size", offsetof(HalfLibrary, memory_bytes), false},
    {"dnnl_memory_create", offsetof(HalfLibrary, memory_create), false},
    {"dnnl_memory_set_data_handle", offsetof(HalfLibrary, memory_point), false},
    {"dnnl_memory_destroy", offsetof(HalfLibrary, memory_destroy), false},
    {"dnnl_matmul_desc_init", offsetof(HalfLibrary, describe_product), false},
    {"dnnl_primitive_attr_create", offsetof(HalfLibrary, attributes_create), false},
    {"dnnl_primitive_attr_destroy", offsetof(HalfLibrary, attributes_destroy), false},
    {"dnnl_primitive_attr_set_scratchpad_mode", offsetof(HalfLibrary, set_scratch), false},
    {"dnnl_primitive_attr_set_output_scales", offsetof(HalfLibrary, set_scales), false},
    {"dnnl_primitive_attr_set_post_ops", offsetof(HalfLibrary, set_post_ops), false},
    {"dnnl_post_ops_create", offsetof(HalfLibrary, post_ops_create), false},
    {"dnnl_post_ops_destroy", offsetof(HalfLibrary, post_ops_destroy), false},
    {"dnnl_post_ops_append_sum", offsetof(HalfLibrary, post_ops_sum), false},
    {"dnnl_primitive_desc_create", offsetof(HalfLibrary, choose), false},
    {"dnnl_primitive_desc_destroy", offsetof(HalfLibrary, choice_destroy), false},
    {"dnnl_primitive_desc_query_md", offsetof(HalfLibrary, choice_memory), false},
    {"dnnl_primitive_create", offsetof(HalfLibrary, primitive_create), false},
    {"dnnl_primitive_destroy", offsetof(HalfLibrary, primitive_destroy), false},
    {"dnnl_primitive_execute", offsetof(HalfLibrary, execute), false},
};

bool half_library_open(HalfLibrary *library, char why[KERNEL_HALF_WHY_BYTES]) {
    *library = (HalfLibrary){.file = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)};
    if (!library->file) {
        snprintf(why, KERNEL_HALF_WHY_BYTES, "bf16 on processors needs oneDNN (package libdnnl2): %.120s", dlerror());
        return false;
    }
    const char *lacks = symbols_find(library->file, functions, sizeof functions / sizeof *functions, library);
    if (lacks) {
        snprintf(why, KERNEL_HALF_WHY_BYTES, "libdnnl.so.2 has no %s: bf16 on processors needs oneDNN 2.6", lacks);
        return false;
    }
    void *function = dlsym(library->file, "omp_set_num_threads");  // from the library that oneDNN was linked with
    memcpy(&library->own_threads, &function, sizeof function);
    return true;
}
