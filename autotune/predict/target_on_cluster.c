// Pairs the numbers of a ClusterTarget with those of a TargetRuntime: sim/cluster knows no targets.

#include "autotune/predict/target_on_cluster.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/cost/compute.h"
#include "sim/plan/plan_fields.h"

static const struct {
    size_t cluster, runtime;
} pairs[] = {
#define PAIR(name)                                                                                                     \
    { offsetof(ClusterTarget, name), offsetof(TargetRuntime, name) }
    PAIR(host_s_per_op),   PAIR(other_share),          PAIR(collective_share),     PAIR(crowding_share),
    PAIR(step_fixed_s),    PAIR(memory_passes),        PAIR(loss_bytes_per_logit), PAIR(optimizer_bytes_per_parameter),
    PAIR(allocator_slack), PAIR(relative_uncertainty),
#undef PAIR
};

static void name_of(const Target *target, char name[sizeof((ClusterTarget *)0)->name]) {
    snprintf(name, sizeof((ClusterTarget *)0)->name, "%s@%s", target->name, target->version);
}

static const char *evidence(const ClusterProfile *cluster, Arena *arena) {
    return cluster->calibration ? arena_format(arena, "calibrated on %d runs", cluster->calibration->run_count)
                                : "stated by the profile";
}

// Before Hopper, whose are those of the rows: PyTorch's workspace of a cuBLAS handle (CublasHandlePool.cpp of its
// aten/src/ATen/cuda: 4096 KiB twice and 16 eight times), and Transformer Engine's (get_cublas_workspace_size_bytes of
// its pytorch/cpp_extensions/gemm.py).
static const double old_blas_workspace_bytes = 8519680, old_engine_workspace_bytes = 4194304;

// Transformer Engine makes no second layout of a tensor with one scale on compute capability 10 (v2.8,
// nvte_is_non_tn_fp8_gemm_supported of common/transformer_engine.cpp; pytorch/csrc/quantizer.cpp): the chips that
// multiply nvfp4.
static bool needs_one_layout(const Target *target, const Accelerator *chip) {
    return target->fp8_flavour == FP8_TRANSFORMER_ENGINE && chip->gemm[DTYPE_NVFP4].burst_flop_per_s > 0;
}

static const Target *on_chip(const Target *target, const Accelerator *chip, Arena *arena) {
    const TargetRuntime *usual = &target->runtime;
    const bool one_layout = needs_one_layout(target, chip);
    const bool small = chip->gemm[DTYPE_FP8].burst_flop_per_s <= 0 && runtime_workspace_bytes(usual) > 0;
    if (!one_layout && !small) {
        return target;
    }
    Target *changed = ARENA_NEW(arena, Target);
    *changed = *target;
    changed->runtime.fp8_one_layout = one_layout;
    if (small) {
        changed->runtime.blas_workspace_bytes = fmin(usual->blas_workspace_bytes, old_blas_workspace_bytes);
        changed->runtime.engine_workspace_bytes = fmin(usual->engine_workspace_bytes, old_engine_workspace_bytes);
    }
    return changed;
}

static const Target *on_host(const Target *target, const Node *node, Arena *arena) {
    if (!target->runtime.follows_processor || node->host_pace <= 0) {
        return target;
    }
    Target *changed = ARENA_NEW(arena, Target);
    *changed = *target;
    changed->runtime.host_pace = node->host_pace;
    return changed;
}

// RCCL's buffer of a communicator where each pair of a node has a link of its own, as a log of eight MI355X says where
// there was no room for it (Dell Cloud's sweep: "Failed to CUDA calloc 536870912 bytes").
static const double mesh_communicator_bytes = 512 << 20;

static const Target *on_links(const Target *target, const Node *node, Arena *arena) {
    if (target->runtime.communicator_bytes <= 0 || node->mesh <= 0) {
        return target;
    }
    Target *changed = ARENA_NEW(arena, Target);
    *changed = *target;
    changed->runtime.communicator_bytes = mesh_communicator_bytes;
    return changed;
}

const Target *target_on_cluster(const Target *target, const ClusterProfile *cluster, Arena *arena) {
    char name[sizeof cluster->targets[0].name];
    name_of(target, name);
    target = on_host(on_chip(target, &cluster->accelerator, arena), &cluster->node, arena);
    target = on_links(target, &cluster->node, arena);
    for (int i = 0; i < cluster->target_count; i++) {
        const ClusterTarget *known = &cluster->targets[i];
        if (strcmp(known->name, name) != 0) {
            continue;
        }
        Target *changed = ARENA_NEW(arena, Target);
        *changed = *target;
        changed->evidence = evidence(cluster, arena);
        for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++) {
            memcpy((char *)&changed->runtime + pairs[p].runtime, (const char *)known + pairs[p].cluster,
                   sizeof(double));
        }
        return changed;
    }
    return target;
}

// check_prefer_cudnn_attention of PyTorch's sdp_utils.cpp, from 2.11 on: compute capability 9.0, 10.0 and 10.3, the
// chips whose profiles have a rate of cuDNN's kernel and that multiply fp8 (a probe of others writes one too), with a
// cuDNN beyond 9.15, which wheels for CUDA 12 lack (huggingface/transformers#48163).
static bool runs_cudnn_well(const Accelerator *chip) {
    return chip->gemm[DTYPE_FP8].burst_flop_per_s > 0 && attention_has_row(chip, "cudnn");
}

const Target *target_with_kernels(const Target *target, const TuneRequest *request, Arena *arena) {
    TrainPlan plan = {.seq = request->seq};
    plan_set(&plan, PLAN_PRECISION, request->asked[PLAN_PRECISION]);
    plan_set(&plan, PLAN_PACK, request->asked[PLAN_PACK] == TUNE_ANY ? 0 : request->asked[PLAN_PACK]);
    const bool here =
        runs_cudnn_well(&request->cluster.accelerator) && target_takes_cudnn(target, &request->model, &plan);
    if (here == target->cudnn_here) {
        return target;
    }
    Target *changed = ARENA_NEW(arena, Target);
    *changed = *target;
    changed->cudnn_here = here;
    return changed;
}

bool target_to_cluster(const Target *target, ClusterProfile *cluster) {
    ClusterTarget made = {0};
    name_of(target, made.name);
    for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++) {
        memcpy((char *)&made + pairs[p].cluster, (const char *)&target->runtime + pairs[p].runtime, sizeof(double));
    }
    int at = 0;
    while (at < cluster->target_count && strcmp(cluster->targets[at].name, made.name) != 0) {
        at++;
    }
    if (at == CLUSTER_MAX_TARGETS) {
        return false;
    }
    cluster->targets[at] = made;
    cluster->target_count += at == cluster->target_count;
    return true;
}
