// Files written by ndtune export are read back by explain --from as the same plan: over random plans, of every format
// that both support. The seed is printed; NDTUNE_SEED repeats a failure.

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/import/config_load.h"
#include "autotune/import/import.h"
#include "reports/export/export.h"
#include "sim/frameworks/target_choices.h"
#include "tests/support/seed.h"
#include "tests/support/splitmix.h"

enum { PLANS = 800, MOST_PLANS = 20 * PLANS, LEAST_WRITTEN = 6 };  // more are drawn until so many were written

static int pick(uint64_t *seed, int count) {
    return (int)(splitmix_next(seed) % (uint64_t)count);
}

// Of 32 layers. One chunk more than the others in front is how it deals out what does not divide, by itself.
static void any_of_megatron(uint64_t *seed, const Target *target, TrainPlan *plan) {
    static const int ends[] = {1, 2, 4, 6};
    static const PpSplit splits[] = {SPLIT_TARGET, SPLIT_WEIGHTED, SPLIT_ENDS, SPLIT_CHUNKS};
    static const Optimizer optimizers[] = {OPTIMIZER_TARGET,     OPTIMIZER_SGD_MOMENTUM,
                                           OPTIMIZER_ADAMW_BF16, OPTIMIZER_ADAMW_REMAINDERS,
                                           OPTIMIZER_ADAMW_FP8,  OPTIMIZER_ADAMW_FP8_BF16};
    const bool newer = strcmp(target->version, "0.19") == 0;
    plan->pp_schedule = pick(seed, 2) ? PP_1F1B : PP_INTERLEAVED;
    plan->pp_split = splits[pick(seed, 4)];
    plan->pp_first = plan->pp_split == SPLIT_WEIGHTED ? pick(seed, 2) : ends[pick(seed, 4)];
    plan->pp_last = plan->pp_split == SPLIT_WEIGHTED ? 1 : ends[pick(seed, 4)];
    plan->recompute_modules = pick(seed, RECOMPUTE_MODULE_SETS);
    plan->recompute_layers = pick(seed, 2) * 3;
    plan->reduce_dtype = pick(seed, 2) ? REDUCE_DTYPE_TARGET : REDUCE_DTYPE_BF16;
    plan->reduce_overlap = (ReduceOverlap)pick(seed, REDUCE_OVERLAP_COUNT);
    plan->sequence_parallel = (SequenceParallel)pick(seed, SEQUENCE_PARALLEL_COUNT);
    plan->fp8_recipe = (Fp8Recipe)pick(seed, FP8_RECIPE_COUNT);
    plan->fp8_parameters = pick(seed, 2);
    plan->op_fuser = pick(seed, 2);
    plan->attention = pick(seed, 2) ? ATTENTION_FLASH : ATTENTION_CUDNN;
    plan->fused = FUSED_FUSED;
    plan->zero = target->max_zero == 3 ? 3 : pick(seed, 2);
    plan->cuda_graphs = newer && pick(seed, 3) == 0 ? (GraphUse)pick(seed, CUDA_GRAPHS_COUNT) : CUDA_GRAPHS_TARGET;
    plan->optimizer = newer ? optimizers[pick(seed, 6)] : OPTIMIZER_TARGET;
    const Offload offloads[] = {OFFLOAD_OPTIMIZER, OFFLOAD_ACTIVATIONS, OFFLOAD_NONE};
    plan->offload = offloads[pick(seed, 6) % 3];
    plan->offload_layers = plan->offload == OFFLOAD_ACTIVATIONS ? 1 + pick(seed, 8) : 0;
    plan->p2p_waits = target->p2p_switch && pick(seed, 3) == 0;
    plan->bf16_master = false;
}

static void any_of_nanotron(uint64_t *seed, TrainPlan *plan) {
    plan->zero = pick(seed, 2);
    plan->pp_schedule = pick(seed, 2) ? PP_1F1B : PP_GPIPE;
    plan->recompute = pick(seed, 2) ? RECOMPUTE_FULL : RECOMPUTE_NONE;
    plan->precision = pick(seed, 3) ? DTYPE_BF16 : DTYPE_FP32;
    plan->attention = ATTENTION_FLASH;
    plan->fused = FUSED_FUSED;
    plan->bf16_master = plan->tp_overlap = false;
}

// Of a model with experts: ranks that spread them, on a mesh that can lend as many.
static void any_of_experts(uint64_t *seed, const Target *target, const ModelSpec *model, TrainPlan *plan) {
    static const int sizes[] = {1, 2, 4, 8}, cuts[] = {0, 0, 1, 2, 4}, capacities[] = {0, 0, 125, 200};
    plan->mesh.size[AXIS_SP] = 1;
    const int lent = mesh_world(&plan->mesh) / mesh_stages(&plan->mesh), asked = sizes[pick(seed, 4)];
    plan->mesh.size[AXIS_EP] = !(target->axes & AXIS_BIT(AXIS_EP)) ? 1 : asked < lent ? asked : lent;
    plan->dispatch = pick(seed, 2) ? DISPATCH_TARGET : (Dispatch)pick(seed, DISPATCH_COUNT);
    plan->precision = DTYPE_BF16;
    plan->mtp = target->predicts_further && plan->zero < 3 && pick(seed, 3) == 0;
    if (model->layers % 2 == 1) {  // which it splits by itself as where the loss is counted
        plan->pp_split = SPLIT_TARGET;
    }
    if (target->cuts_experts) {
        plan->etp = cuts[pick(seed, 5)];
        plan->expert_capacity = capacities[pick(seed, 4)];
        plan->pad_experts = plan->expert_capacity > 0 && pick(seed, 2);
        plan->ep_overlap = plan->mesh.size[AXIS_EP] > 1 && pick(seed, 3) == 0;
    }
}

// Adapters, where the target has them and nothing of theirs is in a script.
static void any_of_adapters(uint64_t *seed, const Target *target, TrainPlan *plan) {
    const Finetune finetune = (Finetune)pick(seed, FINETUNE_COUNT);
    if (pick(seed, 3) == 0 && target->finetunes >> finetune & 1) {
        plan->finetune = finetune;
        plan->lora_rank = 8 << pick(seed, 3);
        plan->lora_targets = (LoraTargets)pick(seed, LORA_TARGETS_COUNT);
        plan->bf16_master = false;
    }
}

static TrainPlan any_plan(uint64_t *seed, const Target *target, const ModelSpec *model) {
    static const int sizes[] = {1, 1, 2, 4, 8}, seqs[] = {512, 2048, 4096, 8192};
    static const Dtype dtypes[] = {DTYPE_BF16, DTYPE_FP16, DTYPE_FP32, DTYPE_FP8};
    TrainPlan plan = {.seq = seqs[pick(seed, 4)],
                      .micro_batch = 1 + pick(seed, 4),
                      .grad_accum = 1 + pick(seed, 8),
                      .zero = pick(seed, 4),
                      .reshard = (Reshard)pick(seed, RESHARD_COUNT),
                      .recompute = (Recompute)pick(seed, RECOMPUTE_COUNT),
                      .cp_rotate = (CpRotate)pick(seed, CP_ROTATE_COUNT),
                      .precision = dtypes[pick(seed, 4)],
                      .bf16_master = pick(seed, 4) == 0,
                      .fp8_recipe = (Fp8Recipe)pick(seed, 2),
                      .attention = (AttentionKernel)pick(seed, ATTENTION_COUNT),
                      .fused = (Fused)pick(seed, FUSED_COUNT),
                      .tp_overlap = pick(seed, 4) == 0,
                      .pp_schedule = (PpSchedule)pick(seed, PP_SCHEDULE_COUNT),
                      .virtual_stages = 1 + pick(seed, 4)};
    const bool staged = strcmp(target->name, "torchtitan") == 0 || strcmp(target->name, "megatron") == 0 ||
                        strcmp(target->name, "nanotron") == 0;
    const AxisMask drawn = target->axes & ~AXIS_BIT(AXIS_EP) & ~(staged ? 0 : AXIS_BIT(AXIS_PP));
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        plan.mesh.size[axis] = drawn & AXIS_BIT(axis) ? sizes[pick(seed, 5)] : 1;
    }
    if (plan.mesh.size[AXIS_SP] > 1) {  // only with data parallelism, where there is a file for it
        plan.mesh.size[AXIS_TP] = plan.mesh.size[AXIS_CP] = plan.mesh.size[AXIS_DP_REPLICATE] = 1;
    }
    if (strcmp(target->name, "megatron") == 0) {
        any_of_megatron(seed, target, &plan);
    }
    if (strcmp(target->name, "nanotron") == 0) {
        any_of_nanotron(seed, &plan);
    }
    any_of_adapters(seed, target, &plan);
    if (model->experts.count > 0) {
        any_of_experts(seed, target, model, &plan);
    }
    if (strcmp(target->name, "automodel") == 0) {  // its file holds no others
        plan.precision = DTYPE_BF16;
        plan.attention = ATTENTION_FLASH;
        plan.bf16_master = plan.tp_overlap = false;
    }
    if (plan.recompute == RECOMPUTE_SELECTIVE && target->selective_flavour == SELECTIVE_NONE) {
        plan.recompute = RECOMPUTE_NONE;
    }
    if (target->always_reshards) {
        plan.reshard = RESHARD_ALWAYS;
    }
    if (target->bf16_weights) {  // its file has no switch for them
        plan.bf16_master = plan.precision == DTYPE_BF16;
    }
    if (target->shard_needs_fsdp) {
        plan.zero = target_default_zero(target, &plan.mesh);
    }
    target_canonical(target, &plan);
    if (plan.zero == 0) {  // replicas are replicas, however they are called; ep takes its ranks from dp_shard
        const Axis one = plan.mesh.size[AXIS_EP] > 1 ? AXIS_DP_SHARD : AXIS_DP_REPLICATE;
        const int replicas = plan.mesh.size[AXIS_DP_REPLICATE] * plan.mesh.size[AXIS_DP_SHARD];
        plan.mesh.size[AXIS_DP_REPLICATE] = plan.mesh.size[AXIS_DP_SHARD] = 1;
        plan.mesh.size[one] = replicas;
    }
    target_canonical(target, &plan);
    return plan;
}

static char *exported(const ExportFormat *format, const ExportJob *job) {
    char *text = NULL;
    size_t bytes = 0;
    Error error = {0};
    FILE *out = open_memstream(&text, &bytes);
    cr_assert_eq(export_write(format, job, out, &error), STATUS_OK, "%s", error.message);
    fclose(out);
    return text;
}

typedef struct Pair {
    const char *exporter, *importer, *target;
    ConfigSyntax syntax;
    bool holds_batch, holds_seq, holds_recompute, holds_attention;  // else the script does
} Pair;

// What is in the user's script comes from the command line.
static ImportChoices of_the_script(const Pair *pair, const char *text, const TrainPlan *plan) {
    ImportChoices given = import_nothing_said();
    given.seq = pair->holds_seq ? 0 : plan->seq;
    given.micro_batch = pair->holds_batch ? 0 : plan->micro_batch;
    given.grad_accum = pair->holds_batch ? 0 : plan->grad_accum;
    const bool by_fsdp = strcmp(pair->importer, "nanotron") != 0 && strcmp(pair->importer, "megatron") != 0;
    const bool said = plan_shard_count(plan) > 1 || !by_fsdp;
    given.choice[PLAN_RECOMPUTE] = pair->holds_recompute && said ? IMPORT_UNSAID : (int)plan->recompute;
    given.choice[PLAN_ATTENTION] = pair->holds_attention ? IMPORT_UNSAID : (int)plan->attention;
    for (int i = 0; i < 5 && !pair->holds_attention; i++) {  // the model's, as its attention
        static const PlanFieldId ids[] = {PLAN_FINETUNE, PLAN_LORA_RANK, PLAN_LORA_TARGETS, PLAN_PRECISION,
                                          PLAN_MASTER_WEIGHTS};
        given.choice[ids[i]] = i < 3 || plan->bf16_master ? plan_get(plan, ids[i]) : IMPORT_UNSAID;
    }
    // Whose kernel the PyTorch there chooses: torchtitan's TOML has no other, and so no word for it.
    const bool by_sdpa = strstr(text, "\"sdpa\"") || strcmp(pair->exporter, "torchtitan-toml") == 0;
    if (plan->attention == ATTENTION_CUDNN && by_sdpa) {
        given.choice[PLAN_ATTENTION] = ATTENTION_CUDNN;
    }
    const bool alone = pair->syntax != SYNTAX_YAML || strcmp(pair->importer, "accelerate") != 0;
    given.world = alone ? mesh_world(&plan->mesh) : 0;
    return given;
}

static void check_plan(const Pair *pair, const ExportFormat *format, const TuneRequest *request, const TrainPlan *plan,
                       Arena *arena) {
    const Prediction prediction = {.plan = *plan, .step_s = 1, .tokens_per_s = 1};
    const ExportJob job = {.request = request, .prediction = &prediction, .command = "ndtune", .arena = arena};
    char *text = exported(format, &job);
    ConfigNode *root = NULL;
    Import import;
    Error error = {0};
    cr_assert_eq(config_parse(text, "file", pair->syntax, arena, &root, &error), STATUS_OK, "%s\n%s", error.message,
                 text);
    cr_assert_eq(import_tree(root, "file", "auto", arena, &import, &error), STATUS_OK, "%s\n%s", error.message, text);
    cr_assert_str_eq(import.format->name, pair->importer, "%s", text);
    const ImportChoices given = of_the_script(pair, text, plan);
    import_settle(&import, &given);
    cr_assert_null(import.refusal, "%s\n%s", import.refusal, text);
    // An exporter writes nothing that the framework refuses, drops or does otherwise, and nothing that a reader does
    // not know.
    for (int i = 0; i < import.finding_count; i++) {
        const FindingKind kind = import.findings[i].kind;
        const bool arithmetic = import.findings[i].line == 0;
        cr_expect(kind == FINDING_ASSUMED || arithmetic, "%s: %s\n%s", finding_names[kind], import.findings[i].sentence,
                  text);
    }
    TrainPlan usual = {.seq = 1, .precision = DTYPE_BF16, .zero = plan->zero, .fused = plan->fused}, read;
    import_plan(&import, &usual, &read);
    target_canonical(request->target, &read);
    char expected[PLAN_TEXT_BYTES], got[PLAN_TEXT_BYTES];
    cr_expect_str_eq(plan_text(&read, got), plan_text(plan, expected), "%s: %s is not %s\n%s", pair->exporter, got,
                     expected, text);
    free(text);
}

static void check_pair(const Pair *pair, const char *model, uint64_t *seed) {
    const ExportFormat *format = NULL;
    Error error = {0};
    TuneRequest request = {.model_asked = model, .memory_limit_bytes = 1};
    Arena lasting = {0};
    cr_assert_eq(export_find(pair->exporter, &format, &error), STATUS_OK);
    cr_assert_eq(model_find(model, &lasting, &request.model, &error), STATUS_OK);
    cr_assert_eq(target_find(pair->target, &request.target, &error), STATUS_OK);
    request.cluster.node.accelerators = 8;
    int written = 0;
    for (int i = 0; i < PLANS || (written < LEAST_WRITTEN && i < MOST_PLANS); i++) {
        Arena arena = {0};
        const TrainPlan plan = any_plan(seed, request.target, &request.model);
        const Prediction prediction = {.plan = plan};
        const ExportJob job = {.request = &request, .prediction = &prediction, .command = "ndtune", .arena = &arena};
        const char *reason = NULL;
        target_check(request.target, &request.model, &plan, &arena, &reason);
        if (!reason && mesh_world(&plan.mesh) > 1 && export_check(format, &job, &(Error){0}) == STATUS_OK) {
            check_plan(pair, format, &request, &plan, &arena);
            written++;
        }
        arena_free(&arena);
    }
    cr_expect_geq(written, LEAST_WRITTEN, "%s wrote only %d plans of %s", pair->exporter, written, model);
    arena_free(&lasting);
}

static void check_pairs(const Pair *pairs, size_t count, const char *model) {
    uint64_t seed = seed_of_run("round trip", 20261120);
    for (size_t i = 0; i < count; i++) {
        check_pair(&pairs[i], model, &seed);
    }
}

Test(import_round_trip, what_is_exported_reads_back_as_the_same_plan) {
    static const Pair pairs[] = {
        {"accelerate-yaml", "accelerate", "accelerate", SYNTAX_YAML, false, false, true, false},
        {"axolotl", "axolotl", "axolotl", SYNTAX_YAML, true, true, true, true},
        {"torchtitan-toml", "torchtitan", "torchtitan", SYNTAX_TOML, true, true, true, true},
        {"deepspeed", "deepspeed", "deepspeed", SYNTAX_JSON, true, false, false, false},
        {"accelerate-deepspeed", "accelerate", "deepspeed", SYNTAX_YAML, false, false, false, false},
        {"nanotron", "nanotron", "nanotron", SYNTAX_YAML, true, true, true, true},
        {"automodel", "automodel", "automodel", SYNTAX_YAML, true, true, true, true},
        {"trainer", "trainer", "trainer", SYNTAX_PYTHON, true, true, true, true},
        {"trl", "trl", "trl", SYNTAX_PYTHON, true, true, true, true},
        {"torchtitan-python", "torchtitan", "torchtitan@0.3", SYNTAX_PYTHON, true, true, true, true},
        {"torchtitan-python", "torchtitan", "torchtitan@head", SYNTAX_PYTHON, true, true, true, true},
        {"megatron", "megatron", "megatron@core", SYNTAX_SHELL, true, true, true, true},
        {"megatron", "megatron", "megatron@0.19", SYNTAX_SHELL, true, true, true, true},
        {"megatron", "megatron", "megatron@fsdp", SYNTAX_SHELL, true, true, true, true},
        {"megatron-bridge", "megatron", "megatron@bridge-0.6", SYNTAX_PYTHON, true, true, true, true},
        {"accelerate-python", "accelerate", "accelerate", SYNTAX_PYTHON, true, true, true, true},
        {"hf-trainer", "trainer", "accelerate", SYNTAX_PYTHON, true, true, true, true},
    };
    check_pairs(pairs, sizeof pairs / sizeof pairs[0], "llama-3-8b");
}

Test(import_round_trip, ranks_of_experts_read_back_as_the_same_plan) {
    static const Pair pairs[] = {
        {"torchtitan-toml", "torchtitan", "torchtitan", SYNTAX_TOML, true, true, true, true},
        {"torchtitan-python", "torchtitan", "torchtitan@0.3", SYNTAX_PYTHON, true, true, true, true},
        {"trainer", "trainer", "trainer", SYNTAX_PYTHON, true, true, true, true},
        {"axolotl", "axolotl", "axolotl", SYNTAX_YAML, true, true, true, true},
        {"automodel", "automodel", "automodel", SYNTAX_YAML, true, true, true, true},
        {"megatron", "megatron", "megatron@core", SYNTAX_SHELL, true, true, true, true},
        {"megatron", "megatron", "megatron@0.19", SYNTAX_SHELL, true, true, true, true},
        {"megatron-bridge", "megatron", "megatron@bridge-0.6", SYNTAX_PYTHON, true, true, true, true},
    };
    check_pairs(pairs, sizeof pairs / sizeof pairs[0], "qwen3-30b-a3b");
}

Test(import_round_trip, models_that_need_flags_of_their_own_read_back_as_the_same_plan) {
    static const Pair pair = {"megatron", "megatron", "megatron@core", SYNTAX_SHELL, true, true, true, true};
    check_pairs(&pair, 1, "deepseek-v3");
    check_pairs(&pair, 1, "gpt-oss-20b");
}
