// The rows. Left out: the mesh and the order of its axes, which have their own words; what a target offers of a field
// and takes by itself (target_choices.c).

#include "sim/plan/plan_fields.h"

#include <stddef.h>

_Static_assert(sizeof(Recompute) == sizeof(int), "enumerations of a plan are read and written as int");

static const char *const precision_names[] = {
    [DTYPE_FP32] = "fp32", [DTYPE_BF16] = "bf16", [DTYPE_FP16] = "fp16", [DTYPE_FP8] = "fp8"};
static const char *const tp_overlap_names[] = {[false] = "off", [true] = "on"};
static const char *const p2p_overlap_names[] = {[false] = "on", [true] = "off"};
static const char *const master_names[] = {[false] = "fp32", [true] = "bf16"};

// One rank offloads as a stage does.
static bool has_shards(const TrainPlan *plan) {
    return plan_shard_count(plan) > 1 || plan_offloads_states(plan);
}

static bool is_sharded(const TrainPlan *plan) {
    return plan->zero != 0;
}

static bool has_data_ranks(const TrainPlan *plan) {
    return mesh_group_size(&plan->mesh, AXES_DATA_GROUP) > 1;
}

static bool accumulates_on_several(const TrainPlan *plan) {
    return plan->grad_accum > 1 && has_data_ranks(plan);
}

static bool shards_parameters(const TrainPlan *plan) {
    return plan->zero == 3;
}

static bool reshards(const TrainPlan *plan) {
    return shards_parameters(plan) && plan->reshard == RESHARD_ALWAYS && plan->reshard_ranks > 1;
}

static bool splits_sequences(const TrainPlan *plan) {
    return plan->mesh.size[AXIS_CP] > 1;
}

static bool splits_layers(const TrainPlan *plan) {
    return plan->mesh.size[AXIS_TP] > 1;
}

static bool is_fp8(const TrainPlan *plan) {
    return plan->precision == DTYPE_FP8;
}

static bool recomputes_layers(const TrainPlan *plan) {
    return plan->recompute == RECOMPUTE_FULL;
}

static bool recomputes_modules(const TrainPlan *plan) {
    return plan->recompute == RECOMPUTE_SELECTIVE;
}

static bool recomputes_first_layers(const TrainPlan *plan) {
    return recomputes_layers(plan) && plan->recompute_layers > 0;
}

static bool recomputes_every_nth(const TrainPlan *plan) {
    return recomputes_layers(plan) && plan->recompute_every > 1;
}

static bool has_virtual_stages(const TrainPlan *plan) {
    return plan_has_stages(plan) && pp_own_chunks(plan->pp_schedule) == 0;
}

static bool goes_in_groups(const TrainPlan *plan) {
    return plan_has_stages(plan) && plan->pp_schedule == PP_INTERLEAVED;
}

static bool counts_ends(const TrainPlan *plan) {
    return plan_has_stages(plan) && plan->pp_split >= SPLIT_WEIGHTED;
}

static bool spreads_experts(const TrainPlan *plan) {
    return plan->mesh.size[AXIS_EP] > 1;
}

static bool bounds_experts(const TrainPlan *plan) {
    return plan->expert_capacity > 0;
}

// Operations that cast write or read fp8 themselves (sim/step/fp8_casts.c, lower_stored.c); products of adapters add,
// without tp.
static bool fuses_operations(const TrainPlan *plan) {
    return plan_fuses_casts(plan) || plan->fp8_activation || (plan_has_adapters(plan) && !splits_layers(plan));
}

static bool is_below_fp32(const TrainPlan *plan) {
    return plan->precision != DTYPE_FP32;
}

#define AT(member) .at = offsetof(TrainPlan, member)
#define FLAG(member) AT(member), .is_bool = true
#define COUNT(most) .low = 1, .high = most, .usual = 1
#define PRINTED .printed = PLAN_PRINTED_ALWAYS
#define WORDS(names) .words = names, .high = (int)(sizeof names / sizeof *names) - 1
#define OLD .hashed_always = true  // in the stores of version 0.1.0
enum { RUNS = PLAN_OPTION_RUN, EXECUTED = PLAN_OPTION_RUN | PLAN_OPTION_PREFLIGHT };

const PlanField plan_fields[PLAN_FIELD_COUNT] = {
    [PLAN_SEQ] = {"seq", .label = "sequence length", AT(seq), COUNT(1 << 24), PRINTED, OLD, .scope = PLAN_OF_BATCH,
                  .option = {"seq", "N", "tokens", "min(4096, the model's); run, validate, tune, preflight: 128",
                             "sequence length; 8k is 8192", EXECUTED | PLAN_OPTION_SAYS_WHAT},
                  .column = "seq_len"},
    [PLAN_MICRO_BATCH] = {"micro_batch", "mb", "micro-batch", AT(micro_batch), COUNT(1 << 20), PRINTED, OLD,
                          .scope = PLAN_OF_BATCH,
                          .option = {"micro-batch", "auto|N", "sequences", "auto; predict, run, preflight: 1",
                                     "sequences per data rank and micro-step", EXECUTED},
                          .column = "micro_batch"},
    [PLAN_GRAD_ACCUM] = {"grad_accum", "ga", "accumulation", AT(grad_accum), COUNT(1 << 20), PRINTED, OLD,
                         .scope = PLAN_OF_BATCH,
                         .option = {"grad-accum", "N", "micro-steps", "1", "micro-steps per optimizer step",
                                    EXECUTED | PLAN_OPTION_OF_ONE_PLAN},
                         .column = "grad_accum"},
    [PLAN_ZERO] = {"zero", .label = "sharding stage", AT(zero), .high = 3, .matters = has_shards, PRINTED, OLD,
                   .scope = PLAN_OF_SHAPE, .searched = true,
                   .option = {"zero", "auto|0|1|2|3", NULL, "auto",
                              "sharding stage over dp_shard x cp (3 = FSDP); auto tries those that the target's file "
                              "chooses from, else it is the target's own",
                              EXECUTED},
                   .column = "zero", .column_is_number = true},
    [PLAN_RESHARD] = {"reshard", .label = "reshard", AT(reshard), WORDS(reshard_names), .matters = shards_parameters,
                      PRINTED, OLD, .scope = PLAN_OF_SHAPE, .searched = true,
                      .option = {"reshard", "auto|always|never", NULL, "auto",
                                 "free gathered parameters after forward (stage 3); auto tries both", EXECUTED},
                      .column = "reshard"},
    [PLAN_RECOMPUTE] = {"recompute", .label = "recompute", AT(recompute), WORDS(recompute_names), PRINTED, OLD,
                        .scope = PLAN_OF_SHAPE, .searched = true,
                        .option = {"recompute", "auto|none|selective|full", NULL, "auto; predict, run, preflight: none",
                                   "activation recomputation; auto tries what the target has", EXECUTED},
                        .column = "recompute"},
    [PLAN_CP_ROTATE] = {"cp_rotate", .label = "cp rotation", AT(cp_rotate), WORDS(cp_rotate_names),
                        .matters = splits_sequences, PRINTED, OLD, .scope = PLAN_OF_SHAPE, .searched = true,
                        .option = {"cp-rotate", "auto|ring|allgather", NULL, "auto",
                                   "how context parallelism moves keys and values; auto tries what the target has",
                                   EXECUTED},
                        .column = "cp_algo"},
    [PLAN_PRECISION] = {"precision", .label = "precision", AT(precision), WORDS(precision_names), PRINTED, OLD,
                        .option = {"precision", "bf16|fp16|fp32|fp8", NULL,
                                   "bf16 where the cluster has it, else fp16; run, validate, tune, preflight: fp32, "
                                   "with --device cuda bf16",
                                   "number format of the arithmetic; fp8 is that of the layers' GEMMs, the rest stays "
                                   "bf16",
                                   EXECUTED},
                        .column = "dtype"},
    [PLAN_ATTENTION] = {"attention", .label = "attention", AT(attention), WORDS(attention_names), PRINTED, OLD,
                        .option = {"attention", "auto|eager|triton|flash|flash3|cudnn", NULL,
                                   "auto: the target's own; run, validate, tune, preflight: flash",
                                   "kernel of the attention", EXECUTED},
                        .column = "attention"},
    [PLAN_FUSED] = {"fused", .label = "kernels", AT(fused), WORDS(fused_names), PRINTED, OLD, .scope = PLAN_OF_SHAPE,
                    .searched = true,
                    .option = {"fused", "auto|eager|fused|compiled", NULL,
                               "auto; predict, run, preflight: the target's own",
                               "how norms, rotary positions, activation and loss run; auto tries what the target has "
                               "a switch for",
                               EXECUTED},
                    .column = "fused"},
    [PLAN_TP_OVERLAP] = {"tp_overlap", .label = "tp overlap", FLAG(tp_overlap), WORDS(tp_overlap_names),
                         .json_bool = true, .matters = splits_layers, OLD, .scope = PLAN_OF_SHAPE, .searched = true,
                         .option = {"tp-overlap", "auto|off|on", NULL, "auto; predict, run: off",
                                    "tensor-parallel collectives run beside the GEMMs that they feed; auto turns it on "
                                    "where the target and the links can",
                                    RUNS},
                         .column = "tp_overlap", .column_is_number = true},
    [PLAN_MASTER_WEIGHTS] = {"master_weights", "master", "master weights", FLAG(bf16_master), WORDS(master_names),
                             .matters = is_below_fp32, OLD,
                             .option = {"master-weights", "auto|fp32|bf16", NULL, "auto: the target's own",
                                        "number format of parameters, gradients and optimizer state"},
                             .column = "master_weights"},
    [PLAN_FP8_RECIPE] =
        {"fp8_recipe", .label = "fp8 scales", AT(fp8_recipe), WORDS(fp8_recipe_names), .matters = is_fp8,
         .printed = PLAN_PRINTED_WHERE_IT_MATTERS, OLD,
         .option = {"fp8-recipe", "auto|tensorwise|rowwise|rowwise-bf16|delayed|mxfp8|blockwise|nvfp4", NULL,
                    "auto: the target's own",
                    "scales of fp8: one per tensor, one per row (and gradients of weights in bf16), one "
                    "per tensor from earlier steps, one per 32 or 128 elements, or 4 bits with one per "
                    "16"},
         .column = "fp8_recipe"},
    [PLAN_REDUCE_DTYPE] = {"reduce_dtype", "reduce", "gradient reduction", AT(reduce_dtype), WORDS(reduce_dtype_names),
                           .matters = is_sharded, OLD,
                           .option = {"reduce-dtype", "auto|fp32|bf16", NULL, "auto: the target's own",
                                      "number format of gradients while they are reduced (stages 1 to 3)", RUNS},
                           .column = "reduce_dtype"},
    [PLAN_RECOMPUTE_UNIT] = {"recompute_unit", .label = "recompute unit", AT(recompute_unit),
                             WORDS(recompute_unit_names), .matters = recomputes_layers, .scope = PLAN_OF_SHAPE,
                             .option = {"recompute-unit", "auto|layer|children", NULL, "auto: the target's own",
                                        "what recompute full keeps an input of: each layer, or each of its children "
                                        "(norm, attention, norm, MLP)",
                                        RUNS}},
    [PLAN_RECOMPUTE_LAYERS] = {"recompute_layers", .label = "recomputed layers", AT(recompute_layers), .high = 1023,
                               .matters = recomputes_first_layers, .scope = PLAN_OF_SHAPE, .fitted = true,
                               .column = "recompute_layers", .column_is_number = true,
                               .option = {"recompute-layers", "auto|N", "layers", "auto; predict, run: 0",
                                          "recompute full of the first N layers only (of each virtual stage), 0 "
                                          "all; auto tries the fewest that fit",
                                          RUNS}},
    [PLAN_RECOMPUTE_EVERY] = {"recompute_every", .label = "every n-th layer recomputed", AT(recompute_every),
                              .high = 31, .matters = recomputes_every_nth, .scope = PLAN_OF_SHAPE, .fitted = true,
                              .column = "recompute_every", .column_is_number = true,
                              .option = {"recompute-every", "auto|N", "layers", "auto; predict, run: 0",
                                         "recompute full of every N-th layer only, 0 each; auto tries the largest N "
                                         "that fits",
                                         RUNS}},
    [PLAN_GRAD_SYNC] = {"grad_sync", "sync", "gradient sync", AT(grad_sync), WORDS(grad_sync_names),
                        .matters = accumulates_on_several, .scope = PLAN_OF_SHAPE, .searched = true,
                        .option = {"grad-sync", "auto|target|each|shards|last", NULL,
                                   "auto; predict, run, preflight: the target's own",
                                   "when gradients are reduced while accumulating: on each micro-step, over the shards "
                                   "on each and over replicas once, or whole on the last; auto tries what the target "
                                   "has, target is its own",
                                   RUNS},
                        .column = "grad_sync"},
    [PLAN_OFFLOAD] = {"offload", .label = "offload", AT(offload), WORDS(offload_names), .matters = plan_may_offload,
                      .option = {"offload", "none|optimizer|parameters,optimizer|activations", NULL, "none",
                                 "what lives in the host's memory: states, updated there, or inputs of recomputed "
                                 "layers (Megatron: what layers save); tried by itself only to say what would fit"},
                      .column = "offload"},
    [PLAN_PP_SCHEDULE] =
        {"pp_schedule", .label = "pipeline schedule", AT(pp_schedule), WORDS(pp_schedule_names),
         .matters = plan_has_stages, .printed = PLAN_PRINTED_WHERE_IT_MATTERS, .scope = PLAN_OF_SHAPE, .searched = true,
         .option = {"pp-schedule", "auto|gpipe|1f1b|interleaved|zero-bubble|zbv|dualpipev|FILE.csv", NULL,
                    "auto; predict, run, preflight: 1f1b",
                    "order in which the stages of a pipeline (pp) work off the micro-steps; auto tries "
                    "what the target has; of one plan, a file of PyTorch's actions, in whatever order they can be "
                    "done",
                    RUNS},
         .column = "pp_schedule"},
    [PLAN_VIRTUAL_STAGES] = {"virtual_stages", .label = "virtual stages", AT(virtual_stages), COUNT(63),
                             .matters = has_virtual_stages, .scope = PLAN_OF_SHAPE, .searched = true,
                             .option = {"virtual-stages", "auto|N", "chunks", "auto; predict, run, preflight: 2",
                                        "chunks of layers that each stage of a pipeline holds; auto tries those that "
                                        "make no stage fuller",
                                        RUNS},
                             .column = "virtual_stages", .column_is_number = true},
    [PLAN_REDUCE_OVERLAP] = {"reduce_overlap", .label = "reduction beside backward", AT(reduce_overlap),
                             WORDS(reduce_overlap_names), .matters = has_data_ranks, .scope = PLAN_OF_SHAPE,
                             .searched = true,
                             .option = {"reduce-overlap", "auto|target|off|on", NULL,
                                        "auto; predict, run, preflight: the target's own",
                                        "gradients are reduced beside backward (on), or kernels wait for them (off); "
                                        "auto tries what the target has, target is its own",
                                        RUNS},
                             .column = "reduce_overlap"},
    [PLAN_LOSS] = {"loss_form", "loss", "loss", AT(loss), WORDS(loss_form_names), .scope = PLAN_OF_SHAPE,
                   .searched = true,
                   .option = {"loss", "auto|target|whole|chunked|fused|in-place|one-copy", NULL,
                              "auto; predict, run, preflight: the target's own",
                              "head and loss: the logits of all tokens, of a part of the tokens at a time, the same by "
                              "one kernel, of all with the gradient written over them, or in one fp32 copy; auto "
                              "tries what the target has, target is its own",
                              RUNS},
                   .column = "loss"},
    [PLAN_CUDA_GRAPHS] =
        {"cuda_graphs", .label = "CUDA graphs", AT(cuda_graphs), WORDS(cuda_graphs_names), .is_set = true,
         .no_bits = CUDA_GRAPHS_LAYERS, .scope = PLAN_OF_SHAPE, .searched = true,
         .option = {"cuda-graphs", "auto|target|off|on|layers|attn|mlp|router", NULL, "auto; predict: the target's own",
                    "replayed without the host: all (on), layers, or their parts joined by +; auto tries off, on"},
         .column = "cuda_graph"},
    [PLAN_SEQUENCE_PARALLEL] = {"sequence_parallel", .label = "sequence parallelism", AT(sequence_parallel),
                                WORDS(sequence_parallel_names), .matters = splits_layers, .scope = PLAN_OF_SHAPE,
                                .option = {"sequence-parallel", "target|off|on", NULL, "the target's own",
                                           "tp ranks share the tokens between the blocks of a layer; off holds all "
                                           "of them on each, and is never tried by itself"}},
    [PLAN_FINETUNE] = {"finetune", .label = "fine-tuning", AT(finetune), WORDS(finetune_names), .scope = PLAN_OF_JOB,
                       .option = {"finetune", "full|lora|qlora|lora-int8", NULL, "full",
                                  "what is trained: all parameters, or adapters of low rank beside frozen ones, "
                                  "which are in the precision, 4 bits or int8",
                                  PLAN_OPTION_SAYS_WHAT | PLAN_OPTION_RUN},
                       .column = "method"},
    [PLAN_LORA_RANK] = {"lora_rank", .label = "rank of the adapters", AT(lora_rank), .high = 1024,
                        .matters = plan_has_adapters, .scope = PLAN_OF_JOB,
                        .option = {"lora-rank", "N", NULL, "16", "rank of the adapters",
                                   PLAN_OPTION_SAYS_WHAT | PLAN_OPTION_RUN},
                        .column = "rank", .column_is_number = true},
    [PLAN_LORA_TARGETS] = {"lora_targets", .label = "layers with adapters", AT(lora_targets), WORDS(lora_targets_names),
                           .matters = plan_has_adapters, .scope = PLAN_OF_JOB,
                           .option = {"lora-targets", "all|attention|query-value", NULL, "all",
                                      "linear layers that have an adapter", PLAN_OPTION_SAYS_WHAT | PLAN_OPTION_RUN},
                           .column = "target_modules"},
    [PLAN_OPTIMIZER] =
        {"optimizer", .label = "optimizer", AT(optimizer), WORDS(optimizer_names), .scope = PLAN_OF_JOB,
         .option = {"optimizer",
                    "adamw|adamw-fused|adamw-foreach|adamw-bf16|adamw-8bit|adamw-8bit-paged|"
                    "adamw-32bit-paged|adamw-8bit-torchao|adamw-4bit-torchao|lion|lion-8bit|sgd|"
                    "sgd-momentum|adafactor|muon|adamw-foreach-2.0|adamw-loop|adamw-remainders|adamw-fp8|"
                    "adamw-fp8-bf16",
                    NULL, "adamw, as the target runs it",
                    "what updates the parameters: it changes the training and is never tried by itself; "
                    "8bit and lion are bitsandbytes', bf16 is of the states alone, foreach-2.0 is PyTorch "
                    "2.0's; of Megatron's precision-aware optimizer bf16, remainders (states in fp32), fp8 and "
                    "fp8-bf16 (both states, or the first and the second) keep 2 bytes of a master",
                    PLAN_OPTION_SAYS_WHAT},
         .column = "optimizer"},
    [PLAN_PACK] = {"pack", .label = "packed documents", AT(pack), .high = 1 << 24, .scope = PLAN_OF_JOB,
                   .option = {"pack", "N", "tokens", "0: a sequence is one document",
                              "mean length of the documents that are packed into a sequence: attention is within each",
                              PLAN_OPTION_SAYS_WHAT},
                   .column = "pack", .column_is_number = true},
    [PLAN_IMBALANCE] = {"imbalance", .label = "imbalance of experts", AT(imbalance), .high = 10000,
                        .matters = spreads_experts, .scope = PLAN_OF_JOB,
                        .option = {"imbalance", "N", "per cent", "0: all ranks of ep get as many tokens",
                                   "tokens over the mean that the experts of the busiest rank of ep get: the others "
                                   "wait for it; a what-if, nothing predicts it",
                                   PLAN_OPTION_SAYS_WHAT | PLAN_OPTION_RUN}},
    [PLAN_CAPACITY] = {"capacity", .label = "room for experts' tokens", AT(capacity), .high = 6400,
                       .matters = spreads_experts, .scope = PLAN_OF_JOB,
                       .option = {"capacity", "N", "per cent", "200",
                                  "tokens that the experts of a rank of ep have room for where ndtune's own executor "
                                  "runs them, of the mean: none is dropped, and a run that needs more ends",
                                  PLAN_OPTION_SAYS_WHAT | PLAN_OPTION_RUN}},
    [PLAN_RECOMPUTE_MODULES] = {"recompute_modules", .label = "recomputed modules", AT(recompute_modules),
                                WORDS(recompute_module_names), .is_set = true, .matters = recomputes_modules,
                                .scope = PLAN_OF_SHAPE,
                                .option = {"recompute-modules",
                                           "auto|target|core-attn|layernorm|mlp|moe-act|mla-up-proj|moe", NULL,
                                           "auto; predict, run: the target's own",
                                           "what recompute selective makes again, of a layer, joined by +; auto tries "
                                           "some sets of what the target has, target is its own",
                                           RUNS},
                                .column = "recompute_modules"},
    [PLAN_DISPATCH] = {"dispatcher", .label = "dispatcher of experts", AT(dispatch), WORDS(dispatch_names),
                       .matters = spreads_experts, .scope = PLAN_OF_SHAPE,
                       .option = {"dispatcher", "target|alltoall|allgather|deepep|hybridep", NULL, "the target's own",
                                  "how tokens get to experts on other ranks (ep): a row for each visit, all tokens to "
                                  "every rank, or once to each node and rank by DeepEP or HybridEP; never tried by "
                                  "itself"},
                       .column = "dispatcher"},
    [PLAN_EP_OVERLAP] = {"ep_overlap", .label = "ep overlap", FLAG(ep_overlap), WORDS(tp_overlap_names),
                         .json_bool = true, .matters = spreads_experts, .scope = PLAN_OF_SHAPE,
                         .option = {"ep-overlap", "off|on", NULL, "off",
                                    "tokens travel to experts and back beside the layers of another micro-step"},
                         .column = "a2a_overlap", .column_is_number = true},
    [PLAN_PP_SPLIT] = {"pp_split", .label = "layers by stage", AT(pp_split), WORDS(pp_split_names),
                       .matters = plan_has_stages, .scope = PLAN_OF_SHAPE, .searched = true,
                       .option = {"pp-split", "auto|target|even|weighted|ends|chunks|LAYOUT", NULL,
                                  "auto; predict, run, preflight: the target's own",
                                  "which layers the stages of a pipeline hold: as many each, embedding and head "
                                  "counting as layers, or so many on the first and last stage, or chunk; auto tries "
                                  "what the target has where it is more even, target is its own; of one plan, "
                                  "Megatron's layout of all chunks in quotes, as \"Et*7|t*8|t*8|t*7L\"",
                                  RUNS},
                       .column = "pp_split"},
    [PLAN_PP_FIRST] = {"pp_first", .label = "layers of the first stage", AT(pp_first), .high = 255,
                       .matters = counts_ends, .scope = PLAN_OF_SHAPE,
                       .option = {"pp-first", "auto|N", "layers", "auto; predict, run, preflight: 0",
                                  "of --pp-split: layers that the embedding counts as, or that the first stage or "
                                  "chunk holds; auto takes the most even split",
                                  RUNS},
                       .column = "pp_first", .column_is_number = true},
    [PLAN_PP_LAST] = {"pp_last", .label = "layers of the last stage", AT(pp_last), .high = 255, .matters = counts_ends,
                      .scope = PLAN_OF_SHAPE,
                      .option = {"pp-last", "auto|N", "layers", "auto; predict, run, preflight: 0",
                                 "of --pp-split: layers that the head counts as, or that the last stage or chunk "
                                 "holds; auto takes the most even split",
                                 RUNS},
                      .column = "pp_last", .column_is_number = true},
    [PLAN_MLP_TILES] = {"mlp_tiles", .label = "tiles of the MLP", AT(mlp_tiles), .high = 1023, .scope = PLAN_OF_SHAPE,
                        .option = {"mlp-tiles", "N", "parts", "0: all tokens at once, kept for backward",
                                   "parts of a rank's tokens that the MLP of a layer runs on one after another, made "
                                   "again in backward (TiledMLP of Arctic long sequence training); never tried by "
                                   "itself",
                                   RUNS}},
    [PLAN_UPDATE_IN_BACKWARD] = {"update_in_backward", .label = "update in backward", FLAG(update_in_backward),
                                 WORDS(tp_overlap_names), .json_bool = true, .scope = PLAN_OF_JOB,
                                 .option = {"update-in-backward", "off|on", NULL, "off",
                                            "parameters are updated as soon as their gradient is there, which is then "
                                            "freed: no accumulation and no clipping by the norm of all gradients"}},
    [PLAN_FP8_PARAMETERS] = {"fp8_parameters", .label = "fp8 parameters", FLAG(fp8_parameters), WORDS(tp_overlap_names),
                             .json_bool = true, .matters = is_fp8, .scope = PLAN_OF_SHAPE, .column = "fp8_parameters",
                             .column_is_number = true,
                             .option = {"fp8-parameters", "off|on", NULL, "off",
                                        "weights that products read in fp8 are kept in fp8 alone, and gathered so "
                                        "behind the update; never tried by itself"}},
    [PLAN_RESHARD_RANKS] = {"reshard_ranks", .label = "ranks that reshard", AT(reshard_ranks), .high = 1023,
                            .matters = reshards, .scope = PLAN_OF_SHAPE, .searched = true,
                            .option = {"reshard-ranks", "auto|N", "ranks", "auto; predict: 0",
                                       "so many neighbours keep all parameters once more between them after the first "
                                       "forward and gather from each other (stage 3, hpZ), 0 none; auto tries those "
                                       "of a node where the target has it"}},
    [PLAN_REDUCE_BUCKET] = {"reduce_bucket", .label = "reduced by", AT(reduce_bucket), .high = 2000000000,
                            .matters = is_sharded, .scope = PLAN_OF_SHAPE, .searched = true,
                            .option = {"reduce-bucket", "auto|N", "elements", "auto; predict: 0, the target's own",
                                       "gradients are copied into buffers of so many elements to be reduced "
                                       "(reduce_bucket_size of DeepSpeed); 1: the hidden size squared, as transformers "
                                       "fills in auto; auto tries 1e8 where the target's own do not fit with room"}},
    [PLAN_ETP] = {"etp", .label = "ranks that cut an expert", AT(etp), .high = 1023, .scope = PLAN_OF_SHAPE,
                  .option = {"etp", "auto|N", "ranks", "auto; predict, run: 1 with ep, else as many as tp",
                             "ranks that cut each expert, with ep: the nearest of dp_shard x cp x tp; Megatron's "
                             "expert-tensor-parallel-size; auto tries those of a node where ep can be no larger",
                             RUNS},
                  .column = "etp", .column_is_number = true},
    [PLAN_EXPERT_CAPACITY] = {"expert_capacity", .label = "capacity of experts", AT(expert_capacity), .high = 6400,
                              .scope = PLAN_OF_JOB,
                              .option = {"expert-capacity", "N", "per cent", "0: none is dropped",
                                         "rows that an expert takes of a rank's tokens, of their mean; tokens beyond "
                                         "are dropped (Megatron's moe-expert-capacity-factor, 100 times)",
                                         PLAN_OPTION_SAYS_WHAT}},
    [PLAN_PAD_EXPERTS] = {"pad_experts", .label = "padding of experts", FLAG(pad_experts), WORDS(tp_overlap_names),
                          .json_bool = true, .matters = bounds_experts, .scope = PLAN_OF_JOB,
                          .option = {"pad-experts", "off|on", NULL, "off",
                                     "every expert takes --expert-capacity rows of each rank, empty ones too: the "
                                     "host waits for no counts",
                                     PLAN_OPTION_SAYS_WHAT}},
    [PLAN_MTP] = {"mtp", .label = "layers that predict further tokens", AT(mtp), .high = 3, .scope = PLAN_OF_JOB,
                  .option = {"mtp", "N", "layers", "0",
                             "layers behind the last that predict further tokens, on the last stage, each with the "
                             "head once more (multi-token prediction, num_nextn_predict_layers of DeepSeek-V3): it "
                             "changes the training and is never tried by itself",
                             PLAN_OPTION_SAYS_WHAT},
                  .column = "mtp", .column_is_number = true},
    [PLAN_PP_GROUP] = {"pp_group", .label = "micro-steps by chunk", AT(pp_group), .high = 4095,
                       .matters = goes_in_groups, .scope = PLAN_OF_SHAPE,
                       .option = {"pp-group", "N", "micro-steps", "0: the target's own",
                                  "of --pp-schedule interleaved: micro-steps that go through a chunk of layers before "
                                  "the next one (Megatron's microbatch-group-size-per-virtual-pipeline-stage); "
                                  "where the target takes any, its own is the smallest that it takes",
                                  RUNS},
                       .column = "pp_group", .column_is_number = true},
    [PLAN_PP_ROUNDS] =
        {"pp_rounds", .label = "schedules in a step", AT(pp_rounds), COUNT(4095), .matters = plan_has_stages,
         .scope = PLAN_OF_SHAPE,
         .option = {"pp-rounds", "N", "schedules", "1",
                    "of a pipeline: schedules that a step's micro-steps go through, as many in each, one after "
                    "another, where gradients are accumulated over whole schedules, and reduced after each; more than "
                    "one fill and drain as often, and are never tried by themselves",
                    RUNS},
         .column = "pp_rounds", .column_is_number = true},
    [PLAN_P2P_OVERLAP] = {"p2p_overlap", .label = "overlap of messages between stages", FLAG(p2p_waits),
                          WORDS(p2p_overlap_names), .matters = goes_in_groups, .scope = PLAN_OF_SHAPE,
                          .option = {"p2p-overlap", "on|off", NULL, "on",
                                     "of --pp-schedule interleaved: stages compute while they send and receive; off "
                                     "waits for each message as 1f1b does (Megatron's no-overlap-p2p-communication), "
                                     "is slower and never tried by itself",
                                     PLAN_OPTION_SAYS_WHAT}},
    [PLAN_OFFLOAD_LAYERS] = {"offload_layers", .label = "layers offloaded", AT(offload_layers), .high = 1023,
                             .matters = plan_offloads_activations, .scope = PLAN_OF_SHAPE,
                             .option = {"offload-layers", "N", "layers", "0: all but the last",
                                        "of --offload activations: first layers whose saved activations wait in the "
                                        "host's memory (Megatron's cpu-offloading-num-layers)"},
                             .column = "offload_layers", .column_is_number = true},
    [PLAN_FP8_ACTIVATION] = {"fp8_activation", .label = "input of the activation in fp8", FLAG(fp8_activation),
                             WORDS(tp_overlap_names), .json_bool = true, .scope = PLAN_OF_SHAPE,
                             .option = {"fp8-activation", "off|on", NULL, "off",
                                        "what gate and up projection give SwiGLU is kept for backward in fp8, cast "
                                        "there and back (Megatron's activation_func_fp8_input_store): it changes "
                                        "gradients and is never tried by itself"},
                             .column = "fp8_activation", .column_is_number = true},
    [PLAN_OP_FUSER] = {"op_fuser", .label = "fused operations", FLAG(op_fuser), WORDS(tp_overlap_names),
                       .json_bool = true, .matters = fuses_operations, .scope = PLAN_OF_SHAPE,
                       .option = {"op-fuser", "off|on", NULL, "off",
                                  "dense MLPs, experts in mxfp8 and adapters of Transformer Engine's fused operations "
                                  "(Megatron's use-transformer-engine-op-fuser): activations write fp8 themselves, "
                                  "products of adapters scale and add; never tried by itself"},
                       .column = "op_fuser", .column_is_number = true},
    [PLAN_QKV_ROPE] = {"qkv_rope", .label = "one kernel of q, k and v", FLAG(qkv_rope), WORDS(tp_overlap_names),
                       .json_bool = true, .scope = PLAN_OF_SHAPE,
                       .option = {"qkv-rope", "off|on", NULL, "off",
                                  "one kernel takes queries, keys and values out of their product and turns the first "
                                  "two (Megatron's fused_single_qkv_rope); never tried by itself"},
                       .column = "qkv_rope", .column_is_number = true},
};

// What is done to every field of very many plans: unrolled, a row is made of constants.
enum { EVERY_FIELD = 64 };

void plan_canonical(TrainPlan *plan) {
    mesh_canonical_order(&plan->mesh);
    const int etp = plan->etp;
    plan->etp = 0;
    plan->etp = etp == plan_expert_tp(plan) ? 0 : etp;
    plan->pp_rounds = plan->pp_rounds > 0 ? plan->pp_rounds : 1;
#pragma GCC unroll EVERY_FIELD
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        if (!plan_field_matters(plan, (PlanFieldId)id)) {
            plan_set(plan, (PlanFieldId)id, plan_fields[id].usual);
        }
    }
}

void plan_hash_canonical(const TrainPlan *plan, Hash *hash) {
    mesh_hash_sizes(&plan->mesh, hash);
#pragma GCC unroll EVERY_FIELD
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        const int value = plan_get(plan, (PlanFieldId)id);
        if (plan_fields[id].hashed_always) {
            hash_int(hash, value);
        } else if (value != plan_fields[id].usual) {
            hash_text(hash, plan_fields[id].name);  // such fields may be there or not: their numbers alone are none's
            hash_int(hash, value);
        }
    }
    if (!mesh_has_default_order(&plan->mesh)) {  // else as before orders existed
        axis_order_hash(&plan->mesh.order, hash);
    }
    if (plan->pp_schedule == PP_FILE && plan->pp_order) {
        hash_int(hash, (int64_t)plan->pp_order->hash);
    }
}

static unsigned bits_of(int id) {
    enum { INT_BITS = 32 };
    return INT_BITS - (unsigned)__builtin_clz((unsigned)plan_fields[id].high | 1);  // of the largest value
}

// Where a value of this many bits begins: none straddles two words.
static unsigned key_place(unsigned used, unsigned bits) {
    const unsigned left = PLAN_KEY_WORD_BITS - used % PLAN_KEY_WORD_BITS;
    return bits <= left ? used : used + left;
}

static void key_put(PlanKey *key, unsigned at, uint64_t value) {
    key->words[at / PLAN_KEY_WORD_BITS] |= value << at % PLAN_KEY_WORD_BITS;
}

// Of the plan the fields in `kept`; without a plan all their bits.
static PlanKey key_of(const TrainPlan *plan, uint64_t kept) {
    PlanKey key = {.used = 0};
    unsigned used = 0;
#pragma GCC unroll EVERY_FIELD
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        if (plan_fields[id].scope != PLAN_OF_BATCH) {
            const unsigned bits = bits_of(id), at = key_place(used, bits);
            const uint64_t value = plan ? (uint64_t)plan_get(plan, (PlanFieldId)id) : ((uint64_t)1 << bits) - 1;
            key_put(&key, at, kept & PLAN_BIT(id) ? value : 0);
            used = at + bits;
        }
    }
    ASSERT(used <= PLAN_KEY_WORDS * PLAN_KEY_WORD_BITS);
    key.used = (int)used;
    return key;
}

PlanKey plan_key(const TrainPlan *plan, uint64_t without) {
    return key_of(plan, ~without);
}

PlanKey plan_key_bits(uint64_t fields) {
    return key_of(NULL, fields);
}

void plan_key_add(PlanKey *key, uint64_t value, int bits) {
    const unsigned at = key_place((unsigned)key->used, (unsigned)bits);
    ASSERT(at + (unsigned)bits <= PLAN_KEY_WORDS * PLAN_KEY_WORD_BITS);
    key_put(key, at, value);
    key->used = (int)at + bits;
}
