// FSDP of PyTorch, version 1, as Composer and llm-foundry run it.

#include "sim/frameworks/framework.h"
#include "sim/frameworks/pytorch.h"

static const TargetVersion fsdp1_2_0 = {
    .version = "2.0",
    .extends = &pytorch_fsdp,
    .evidence = "223 published runs",
    .settings = SETTINGS(
        SET(runtime.shard_hooks, SHARD_HOOKS_FLAT),  // FlatParamHandle
        SET(root_unit, true),                        // tests/frameworks: traces of fsdp1
        SET(root_kept, true),  // FSDP's _post_forward_reshard spares the root; no bf16 shard stays
        SET(tp_flavour, TP_AR), SET(axes, AXES_DP), SET(fused_projections, true),  // llm-foundry's MPT: Wqkv
        SET(replicas_each_step, true),  // Composer's default sync schedule reduces on every micro-step
        SET_TEXT(grad_sync_note, "Composer's schedule of it reduces on every micro-step"),
        SET(runtime.step_fixed_s, 25e-3),                  // sim/SOURCES.md A6: 20 to 35 ms
        SET(runtime.loss_bytes_per_logit, 26.0),           // sim/SOURCES.md A4
        SET(runtime.optimizer_bytes_per_parameter, 28.0),  // fused AdamW (sim/SOURCES.md H6): four fp32 numbers read,
                                                           // three written
        SET(runtime.relative_uncertainty, 0.06)),
};

static const FrameworkSynonym synonyms[] = {
    {"fsdp", "FSDP version 1"},
    {"pytorch", "FSDP version 1"},
    {"composer", "Composer trains by FSDP version 1"},
    {"llm-foundry", "Composer trains by FSDP version 1"},
    {"fms-fsdp", "it trains by FSDP version 1"},
    {NULL, NULL},
};

static const SourceName sources[] = {
    {.name = "fmsfsdp"},
    {.name = "litgpt"},
    {.name = NULL},
};

static const MeasuredChip measured[] = {
    {"A100-SXM4-80GB", 145, 64, 0.022, 0.004},
    {"A100-SXM4-40GB", 78, 128, 0.018, 0.003},
    {0},
};

static const ChipWidth widths[] = {{"A100-SXM4-80GB", 0.8, 0.25}, {"A100-SXM4-40GB", 0.8, 0.25}, {0}};  // 0.73, 0.77

const Framework framework_fsdp1 = {
    .name = "fsdp1",
    .measured = measured,
    .widths = widths,
    .versions = (const TargetVersion *const[]){&fsdp1_2_0, NULL},
    .synonyms = synonyms,
    .sources = sources,
};
