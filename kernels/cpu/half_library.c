// oneDNN is opened at run time, only by runs that use it: it loads slowly, and programs start on machines without it.
// Only major version 2, Debian 12's, is supported; version 3 has a different interface. It is never unloaded.

#include "kernels/cpu/half_library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t at;
} functions[] = {
    {"dnnl_version", offsetof(HalfLibrary, version)},
    {"dnnl_engine_create", offsetof(HalfLibrary, engine_create)},
    {"dnnl_engine_destroy", offsetof(HalfLibrary, engine_destroy)},
    {"dnnl_stream_create", offsetof(HalfLibrary, stream_create)},
    {"dnnl_stream_destroy", offsetof(HalfLibrary, stream_destroy)},
    {"dnnl_memory_desc_init_by_strides", offsetof(HalfLibrary, describe_memory)},
    {"dnnl_memory_desc_get_size", offsetof(HalfLibrary, memory_bytes)},
    {"dnnl_memory_create", offsetof(HalfLibrary, memory_create)},
    {"dnnl_memory_set_data_handle", offsetof(HalfLibrary, memory_point)},
    {"dnnl_memory_destroy", offsetof(HalfLibrary, memory_destroy)},
    {"dnnl_matmul_desc_init", offsetof(HalfLibrary, describe_product)},
    {"dnnl_primitive_attr_create", offsetof(HalfLibrary, attributes_create)},
    {"dnnl_primitive_attr_destroy", offsetof(HalfLibrary, attributes_destroy)},
    {"dnnl_primitive_attr_set_scratchpad_mode", offsetof(HalfLibrary, set_scratch)},
    {"dnnl_primitive_attr_set_output_scales", offsetof(HalfLibrary, set_scales)},
    {"dnnl_primitive_attr_set_post_ops", offsetof(HalfLibrary, set_post_ops)},
    {"dnnl_post_ops_create", offsetof(HalfLibrary, post_ops_create)},
    {"dnnl_post_ops_destroy", offsetof(HalfLibrary, post_ops_destroy)},
    {"dnnl_post_ops_append_sum", offsetof(HalfLibrary, post_ops_sum)},
    {"dnnl_primitive_desc_create", offsetof(HalfLibrary, choose)},
    {"dnnl_primitive_desc_destroy", offsetof(HalfLibrary, choice_destroy)},
    {"dnnl_primitive_desc_query_md", offsetof(HalfLibrary, choice_memory)},
    {"dnnl_primitive_create", offsetof(HalfLibrary, primitive_create)},
    {"dnnl_primitive_destroy", offsetof(HalfLibrary, primitive_destroy)},
    {"dnnl_primitive_execute", offsetof(HalfLibrary, execute)},
};

bool half_library_open(HalfLibrary *library, char why[KERNEL_HALF_WHY_BYTES]) {
    *library = (HalfLibrary){.file = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)};
    if (!library->file) {
        snprintf(why, KERNEL_HALF_WHY_BYTES, "bf16 on processors needs oneDNN (package libdnnl2): %.120s", dlerror());
        return false;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(library->file, functions[i].name);
        if (!function) {
            snprintf(why, KERNEL_HALF_WHY_BYTES, "libdnnl.so.2 has no %s: bf16 on processors needs oneDNN 2.6",
                     functions[i].name);
            return false;
        }
        memcpy((char *)library + functions[i].at, &function, sizeof function);  // POSIX: same size as a pointer
    }
    void *function = dlsym(library->file, "omp_set_num_threads");  // from the library that oneDNN was linked with
    memcpy(&library->own_threads, &function, sizeof function);
    return true;
}
