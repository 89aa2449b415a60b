// Rules as rows: a user's bound, the target's legality, slices too short to be sensible, batch arithmetic, memory. A
// rule that does not apply yet (memory before a breakdown exists) lets the candidate pass. What is merely slow is
// ranked.

#include "autotune/search/prune.h"

#include <math.h>

#include "autotune/search/batch.h"
#include "autotune/search/space.h"
#include "sim/base/text.h"
#include "sim/cost/compute.h"
#include "sim/cost/cost.h"

static const char *check_max_tp(const TuneRequest *request, const TrainPlan *plan, const MemoryBreakdown *memory,
                                Arena *arena) {
    (void)memory;
    if (request->max_tp == 0 || plan->mesh.size[AXIS_TP] <= request->max_tp) {
        return NULL;
    }
    return arena_format(arena, "tp=%d is over --max-tp %d", plan->mesh.size[AXIS_TP], request->max_tp);
}

// Scales in the hardware, of 32 elements or of 16, came together: chips without rates of nvfp4 have neither.
static const char *check_formats(const TuneRequest *request, const TrainPlan *plan, Arena *arena) {
    const Accelerator *accelerator = &request->cluster.accelerator;
    const bool of_mx = plan->precision == DTYPE_FP8 && plan->fp8_recipe == FP8_MX;
    const Dtype needed = of_mx ? DTYPE_NVFP4 : plan_product_dtype(plan);
    if (plan->precision != DTYPE_FP8 || cost_supports(accelerator, needed)) {
        return NULL;
    }
    return arena_format(
        arena, "%s has no products for fp8_recipe=%s, or the profile no rates of them: use fp8_recipe %s",
        accelerator->name, fp8_recipe_names[plan->fp8_recipe], fp8_recipe_names[target_default_fp8(request->target)]);
}

static const char *check_kernel(const TuneRequest *request, const TrainPlan *plan, Arena *arena) {
    const Accelerator *accelerator = &request->cluster.accelerator;
    const Target *target = request->target;
    REFUSE_IF(
        arena, plan->attention == ATTENTION_CUDNN && !target->engine_attention && attention_lacks_cudnn(accelerator),
        "attention cudnn is NVIDIA's: %s runs kernels in its place under Transformer Engine alone, which %s@%s does "
        "not use: use attention %s",
        accelerator->name, target->name, target->version, attention_names[target->default_attention]);
    return NULL;
}

static const char *check_legality(const TuneRequest *request, const TrainPlan *plan, const MemoryBreakdown *memory,
                                  Arena *arena) {
    (void)memory;
    const char *reason = NULL;
    if (request->refusal) {
        return request->refusal;
    }
    target_check(request->target, &request->model, plan, arena, &reason);
    reason = reason ? reason : check_formats(request, plan, arena);
    return reason ? reason : check_kernel(request, plan, arena);
}

// A ring of more ranks whose slices are shorter than an attention tile only adds hops (FlashAttention-2 tiles queries
// by 64 or 128): such shapes are named, not priced, since their programs are the longest of all.
static const char *check_slice(const TuneRequest *request, const TrainPlan *plan, const MemoryBreakdown *memory,
                               Arena *arena) {
    enum { SHORTEST_SLICE = 64, SMALL_RING = 8 };
    (void)request;
    (void)memory;
    const int cp = plan->mesh.size[AXIS_CP];
    if (cp <= SMALL_RING || plan->seq / cp >= SHORTEST_SLICE) {
        return NULL;
    }
    return arena_format(
        arena,
        "cp=%d leaves a rank %d tokens of each sequence, less than one attention tile of %d: use cp %d or "
        "less",
        cp, plan->seq / cp, SHORTEST_SLICE,
        plan->seq / SHORTEST_SLICE > SMALL_RING ? plan->seq / SHORTEST_SLICE : SMALL_RING);
}

static const char *check_batch(const TuneRequest *request, const TrainPlan *plan, const MemoryBreakdown *memory,
                               Arena *arena) {
    (void)memory;
    if (request->global_batch == 0 || plan_global_batch(plan) == request->global_batch) {
        return NULL;
    }
    const int64_t unit = (int64_t)mesh_group_size(&plan->mesh, AXES_BATCH) * plan->micro_batch;
    const char *axes = mesh_axes_words(AXES_BATCH, arena), *micro = plan->micro_batch > 1 ? " x micro-batch" : "";
    REFUSE_IF(
        arena, request->grad_accum > 0,
        "a global batch of %lld sequences is not %s%s x accumulation = %lld: use that, or leave one of the two out",
        (long long)request->global_batch, axes, micro, (long long)plan_global_batch(plan));
    return arena_format(
        arena, "a global batch of %lld sequences is not a multiple of %s%s = %lld; the nearest it could do is %lld",
        (long long)request->global_batch, axes, micro, (long long)unit,
        (long long)batch_nearest_multiple(request->global_batch, unit));
}

// A stage without a micro-step of its own waits for most of the step: named, not priced, since fewer stages do the same
// with less waiting.
static const char *check_filled(const TuneRequest *request, const TrainPlan *plan, const MemoryBreakdown *memory,
                                Arena *arena) {
    (void)memory;
    const int stages = mesh_stages(&plan->mesh), micro_steps = plan_round_steps(plan);
    if (micro_steps >= stages || request->global_batch == 0) {
        return NULL;
    }
    return arena_format(arena,
                        "%d micro-step%s cannot keep the %d stages of pp at work: use pp %d or less, or a larger "
                        "--global-batch",
                        micro_steps, micro_steps == 1 ? "" : "s", stages, micro_steps);
}

static const char *check_chunks(const TuneRequest *request, const TrainPlan *plan, const MemoryBreakdown *memory,
                                Arena *arena) {
    (void)memory;
    const int chunks = plan_chunks(plan);
    if (chunks == 1 || request->asked[PLAN_VIRTUAL_STAGES] != TUNE_ANY || space_cuts_evenly(request, plan, chunks)) {
        return NULL;
    }
    return arena_format(arena,
                        "%d stages with %d chunks each cut the %d layers of %s unevenly: the fullest would keep "
                        "the others waiting",
                        mesh_stages(&plan->mesh), chunks, request->model.layers, request->model.name);
}

// Where the profile does not say what a host is, nothing is kept there.
static const char *check_host(const TuneRequest *request, const TrainPlan *plan, const MemoryBreakdown *memory,
                              Arena *arena) {
    const Node *node = &request->cluster.node;
    if (plan->offload == OFFLOAD_NONE) {
        return NULL;
    }
    REFUSE_IF(arena, node->host_link_bytes_per_s <= 0 || node->host_memory_bytes_per_s <= 0,
              "the profile of %s does not say how fast its hosts are: give --set "
              "node.host_link_bytes_per_s=N node.host_memory_bytes_per_s=N",
              request->cluster.name);
    const int there = request->world < node->accelerators ? request->world : node->accelerators;
    const double ranks = fmax(1, (double)there / (node->hosts > 0 ? node->hosts : 1));
    if (!memory || node->host_memory_bytes <= 0 || memory->host_bytes * ranks <= node->host_memory_bytes) {
        return NULL;
    }
    return arena_format(arena, "offload %s needs %s of a host's %s", offload_names[plan->offload],
                        text_bytes(UNIT_BUFFER, memory->host_bytes * ranks),
                        text_bytes(UNIT_BUFFER, node->host_memory_bytes));
}

// Gradients are there as a whole: of a stage that gathers its weights for good or never shards them; without stages, of
// a target that could have some, where nothing is frozen, elsewhere or updated at once. In which batch is assumed
// (batch.c) such shapes have a say.
static bool keeps_weights_whole(const TuneRequest *request, const TrainPlan *plan) {
    if (plan_has_stages(plan)) {
        return plan->zero < 2 || request->target->pp_keeps_gathered;
    }
    return (request->target->axes & AXES_STAGE) && request->global_batch > 0 && plan->zero < 2 &&
           !plan_freezes_base(plan) && plan->offload == OFFLOAD_NONE && !plan->update_in_backward;
}

// They and their weights, both in at least two bytes: a bound that needs no program.
static const char *check_weights(const TuneRequest *request, const TrainPlan *plan, Arena *arena) {
    enum { BYTES = 2 + 2 };
    const int stages = mesh_stages(&plan->mesh), tp = plan->mesh.size[AXIS_TP], ep = plan->mesh.size[AXIS_EP];
    const double experts = ep > 1 ? (double)model_expert_parameters(&request->model) : 0;  // whole on ranks of ep
    const double others = (double)model_layers_parameters(&request->model) - experts;
    const double least = (others / tp + experts / ep / plan_expert_tp(plan)) / stages * BYTES;
    if (least <= request->memory_limit_bytes || !keeps_weights_whole(request, plan)) {
        return NULL;
    }
    return arena_format(arena, "weights and gradients of a stage alone need %s of %s with pp=%d, tp=%d",
                        text_bytes(UNIT_BUFFER, least), text_bytes(UNIT_BUFFER, request->memory_limit_bytes), stages,
                        tp);
}

static const char *check_memory(const TuneRequest *request, const TrainPlan *plan, const MemoryBreakdown *memory,
                                Arena *arena) {
    if (!memory) {
        return check_weights(request, plan, arena);
    }
    const double needed = memory_needed_bytes(plan, memory);
    if (needed <= request->memory_limit_bytes) {
        return NULL;
    }
    return arena_format(
        arena,
        "does not fit by %s: needs %s of %s with micro-batch %d and recompute %s; the largest buffer at the "
        "peak (%s) is %s with %s",
        text_bytes(UNIT_BUFFER, needed - request->memory_limit_bytes), text_bytes(UNIT_BUFFER, needed),
        text_bytes(UNIT_BUFFER, request->memory_limit_bytes), plan->micro_batch,
        plan_recompute_text(plan, RECOMPUTE_BUFFER), memory->peak_phase, memory->top_name,
        text_bytes(UNIT_BUFFER, memory->top_bytes));
}

static const PruneRule rules[] = {
    {"max-tp", check_max_tp, SHORTCUT_COUNT},  {"legality", check_legality, SHORTCUT_COUNT},
    {"slice", check_slice, SHORTCUT_SLICE},    {"batch", check_batch, SHORTCUT_COUNT},
    {"stages", check_filled, SHORTCUT_STAGES}, {"chunks", check_chunks, SHORTCUT_STAGES},
    {"host", check_host, SHORTCUT_COUNT},      {"memory", check_memory, SHORTCUT_COUNT},
};

enum { RULES = sizeof rules / sizeof rules[0] };

const PruneRule *prune(const TuneRequest *request, const TrainPlan *plan, const MemoryBreakdown *memory, Arena *arena,
                       const char **reason) {
    *reason = NULL;
    for (int i = 0; i < RULES; i++) {
        const bool taken = rules[i].shortcut == SHORTCUT_COUNT || !(request->without >> rules[i].shortcut & 1);
        *reason = taken ? rules[i].check(request, plan, memory, arena) : NULL;
        if (*reason) {
            return &rules[i];
        }
    }
    return NULL;
}

const PruneRule *prune_given(const TuneRequest *request, const TrainPlan *plan, const MemoryBreakdown *memory,
                             Arena *arena, const char **reason) {
    TuneRequest given = *request;
    given.without |= 1u << SHORTCUT_STAGES;
    return prune(&given, plan, memory, arena, reason);
}
