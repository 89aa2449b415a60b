// oneDNN is opened at run time, only by runs that use it: it loads slowly, and programs start on machines without it.
// Only major version 2, Debian 12's, is supported; version 3 has a different interface. It is never unloaded.

#include "kernels/cpu/half_library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernels/symbols.h"

static const Symbol functions[] = {
    SYMBOL(HalfLibrary, dnnl_version, version),
    SYMBOL(HalfLibrary, dnnl_engine_create, engine_create),
    SYMBOL(HalfLibrary, dnnl_engine_destroy, engine_destroy),
    SYMBOL(HalfLibrary, dnnl_stream_create, stream_create),
    SYMBOL(HalfLibrary, dnnl_stream_destroy, stream_destroy),
    SYMBOL(HalfLibrary, dnnl_memory_desc_init_by_strides, describe_memory),
    SYMBOL(HalfLibrary, dnnl_memory_desc_get_size, memory_bytes),
    SYMBOL(HalfLibrary, dnnl_memory_create, memory_create),
    SYMBOL(HalfLibrary, dnnl_memory_set_data_handle, memory_point),
    SYMBOL(HalfLibrary, dnnl_memory_destroy, memory_destroy),
    SYMBOL(HalfLibrary, dnnl_matmul_desc_init, describe_product),
    SYMBOL(HalfLibrary, dnnl_primitive_attr_create, attributes_create),
    SYMBOL(HalfLibrary, dnnl_primitive_attr_destroy, attributes_destroy),
    SYMBOL(HalfLibrary, dnnl_primitive_attr_set_scratchpad_mode, set_scratch),
    SYMBOL(HalfLibrary, dnnl_primitive_attr_set_output_scales, set_scales),
    SYMBOL(HalfLibrary, dnnl_primitive_attr_set_post_ops, set_post_ops),
    SYMBOL(HalfLibrary, dnnl_post_ops_create, post_ops_create),
    SYMBOL(HalfLibrary, dnnl_post_ops_destroy, post_ops_destroy),
    SYMBOL(HalfLibrary, dnnl_post_ops_append_sum, post_ops_sum),
    SYMBOL(HalfLibrary, dnnl_primitive_desc_create, choose),
    SYMBOL(HalfLibrary, dnnl_primitive_desc_destroy, choice_destroy),
    SYMBOL(HalfLibrary, dnnl_primitive_desc_query_md, choice_memory),
    SYMBOL(HalfLibrary, dnnl_primitive_create, primitive_create),
    SYMBOL(HalfLibrary, dnnl_primitive_destroy, primitive_destroy),
    SYMBOL(HalfLibrary, dnnl_primitive_execute, execute),
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
