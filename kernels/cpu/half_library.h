// oneDNN, opened at run time.

#pragma once

#include <dnnl.h>
#include <stdbool.h>

#include "kernels/half.h"

typedef struct HalfLibrary {
    void *file;
    const dnnl_version_t *(*version)(void);
    dnnl_status_t (*engine_create)(dnnl_engine_t *, dnnl_engine_kind_t, size_t);
    dnnl_status_t (*engine_destroy)(dnnl_engine_t);
    dnnl_status_t (*stream_create)(dnnl_stream_t *, dnnl_engine_t, unsigned);
    dnnl_status_t (*stream_destroy)(dnnl_stream_t);
    dnnl_status_t (*describe_memory)(dnnl_memory_desc_t *, int, const dnnl_dims_t, dnnl_data_type_t, const dnnl_dims_t);
    size_t (*memory_bytes)(const dnnl_memory_desc_t *);
    dnnl_status_t (*memory_create)(dnnl_memory_t *, const dnnl_memory_desc_t *, dnnl_engine_t, void *);
    dnnl_status_t (*memory_point)(dnnl_memory_t, void *);
    dnnl_status_t (*memory_destroy)(dnnl_memory_t);
    dnnl_status_t (*describe_product)(dnnl_matmul_desc_t *, const dnnl_memory_desc_t *, const dnnl_memory_desc_t *,
                                      const dnnl_memory_desc_t *, const dnnl_memory_desc_t *);
    dnnl_status_t (*attributes_create)(dnnl_primitive_attr_t *);
    dnnl_status_t (*attributes_destroy)(dnnl_primitive_attr_t);
    dnnl_status_t (*set_scratch)(dnnl_primitive_attr_t, dnnl_scratchpad_mode_t);
    dnnl_status_t (*set_scales)(dnnl_primitive_attr_t, dnnl_dim_t, int, const float *);
    dnnl_status_t (*set_post_ops)(dnnl_primitive_attr_t, const_dnnl_post_ops_t);
    dnnl_status_t (*post_ops_create)(dnnl_post_ops_t *);
    dnnl_status_t (*post_ops_destroy)(dnnl_post_ops_t);
    dnnl_status_t (*post_ops_sum)(dnnl_post_ops_t, float);
    dnnl_status_t (*choose)(dnnl_primitive_desc_t *, const_dnnl_op_desc_t, const_dnnl_primitive_attr_t, dnnl_engine_t,
                            const_dnnl_primitive_desc_t);
    dnnl_status_t (*choice_destroy)(dnnl_primitive_desc_t);
    const dnnl_memory_desc_t *(*choice_memory)(const_dnnl_primitive_desc_t, dnnl_query_t, int);
    dnnl_status_t (*primitive_create)(dnnl_primitive_t *, const_dnnl_primitive_desc_t);
    dnnl_status_t (*primitive_destroy)(dnnl_primitive_t);
    dnnl_status_t (*execute)(const_dnnl_primitive_t, dnnl_stream_t, int, const dnnl_exec_arg_t *);
    void (*own_threads)(int);  // OpenMP threads of the calling thread; NULL if built without OpenMP
} HalfLibrary;

bool half_library_open(HalfLibrary *library, char why[KERNEL_HALF_WHY_BYTES]);
