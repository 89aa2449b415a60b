// The words of the values that plan_choices.h declares.

#include "sim/plan/plan_choices.h"

const char *const reshard_names[RESHARD_COUNT] = {[RESHARD_ALWAYS] = "always", [RESHARD_NEVER] = "never"};
const char *const recompute_names[RECOMPUTE_COUNT] = {
    [RECOMPUTE_NONE] = "none", [RECOMPUTE_FULL] = "full", [RECOMPUTE_SELECTIVE] = "selective"};
const char *const cp_rotate_names[CP_ROTATE_COUNT] = {[CP_ROTATE_RING] = "ring", [CP_ROTATE_ALLGATHER] = "allgather"};
const char *const attention_names[ATTENTION_COUNT] = {[ATTENTION_FLASH] = "flash",
                                                      [ATTENTION_FLASH3] = "flash3",
                                                      [ATTENTION_CUDNN] = "cudnn",
                                                      [ATTENTION_TRITON] = "triton",
                                                      [ATTENTION_EAGER] = "eager"};
const char *const fused_names[FUSED_COUNT] = {
    [FUSED_FUSED] = "fused", [FUSED_EAGER] = "eager", [FUSED_COMPILED] = "compiled"};
const char *const fp8_recipe_names[FP8_RECIPE_COUNT] = {
    [FP8_TENSORWISE] = "tensorwise", [FP8_ROWWISE] = "rowwise", [FP8_DELAYED] = "delayed",          [FP8_MX] = "mxfp8",
    [FP8_BLOCK] = "blockwise",       [FP8_NVFP4] = "nvfp4",     [FP8_ROWWISE_BF16] = "rowwise-bf16"};
const char *const reduce_dtype_names[REDUCE_DTYPE_COUNT] = {
    [REDUCE_DTYPE_TARGET] = "auto", [REDUCE_DTYPE_FP32] = "fp32", [REDUCE_DTYPE_BF16] = "bf16"};
const char *const recompute_unit_names[RECOMPUTE_UNIT_COUNT] = {
    [RECOMPUTE_UNIT_TARGET] = "auto", [RECOMPUTE_UNIT_LAYER] = "layer", [RECOMPUTE_UNIT_CHILDREN] = "children"};
// Every set in the order of its bits: 1, then 2 and 3, then 4 to 7, ...
#define SETS_1(end) &("" end)[1], &("+core-attn" end)[1]
#define SETS_2(end) SETS_1(end), SETS_1("+layernorm" end)
#define SETS_3(end) SETS_2(end), SETS_2("+mlp" end)
#define SETS_4(end) SETS_3(end), SETS_3("+moe-act" end)
#define SETS_5(end) SETS_4(end), SETS_4("+mla-up-proj" end)
const char *const recompute_module_names[RECOMPUTE_MODULE_SETS] = {
    "target",      "core-attn", SETS_1("+layernorm"), SETS_2("+mlp"), SETS_3("+moe-act"), SETS_4("+mla-up-proj"),
    SETS_5("+moe")};
const char *const grad_sync_names[GRAD_SYNC_COUNT] = {
    [GRAD_SYNC_TARGET] = "target", [GRAD_SYNC_EACH] = "each", [GRAD_SYNC_SHARDS] = "shards", [GRAD_SYNC_LAST] = "last"};
#define SWITCHED(of) [of##_TARGET] = "target", [of##_OFF] = "off", [of##_ON] = "on"
const char *const reduce_overlap_names[REDUCE_OVERLAP_COUNT] = {SWITCHED(REDUCE_OVERLAP)};
const char *const offload_names[OFFLOAD_COUNT] = {[OFFLOAD_NONE] = "none",
                                                  [OFFLOAD_OPTIMIZER] = "optimizer",
                                                  [OFFLOAD_PARAMETERS] = "parameters,optimizer",
                                                  [OFFLOAD_ACTIVATIONS] = "activations"};
const char *const pp_schedule_names[PP_SCHEDULE_COUNT] = {[PP_1F1B] = "1f1b",
                                                          [PP_GPIPE] = "gpipe",
                                                          [PP_INTERLEAVED] = "interleaved",
                                                          [PP_ZERO_BUBBLE] = "zero-bubble",
                                                          [PP_ZBV] = "zbv",
                                                          [PP_DUALPIPEV] = "dualpipev",
                                                          [PP_FILE] = "file"};
const char *const pp_split_names[SPLIT_COUNT] = {"target", "even", "weighted", "ends", "chunks"};
const char *const loss_form_names[LOSS_FORM_COUNT] = {"target", "whole", "chunked", "fused", "in-place", "one-copy"};
#define PARTS(end) "attn" end, "mlp" end, "attn+mlp" end
#define OF_LAYERS [CUDA_GRAPHS_LAYERS] = "layers", PARTS(""), "router", PARTS("+router")
const char *const cuda_graphs_names[CUDA_GRAPHS_COUNT] = {SWITCHED(CUDA_GRAPHS), OF_LAYERS};
const char *const sequence_parallel_names[SEQUENCE_PARALLEL_COUNT] = {SWITCHED(SEQUENCE_PARALLEL)};
const char *const dispatch_names[DISPATCH_COUNT] = {[DISPATCH_TARGET] = "target",
                                                    [DISPATCH_ALLTOALL] = "alltoall",
                                                    [DISPATCH_ALLGATHER] = "allgather",
                                                    [DISPATCH_DEEPEP] = "deepep",
                                                    [DISPATCH_HYBRIDEP] = "hybridep"};
const char *const finetune_names[FINETUNE_COUNT] = {
    [FINETUNE_FULL] = "full", [FINETUNE_LORA] = "lora", [FINETUNE_QLORA] = "qlora", [FINETUNE_LORA_INT8] = "lora-int8"};
const char *const lora_targets_names[LORA_TARGETS_COUNT] = {
    [LORA_ALL] = "all", [LORA_ATTENTION] = "attention", [LORA_QUERY_VALUE] = "query-value"};
const char *const optimizer_names[OPTIMIZER_COUNT] = {[OPTIMIZER_TARGET] = "adamw",
                                                      [OPTIMIZER_ADAMW_FUSED] = "adamw-fused",
                                                      [OPTIMIZER_ADAMW_FOREACH] = "adamw-foreach",
                                                      [OPTIMIZER_ADAMW_BF16] = "adamw-bf16",
                                                      [OPTIMIZER_ADAMW_8BIT] = "adamw-8bit",
                                                      [OPTIMIZER_ADAMW_8BIT_PAGED] = "adamw-8bit-paged",
                                                      [OPTIMIZER_ADAMW_32BIT_PAGED] = "adamw-32bit-paged",
                                                      [OPTIMIZER_ADAMW_8BIT_TORCHAO] = "adamw-8bit-torchao",
                                                      [OPTIMIZER_ADAMW_4BIT_TORCHAO] = "adamw-4bit-torchao",
                                                      [OPTIMIZER_LION] = "lion",
                                                      [OPTIMIZER_LION_8BIT] = "lion-8bit",
                                                      [OPTIMIZER_SGD] = "sgd",
                                                      [OPTIMIZER_SGD_MOMENTUM] = "sgd-momentum",
                                                      [OPTIMIZER_ADAFACTOR] = "adafactor",
                                                      [OPTIMIZER_MUON] = "muon",
                                                      [OPTIMIZER_ADAMW_FOREACH_2_0] = "adamw-foreach-2.0",
                                                      [OPTIMIZER_ADAMW_LOOP] = "adamw-loop",
                                                      [OPTIMIZER_ADAMW_REMAINDERS] = "adamw-remainders",
                                                      [OPTIMIZER_ADAMW_FP8] = "adamw-fp8",
                                                      [OPTIMIZER_ADAMW_FP8_BF16] = "adamw-fp8-bf16"};
