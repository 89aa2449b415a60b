// The plans behind the golden files, and what an export needs besides.

#include "tests/golden/export/export_case.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "sim/base/text.h"
#include "tests/support/sizes.h"

const Golden goldens[] = {
    {"accelerate_hybrid.yaml", "accelerate-yaml", "accelerate", "llama-3-8b",
     PLAN(2, 8, 1, 4, .micro_batch = 2, .grad_accum = 4, .zero = 3, EAGER_FULL)},
    {"accelerate_ring.yaml", "accelerate-yaml", "accelerate", "qwen3-8b",
     PLAN(1, 4, 2, 1, .micro_batch = 1, .grad_accum = 16, .zero = 3, .cp_rotate = CP_ROTATE_RING,
          .reshard = RESHARD_NEVER, .fused = FUSED_COMPILED)},
    {"accelerate_replicas.yaml", "accelerate-yaml", "accelerate", "gpt2",
     PLAN(8, 1, 1, 1, .micro_batch = 4, .grad_accum = 2, EAGER_FULL)},
    {"accelerate_tensor.py", "accelerate-python", "accelerate", "llama-3-8b",
     PLAN(1, 1, 1, 8, .micro_batch = 1, .grad_accum = 8, EAGER_FULL)},
    {"accelerate_all_axes.py", "accelerate-python", "accelerate", "llama-3-8b",
     PLAN(2, 2, 2, 2, .micro_batch = 1, .grad_accum = 8, .zero = 3, .cp_rotate = CP_ROTATE_ALLGATHER,
          .recompute = RECOMPUTE_FULL, .fused = FUSED_COMPILED)},
    {"hf_trainer.py", "hf-trainer", "accelerate", "mistral-7b",
     PLAN(1, 8, 1, 2, .micro_batch = 2, .grad_accum = 4, .zero = 3, EAGER_FULL)},
    {"trainer_tensor.py", "trainer", "trainer", "llama-3-8b",
     PLAN(2, 4, 1, 2, .micro_batch = 2, .grad_accum = 4, .zero = 3, EAGER_FULL)},
    {"trainer_context.py", "trainer", "trainer", "llama-3-8b",
     PLAN(1, 4, 2, 1, .micro_batch = 1, .grad_accum = 8, .zero = 3, .cp_rotate = CP_ROTATE_RING,
          .grad_sync = GRAD_SYNC_EACH, EAGER_FULL)},
    {"accelerate_each.yaml", "accelerate-yaml", "accelerate", "llama-3-70b",
     PLAN(1, 64, 1, 1, .micro_batch = 1, .grad_accum = 8, .zero = 3, .grad_sync = GRAD_SYNC_EACH, .loss = LOSS_FUSED,
          EAGER_FULL)},
    {"accelerate_each.py", "accelerate-python", "accelerate", "llama-3-70b",
     PLAN(1, 64, 1, 1, .micro_batch = 1, .grad_accum = 8, .zero = 3, .grad_sync = GRAD_SYNC_EACH, EAGER_FULL)},
    {"hf_trainer_each.py", "hf-trainer", "accelerate", "llama-3-70b",
     PLAN(1, 64, 1, 1, .micro_batch = 1, .grad_accum = 8, .zero = 3, .grad_sync = GRAD_SYNC_EACH, .loss = LOSS_FUSED,
          EAGER_FULL)},
    {"axolotl_each.yaml", "axolotl", "axolotl", "llama-3-70b",
     PLAN(1, 64, 1, 1, .micro_batch = 1, .grad_accum = 8, .zero = 3, .grad_sync = GRAD_SYNC_EACH, .bf16_master = true,
          .loss = LOSS_FUSED, EAGER_FULL)},
    {"axolotl_qlora.yaml", "axolotl", "axolotl", "llama-3-8b",
     PLAN(1, 8, 1, 1, .micro_batch = 2, .grad_accum = 4, .zero = 3, .bf16_master = true, .finetune = FINETUNE_QLORA,
          .lora_rank = 32, EAGER_FULL)},
    {"trl_qlora.py", "trl", "trl", "llama-3-70b",
     PLAN(1, 4, 1, 1, .micro_batch = 1, .grad_accum = 16, .zero = 3, .finetune = FINETUNE_QLORA, EAGER_FULL)},
    {"trainer_lora.py", "trainer", "trainer", "llama-3-8b",
     PLAN(8, 1, 1, 1, .micro_batch = 4, .grad_accum = 2, .finetune = FINETUNE_LORA, .lora_rank = 8,
          .lora_targets = LORA_QUERY_VALUE, EAGER_FULL)},
    {"trainer_offload.py", "trainer", "trainer", "llama-3-8b",
     PLAN(1, 8, 1, 1, .micro_batch = 1, .grad_accum = 4, .zero = 3, .offload = OFFLOAD_ACTIVATIONS, EAGER_FULL)},
    {"trl.py", "trl", "trl", "llama-3-8b",
     PLAN(1, 8, 1, 1, .micro_batch = 2, .grad_accum = 4, .zero = 3, .grad_sync = GRAD_SYNC_EACH, EAGER_FULL)},
    {"automodel_each.yaml", "automodel", "automodel", "llama-3-70b",
     PLAN(1, 64, 1, 1, .micro_batch = 1, .grad_accum = 8, .zero = 3, .grad_sync = GRAD_SYNC_EACH, EAGER_FULL)},
    {"axolotl_context.yaml", "axolotl", "axolotl", "llama-2-7b",
     PLAN(1, 8, 2, 1, .micro_batch = 1, .grad_accum = 8, .zero = 3, .cp_rotate = CP_ROTATE_RING, .bf16_master = true,
          EAGER_FULL)},
    {"torchtitan_fp8.toml",
     "torchtitan-toml",
     "torchtitan",
     "llama-3-8b",
     {.mesh = {.size = SIZES(1, 8, 1, 1)},
      .seq = 8192,
      .micro_batch = 1,
      .grad_accum = 4,
      .zero = 3,
      .virtual_stages = 1,
      .precision = DTYPE_FP8,
      .fp8_recipe = FP8_ROWWISE,
      .recompute = RECOMPUTE_SELECTIVE,
      .fused = FUSED_COMPILED}},
    {"torchtitan_unknown_model.toml", "torchtitan-toml", "torchtitan", "llama-2-7b",
     PLAN(2, 4, 2, 2, .micro_batch = 1, .grad_accum = 4, .zero = 3, .cp_rotate = CP_ROTATE_ALLGATHER,
          .fused = FUSED_COMPILED, .tp_overlap = true)},
    {"torchtitan.py", "torchtitan-python", "torchtitan@0.3", "llama-3-70b",
     PLAN(1, 32, 1, 8, .micro_batch = 1, .grad_accum = 2, .zero = 3, .recompute = RECOMPUTE_FULL,
          .fused = FUSED_COMPILED)},
    {"torchtitan_whole.py", "torchtitan-python", "torchtitan@0.3", "llama-3-8b",
     PLAN(1, 8, 1, 1, .micro_batch = 1, .grad_accum = 2, .zero = 3, .fused = FUSED_COMPILED, .loss = LOSS_WHOLE)},
    {"torchtitan_nvfp4.py", "torchtitan-python", "torchtitan@0.3", "llama-3-8b",
     PLAN(1, 8, 1, 1, .micro_batch = 1, .grad_accum = 2, .zero = 3, .fused = FUSED_COMPILED, .precision = DTYPE_FP8,
          .fp8_recipe = FP8_NVFP4)},
    {"torchtitan_rowwise.py", "torchtitan-python", "torchtitan@0.3", "llama-3-8b",
     PLAN(1, 8, 1, 1, .micro_batch = 1, .grad_accum = 2, .zero = 3, .fused = FUSED_COMPILED, .precision = DTYPE_FP8,
          .fp8_recipe = FP8_ROWWISE_BF16)},
    {"megatron_nvfp4.sh", "megatron", "megatron", "llama-3-8b",
     PLAN(1, 8, 1, 1, .micro_batch = 1, .grad_accum = 2, .zero = 1, .attention = ATTENTION_CUDNN,
          .precision = DTYPE_FP8, .fp8_recipe = FP8_NVFP4)},
    {"megatron_bridge_fp8.py", "megatron-bridge", "megatron@bridge-0.6", "llama-3-8b",
     PLAN(1, 8, 1, 1, .micro_batch = 1, .grad_accum = 2, .zero = 1, .attention = ATTENTION_CUDNN,
          .precision = DTYPE_FP8, .fp8_recipe = FP8_BLOCK)},
    {"megatron.sh", "megatron", "megatron", "llama-3-70b",
     PLAN(2, 4, 2, 8, .micro_batch = 1, .grad_accum = 16, .zero = 1, .recompute = RECOMPUTE_SELECTIVE,
          .attention = ATTENTION_CUDNN, .cp_rotate = CP_ROTATE_RING)},
    {"torchtitan_stages.toml", "torchtitan-toml", "torchtitan", "llama-3.1-8b",
     STAGES(4, 8, 1, .micro_batch = 2, .grad_accum = 8, .zero = 3, .fused = FUSED_COMPILED,
            .pp_schedule = PP_INTERLEAVED, .virtual_stages = 4)},
    {"torchtitan_stages.py", "torchtitan-python", "torchtitan@0.3", "llama-3.1-8b",
     STAGES(4, 8, 1, .micro_batch = 2, .grad_accum = 8, .zero = 3, .fused = FUSED_COMPILED,
            .pp_schedule = PP_INTERLEAVED, .virtual_stages = 2)},
    {"torchtitan_stages_head.py", "torchtitan-python", "torchtitan@head", "llama-3.1-8b",
     STAGES(2, 8, 1, .micro_batch = 1, .grad_accum = 4, .zero = 3, .fused = FUSED_COMPILED)},
    {"megatron_stages.sh", "megatron", "megatron", "llama-3-70b",
     STAGES(4, 4, 8, .micro_batch = 1, .grad_accum = 16, .zero = 1, .recompute = RECOMPUTE_SELECTIVE,
            .attention = ATTENTION_CUDNN, .pp_schedule = PP_INTERLEAVED, .virtual_stages = 5)},
    {"megatron_experts.sh",
     "megatron",
     "megatron",
     "mixtral-8x7b",
     {.mesh = {.size = {[0 ... AXIS_COUNT - 1] = 1, [AXIS_PP] = 4, [AXIS_DP_SHARD] = 16, [AXIS_EP] = 8}},
      .seq = 4096,
      .micro_batch = 1,
      .grad_accum = 16,
      .precision = DTYPE_BF16,
      .zero = 1,
      .attention = ATTENTION_CUDNN,
      .pp_schedule = PP_INTERLEAVED,
      .virtual_stages = 8}},
    {"torchtitan_experts.toml",
     "torchtitan-toml",
     "torchtitan",
     "qwen3-30b-a3b",
     {.mesh = {.size = {[0 ... AXIS_COUNT - 1] = 1, [AXIS_DP_SHARD] = 64, [AXIS_EP] = 8}},
      .seq = 4096,
      .micro_batch = 2,
      .grad_accum = 2,
      .precision = DTYPE_BF16,
      .zero = 3,
      .recompute = RECOMPUTE_SELECTIVE,
      .attention = ATTENTION_FLASH,
      .fused = FUSED_COMPILED,
      .virtual_stages = 1}},
    {"nanotron_stages.yaml", "nanotron", "nanotron", "llama-3.2-1b",
     STAGES(4, 4, 2, .micro_batch = 2, .grad_accum = 4, .zero = 1, .pp_schedule = PP_GPIPE)},
    {"torchtitan_no_graphs.py", "torchtitan-python", "torchtitan@0.3", "llama-3.1-8b",
     PLAN(1, 8, 1, 1, .micro_batch = 1, .grad_accum = 2, .zero = 3, .fused = FUSED_COMPILED,
          .cuda_graphs = CUDA_GRAPHS_OFF)},
    {"megatron_graphs.sh", "megatron", "megatron@0.19", "llama-3-8b",
     PLAN(1, 8, 1, 2, .micro_batch = 1, .grad_accum = 4, .zero = 1, .attention = ATTENTION_CUDNN,
          .cuda_graphs = CUDA_GRAPHS_ON)},
    {"automodel.yaml", "automodel", "automodel", "qwen2.5-7b",
     PLAN(2, 4, 1, 2, .micro_batch = 1, .grad_accum = 4, .zero = 3, EAGER_FULL)},
    {"nanotron.yaml", "nanotron", "nanotron", "llama-3.2-1b",
     PLAN(1, 16, 1, 2, .micro_batch = 2, .grad_accum = 4, .zero = 1, .recompute = RECOMPUTE_FULL)},
    {"deepspeed.json", "deepspeed", "deepspeed", "pythia-6.9b",
     PLAN(1, 8, 1, 2, .micro_batch = 2, .grad_accum = 4, .zero = 2, .reduce_overlap = REDUCE_OVERLAP_ON, EAGER_FULL)},
    {"accelerate_deepspeed.yaml",
     "accelerate-deepspeed",
     "deepspeed",
     "llama-3-8b",
     {.mesh = {.size = {[0 ... AXIS_COUNT - 1] = 1, [AXIS_DP_SHARD] = 2, [AXIS_SP] = 4}},
      .seq = 131072,
      .micro_batch = 1,
      .grad_accum = 8,
      .precision = DTYPE_BF16,
      .zero = 3,
      .offload = OFFLOAD_OPTIMIZER,
      .virtual_stages = 1,
      EAGER_FULL}},
    {"trainer_packed_states.py", "trainer", "trainer", "llama-3-8b",
     PLAN(8, 1, 1, 1, .micro_batch = 2, .grad_accum = 2, .optimizer = OPTIMIZER_ADAMW_8BIT, EAGER_FULL)},
    {"axolotl_packed_states.yaml", "axolotl", "axolotl", "llama-3-8b",
     PLAN(1, 8, 1, 1, .micro_batch = 1, .grad_accum = 2, .zero = 3, .bf16_master = true,
          .optimizer = OPTIMIZER_ADAMW_8BIT_TORCHAO, EAGER_FULL)},
    {"torchtitan_bf16_states.py", "torchtitan-python", "torchtitan@0.3", "llama-3-8b",
     PLAN(1, 8, 1, 1, .micro_batch = 1, .grad_accum = 2, .zero = 3, .fused = FUSED_COMPILED,
          .optimizer = OPTIMIZER_ADAMW_BF16)},
    {"torchtitan_lora.py", "torchtitan-python", "torchtitan@0.3", "llama-3.1-70b",
     PLAN(1, 8, 1, 1, .micro_batch = 1, .grad_accum = 8, .zero = 3, .fused = FUSED_COMPILED, .finetune = FINETUNE_LORA,
          .lora_rank = 8, .lora_targets = LORA_ATTENTION, .recompute = RECOMPUTE_FULL)},
    {"torchtitan_foreach.toml", "torchtitan-toml", "torchtitan", "llama-3-8b",
     PLAN(1, 8, 1, 1, .micro_batch = 1, .grad_accum = 2, .zero = 3, .fused = FUSED_COMPILED,
          .optimizer = OPTIMIZER_ADAMW_FOREACH)},
    {"megatron_fsdp.sh", "megatron", "megatron@fsdp", "llama-3-70b",
     PLAN(2, 16, 1, 2, .micro_batch = 1, .grad_accum = 4, .zero = 3, .attention = ATTENTION_CUDNN,
          .reduce_dtype = REDUCE_DTYPE_BF16)},
    {"megatron_bf16_states.sh", "megatron", "megatron@0.19", "llama-3-8b",
     PLAN(1, 8, 1, 2, .micro_batch = 1, .grad_accum = 4, .zero = 1, .attention = ATTENTION_CUDNN,
          .optimizer = OPTIMIZER_ADAMW_BF16)},
    {"megatron_bridge_lora.py", "megatron-bridge", "megatron@bridge-0.6", "llama-3.1-70b",
     PLAN(1, 4, 1, 2, .micro_batch = 1, .grad_accum = 16, .zero = 1, .attention = ATTENTION_CUDNN,
          .finetune = FINETUNE_LORA, .recompute = RECOMPUTE_FULL)},
    {"megatron_bridge.py", "megatron-bridge", "megatron@bridge-0.6", "qwen3-8b",
     PLAN(2, 4, 2, 1, .micro_batch = 1, .grad_accum = 4, .zero = 1, .attention = ATTENTION_FLASH,
          .recompute = RECOMPUTE_SELECTIVE)},
    {"deepspeed_lion.json", "deepspeed", "deepspeed", "pythia-6.9b",
     PLAN(1, 8, 1, 1, .micro_batch = 2, .grad_accum = 4, .zero = 2, .optimizer = OPTIMIZER_LION, EAGER_FULL)},
    {"trl_packed.py", "trl", "trl", "llama-3-8b",
     PLAN(1, 8, 1, 1, .micro_batch = 2, .grad_accum = 2, .zero = 3, .pack = 600, EAGER_FULL)},
    {"train.sbatch", "sbatch", "torchtitan", "llama-3-8b",
     PLAN(1, 16, 1, 1, .micro_batch = 1, .grad_accum = 4, .zero = 3, .fused = FUSED_COMPILED)},
};

const int golden_count = sizeof goldens / sizeof goldens[0];

void case_fill(Case *made, const char *model, const char *target, const TrainPlan *plan) {
    *made = (Case){.prediction = {.plan = *plan,
                                  .step_s = 2.0,
                                  .step_low_s = 1.6,
                                  .step_high_s = 2.9,
                                  .tokens_per_s = 125000,
                                  .memory = {.reserved_bytes = 62.0 * (1 << 30)}}};
    Error error = {0};
    TuneRequest *request = &made->request;
    request->model_asked = model;
    request->memory_limit_bytes = 80.0 * (1 << 30);
    snprintf(request->cluster.name, sizeof request->cluster.name, "box");
    request->cluster.node.accelerators = 8;
    cr_assert_eq(model_find(text_is_path(model) ? "llama-3-8b" : model, &made->arena, &request->model, &error), 0, "%s",
                 error.message);
    request->model.path = text_is_path(model) ? model : NULL;
    cr_assert_eq(target_find(target, &request->target, &error), STATUS_OK, "%s", error.message);
    made->target = *request->target;
    made->target.evidence = "unvalidated";
    request->target = &made->target;
    made->job = (ExportJob){.request = request,
                            .prediction = &made->prediction,
                            .command = "ndtune export --as 'it'",
                            .arena = &made->arena};
}

char *exported(const char *format_name, const Case *from, Error *error) {
    const ExportFormat *format = NULL;
    cr_assert_eq(export_find(format_name, &format, error), STATUS_OK, "%s", error->message);
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    const Status status = export_write(format, &from->job, out, error);
    fclose(out);
    if (status != STATUS_OK) {
        cr_assert_eq(status, STATUS_USAGE);
        free(text);
        return NULL;
    }
    return text;
}
