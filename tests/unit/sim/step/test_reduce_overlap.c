// Whether reductions overlap backward, and what waits for them where they do not.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/memory/memory_breakdown.h"
#include "tests/support/lowered.h"

static Arena arena;

static void end(void) {
    arena_free(&arena);
}

TestSuite(reduce_overlap, .fini = end);

static StepProgram program_of(const char *target, int zero, ReduceOverlap overlap) {
    return lowered(&arena, (LoweredRequest){.target = target,
                                            .mesh = "dp_shard=4",
                                            .zero = zero == 0 ? -1 : zero,
                                            .grad_accum = 2,
                                            .bf16 = true,
                                            .reduce_overlap = overlap});
}

// Instances of a task in a micro-step's loops, and after them.
typedef struct Places {
    int inside, behind;
} Places;

static Places places_of(const StepProgram *program, const char *name) {
    StepCursor cursor = step_cursor_begin(program);
    StepInstance instance;
    Places places = {0};
    bool ended = false;
    while (step_cursor_next(&cursor, &instance)) {
        ended |= strcmp(program->tasks[instance.task].name, "zero norm") == 0;
        if (strcmp(program->tasks[instance.task].name, name) == 0) {
            *(ended ? &places.behind : &places.inside) += 1;
        }
    }
    return places;
}

static int lane_of(const StepProgram *program, const char *name) {
    for (int32_t i = 0; i < program->task_count; i++) {
        if (strcmp(program->tasks[i].name, name) == 0) {
            return program->tasks[i].lane;
        }
    }
    return -1;
}

// DeepSpeed 0.19.8: reduce_gradients of stage 1 runs when backward has returned, unless overlap_comm makes hooks of it
// (stage_1_and_2.py process_gradients); stage 0 has allreduce_gradients only (engine.py).
Test(reduce_overlap, stages_0_and_1_of_deepspeed_reduce_when_backward_has_ended) {
    const StepProgram own = program_of("deepspeed", 1, REDUCE_OVERLAP_TARGET);
    const StepProgram beside = program_of("deepspeed", 1, REDUCE_OVERLAP_ON);
    const StepProgram whole = program_of("deepspeed", 0, REDUCE_OVERLAP_TARGET);
    const int units = own.model.layers + 2;
    cr_expect_eq(places_of(&own, "reduce gradients").behind, units);
    cr_expect_eq(places_of(&own, "reduce gradients").inside, 0);
    cr_expect_eq(lane_of(&own, "shard gradient cast"), LANE_COMPUTE);
    cr_expect_eq(places_of(&beside, "reduce gradients").behind, 0);
    cr_expect_eq(places_of(&beside, "reduce gradients").inside, units);
    cr_expect_eq(places_of(&whole, "gradient sum").behind, units);
    cr_expect_eq(places_of(&whole, "gradient sum").inside, 0);
}

// average_tensor of stage 2 runs on the current stream: the kernels after it wait, on every micro-step.
Test(reduce_overlap, at_stage_2_of_deepspeed_kernels_wait_for_every_reduction) {
    const StepProgram own = program_of("deepspeed", 2, REDUCE_OVERLAP_TARGET);
    const StepProgram beside = program_of("deepspeed", 2, REDUCE_OVERLAP_ON);
    cr_expect_eq(places_of(&own, "reduce gradients").inside, 2 * (own.model.layers + 2));
    cr_expect_eq(lane_of(&own, "shard gradient cast"), LANE_COMPUTE);
    cr_expect_eq(lane_of(&own, "shard gradient add"), LANE_COMPUTE);
    cr_expect_eq(lane_of(&beside, "shard gradient cast"), LANE_RS);
    cr_expect_eq(lane_of(&beside, "shard gradient add"), LANE_RS);
}

// finish_grad_sync reduces everything where --overlap-grad-reduce is not given (megatron-core 0.19.2
// param_and_grad_buffer.py).
Test(reduce_overlap, without_it_megatron_reduces_when_backward_has_ended) {
    const StepProgram own = program_of("megatron", 1, REDUCE_OVERLAP_TARGET);
    const StepProgram late = program_of("megatron", 1, REDUCE_OVERLAP_OFF);
    const int units = own.model.layers + 2;
    cr_expect_eq(places_of(&own, "reduce gradients").inside, units);
    cr_expect_eq(places_of(&late, "reduce gradients").inside, 0);
    cr_expect_eq(places_of(&late, "reduce gradients").behind, units);
}

static double outside_with(int zero, ReduceOverlap overlap, int bucket) {
    const StepProgram program = lowered(&arena, (LoweredRequest){.target = "deepspeed",
                                                                 .mesh = "dp_shard=4",
                                                                 .zero = zero,
                                                                 .grad_accum = 2,
                                                                 .bf16 = true,
                                                                 .reduce_overlap = overlap,
                                                                 .reduce_bucket = bucket});
    return memory_outside_bytes(&program, &arena);
}

// stage_1_and_2.py setup_buckets, stage3.py _setup_for_real_optimizer: in bf16.
Test(reduce_overlap, deepspeed_holds_two_buckets_where_one_is_reduced_beside_backward) {
    const struct {
        int zero;
        ReduceOverlap overlap;
        int buckets;
    } cases[] = {{1, REDUCE_OVERLAP_OFF, 1},
                 {2, REDUCE_OVERLAP_OFF, 1},
                 {2, REDUCE_OVERLAP_ON, 2},
                 {1, REDUCE_OVERLAP_ON, 2},
                 {3, REDUCE_OVERLAP_TARGET, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const double own = outside_with(cases[i].zero, cases[i].overlap, 0);
        cr_expect_eq(own - outside_with(cases[i].zero, cases[i].overlap, 100000000), cases[i].buckets * 4e8 * 2);
    }
}

// Of 16 sequences of 128 tokens on two ranks: 12 buffers of all tokens, or two parts of a rank's.
Test(reduce_overlap, tp_collectives_beside_products_have_buffers) {
    static const struct {
        const char *target;
        int zero;
        bool fp8;
        double bytes;  // of a number that goes into a layer
    } cases[] = {{"megatron", 1, false, 24},
                 {"megatron", 1, true, 16},
                 {"torchtitan", 3, false, 2},
                 {"accelerate", 3, false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const StepProgram program = program_of(cases[i].target, cases[i].zero, REDUCE_OVERLAP_TARGET);
        TrainPlan plan = program.plan;
        plan.mesh.size[AXIS_TP] = 2;
        plan.seq = 128;
        plan.micro_batch = 16;
        plan.precision = cases[i].fp8 ? DTYPE_FP8 : DTYPE_BF16;
        plan.tp_overlap = true;
        cr_expect_eq(target_overlap_bytes(program.target, &program.model, &plan),
                     cases[i].bytes * 16 * 128 * program.model.hidden, "%s", cases[i].target);
        plan.tp_overlap = false;
        cr_expect_eq(target_overlap_bytes(program.target, &program.model, &plan), 0);
    }
}

Test(reduce_overlap, a_bucket_of_the_hidden_size_is_its_square) {
    const StepProgram program = program_of("deepspeed", 2, REDUCE_OVERLAP_OFF);
    TrainPlan plan = program.plan;
    plan.reduce_bucket = REDUCE_BUCKET_HIDDEN;
    cr_expect_eq(target_reduce_bucket(program.target, &program.model, &plan),
                 (double)program.model.hidden * (double)program.model.hidden);
    plan.zero = 0;
    cr_expect_eq(target_reduce_bucket(program.target, &program.model, &plan), 0);
}

Test(reduce_overlap, who_has_no_such_buffer_takes_no_size_for_it) {
    LoweredRequest request = {.target = "deepspeed", .mesh = "dp_shard=4", .bf16 = true, .reduce_bucket = 1000};
    cr_expect(lowered_is_legal(&request, &arena));
    request.target = "torchtitan";
    cr_expect_not(lowered_is_legal(&request, &arena));
}
