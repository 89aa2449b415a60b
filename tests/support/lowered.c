// Lowered programs for tests.

#include "tests/support/lowered.h"

#include <criterion/criterion.h>
#include <string.h>

#include "sim/model/model.h"
#include "tests/support/orders.h"

static TrainPlan request_plan(const LoweredRequest *request, const Target *target) {
    Error error = {0};
    TrainPlan plan = {.seq = request->seq ? request->seq : 64,
                      .micro_batch = request->micro_batch ? request->micro_batch : 1,
                      .grad_accum = request->grad_accum ? request->grad_accum : 1,
                      .reshard = request->reshard,
                      .recompute = request->recompute,
                      .recompute_unit = request->recompute_unit,
                      .recompute_modules = request->recompute_modules,
                      .recompute_layers = request->recompute_layers,
                      .recompute_every = request->recompute_every,
                      .offload_layers = request->offload_layers,
                      .pp_schedule = request->pp_schedule,
                      .virtual_stages = request->virtual_stages,
                      .offload = request->offload,
                      .reduce_overlap = request->reduce_overlap,
                      .cp_rotate = request->cp_rotate,
                      .fused = request->eager   ? FUSED_EAGER
                               : request->fused ? FUSED_FUSED
                                                : target->default_fused,
                      .fp8_recipe = request->fp8_recipe,
                      .bf16_master = request->bf16_master || (target->bf16_weights && request->bf16),
                      .reduce_dtype = request->reduce_dtype,
                      .grad_sync = request->grad_sync,
                      .loss = request->loss,
                      .cuda_graphs = request->cuda_graphs,
                      .sequence_parallel = request->sequence_parallel,
                      .finetune = request->finetune,
                      .lora_targets = request->lora_targets,
                      .optimizer = request->optimizer,
                      .pack = request->pack,
                      .imbalance = request->imbalance,
                      .dispatch = request->dispatch,
                      .ep_overlap = request->ep_overlap,
                      .mlp_tiles = request->mlp_tiles,
                      .update_in_backward = request->update_in_backward,
                      .fp8_parameters = request->fp8_parameters,
                      .fp8_activation = request->fp8_activation,
                      .op_fuser = request->op_fuser,
                      .qkv_rope = request->qkv_rope,
                      .reshard_ranks = request->reshard_ranks,
                      .reduce_bucket = request->reduce_bucket,
                      .etp = request->etp,
                      .expert_capacity = request->expert_capacity,
                      .pad_experts = request->pad_experts,
                      .mtp = request->mtp,
                      .precision = request->fp8    ? DTYPE_FP8
                                   : request->bf16 ? DTYPE_BF16
                                                   : DTYPE_FP32};
    cr_assert_eq(mesh_parse(request->mesh ? request->mesh : "dp_shard=1", &plan.mesh, &error), STATUS_OK, "%s",
                 error.message);
    plan.mesh.order = request->order;
    plan.zero = request->zero == 0 ? target_default_zero(target, &plan.mesh) : request->zero < 0 ? 0 : request->zero;
    plan_canonical(&plan);
    return plan;
}

static void request_model(const LoweredRequest *request, Arena *arena, ModelSpec *model) {
    Error error = {0};
    cr_assert_eq(model_find(request->model ? request->model : "tiny", arena, model, &error), STATUS_OK, "%s",
                 error.message);
    model->tied_embeddings = model->tied_embeddings || request->tied;
    model->mlp = request->plain ? MLP_PLAIN : model->mlp;
    if (request->layers > 0) {
        model->layers = request->layers;
        model->run_count = 0;  // runs are of all the model's layers
    }
}

StepProgram lowered(Arena *arena, LoweredRequest request) {
    Error error = {0};
    ModelSpec model;
    const Target *target = NULL;
    StepProgram program;
    request_model(&request, arena, &model);
    cr_assert_eq(target_find(request.target ? request.target : "ndtune", &target, &error), STATUS_OK, "%s",
                 error.message);
    const TrainPlan plan = request_plan(&request, target);
    cr_assert_eq(step_lower(&model, &plan, target, arena, &program, &error), STATUS_OK, "%s", error.message);
    return program;
}

static uint32_t draw(uint64_t *seed, uint32_t bound) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX generator
    return (uint32_t)(*seed >> 33) % bound;
}

const char *lowered_refusal(const LoweredRequest *request, Arena *arena) {
    Error error = {0};
    ModelSpec model;
    const Target *target = NULL;
    const char *reason = NULL;
    request_model(request, arena, &model);
    cr_assert_eq(target_find(request->target ? request->target : "ndtune", &target, &error), STATUS_OK);
    const TrainPlan plan = request_plan(request, target);
    target_check(target, &model, &plan, arena, &reason);
    return reason;
}

bool lowered_is_legal(const LoweredRequest *request, Arena *arena) {
    return !lowered_refusal(request, arena);
}

LoweredRequest lowered_random(Arena *arena, uint64_t *seed, int max_world) {
    static const char *const targets[] = {"ndtune",          "accelerate",      "axolotl",      "torchtitan@0.2",
                                          "torchtitan@head", "megatron",        "nanotron",     "deepspeed",
                                          "fsdp1",           "accelerate@1.13", "megatron@2022"};
    enum { CAPACITY = 256 };
    Mesh meshes[CAPACITY];
    AxisOrder orders[FIRST_ORDERS];
    first_orders(orders);
    for (;;) {
        const int world = 1 << draw(seed, 31 - (uint32_t)__builtin_clz((unsigned)max_world) + 1);
        const int count = mesh_enumerate(world, AXES_FIRST, meshes, CAPACITY);
        char *text = arena_alloc(arena, MESH_TEXT_BYTES);
        mesh_text(&meshes[draw(seed, (uint32_t)(count < CAPACITY ? count : CAPACITY))], text);
        const LoweredRequest request = {.target = targets[draw(seed, sizeof targets / sizeof targets[0])],
                                        .mesh = text,
                                        .seq = 64 << draw(seed, 2),
                                        .micro_batch = 1 + (int)draw(seed, 2),
                                        .grad_accum = 1 + (int)draw(seed, 4),
                                        .zero = (int)draw(seed, 5) - 1,
                                        .reshard = (Reshard)draw(seed, RESHARD_COUNT),
                                        .recompute = (Recompute)draw(seed, RECOMPUTE_COUNT),
                                        .cp_rotate = (CpRotate)draw(seed, CP_ROTATE_COUNT),
                                        .order = orders[draw(seed, 2) ? draw(seed, FIRST_ORDERS) : 0],
                                        .bf16 = draw(seed, 2) == 1,
                                        .fp8 = draw(seed, 4) == 0,
                                        .fp8_recipe = (Fp8Recipe)draw(seed, FP8_RECIPE_COUNT),
                                        .bf16_master = draw(seed, 4) == 0,
                                        .reduce_dtype = (ReduceDtype)draw(seed, REDUCE_DTYPE_COUNT),
                                        .tied = draw(seed, 4) == 0,
                                        .loss = draw(seed, 2) ? (LossForm)draw(seed, LOSS_FORM_COUNT) : LOSS_TARGET,
                                        .layers = 1 + (int)draw(seed, 4)};
        if (lowered_is_legal(&request, arena)) {
            return request;
        }
    }
}

int tasks_named(const StepProgram *program, const char *name) {
    int count = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        count += strcmp(program->tasks[i].name, name) == 0;
    }
    return count;
}

const Task *first_named(const StepProgram *program, const char *name) {
    for (int32_t i = 0; i < program->task_count; i++) {
        if (strcmp(program->tasks[i].name, name) == 0) {
            return &program->tasks[i];
        }
    }
    return NULL;
}

const Task *first_of_kind(const StepProgram *program, TaskKind kind) {
    for (int32_t i = 0; i < program->task_count; i++) {
        if (program->tasks[i].kind == kind) {
            return &program->tasks[i];
        }
    }
    return NULL;
}

int64_t runs_in_micro_step(const StepProgram *program, const char *name, int micro_step) {
    StepCursor cursor = step_cursor_begin(program);
    StepInstance instance;
    int64_t count = 0;
    while (step_cursor_next(&cursor, &instance)) {
        count += instance.micro_step == micro_step && strcmp(program->tasks[instance.task].name, name) == 0;
    }
    return count;
}

const Buffer *buffer_named(const StepProgram *program, const char *name) {
    for (int32_t i = 0; i < program->buffer_count; i++) {
        if (strcmp(program->buffers[i].name, name) == 0) {
            return &program->buffers[i];
        }
    }
    return NULL;
}
