// What a framework's folder needs to write its config files. A format is a file of the folder and a row in it, which
// says what the format can hold; what it cannot hold is refused in one sentence and never left out. Every text that is
// not ours goes through sim/base/escape.h.

#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "sim/frameworks/target.h"
#include "sim/plan/plan_fields.h"

// What is written. Nodes are full, as launchers want them.
typedef struct ConfigJob {
    const TrainPlan *plan;
    const ModelSpec *model;
    const Target *target;  // whose plan it is
    int nodes, ranks_per_node;
    const char *header;             // what the file says about itself, without comment signs; lines end in '\n'
    Arena *arena;                   // of texts
    const struct ExportJob *asked;  // by reports/export; nothing to a folder
} ConfigJob;

typedef struct ExportFormat {
    const char *name;       // "format" of --as
    const char *target;     // whose plans it takes: "name@version"; the first row of a target is its usual format
    const char *also;       // other versions of the target whose file is the same: "1.14 1.13", and other
                            // frameworks' with their names: "name@version"; NULL
    const char *file_name;  // usual
    const char *versions;   // of the framework that read the file, as text
    const char *comment;    // what a comment line begins with; NULL: write() places the header itself
    unsigned precisions, recomputes, attentions, fuseds;  // bit 1 << value of the plan's enum
    // PLAN_BIT of choices of which it takes others than the usual one, or they are the user's own code.
    uint64_t takes;
    bool stages;  // writes a pipeline: schedule, chunks, micro-batches
    // Why this mesh or plan cannot be written, in addition to what the columns say: arena text; NULL.
    const char *(*refuse)(const ConfigJob *job);
    // What the user's own code has to do, one line each; NULL = nothing.
    void (*notes)(const ConfigJob *job, FILE *out);
    void (*write)(const ConfigJob *job, FILE *out);
    // The command on one node, where host and rank name the first node and this one's number.
    void (*launch)(const ConfigJob *job, const char *program, FILE *out);
    const char *program;  // what the launcher starts; %s is the file
} ExportFormat;

// ---- columns of a row

#define EXPORT_BIT(value) (1u << (value))
#define EXPORT_BF16 EXPORT_BIT(DTYPE_BF16)
#define EXPORT_FP16 EXPORT_BIT(DTYPE_FP16)
#define EXPORT_FP32 EXPORT_BIT(DTYPE_FP32)
#define EXPORT_FP8 EXPORT_BIT(DTYPE_FP8)
#define EXPORT_NONE EXPORT_BIT(RECOMPUTE_NONE)
#define EXPORT_FULL EXPORT_BIT(RECOMPUTE_FULL)
#define EXPORT_SELECTIVE EXPORT_BIT(RECOMPUTE_SELECTIVE)
#define EXPORT_EAGER EXPORT_BIT(FUSED_EAGER)
#define EXPORT_COMPILED EXPORT_BIT(FUSED_COMPILED)
#define EXPORT_FUSED EXPORT_BIT(FUSED_FUSED)
#define EXPORT_FLASH EXPORT_BIT(ATTENTION_FLASH)
#define EXPORT_SDPA (EXPORT_FLASH | EXPORT_BIT(ATTENTION_CUDNN))  // whose choice is PyTorch's
#define EXPORT_OF_TRANSFORMERS (EXPORT_SDPA | EXPORT_BIT(ATTENTION_FLASH3) | EXPORT_BIT(ATTENTION_EAGER))

#define EXPORT_HAS(of_precisions, of_recomputes, of_attentions, of_fuseds)                                             \
    .precisions = (of_precisions), .recomputes = (of_recomputes), .attentions = (of_attentions), .fuseds = (of_fuseds)

// ---- texts

// Each line of text after `comment`, escaped: nothing in it ends the comment.
void export_comment(const char *text, const char *comment, FILE *out);

// What to do where SDPA takes another kernel here than the plan has, which no file can say: a blank and a sentence; "".
const char *export_sdpa_note(const ConfigJob *job);

// What transformers loads: the folder of a config.json, another file itself, or the published name of a preset; *known
// says which of them it is and not just ndtune's own name of the sizes.
const char *export_model_path(const ConfigJob *job, bool *known);

// "LlamaDecoderLayer": the class that FSDP wraps.
const char *export_layer_class(const ModelSpec *model);

// "sdpa": attn_implementation of transformers for the plan.
const char *export_attention(const ConfigJob *job);

static inline int export_axis(const ConfigJob *job, Axis axis) {
    return job->plan->mesh.size[axis];
}

static inline const char *export_bool(bool value) {
    return value ? "true" : "false";
}

static inline const char *export_in_bf16(const ConfigJob *job) {
    return export_bool(job->plan->precision == DTYPE_BF16);
}

static inline const char *export_in_fp16(const ConfigJob *job) {
    return export_bool(job->plan->precision == DTYPE_FP16);
}

static inline const char *export_wrapped_layer(const ConfigJob *job) {
    return export_layer_class(job->model);
}

static inline const char *export_checkpoints(const ConfigJob *job) {
    return export_bool(job->plan->recompute == RECOMPUTE_FULL);
}

static inline bool export_compiles(const ConfigJob *job) {
    return job->plan->fused == FUSED_COMPILED;
}

static inline bool export_cuts_sequences(const ConfigJob *job) {
    return export_axis(job, AXIS_CP) > 1;
}

static inline bool export_spreads_experts(const ConfigJob *job) {
    return export_axis(job, AXIS_EP) > 1;
}

// Gradients are reduced on every micro-step, where the framework would by itself on the last one only.
static inline bool export_syncs_each(const ConfigJob *job) {
    return job->plan->grad_sync == GRAD_SYNC_EACH;
}

static inline bool export_other_optimizer(const ConfigJob *job) {
    return job->plan->optimizer != OPTIMIZER_TARGET;
}

static inline bool export_fuses_loss(const ConfigJob *job) {
    return job->plan->loss == LOSS_FUSED;
}

static inline bool export_offloads(const ConfigJob *job) {
    return job->plan->offload != OFFLOAD_NONE;
}

static inline const char *export_offloads_parameters(const ConfigJob *job) {
    return export_bool(job->plan->offload == OFFLOAD_PARAMETERS);
}

static inline bool export_offloads_inputs(const ConfigJob *job) {
    return plan_offloads_activations(job->plan);
}

static inline bool export_shards(const ConfigJob *job) {  // is there an FSDP group?
    return plan_shard_count(job->plan) > 1;
}

// Where the condition holds: fprintf.
#define PRINT_IF(condition, out, ...)                                                                                  \
    do {                                                                                                               \
        if (condition) {                                                                                               \
            fprintf(out, __VA_ARGS__);                                                                                 \
        }                                                                                                              \
    } while (0)

// ---- launchers: the command on each node. On several, $MASTER_ADDR and $NODE_RANK say which.

void launch_torchrun(const ConfigJob *job, const char *program, FILE *out);
void launch_script(const ConfigJob *job, const char *program, FILE *out);
