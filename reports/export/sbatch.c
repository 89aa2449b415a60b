// A Slurm batch script: it writes the target's default config file next to itself and starts the launcher once on each
// node. The file is in a quoted here-document, which the shell does not expand; its strings are escaped and have no
// line of their own that could end it.

#include <stdlib.h>

#include "reports/export/export.h"

static const ExportFormat *inner_format(const ExportJob *job) {
    const ExportFormat *inner = NULL;
    Error none = {0};
    return export_usual(job->request->target, &inner, &none) == STATUS_OK ? inner : NULL;
}

static Status inner_file(const ExportJob *job, char **text, Error *error) {
    ExportJob inside = *job;
    inside.file_name = NULL;
    return export_text(inner_format(job), &inside, text, error);
}

static const char *sbatch_refuse(const ConfigJob *config) {
    const ExportJob *job = config->asked;
    Error error = {0};
    const ExportFormat *inner = NULL;
    if (export_usual(job->request->target, &inner, &error) != STATUS_OK) {
        return arena_text(job->arena, error.message);
    }
    char *text = NULL;
    const Status status = inner_file(job, &text, &error);
    free(text);
    return status == STATUS_OK ? NULL : arena_text(job->arena, error.message);
}

static void sbatch_write(const ConfigJob *config, FILE *out) {
    const ExportJob *job = config->asked;
    Error error = {0};
    const ExportFormat *inner = inner_format(job);
    char *text = NULL;
    inner_file(job, &text, &error);
    fputs("#!/bin/bash\n", out);
    export_comment(config->header, "# ", out);
    fprintf(out,
            "#SBATCH --job-name=ndtune\n"
            "#SBATCH --nodes=%d\n"
            "#SBATCH --ntasks-per-node=1\n"
            "#SBATCH --gpus-per-node=%d\n"
            "#SBATCH --exclusive\n"
            "set -euo pipefail\n\n"
            "cat > %s <<'END_OF_FILE'\n%sEND_OF_FILE\n\n"
            "MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
            "export MASTER_ADDR\n"
            "srun bash -c 'export NODE_RANK=$SLURM_NODEID; exec ",
            config->nodes, config->ranks_per_node, inner->file_name, text ? text : "");
    inner->launch(config, arena_format(job->arena, inner->program, inner->file_name), out);
    fputs("'\n", out);
    free(text);
}

// The inner format decides what it can hold.
const ExportFormat export_sbatch = {
    .name = "sbatch",
    .file_name = "train.sbatch",
    .versions = "Slurm",
    .precisions = ~0u,
    .recomputes = ~0u,
    .attentions = ~0u,
    .fuseds = ~0u,
    .takes = PLAN_BIT(PLAN_RESHARD) | PLAN_BIT(PLAN_MASTER_WEIGHTS) | PLAN_BIT(PLAN_REDUCE_DTYPE) |
             PLAN_BIT(PLAN_TP_OVERLAP),
    .stages = true,
    .refuse = sbatch_refuse,
    .write = sbatch_write,
    .launch = launch_script,
    .program = "sbatch %s",
};
