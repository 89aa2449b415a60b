// Lowers a plan, asks memory and engine, and derives what people compare: tokens/s, MFU, HFU, the interval. MFU
// counts model FLOPs (6 per non-embedding parameter and token, 12*layers*heads*head_dim*seq for attention, full
// square; PaLM appendix B) over the dense peak of the precision; HFU adds what the
// program runs a second time.

#include "autotune/predict/predict.h"

#include <string.h>

#include "autotune/predict/handicap.h"
#include "autotune/predict/interval.h"
#include "autotune/predict/simulate.h"
#include "sim/memory/memory_breakdown.h"

static const double CLOSE_TO_LIMIT = 0.95;  // memory predictions err by about 5 % (autotune/accuracy/ACCURACY.md)

void predictor_init(Predictor *predictor, const TuneRequest *request, const PredictionCache *cache) {
    *predictor = (Predictor){.request = request, .cost = {.profile = &request->cluster, .target = request->target}};
    if (cache) {
        predictor->cache = *cache;
    }
    predictor->identity = hash_begin();
    hash_text(&predictor->identity, tune_engine_version());
    model_hash(&request->model, &predictor->identity);
    cluster_hash(&request->cluster, &predictor->identity);
    cluster_hash_optional(&request->cluster, &predictor->identity);
    target_hash(request->target, &predictor->identity);
    handicap_hash(request, &predictor->identity);
    hash_int(&predictor->identity, request->serial_lanes);
    if (request->target->allocator != ALLOCATOR_NONE) {
        hash_int(&predictor->identity, (int64_t)request->memory_limit_bytes);  // at which it gives back what is free
    }
    predictor->rank_slowdown = handicap_factors(request, false, &predictor->lasting);
    predictor->link_slowdown = handicap_factors(request, true, &predictor->lasting);
}

void predictor_free(Predictor *predictor) {
    arena_free(&predictor->scratch);
    live_traces_free(&predictor->traces);
    arena_free(&predictor->lasting);
}

uint64_t predictor_content_hash(const Predictor *predictor, const TrainPlan *plan) {
    Hash hash = predictor->identity;
    plan_hash_canonical(plan, &hash);
    if (plan->precision == DTYPE_FP8) {
        cluster_hash_products(&predictor->request->cluster, plan_product_dtype(plan), &hash);
    }
    return hash_end(&hash);
}

// Runs of a task in one step, as far as its loops say; it may be in several.
static double task_runs(const StepProgram *program, int32_t task) {
    double runs = 0, iterations[STEP_MAX_DEPTH + 1] = {1};
    int32_t end[STEP_MAX_DEPTH + 1] = {program->segment_count};
    int depth = 0;
    for (int32_t i = 0; i < program->segment_count; i++) {
        const Segment *segment = &program->segments[i];
        while (i >= end[depth]) {
            depth--;
        }
        if (segment->kind != SEGMENT_TASKS) {
            iterations[depth + 1] = iterations[depth] * segment->count;
            end[++depth] = segment->end;
        } else if (task >= segment->first_task && task < segment->first_task + segment->task_count) {
            runs += iterations[depth];
        }
    }
    return runs;
}

// Model FLOPs count the whole square of attention; a task has its causal half, or all of it where the busiest rank of
// a contiguous ring sees a block whole.
static double square_over_visible(const StepProgram *program, const Task *task) {
    const bool whole = task->ring_step > 0 && !program->target->zigzag;
    return task->kind == TASK_ATTENTION && !whole ? 2 : 1;
}

double predict_recomputed_flop_per_token(const StepProgram *program) {
    double flop = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        if (task->phase == PHASE_RECOMPUTE) {
            flop += square_over_visible(program, task) * task->flops * task_runs(program, i) *
                    (task->share > 0 ? task->share : 1);
        }
    }
    const Mesh *mesh = &program->plan.mesh;
    return flop * (mesh_world(mesh) / mesh_stages(mesh)) / (double)plan_tokens_per_step(&program->plan);
}

static double recomputed_flop_per_token(const StepPrograms *programs) {
    double flop = 0;
    for (int stage = 0; stage < programs->count; stage++) {
        flop += predict_recomputed_flop_per_token(&programs->of[stage]);
    }
    return flop;
}

static void warn(Prediction *prediction, const char *sentence) {
    ASSERT(prediction->warning_count < PREDICTION_MAX_WARNINGS);
    prediction->warnings[prediction->warning_count++] = sentence;
}

// What a user would want to know before believing the number.
static void add_warnings(const TuneRequest *request, Arena *arena, Prediction *prediction) {
    const TrainPlan *plan = &prediction->plan;
    static const Axis critical[] = {AXIS_TP, AXIS_SP, AXIS_CP};
    for (size_t i = 0; i < sizeof critical / sizeof critical[0]; i++) {
        const GroupPlacement group =
            mesh_group_placement(&plan->mesh, AXIS_BIT(critical[i]), request->cluster.node.accelerators);
        if (group.nodes > 1) {
            warn(prediction, arena_format(arena, "%s=%d crosses nodes: its groups span %d", axis_names[critical[i]],
                                          plan->mesh.size[critical[i]], group.nodes));
        }
    }
    if (request->target->rank_order_note && !mesh_has_default_order(&plan->mesh)) {
        warn(prediction, arena_format(arena, "rank order %s: %s", mesh_order_text(&plan->mesh, MESH_BUFFER),
                                      request->target->rank_order_note));
    }
    const double share = prediction->memory.reserved_bytes / request->memory_limit_bytes;
    if (prediction->fits && share > CLOSE_TO_LIMIT) {
        warn(prediction, arena_format(arena,
                                      "memory is at %.0f %% of the limit and the prediction may err by 5 %%: a lower "
                                      "--memory-limit leaves a margin",
                                      100 * share));
    }
    if (plan->seq > request->model.max_seq) {
        warn(prediction, arena_format(arena, "%d tokens are more than the %d that %s was made for", plan->seq,
                                      request->model.max_seq, request->model.name));
    }
    const char *padded = target_vocab_note(request->target, &request->model, plan->mesh.size[AXIS_TP], arena);
    if (padded) {
        warn(prediction, padded);
    }
}

// A pipeline whose every message sleeps takes several times as long as another version's.
static void warn_of_stalls(const TuneRequest *request, Arena *arena, Prediction *prediction) {
    const CostModel cost = {.profile = &request->cluster, .target = request->target};
    const double stall_s = message_sleep_s(&cost, &prediction->plan.mesh);
    if (stall_s > 0 && plan_has_stages(&prediction->plan)) {
        warn(prediction, arena_format(arena,
                                      "%s@%s sleeps %.2f s at every message between stages on so many nodes: "
                                      "released versions do not",
                                      request->target->name, request->target->version, stall_s));
    }
}

// A step takes the longer of its own time and its data's.
static void warn_of_data(const TuneRequest *request, Arena *arena, Prediction *prediction) {
    const TrainPlan *plan = &prediction->plan;
    const double data_s = cost_data_s(&request->cluster.node, plan);
    if (data_s > 0 && prediction->step_s > 0 && prediction->step_s <= data_s * (1 + 1e-9)) {
        prediction->data_wait = arena_format(arena,
                                             "steps wait for their data: at node.sequence_read_s %g all ranks have "
                                             "theirs after %.3g s",
                                             request->cluster.node.sequence_read_s, data_s);
        warn(prediction, prediction->data_wait);
    }
}

static void derive(const Predictor *predictor, Arena *arena, Prediction *prediction) {
    const TuneRequest *request = predictor->request;
    const TrainPlan *plan = &prediction->plan;
    prediction->fits = memory_needed_bytes(plan, &prediction->memory) <= request->memory_limit_bytes;
    add_warnings(request, arena, prediction);
    warn_of_stalls(request, arena, prediction);
    warn_of_data(request, arena, prediction);
    if (prediction->step_s <= 0) {
        return;
    }
    interval_of(prediction->step_s, &request->cluster, request->target, &request->model, request->world,
                &prediction->step_low_s, &prediction->step_high_s);
    prediction->tokens_per_s = (double)plan_tokens_per_step(plan) / prediction->step_s;
    const double tokens_per_gpu = prediction->tokens_per_s / mesh_world(&plan->mesh);
    // Frozen layers have no weight gradient: 4 instead of 6 per parameter, as published figures count
    // (sim/SOURCES.md F1).
    const double unmade = plan_freezes_base(plan) ? 2.0 * (double)model_flop_parameters(&request->model) : 0;
    const int seen = (int)plan_document_tokens(plan);
    const double model_flops = model_flops_per_token(&request->model, seen) +
                               plan->mtp * model_further_flops_per_token(&request->model, seen) - unmade;
    const double peak = request->cluster.accelerator.gemm[plan_product_dtype(plan)].peak_flop_per_s;
    prediction->model_flop_per_s_per_gpu = tokens_per_gpu * model_flops;
    prediction->mfu = peak > 0 ? prediction->model_flop_per_s_per_gpu / peak : 0;
    const double hardware_flops = model_flops + prediction->recomputed_flop_per_token;
    prediction->hfu = peak > 0 ? tokens_per_gpu * hardware_flops / peak : 0;
}

// The store has no bytes of the host, and neither bubble nor memory by stage.
static bool is_stored_whole(const TrainPlan *plan) {
    return plan->offload == OFFLOAD_NONE && !plan_has_stages(plan);
}

static bool find_cached(Predictor *predictor, Arena *arena, Prediction *prediction) {
    Prediction found = {0};
    if (!predictor->cache.find || !is_stored_whole(&prediction->plan) ||
        !predictor->cache.find(predictor->cache.state, prediction->content_hash, arena, &found)) {
        return false;
    }
    found.plan = prediction->plan;
    found.content_hash = prediction->content_hash;
    found.origin = ORIGIN_ENGINE;
    found.cached = true;
    *prediction = found;
    return true;
}

// Its texts are the program's.
static void keep_memory(MemoryBreakdown *memory, Arena *arena) {
    memory->peak_phase = arena_text(arena, memory->peak_phase);
    memory->top_name = arena_text(arena, memory->top_name);
}

static Status memory_of(Predictor *predictor, const StepPrograms *programs, Arena *arena, MemoryBreakdown *memory,
                        Error *error) {
    TRY(memory_breakdown_stages(programs, predictor->request->memory_limit_bytes, &predictor->traces,
                                &predictor->scratch, memory, error));
    keep_memory(memory, arena);
    double *by_stage = ARENA_ARRAY(arena, double, memory->stages);
    for (int stage = 0; stage < memory->stages; stage++) {
        by_stage[stage] = memory->by_stage[stage];
    }
    memory->by_stage = by_stage;
    return STATUS_OK;
}

static Status lower(Predictor *predictor, const TrainPlan *plan, StepPrograms *programs, Error *error) {
    arena_reset(&predictor->scratch);
    return step_lower_stages(&predictor->request->model, plan, predictor->request->target, &predictor->scratch,
                             programs, error);
}

static Status simulate(Predictor *predictor, const StepPrograms *programs, Prediction *prediction, Error *error) {
    prediction->origin = ORIGIN_ENGINE;
    const EngineOptions options = {.rank_slowdown = predictor->rank_slowdown,
                                   .link_slowdown = predictor->link_slowdown};
    const StepProgram *slowest;
    EngineResult engine = {0};
    TRY(simulate_stages(predictor->request, programs, &predictor->cost, &options, &predictor->scratch, &slowest,
                        &engine, error));
    prediction->step_s = engine.step_s;
    prediction->compute_s = engine.compute_s;
    memcpy(prediction->exposed_s, engine.exposed_s, sizeof prediction->exposed_s);
    prediction->optimizer_s = engine.optimizer_s;
    prediction->bubble_s = engine.bubble_s;
    prediction->overhead_s = engine.overhead_s;
    return STATUS_OK;
}

static Status wrap_plan(const TrainPlan *plan, Error *error) {
    return error_wrap(error, "plan %s", plan_text(plan, PLAN_BUFFER));
}

Status predict_plan(Predictor *predictor, const TrainPlan *plan, bool only_if_fits, Arena *arena,
                    Prediction *prediction, Error *error) {
    *prediction = (Prediction){.plan = *plan, .content_hash = predictor_content_hash(predictor, plan)};
    if (find_cached(predictor, arena, prediction)) {
        derive(predictor, arena, prediction);
        return STATUS_OK;
    }
    StepPrograms programs;
    FAIL_WITH(lower(predictor, plan, &programs, error) != STATUS_OK ||
                  memory_of(predictor, &programs, arena, &prediction->memory, error) != STATUS_OK,
              wrap_plan(plan, error));
    prediction->recomputed_flop_per_token = recomputed_flop_per_token(&programs);
    const bool fits = memory_needed_bytes(plan, &prediction->memory) <= predictor->request->memory_limit_bytes;
    FAIL_WITH((fits || !only_if_fits) && simulate(predictor, &programs, prediction, error) != STATUS_OK,
              wrap_plan(plan, error));
    derive(predictor, arena, prediction);
    if (prediction->origin == ORIGIN_ENGINE && predictor->cache.keep) {
        predictor->cache.keep(predictor->cache.state, predictor->request, prediction);
    }
    return STATUS_OK;
}

static Status memory_of_program(Predictor *predictor, const TrainPlan *plan, int stage, StepProgram *program,
                                Arena *arena, MemoryBreakdown *memory, Error *error) {
    arena_reset(&predictor->scratch);
    TRY(step_lower_short(&predictor->request->model, plan, predictor->request->target, stage, &predictor->scratch,
                         program, error));
    TRY(memory_breakdown_among(program, &predictor->traces, &predictor->scratch, memory, error));
    keep_memory(memory, arena);
    memory->stage = stage;
    return STATUS_OK;
}

Status predict_memory_of_stage(Predictor *predictor, const TrainPlan *plan, int stage, Arena *arena,
                               MemoryBreakdown *memory, Error *error) {
    StepProgram program;
    TRY(memory_of_program(predictor, plan, stage, &program, arena, memory, error));
    const TuneRequest *request = predictor->request;
    if (!memory_replays_stage(request->target, plan)) {
        return STATUS_OK;
    }
    TRY(step_lower_stage(&request->model, plan, request->target, stage, &predictor->scratch, &program, error));
    const bool ahead = message_sleep_s(&predictor->cost, &plan->mesh) == 0;
    return memory_hold_stage(&program, request->memory_limit_bytes, ahead, &predictor->traces, memory, error);
}

// Of the stage that the estimate says needs most; the others are left out.
static Status memory_of_stage(Predictor *predictor, int stage, Arena *arena, Prediction *prediction, Error *error) {
    const TrainPlan *plan = &prediction->plan;
    StepProgram program;
    TRY(memory_of_program(predictor, plan, stage, &program, arena, &prediction->memory, error));
    prediction->recomputed_flop_per_token = predict_recomputed_flop_per_token(&program) * mesh_stages(&plan->mesh);
    return STATUS_OK;
}

static Status memory_of_all(Predictor *predictor, Arena *arena, Prediction *prediction, Error *error) {
    StepPrograms programs;
    TRY(lower(predictor, &prediction->plan, &programs, error));
    TRY(memory_of(predictor, &programs, arena, &prediction->memory, error));
    prediction->recomputed_flop_per_token = recomputed_flop_per_token(&programs);
    return STATUS_OK;
}

Status predict_from_estimate(Predictor *predictor, const TrainPlan *plan, const Estimate *estimate, Arena *arena,
                             Prediction *prediction, Error *error) {
    *prediction = (Prediction){.plan = *plan,
                               .origin = ORIGIN_ESTIMATE,
                               .step_s = estimate->step_s,
                               .compute_s = estimate->compute_s,
                               .optimizer_s = estimate->optimizer_s,
                               .bubble_s = estimate->bubble_s,
                               .overhead_s = estimate->overhead_s,
                               .content_hash = predictor_content_hash(predictor, plan)};
    memcpy(prediction->exposed_s, estimate->exposed_s, sizeof prediction->exposed_s);
    const Status status = plan_has_stages(plan) ? memory_of_stage(predictor, estimate->stage, arena, prediction, error)
                                                : memory_of_all(predictor, arena, prediction, error);
    FAIL_WITH(status != STATUS_OK, wrap_plan(plan, error));
    derive(predictor, arena, prediction);
    return STATUS_OK;
}

Status predict_once(const TuneRequest *request, const PredictionCache *cache, const TrainPlan *plan, Arena *arena,
                    Prediction *prediction, Error *error) {
    Predictor predictor;
    predictor_init(&predictor, request, cache);
    const Status status = predict_plan(&predictor, plan, false, arena, prediction, error);
    predictor_free(&predictor);
    return status;
}
