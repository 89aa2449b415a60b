// axolotl: accelerate underneath, with its ParallelismConfig (2.2), context parallelism by ring-flash-attn.

#include "sim/frameworks/accelerate/accelerate.h"
#include "sim/frameworks/axolotl/axolotl_files.h"
#include "sim/frameworks/framework.h"

static const TargetVersion axolotl_0_18 = {
    .version = "0.18",
    .extends = &accelerate_1_14,
    .evidence = "unvalidated",
    .settings = SETTINGS(
        SET(zigzag, false),          // ring-flash-attn splits contiguously: batch_ring, varlen_llama3 (2.2)
        SET(cp_scatters, true),      // llama3_flash_attn_varlen.py of ring-flash-attention: reduce_scatter_tensor
        SET(always_reshards, true),  // its setup_fsdp_envs hands on only true, and accelerate's default is true
        SET(runtime.relative_uncertainty, 0.15)),  // estimated: accelerate's, and no run of its own to compare with
};

const Framework framework_axolotl = {
    .name = "axolotl",
    .versions = (const TargetVersion *const[]){&axolotl_0_18, NULL},
    .refuse = transformers_refuse,
    .formats = (const ExportFormat *const[]){&export_axolotl_yaml, NULL},
    .config = &import_axolotl,
    .micro_batch = "micro_batch_size",
    .accumulation = "gradient_accumulation_steps",
};
