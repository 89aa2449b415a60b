// Maps the columns of a row to the predictor's inputs. The row's own sizes make the model; its structure (norms,
// biases, positions) is that of the preset with the row's name, else of the family its MLP indicates. A row is
// predicted as any user's request would be; nothing here looks at an id, and at a source only for which code it ran.

#include "autotune/accuracy/run_case.h"

#include <math.h>
#include <string.h>

#include "autotune/accuracy/label_rows.h"
#include "autotune/accuracy/run_chips.h"
#include "autotune/accuracy/run_labels.h"
#include "autotune/accuracy/run_machine.h"
#include "autotune/accuracy/run_model.h"
#include "autotune/accuracy/run_target.h"
#include "autotune/accuracy/run_tests.h"
#include "autotune/predict/predict_serial.h"
#include "autotune/predict/target_on_cluster.h"
#include "sim/cost/cost.h"
#include "sim/frameworks/target_choices.h"

enum { PLAIN_NODE = 8 };  // of more accelerators it is a rack, whose trays hold fewer

typedef struct KnownCluster {
    const char *key;  // "dgx-h100;node.gpus=4"
    ClusterProfile profile;
    const char *skipped;
} KnownCluster;

struct RunMapper {
    Arena *arena;
    const char *given_name;  // of a profile that replaces the built-in one of that name; NULL = none
    const ClusterProfile *given;
    KnownCluster *clusters;
    size_t cluster_count, cluster_capacity;
};

RunMapper *run_mapper_new(Arena *arena) {
    RunMapper *mapper = ARENA_NEW(arena, RunMapper);
    mapper->arena = arena;
    return mapper;
}

void run_mapper_give(RunMapper *mapper, const char *name, const ClusterProfile *profile) {
    mapper->given_name = name;
    mapper->given = profile;
}

// Returns the reason why it is unavailable, NULL when *cluster is filled.
static const char *load_cluster(const RunMapper *mapper, const RunRow *row, const char *name, ClusterProfile *profile) {
    Arena *arena = mapper->arena;
    Error error = {0};
    const bool given = mapper->given_name && strcmp(mapper->given_name, name) == 0;
    const bool known = given || cluster_is_file(name) || cluster_built_in(name);
    REFUSE_IF(arena, !known, "cluster \"%s\" is not in this version", name);
    if (given) {
        *profile = *mapper->given;
    } else if (cluster_find(name, arena, profile, &error) != STATUS_OK) {
        return arena_text(arena, error.message);
    }
    const bool smaller = row->gpus_per_node > 0 && row->gpus_per_node < profile->node.accelerators;
    const bool fewer = smaller && profile->node.accelerators <= PLAIN_NODE;
    char *rest = NULL, *text = arena_format(arena, "%s;%s", row_drive(row), row->overrides);
    text = fewer ? arena_format(arena, "node.gpus=%lld;%s", (long long)row->gpus_per_node, text) : text;
    for (char *item = strtok_r(text, "; ", &rest); item; item = strtok_r(NULL, "; ", &rest)) {
        if (cluster_set(profile, item, arena, &error) != STATUS_OK) {
            return arena_text(arena, error.message);
        }
    }
    return NULL;
}

static const char *find_cluster(RunMapper *mapper, const RunRow *row, ClusterProfile *profile) {
    const char *name = row_machine(row);
    const char *key = arena_format(mapper->arena, "%s;%s;%s;%lld", name, row->overrides, row_drive(row),
                                   (long long)row->gpus_per_node);
    for (size_t i = 0; i < mapper->cluster_count; i++) {
        if (strcmp(mapper->clusters[i].key, key) == 0) {
            *profile = mapper->clusters[i].profile;
            return mapper->clusters[i].skipped;
        }
    }
    KnownCluster known = {.key = key};
    known.skipped = load_cluster(mapper, row, name, &known.profile);
    ARENA_PUSH(mapper->arena, mapper->clusters, mapper->cluster_count, &mapper->cluster_capacity) = known;
    *profile = known.profile;
    return known.skipped;
}

// Weights loaded in bf16 stay so, unless mixed precision meets sharding: FSDP upcasts what it shards (1.14 of
// utils/fsdp_utils.py).
static bool keeps_bf16(const RunRow *row, const TrainPlan *plan) {
    const bool mixed = strncmp(row->precision, "bf16", strlen("bf16")) == 0;
    return strstr(row->precision, "weights bfloat16") != NULL && !(mixed && plan_shard_count(plan) > 1);
}

static const char *choose_precision(Arena *arena, const RunRow *row, const Accelerator *accelerator, TrainPlan *plan) {
    const char *word = row->plan_word[PLAN_PRECISION];
    const int dtype = word[0] ? plan_field_value(PLAN_PRECISION, word) : (int)DTYPE_BF16;
    REFUSE_IF(arena, dtype == PLAN_ANY, "dtype \"%s\" is not bf16, fp16, fp32 or fp8", word);
    plan->precision = (Dtype)dtype;
    return cost_supports(accelerator, plan->precision) ? NULL
                                                       : arena_format(arena, "the profile has no rate for %s", word);
}

// Layer names in a row's text: "q_proj v_proj", "query+key+value+projection+mlp+head".
static LoraTargets adapted_layers(const char *words) {
    static const char *const of_mlp[] = {"all", "gate", "up", "down", "mlp", "fc"}, *const rest[] = {
                                                                                        "k_proj", "o_proj", "key",
                                                                                        "projection", "qkv"};
    for (size_t i = 0; i < sizeof of_mlp / sizeof of_mlp[0]; i++) {
        if (strstr(words, of_mlp[i])) {
            return LORA_ALL;
        }
    }
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++) {
        if (strstr(words, rest[i])) {
            return LORA_ATTENTION;
        }
    }
    return LORA_QUERY_VALUE;
}

// The row's word or number for a field, else the target's own value. A value that has no effect is ignored where it is
// stated only where it has one.
static const char *choose_field(Arena *arena, const RunRow *row, const Target *target, PlanFieldId id,
                                TrainPlan *plan) {
    const PlanField *field = &plan_fields[id];
    const char *word = row->plan_word[id];
    int value = target_usual(target, plan, id);
    if (id == PLAN_PP_SCHEDULE) {
        const bool interleaved = strcmp(word, "interleaved_1f1b") == 0;
        const bool chunks = !word[0] && row->plan_number[PLAN_VIRTUAL_STAGES] > 1;
        word = interleaved || chunks ? pp_schedule_names[PP_INTERLEAVED] : word;
    }
    if (id == PLAN_FP8_RECIPE && strcmp(word, "mx") == 0) {
        word = fp8_recipe_names[FP8_MX];
    }
    if (id == PLAN_CUDA_GRAPHS) {
        word = cuda_graphs_names[row_graphs(row)];
    }
    if (id == PLAN_RECOMPUTE_MODULES && !plan_field_matters(plan, id)) {
        word = "";  // "none" where nothing is recomputed
    }
    if (id == PLAN_LORA_TARGETS && word[0]) {
        word = lora_targets_names[adapted_layers(word)];
    }
    if (field->column_is_number) {
        value = row->plan_number[id] != RUN_UNKNOWN ? (int)row->plan_number[id] : value;
    } else if (word[0] && plan_told(plan, id) != PLAN_ANY) {
        value = plan_field_value(id, word);
    }
    REFUSE_IF(arena, value == PLAN_ANY, "%s \"%s\" is not in this version", field->column, word);
    plan_set(plan, id, value);
    return NULL;
}

// The columns of the row as choices of the plan; precision and ZeRO stage have rules of their own.
static const char *choose_fields(Arena *arena, const RunRow *row, const Target *target, TrainPlan *plan) {
    const char *reason = NULL;
    for (int i = 0; i < PLAN_FIELD_COUNT && !reason; i++) {
        const PlanFieldId id = (PlanFieldId)i;
        if (plan_fields[id].column && plan_fields[id].scope != PLAN_OF_BATCH && id != PLAN_PRECISION &&
            id != PLAN_ZERO) {
            reason = choose_field(arena, row, target, id, plan);
        }
    }
    if (row_is_fp8_recipe(row, target) && plan->fp8_recipe != FP8_MX && row->plan_word[PLAN_REDUCE_DTYPE][0] == '\0') {
        plan->reduce_dtype = REDUCE_DTYPE_BF16;
    }
    if (row_has_recipe_overlap(row, target, plan)) {
        plan->tp_overlap = true;
    }
    plan->op_fuser |= row_fuses_experts(row);
    if (row_has_delayed_scale(row, target, plan)) {
        plan->fp8_recipe = FP8_DELAYED;
    }
    if (plan->fused == FUSED_COMPILED && row_says_uncompiled(row)) {
        plan->fused = FUSED_EAGER;
    }
    if (row_is_flagscale(row)) {
        plan->fused = FUSED_FUSED;  // apex's kernel of RMSNorm, dropout and sum by TorchScript
    }
    if (row_says_liger(row) && target_offers(target, plan, PLAN_LOSS, LOSS_FUSED)) {
        plan->loss = LOSS_FUSED;
    }
    if (row_has_recipe_loss(row, target, plan)) {
        plan->loss = LOSS_IN_PLACE;
    }
    if (row_has_test_loss(row, target)) {
        plan->loss = LOSS_ONE_COPY;
    }
    if (row->plan_word[PLAN_MASTER_WEIGHTS][0] == '\0') {
        plan->bf16_master = (keeps_bf16(row, plan) && target->bf16_optimizer_bytes_per_parameter > 0) ||
                            target_usual(target, plan, PLAN_MASTER_WEIGHTS);
    }
    return reason;
}

// Micro-batch and accumulation that give exactly the row's global batch.
static const char *choose_batch(Arena *arena, const RunRow *row, TrainPlan *plan) {
    const int64_t per_step = row->micro_batch * mesh_group_size(&plan->mesh, AXES_BATCH);
    int64_t accumulation = row->grad_accum > 0 ? row->grad_accum : 1;
    if (row->grad_accum == 0 && row->global_batch > 0) {
        accumulation = row->global_batch / per_step;
    }
    REFUSE_IF(arena, accumulation < 1 || (row->global_batch > 0 && row->global_batch != per_step * accumulation),
              "a global batch of %lld is no multiple of micro-batch %lld on this mesh", (long long)row->global_batch,
              (long long)row->micro_batch);
    plan->micro_batch = (int)row->micro_batch;
    plan->grad_accum = (int)accumulation;
    return NULL;
}

static const char *choose_mesh(Arena *arena, const RunRow *row, TrainPlan *plan) {
    int64_t world = 1;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        REFUSE_IF(arena, row->mesh[axis] == 0 && (AXES_FIRST & AXIS_BIT(axis)), "%s is empty", axis_names[axis]);
        plan->mesh.size[axis] = row->mesh[axis] > 0 ? (int)row->mesh[axis] : 1;
        world = world > MESH_MAX_WORLD ? world : world * mesh_extent(&plan->mesh, (Axis)axis);
    }
    REFUSE_IF(arena, world > MESH_MAX_WORLD, "more than %d ranks", MESH_MAX_WORLD);
    take_instances(row, &plan->mesh);
    if (row->world > 0 && row->world != world) {
        return arena_format(arena, "the mesh has %lld ranks, the column world says %lld", (long long)world,
                            (long long)row->world);
    }
    return NULL;
}

// FSDP has one kind of sharding: gradients and optimizer alone (stage 2) is stage 3 that keeps gathered parameters.
static void choose_sharding(const RunRow *row, const Target *target, TrainPlan *plan) {
    const int64_t stage = row->plan_number[PLAN_ZERO];
    plan->zero = stage == RUN_UNKNOWN ? target_default_zero(target, &plan->mesh) : (int)stage;
    if (target->shard_needs_fsdp && plan->zero == 2) {
        plan->zero = 3;
        plan->reshard = RESHARD_NEVER;
    }
}

// Of rows that do not say it. Megatron-Bridge's recipe of one scale for 32 elements sets fp8_param_gather as well
// (bf16_with_mxfp8_mixed of its training/mixed_precision.py); of blocks it does not.
static bool keeps_fp8_parameters(const RunRow *row, const TuneRequest *request, const TrainPlan *plan) {
    const bool kept =
        plan->fp8_recipe == FP8_TENSORWISE || plan->fp8_recipe == FP8_DELAYED || plan->fp8_recipe == FP8_MX;
    const bool unsaid = row->plan_number[PLAN_FP8_PARAMETERS] == RUN_UNKNOWN;
    return unsaid && row_is_fp8_recipe(row, request->target) && kept && (plan->zero == 1 || plan->zero == 3) &&
           !plan->bf16_master && (request->target->fp8_parameters & FP8_BIT(plan->fp8_recipe)) != 0;
}

static const char *choose_plan(Arena *arena, const RunRow *row, const TuneRequest *request, TrainPlan *plan) {
    *plan = (TrainPlan){0};
    const char *reason = row->seq == 0 || row->micro_batch == 0 ? "seq_len or micro_batch is empty" : NULL;
    reason = reason ? reason : choose_mesh(arena, row, plan);
    reason = reason ? reason : choose_batch(arena, row, plan);
    reason = reason ? reason : choose_precision(arena, row, &request->cluster.accelerator, plan);
    reason = reason ? reason : choose_fields(arena, row, request->target, plan);
    if (reason) {
        return reason;
    }
    plan->seq = (int)row_sequence(row, plan);
    if (row_router_learns(row) && plan->mesh.size[AXIS_EP] > 1) {
        const ModelSpec *model = &request->model;
        const int ranks = plan->mesh.size[AXIS_EP];
        plan->imbalance = model->experts.alike     ? experts_alike_imbalance(&model->experts, ranks)
                          : row_router_begins(row) ? experts_starting_imbalance(model, ranks)
                                                   : experts_learned_imbalance(&model->experts, ranks);
    }
    choose_sharding(row, request->target, plan);
    plan->fp8_parameters |= request->model.experts.count == 0 && keeps_fp8_parameters(row, request, plan);
    if (row_lacks_sp(row) && request->target->sp_switch && plan->precision != DTYPE_FP8) {
        plan->sequence_parallel = SEQUENCE_PARALLEL_OFF;
    }
    target_canonical(request->target, plan);
    if (request->cluster.fabric.nics == 0 && mesh_world(&plan->mesh) > request->cluster.node.accelerators) {
        return "the profile is one node without a network";
    }
    target_check(request->target, &request->model, plan, arena, &reason);
    return reason;
}

// The smaller of the profile's memory and the row's: a profile stands for the larger chip of its name.
static double memory_limit_bytes(const RunRow *row, const ClusterProfile *cluster) {
    const double of_row = row->gpu_mem_gb * 1024.0 * 1024.0 * 1024.0;
    return of_row > 0 ? fmin(of_row, cluster->accelerator.memory_bytes) : cluster->accelerator.memory_bytes;
}

static double measured_step_s(const RunRow *row, const TrainPlan *plan) {
    if (row->step_time_s > 0) {
        return row->step_time_s;
    }
    const double tokens_per_s = row->tokens_per_s_per_gpu * mesh_world(&plan->mesh);
    return tokens_per_s > 0 ? (double)plan_tokens_per_step(plan) / tokens_per_s : 0;
}

static void fill_request(RunCase *run) {
    TuneRequest *request = &run->request;
    request->command = "accuracy";
    request->model_asked = run->row->model;
    request->seq = run->plan.seq;
    plan_fields_unsaid(request->asked);
    request->asked[PLAN_PRECISION] = (int)run->plan.precision;
    request->asked[PLAN_MASTER_WEIGHTS] = run->plan.bf16_master;
    request->micro_batch = run->plan.micro_batch;
    request->global_batch = plan_global_batch(&run->plan);
    request->serial_lanes =
        target_is_executor(request->target) && predict_is_serial(request, strcmp(run->row->lanes, "async") == 0);
    request->memory_limit_bytes = memory_limit_bytes(run->row, &request->cluster);
}

// Another project's code on a target (its software names another) has data and attention of its own.
static bool is_of_target_itself(const RunCase *run) {
    const char *software = run->row->software, *name = run->request.target->name;
    return !software || !software[0] || strncmp(software, name, strlen(name)) == 0;
}

// What a target's recipes mask between documents is not computed, but by a kernel's reference, which has every score;
// and is not priced with cp. Mixtures have documents where their source says so: what else they lack is not found
// (tests/accuracy/runs/RESULTS.md).
static bool masks_documents(const RunCase *run) {
    const Target *target = run->request.target;
    const AttentionKernel kernel = run->plan.attention;
    const char *since = target->runtime.masks_since;
    return since && strcmp(run->row->date, since) >= 0 && run->plan.mesh.size[AXIS_CP] == 1 &&
           (kernel == ATTENTION_FLASH || kernel == ATTENTION_TRITON) && !target->reference_attention &&
           is_of_target_itself(run) && run->request.model.experts.count == 0;
}

// Rows say flash of what scaled_dot_product_attention picks, which a target's code may let be cuDNN's first: taken so
// on Hopper. On Blackwell the rows are of machines whose power is limited, the limit not stated, and stay as they are
// labelled. Models with experts have FlexAttention, and so do masks of documents.
static void take_kernel_of_date(RunCase *run) {
    run->plan.attention = row_attention(run->row, run->plan.attention);
    if (masks_documents(run)) {
        run->plan.attention = ATTENTION_FLASH;
        run->plan.pack = run->request.target->runtime.masked_tokens;
        return;
    }
    const char *since = run->request.target->runtime.cudnn_since;
    const bool causal = run->plan.pack == 0 && run->request.model.experts.count == 0;
    const bool sdpa = causal && run->plan.attention == ATTENTION_FLASH;
    if (sdpa && since && strcmp(run->row->date, since) >= 0 &&
        chip_is_of(&run->request.cluster.accelerator, CHIPS_HOPPER)) {
        run->plan.attention = ATTENTION_CUDNN;
    }
}

// The host is a pass of a stage's layers ahead of the device. Each half of a layer gathers all tokens and scatters as
// many, or without sequence parallelism reduces them in place.
static double recorded_bytes(const RunCase *run) {
    const TrainPlan *plan = &run->plan;
    if (!row_records_streams(run->row) || plan->mesh.size[AXIS_TP] <= 1) {
        return 0;
    }
    const int of_half = target_tp_flavour(run->request.target, plan) == TP_SP ? 2 : 1;
    const double tokens = (double)plan->micro_batch * plan->seq / mesh_group_size(&plan->mesh, AXES_SEQUENCE);
    const double layers = ceil((double)run->request.model.layers / mesh_stages(&plan->mesh));
    return 2 * of_half * layers * tokens * (double)run->request.model.hidden * dtype_bytes(plan_activation_dtype(plan));
}

void run_case_build(RunMapper *mapper, const RunRow *given, RunCase *run) {
    const RunRow *row = row_as_tested(given, mapper->arena);
    *run = (RunCase){.row = row, .computed = row_is_computed(row)};
    const char *reason = row->usable != 1     ? "marked as not usable"
                         : row->unreadable    ? row->unreadable
                         : row_is_paddle(row) ? "PaddlePaddle is not in this version"
                         : row_is_hybrid(row) ? "layers of state-space models are not predicted yet"
                         : row_deals_by_layer(row)
                             ? "whole layers of Muon, with all states of the embedding, on one rank are not predicted"
                             : NULL;
    reason = reason ? reason : run_target_find(mapper->arena, row, &run->request.target);
    reason = reason ? reason : find_cluster(mapper, row, &run->request.cluster);
    if (!reason) {
        const Target *there = target_on_cluster(run->request.target, &run->request.cluster, mapper->arena);
        run->request.target = label_rows_apply(row, there, mapper->arena);
    }
    reason = reason ? reason : run_model(mapper->arena, row, &run->request.model);
    run->request.model.experts.in_turn = row_gates_in_turn(row);
    run->request.model.experts.alike = row_repeats_words(row);
    reason = reason ? reason : choose_plan(mapper->arena, row, &run->request, &run->plan);
    run->skipped = reason;
    if (reason) {
        return;
    }
    row_take_libraries(row, &run->request.cluster.accelerator);
    row_take_container(row, run->request.model.head_dim, &run->request.cluster.accelerator);
    request_set_world(&run->request, mesh_world(&run->plan.mesh), mapper->arena);
    take_kernel_of_date(run);
    if (row_is_plain_trace(row) && !row_has_full_inductor(row)) {
        run->plan.fused = FUSED_EAGER;
    }
    // fp8_rules.c predicts no other
    run->may_keep_fp8 = run->request.model.experts.count > 0 && run->plan.mesh.size[AXIS_EP] > 1 &&
                        run->plan.fp8_recipe == FP8_MX && keeps_fp8_parameters(row, &run->request, &run->plan);
    fill_request(run);
    run->recorded_bytes = recorded_bytes(run);
    run->measured_step_s = measured_step_s(row, &run->plan);
    int count = 0;
    const RunLoss *losses = run_case_losses(&count);
    for (int i = 0; i < count; i++) {
        run->not_expressed |= losses[i].holds(run) ? (uint64_t)1 << i : 0;
    }
}
