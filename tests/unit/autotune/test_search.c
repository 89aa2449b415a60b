// The search as a whole, on small worlds of real profiles.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "autotune/predict/predict.h"
#include "autotune/search/best.h"
#include "autotune/search/search.h"
#include "sim/frameworks/target_choices.h"
#include "tests/support/search_all.h"
#include "tests/support/sizes.h"
#include "tests/unit/autotune/requests.h"

static Arena arena;
static TuneRequest request;
static TuneResult result;
static Error error;

static void begin(void) {
    arena = (Arena){0};
    error = (Error){0};
    request = request_for(&arena, 8, "7b", "dgx-h100", "accelerate");
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(search, .init = begin, .fini = end);

static void run(void) {
    cr_assert_eq(search_run(&request, NULL, NULL, &arena, &result, &error), STATUS_OK, "%s", error.message);
}

Test(search, entries_and_rejections_are_every_shape_once) {
    run();
    // 8 = 2^3 over four axes: C(3 + 3, 3) = 20 shapes
    cr_assert_eq(result.search.shapes, 20);
    cr_assert_eq(result.entry_count + result.rejected_count, 20);
    for (int i = 0; i < result.entry_count; i++) {
        for (int j = 0; j < result.rejected_count; j++) {
            cr_assert_not(mesh_same_shape(&result.entries[i].plan.mesh, &result.rejected[j].plan.mesh));
        }
    }
}

// The thriftiest choice of a shape is estimated before the others are looked at, and may still be left out.
Test(search, a_candidate_has_a_reason_exactly_where_it_is_rejected) {
    request = request_for(&arena, 8, "7b", "dgx-h100", "ndtune");
    run();
    for (int i = 0; i < result.candidate_count; i++) {
        const Candidate *candidate = &result.candidates[i];
        cr_assert_eq(candidate->reason != NULL, candidate->state == CANDIDATE_REJECTED, "%s", candidate->rule);
    }
}

// 70.6 G parameters: whole bf16 gradients are 131 GiB / tp on every rank, a shard of 64 ranks 2 GiB. What its own
// default leaves, cp and tp, makes 23.5 % of the peak (version 0.1.0).
Test(search, accelerate_reduces_gradients_on_every_micro_step_where_they_do_not_fit_whole) {
    request = request_for(&arena, 64, "llama-3-70b", "dgx-h100", "accelerate@1.14");
    request.seq = 8192;
    request.effort = EFFORT_ESTIMATE;
    run();
    cr_assert_gt(result.entry_count, 0);
    cr_expect_eq(result.entries[0].plan.grad_sync, GRAD_SYNC_EACH);
    cr_expect_gt(result.entries[0].mfu, 0.40);
    request.asked[PLAN_GRAD_SYNC] = GRAD_SYNC_TARGET;
    run();
    cr_expect_lt(result.entries[0].mfu, 0.25);
}

Test(search, layers_are_compiled_where_the_target_has_a_switch_for_it) {
    request = request_for(&arena, 8, "7b", "dgx-h100", "accelerate");
    request.effort = EFFORT_ESTIMATE;
    run();
    cr_assert_gt(result.entry_count, 0);
    cr_expect_eq(result.entries[0].plan.fused, FUSED_COMPILED);
    const double compiled_s = result.entries[0].step_s;
    request.asked[PLAN_FUSED] = FUSED_EAGER;
    run();
    cr_expect_eq(result.entries[0].plan.fused, FUSED_EAGER);
    cr_expect_lt(compiled_s, result.entries[0].step_s);
    request = request_for(&arena, 8, "1b", "dgx-h100", "accelerate@1.0");  // FSDP version 1
    run();
    cr_expect_eq(result.entries[0].plan.fused, FUSED_EAGER);
}

// 8 sequences of 8192 tokens at 128,256 entries: 2 bytes of logits and 12 of fp32 copies are 14 GiB a sequence.
Test(search, no_logits_are_kept_where_they_do_not_fit) {
    request = request_for(&arena, 8, "llama-3-8b", "dgx-h100", "accelerate");
    request.seq = 8192;
    request.effort = EFFORT_ESTIMATE;
    request.memory_limit_bytes = 40e9;
    run();
    cr_assert_gt(result.entry_count, 0);
    const double free_choice = result.entries[0].tokens_per_s;
    cr_expect_eq(result.entries[0].plan.loss, LOSS_FUSED);
    request.asked[PLAN_LOSS] = LOSS_TARGET;
    run();
    cr_expect(result.entry_count == 0 || result.entries[0].tokens_per_s < free_choice);
}

static const Prediction *entry_of(const Mesh *mesh) {
    for (int i = 0; i < result.entry_count; i++) {
        if (memcmp(result.entries[i].plan.mesh.size, mesh->size, sizeof mesh->size) == 0) {
            return &result.entries[i];
        }
    }
    cr_assert_fail("the shape has no entry");
    return NULL;
}

// torchtitan replays forward and backward by itself, and then holds 4 bytes of gradient a parameter over the shards.
Test(search, graphs_are_given_up_where_the_gradients_that_they_hold_do_not_fit) {
    Mesh sharded = mesh_of_one();
    sharded.size[AXIS_DP_SHARD] = 8;
    request = request_for(&arena, 8, "llama-3-8b", "dgx-h100", "torchtitan@0.3");
    request.micro_batch = 1;
    request.global_batch = 8;
    request.asked[PLAN_RECOMPUTE] = RECOMPUTE_NONE;  // memory is full in the loss, not in the update
    request.asked[PLAN_RESHARD] = RESHARD_ALWAYS;
    request.effort = EFFORT_ESTIMATE;
    run();
    cr_expect_eq(entry_of(&sharded)->plan.cuda_graphs, CUDA_GRAPHS_TARGET);
    request.asked[PLAN_CUDA_GRAPHS] = CUDA_GRAPHS_OFF;
    run();
    // An allocator gives back what is free, not what lives.
    const MemoryBreakdown *off = &entry_of(&sharded)->memory;
    request.memory_limit_bytes = off->reserved_bytes - off->allocator_bytes + 1.08 * off->peak_bytes;
    request.asked[PLAN_CUDA_GRAPHS] = TUNE_ANY;
    run();
    cr_expect_eq(entry_of(&sharded)->plan.cuda_graphs, CUDA_GRAPHS_OFF);
}

// Of the stage that the estimate says needs most. Groups asked for, and Megatron's own: of 33 and 57 micro-steps over 8
// stages it takes 11 and 12 at a time.
Test(search, stages_hold_what_the_plans_own_groups_of_micro_steps_do) {
    static const int rows[][2] = {{16, 128}, {0, 33}, {0, 57}};
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        request = request_for(&arena, 8, "llama-3-8b", "dgx-h100", "megatron");
        request.effort = EFFORT_ESTIMATE;
        request.global_batch = rows[row][1];
        request.asked[PLAN_PP_SCHEDULE] = PP_INTERLEAVED;
        request.asked[PLAN_PP_GROUP] = rows[row][0];
        run();
        int interleaved = 0;
        for (int i = 0; i < result.entry_count; i++) {
            Prediction alone;
            const Prediction *entry = &result.entries[i];
            if (plan_chunks(&entry->plan) > 1) {
                cr_assert_eq(predict_once(&request, NULL, &entry->plan, &arena, &alone, &error), STATUS_OK, "%s",
                             error.message);
                const double held = alone.memory.by_stage[entry->memory.stage];
                cr_expect_float_eq(entry->memory.reserved_bytes, held, 0.001 * held, "batch %d, place %d: %g, not %g",
                                   rows[row][1], i + 1, entry->memory.reserved_bytes, held);
                interleaved++;
            }
        }
        cr_expect_gt(interleaved, 0);
    }
}

// torchtitan's allocator is replayed by one function, whoever asks; stages are not.
Test(search, an_entry_reserves_what_a_prediction_of_its_plan_does) {
    request = request_for(&arena, 8, "llama-3-8b", "dgx-h100", "torchtitan");
    for (int threads = 1; threads <= 2; threads++) {
        request.threads = threads;
        request.effort = threads == 1 ? EFFORT_ESTIMATE : EFFORT_SIMULATE;
        run();
        cr_assert_gt(result.entry_count, 4);
        for (int i = 0; i < result.entry_count; i++) {
            Prediction alone;
            const Prediction *entry = &result.entries[i];
            if (mesh_stages(&entry->plan.mesh) > 1) {
                continue;
            }
            cr_assert_eq(predict_once(&request, NULL, &entry->plan, &arena, &alone, &error), STATUS_OK, "%s",
                         error.message);
            cr_expect_eq(alone.memory.reserved_bytes, entry->memory.reserved_bytes, "place %d", i + 1);
            cr_expect(entry->memory.reserved_bytes <= request.memory_limit_bytes);
        }
    }
}

// Four sequences of 4096 tokens: 12 buffers of 128 MiB.
Test(search, megatron_overlaps_tp_until_its_buffers_do_not_fit) {
    Mesh split = mesh_of_one();
    split.size[AXIS_TP] = 8;
    request = request_for(&arena, 8, "llama-3-8b", "dgx-h100", "megatron");
    request.micro_batch = 4;
    request.global_batch = 32;
    request.asked[PLAN_RECOMPUTE] = RECOMPUTE_NONE;
    request.effort = EFFORT_ESTIMATE;
    run();
    const Prediction beside = *entry_of(&split);
    cr_expect(beside.plan.tp_overlap);
    request.asked[PLAN_TP_OVERLAP] = false;
    run();
    const Prediction apart = *entry_of(&split);
    cr_expect_lt(apart.tokens_per_s, beside.tokens_per_s);
    cr_expect_float_eq(beside.memory.reserved_bytes - apart.memory.reserved_bytes, 12.0 * (128 << 20), 1);
    request.memory_limit_bytes = 1.01 * apart.memory.reserved_bytes;
    request.asked[PLAN_TP_OVERLAP] = TUNE_ANY;
    run();
    cr_expect_not(entry_of(&split)->plan.tp_overlap);
}

// Two buffers of 5e8 bf16 elements, or of 1e8: 1.6 GB between.
Test(search, deepspeed_reduces_by_smaller_buckets_where_its_own_do_not_fit) {
    Mesh sharded = mesh_of_one();
    sharded.size[AXIS_DP_SHARD] = 8;
    request = request_for(&arena, 8, "7b", "dgx-h100", "deepspeed");
    request.micro_batch = 1;
    request.global_batch = 32;
    request.asked[PLAN_ZERO] = 2;
    request.asked[PLAN_RECOMPUTE] = RECOMPUTE_FULL;
    request.asked[PLAN_REDUCE_OVERLAP] = REDUCE_OVERLAP_ON;
    request.effort = EFFORT_ESTIMATE;
    run();
    const Prediction own = *entry_of(&sharded);
    cr_expect_eq(own.plan.reduce_bucket, 0);
    request.memory_limit_bytes = own.memory.reserved_bytes - 1e9;
    run();
    const Prediction *small = entry_of(&sharded);
    cr_expect_eq(small->plan.reduce_bucket, TARGET_SMALL_BUCKET);
    cr_expect_float_eq(own.memory.reserved_bytes - small->memory.reserved_bytes, 2 * 2 * (5e8 - 1e8), 1);
    cr_expect_gt(small->tokens_per_s, 0.985 * own.tokens_per_s);
    request.asked[PLAN_REDUCE_BUCKET] = 0;
    run();
    for (int i = 0; i < result.entry_count; i++) {
        cr_expect_neq(result.entries[i].plan.mesh.size[AXIS_DP_SHARD], 8);
    }
}

// Megatron's gradients have their memory anyway: a graph of the whole iteration is never slower.
Test(search, megatron_takes_graphs_where_its_version_has_them) {
    request = request_for(&arena, 8, "1b", "dgx-h100", "megatron@0.19");
    request.effort = EFFORT_ESTIMATE;
    run();
    cr_expect_eq(result.entries[0].plan.cuda_graphs, CUDA_GRAPHS_ON);
    const double replayed_s = result.entries[0].step_s;
    request.asked[PLAN_CUDA_GRAPHS] = CUDA_GRAPHS_OFF;
    run();
    cr_expect_geq(result.entries[0].step_s, replayed_s);
    request = request_for(&arena, 8, "1b", "dgx-h100", "megatron");
    run();
    cr_expect_eq(result.entries[0].plan.cuda_graphs, CUDA_GRAPHS_TARGET);
}

Test(search, gradients_of_405b_on_1024_fit_only_in_shards) {
    request = request_for(&arena, 1024, "405b", "dgx-h100", "accelerate@1.14");
    request.effort = EFFORT_ESTIMATE;
    request.asked[PLAN_RECOMPUTE] = RECOMPUTE_FULL;
    request.asked[PLAN_RESHARD] = RESHARD_ALWAYS;
    request.micro_batch = 1;
    run();
    cr_assert_gt(result.entry_count, 0);
    cr_expect_eq(result.entries[0].plan.grad_sync, GRAD_SYNC_EACH);
    request.asked[PLAN_GRAD_SYNC] = GRAD_SYNC_LAST;
    run();
    cr_expect_eq(result.entry_count, 0);
}

Test(search, every_entry_fits_the_limit) {
    request.memory_limit_bytes = 40e9;
    run();
    cr_assert_gt(result.entry_count, 0);
    for (int i = 0; i < result.entry_count; i++) {
        cr_assert_leq(result.entries[i].memory.reserved_bytes, 40e9);
    }
}

Test(search, every_rejection_has_a_sentence) {
    request.memory_limit_bytes = 20e9;
    run();
    cr_assert_gt(result.rejected_count, 0);
    for (int i = 0; i < result.rejected_count; i++) {
        cr_assert_not_null(result.rejected[i].rule);
        cr_assert_not_null(result.rejected[i].reason);
    }
}

Test(search, a_shape_that_does_not_fit_says_by_how_much_and_because_of_what) {
    request.memory_limit_bytes = 20e9;
    run();
    for (int i = 0; i < result.rejected_count; i++) {
        if (strcmp(result.rejected[i].rule, "memory") == 0) {
            cr_assert_not_null(strstr(result.rejected[i].reason, "does not fit by"), "%s", result.rejected[i].reason);
            cr_assert_not_null(strstr(result.rejected[i].reason, "largest buffer"), "%s", result.rejected[i].reason);
        }
    }
}

Test(search, nothing_feasible_is_an_answer_not_an_error) {
    request.memory_limit_bytes = 1e9;
    run();
    cr_assert_eq(result.entry_count, 0);
    cr_assert_eq(result.rejected_count, 20);
}

Test(search, no_simulated_candidate_with_room_beats_the_winner_by_more_than_a_percent) {
    run();
    for (int i = 0; i < result.candidate_count; i++) {
        const Candidate *candidate = &result.candidates[i];
        if (candidate->state == CANDIDATE_SIMULATED && best_leaves_room(&request, candidate->reserved_bytes)) {
            cr_assert_leq(0.99 * candidate->tokens_per_s, result.entries[0].tokens_per_s);
        }
    }
}

// The screen may not lose the best plan: simulate every candidate and take the fastest that fits.
Test(search, the_winner_is_that_of_simulating_everything) {
    request.memory_limit_bytes *= 0.9;  // given, so that all of it is used
    run();
    Predictor predictor;
    predictor_init(&predictor, &request, NULL);
    double best = 0;
    for (int i = 0; i < result.candidate_count; i++) {
        if (result.candidates[i].rule && strcmp(result.candidates[i].rule, "memory") != 0) {
            continue;
        }
        Prediction prediction;
        cr_assert_eq(predict_plan(&predictor, &result.candidates[i].plan, true, &arena, &prediction, &error),
                     STATUS_OK);
        best = prediction.fits ? fmax(best, prediction.tokens_per_s) : best;
    }
    predictor_free(&predictor);
    double found = 0;
    for (int i = 0; i < result.candidate_count; i++) {
        const Candidate *candidate = &result.candidates[i];
        found = candidate->state == CANDIDATE_SIMULATED ? fmax(found, candidate->tokens_per_s) : found;
    }
    cr_assert_float_eq(best, found, 1e-9 * best);
    cr_assert_geq(result.entries[0].tokens_per_s, 0.99 * best);
}

// Whole gradients summed over micro-steps (accelerate reduces on the last one only) are more than a larger micro-batch
// in one step: 70 G parameters in bf16 are 141 GB a rank, which no H100 has.
Test(search, a_larger_micro_batch_without_accumulation_is_looked_at_where_smaller_ones_do_not_fit) {
    request = request_for(&arena, 64, "llama-3-70b", "dgx-h100", "accelerate");
    request.global_batch = 128;
    run();
    const TrainPlan *best = &result.entries[0].plan;
    cr_assert_eq(best->mesh.size[AXIS_DP_SHARD], 64);
    cr_assert_eq(best->micro_batch, 2);
    cr_assert_eq(best->grad_accum, 1);
}

// As many chunks as run ahead of the first backward have whole gradients (8 G parameters on 2 stages: 8 GB in bf16)
// beside them only if more micro-steps follow. Of 34 GB micro-batch 2 needs 33 GiB in 4 of them, 4 in 2 fits.
Test(search, a_larger_micro_batch_in_few_micro_steps_is_looked_at_where_smaller_ones_do_not_fit) {
    request = request_for(&arena, 8, "llama-3-8b", "dgx-a100-80g", "torchtitan");
    request.global_batch = 8;
    request.seq = 1024;
    request.memory_limit_bytes *= 0.4;
    run();
    const TrainPlan *of_mesh = NULL;
    for (int i = 0; i < result.entry_count; i++) {
        const TrainPlan *plan = &result.entries[i].plan;
        of_mesh = mesh_stages(&plan->mesh) == 2 && plan->mesh.size[AXIS_CP] == 4 ? plan : of_mesh;
    }
    cr_assert(of_mesh && of_mesh->micro_batch == 4 && of_mesh->grad_accum == 2);
}

Test(search, estimating_only_simulates_nothing) {
    request.effort = EFFORT_ESTIMATE;
    run();
    cr_assert_eq(result.search.simulated, 0);
    cr_assert_eq(result.entry_count + result.rejected_count, 20);
    cr_assert_eq(result.entries[0].origin, ORIGIN_ESTIMATE);
}

Test(search, the_same_request_gives_the_same_answer) {
    run();
    const TuneResult first = result;
    run();
    cr_assert_eq(first.entry_count, result.entry_count);
    for (int i = 0; i < first.entry_count; i++) {
        cr_assert(plans_equal(&first.entries[i].plan, &result.entries[i].plan));
        cr_assert_eq(first.entries[i].step_s, result.entries[i].step_s);
    }
}

static bool refuse(void *context, const char *label, int64_t done, int64_t total) {
    (void)context, (void)label, (void)total;
    return done < 3;
}

Test(search, a_cancelled_search_says_so) {
    const Progress progress = {.update = refuse};
    cr_assert_eq(search_run(&request, NULL, &progress, &arena, &result, &error), STATUS_ENVIRONMENT);
    cr_assert_not_null(strstr(error.message, "interrupted"));
}

Test(search, a_world_that_is_no_power_of_two_is_searched_like_any_other) {
    request.world = 24;  // 2^3 * 3: 20 * 4 = 80 shapes
    run();
    cr_assert_eq(result.entry_count + result.rejected_count, 80);
    cr_assert_gt(result.entry_count, 0);
}

Test(search, a_batch_far_over_the_assumed_one_is_a_warning) {
    request = request_for(&arena, 16, "tiny", "dgx-h100", "accelerate");
    request.seq = 1 << 20;  // 4 sequences are 4M tokens; 16 data ranks take at least 16
    run();
    for (int i = 0; i < result.entry_count; i++) {
        bool warned = false;
        for (int j = 0; j < result.entries[i].warning_count; j++) {
            warned = warned || strstr(result.entries[i].warnings[j], "give --global-batch");
        }
        cr_assert_eq(warned, plan_global_batch(&result.entries[i].plan) > 6, "place %d", i + 1);
    }
}

Test(search, hfu_adds_what_the_program_runs_twice) {
    request = request_for(&arena, 8, "7b", "dgx-h100", "accelerate@1.14");
    request.asked[PLAN_RECOMPUTE] = RECOMPUTE_FULL;
    run();
    const Prediction *best = &result.entries[0];
    // accelerate 1.14 wraps the halves of a layer and stops their second forward where nothing more is needed, so the
    // output and the down projection do not run again: q, k, v (4096 x 4096), gate and up (4096 x 11008), and scores
    // and values over the full square.
    const double again = 32.0 * (2.0 * (3.0 * 4096 * 4096 + 2.0 * 4096 * 11008) + 4.0 * 4096 * 4096);
    cr_assert_float_eq(best->hfu / best->mfu, 1 + again / model_flops_per_token(&request.model, 4096), 1e-12);
}

// The blocks of a ring are one square together, whether each rank sees half of all or the last rank all of most.
Test(search, a_contiguous_ring_repeats_as_many_model_flops_as_a_zigzag_one) {
    const char *targets[2] = {"accelerate", "axolotl"};
    double again[2];
    for (int i = 0; i < 2; i++) {
        request = request_for(&arena, 8, "7b", "dgx-h100", targets[i]);
        TrainPlan plan = {.mesh = {SIZES(1, 1, 8, 1)}, .seq = 65536, .micro_batch = 1, .grad_accum = 1, .zero = 3};
        plan.recompute = RECOMPUTE_FULL;
        plan.precision = DTYPE_BF16;
        plan.fused = FUSED_EAGER;
        plan.bf16_master = i == 1;  // axolotl has no others
        StepProgram program;
        cr_assert_eq(step_lower(&request.model, &plan, request.target, &arena, &program, &error), STATUS_OK, "%s",
                     error.message);
        again[i] = predict_recomputed_flop_per_token(&program);
    }
    cr_assert_float_eq(again[0], again[1], 1e-9 * again[0]);
}

static void expect_same(const TuneResult *one, const TuneResult *other) {
    cr_assert_eq(one->entry_count, other->entry_count);
    cr_assert_eq(one->rejected_count, other->rejected_count);
    cr_assert_eq(one->candidate_count, other->candidate_count);
    for (int i = 0; i < one->entry_count; i++) {
        cr_assert(plans_equal(&one->entries[i].plan, &other->entries[i].plan), "place %d", i + 1);
        cr_assert_eq(one->entries[i].step_s, other->entries[i].step_s, "place %d", i + 1);
        cr_assert_eq(one->entries[i].memory.reserved_bytes, other->entries[i].memory.reserved_bytes);
    }
    for (int i = 0; i < one->rejected_count; i++) {
        cr_assert_str_eq(one->rejected[i].reason, other->rejected[i].reason, "rejected %d", i);
    }
    for (int i = 0; i < one->candidate_count; i++) {
        const Candidate *left = &one->candidates[i], *right = &other->candidates[i];
        cr_assert_eq(left->state, right->state, "candidate %d", i);
        cr_assert_eq(left->step_s, right->step_s, "candidate %d", i);
        cr_assert_eq(left->reserved_bytes, right->reserved_bytes, "candidate %d", i);
    }
    cr_assert_eq(one->search.estimated, other->search.estimated);
    cr_assert_eq(one->search.simulated, other->search.simulated);
    cr_assert_eq(one->search.pruned, other->search.pruned);
}

Test(search, the_number_of_threads_changes_nothing) {
    request.world = 16;
    request.threads = 1;
    run();
    for (int threads = 2; threads <= 5; threads += 3) {
        TuneResult threaded;
        request.threads = threads;
        cr_assert_eq(search_run(&request, NULL, NULL, &arena, &threaded, &error), STATUS_OK, "%s", error.message);
        expect_same(&result, &threaded);
    }
}

Test(search, the_objective_memory_ranks_by_memory) {
    request.objective = OBJECTIVE_MEMORY;
    run();
    for (int i = 1; i < result.entry_count; i++) {
        cr_assert_leq(result.entries[i - 1].memory.reserved_bytes, result.entries[i].memory.reserved_bytes);
    }
}

Test(search, an_interrupted_search_says_so_with_any_number_of_threads) {
    const Progress stop = {.update = refuse};
    for (request.threads = 1; request.threads <= 2; request.threads++) {
        TuneResult stopped;
        cr_assert_eq(search_run(&request, NULL, &stop, &arena, &stopped, &error), STATUS_ENVIRONMENT);
        cr_assert_not_null(strstr(error.message, "interrupted while"), "%s", error.message);
    }
}

Test(search, a_simulated_search_knows_what_an_estimate_alone_would_take) {
    SearchBest best;
    run();
    cr_assert_eq(search_best_alone(&request, &arena, &best, &error), STATUS_OK, "%s", error.message);
    cr_assert(best.feasible);
    cr_assert_eq(result.chosen_tokens_per_s, best.best.tokens_per_s);
}

Test(search, nothing_above_the_best_is_found_and_above_less_the_best) {
    SearchBest best, above;
    const CostModel cost = {.profile = &request.cluster, .target = request.target};
    Analytic *analytic = analytic_new(&request.model, &cost, &arena);
    cr_assert_eq(search_best_alone(&request, &arena, &best, &error), STATUS_OK, "%s", error.message);
    const double fastest = best.best.tokens_per_s;
    cr_assert_eq(search_best_above(&request, analytic, 0.98 * fastest, NULL, &arena, &above, &error), STATUS_OK);
    cr_assert_eq(above.best.tokens_per_s, fastest);
    cr_assert_eq(search_best_above(&request, analytic, 1.01 * fastest, NULL, &arena, &above, &error), STATUS_OK);
    cr_assert(!above.feasible || above.best.tokens_per_s <= fastest);
    analytic_free(analytic);
}

// Four limits: what fits by far to what hardly any shape meets. The closed form knows the request from the first on.
Test(search, the_best_alone_is_the_best_of_the_whole_search) {
    request.effort = EFFORT_ESTIMATE;
    const CostModel cost = {.profile = &request.cluster, .target = request.target};
    Analytic *analytic = analytic_new(&request.model, &cost, &arena);
    const double limits[] = {80e9, 60e9, 40e9, 20e9};
    for (int i = 0; i < 4; i++) {
        request.memory_limit_bytes = limits[i];
        run();
        SearchBest best;
        const Mesh last = result.entry_count > 0 ? result.entries[result.entry_count - 1].plan.mesh
                                                 : (Mesh){.size = SIZES(8, 1, 1, 1)};
        cr_assert_eq(search_best(&request, analytic, &last, &arena, &best, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(best.feasible, result.entry_count > 0);
        if (best.feasible) {
            cr_assert_eq(memcmp(&best.best.plan.mesh, &result.entries[0].plan.mesh, sizeof(Mesh)), 0, "limit %g",
                         limits[i]);
            cr_assert_eq(best.best.tokens_per_s, result.entries[0].tokens_per_s);
            cr_assert_eq(best.reference_tokens_per_s, result.entries[result.entry_count - 1].tokens_per_s);
        }
    }
    analytic_free(analytic);
}
