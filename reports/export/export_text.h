// Texts inside exported files: names that frameworks use, header, launchers. Every text that is not ours goes through
// sim/base/escape.h.

#pragma once

#include "reports/export/export.h"

// The header without comment signs: versions, batch, figures, launch command; lines separated by '\n'.
char *export_header(const ExportFormat *format, const ExportJob *job);

// The same as comments of a shell script, for a format whose first line is another.
void export_header_write(const char *format, const ExportJob *job, FILE *out);

// Each line of text behind `comment`, escaped: nothing in it ends the comment.
void export_comment(const char *text, const char *comment, FILE *out);

// What transformers loads: the folder of a config.json, or the published name of a preset; *known says which of them it
// is and not just ndtune's own name of the sizes.
const char *export_model_path(const ExportJob *job, bool *known);

// "LlamaDecoderLayer": the class that FSDP wraps.
const char *export_layer_class(const ModelSpec *model);

// "sdpa": attn_implementation of transformers for the plan.
const char *export_attention(const TrainPlan *plan);

static inline int export_axis(const ExportJob *job, Axis axis) {
    return job->plan->mesh.size[axis];
}

static inline const char *export_bool(bool value) {
    return value ? "true" : "false";
}

static inline bool export_shards(const ExportJob *job) {  // is there an FSDP group?
    return plan_shard_count(job->plan) > 1;
}

// Launchers: the command on each node. On several, $MASTER_ADDR and $NODE_RANK say which.
void launch_accelerate(const ExportJob *job, const char *program, FILE *out);
void launch_torchrun(const ExportJob *job, const char *program, FILE *out);
void launch_script(const ExportJob *job, const char *program, FILE *out);
