// Laws that hold for every program, tested on random ones. The seed is printed; NDTUNE_SEED repeats a run.

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/engine_program.h"
#include "tests/property/sim/engine/random_program.h"

enum { PROGRAMS = 400 };

static EngineResult run(const RandomProgram *random, EngineOptions options, Arena *arena) {
    const EngineCosts costs = {.tasks = random->costs, .interference = random->interference};
    EngineResult result;
    Error error = {0};
    options.keep_spans = true;
    cr_assert_eq(engine_run_costs(random->program, &costs, &options, arena, &result, &error), STATUS_OK, "%s",
                 error.message);
    return result;
}

static void same_result(const RandomProgram *random, const EngineResult *a, const EngineResult *b, int program) {
    cr_assert_eq(a->step_s, b->step_s, "program %d: %.17g and %.17g", program, a->step_s, b->step_s);
    cr_assert_eq(a->compute_s, b->compute_s, "program %d", program);
    cr_assert_eq(a->optimizer_s, b->optimizer_s, "program %d", program);
    cr_assert_eq(a->overhead_s, b->overhead_s, "program %d", program);
    cr_assert_eq(memcmp(a->exposed_s, b->exposed_s, sizeof a->exposed_s), 0, "program %d", program);
    for (int32_t i = 0; i < random->program->task_count; i++) {
        cr_assert_eq(a->totals[i].count, b->totals[i].count, "program %d task %d", program, i);
        cr_assert_eq(a->totals[i].seconds, b->totals[i].seconds, "program %d task %d", program, i);
    }
}

// Waits, lanes, communicators and the host as sim/step/step.h states them, one task after another in issue order, in
// picoseconds. With isolated times this is the whole truth about one rank.
typedef struct Oracle {
    int64_t lane_ps[8], communicator_ps[8], host_ps, end_ps;
    int64_t *event_ps;
    int32_t *first_slot;
} Oracle;

static int32_t event_slot(const StepProgram *program, const Oracle *oracle, const EventRef *ref,
                          const StepInstance *instance) {
    const Buffer *buffer = &program->buffers[program->events[ref->event].buffer];
    const int micro_steps = ref->index.micro_scale ? buffer->micro_steps : 1, slots = buffer->slots / micro_steps;
    const int layer = ref->index.layer_scale * instance->layer + ref->index.layer_offset;
    const int micro_step = ref->index.micro_scale * (instance->micro_step + ref->index.micro_offset);
    return oracle->first_slot[ref->event] + ((layer % slots) + slots) % slots +
           slots * (((micro_step % micro_steps) + micro_steps) % micro_steps);
}

static int64_t later(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static void oracle_step(const RandomProgram *random, const StepInstance *instance, Oracle *oracle, const Span *span,
                        int number) {
    const StepProgram *program = random->program;
    const Task *task = &program->tasks[instance->task];
    const int16_t communicator = program->lanes[task->lane].communicator;
    oracle->host_ps += llround(random->costs[instance->task].host_s * 1e12);
    int64_t start = later(oracle->host_ps, oracle->lane_ps[task->lane]);
    start = communicator >= 0 ? later(start, oracle->communicator_ps[communicator]) : start;
    for (int i = 0; i < task->wait_count; i++) {
        const EventRef *ref = &program->event_refs[task->first_wait + i];
        start = later(start, oracle->event_ps[event_slot(program, oracle, ref, instance)]);
    }
    const int64_t end = start + llround(random->costs[instance->task].seconds * 1e12);
    oracle->lane_ps[task->lane] = end;
    oracle->communicator_ps[communicator >= 0 ? communicator : 7] = end;
    for (int i = 0; i < task->record_count; i++) {
        oracle->event_ps[event_slot(program, oracle, &program->event_refs[task->first_record + i], instance)] = end;
    }
    oracle->end_ps = later(oracle->end_ps, end);
    cr_assert_eq(llround(span->start_s * 1e12), start, "program %d: task %d layer %d micro-batch %d", number,
                 instance->task, instance->layer, instance->micro_step);
    cr_assert_eq(llround(span->end_s * 1e12), end, "program %d", number);
    cr_assert(span->task == instance->task && span->layer == instance->layer &&
              span->micro_step == instance->micro_step);
}

static Oracle oracle_new(const StepProgram *program, Arena *arena) {
    Oracle oracle = {.first_slot = ARENA_ARRAY(arena, int32_t, program->event_count + 1)};
    for (int32_t i = 0; i < program->event_count; i++) {
        oracle.first_slot[i + 1] = oracle.first_slot[i] + program->buffers[program->events[i].buffer].slots;
    }
    oracle.event_ps = ARENA_ARRAY(arena, int64_t, oracle.first_slot[program->event_count]);
    return oracle;
}

static void check_rules(uint64_t seed) {
    Random random = {seed};
    for (int number = 0; number < PROGRAMS; number++) {
        Arena arena = {0};
        const RandomProgram program = random_program(&random, &arena);
        const EngineResult result = run(&program, (EngineOptions){.no_contention = true, .unroll = true}, &arena);
        Oracle oracle = oracle_new(program.program, &arena);
        StepCursor cursor = step_cursor_begin(program.program);
        StepInstance instance;
        int64_t count = 0;
        while (step_cursor_next(&cursor, &instance)) {
            cr_assert_lt(count, result.timeline.span_count);
            oracle_step(&program, &instance, &oracle, &result.timeline.spans[count++], number);
        }
        cr_assert_eq(count, result.events);
        cr_assert_eq(llround(result.step_s * 1e12), oracle.end_ps);
        arena_free(&arena);
    }
}

Test(engine_random, isolated_times_give_the_schedule_of_the_rules) {
    check_rules(random_begin("rules").state);
}

// Tasks of a short loop, or after a stretch, that were queued before the walk reached them: programs 64 and 184.
Test(engine_random, what_waits_for_work_that_was_queued_early_starts_after_it) {
    check_rules(1795708325);
    check_rules(1795708348);
}

Test(engine_random, skipping_equals_unrolling) {
    Random random = random_begin("skipping");
    int64_t events = 0, instances = 0;
    for (int number = 0; number < PROGRAMS; number++) {
        Arena arena = {0};
        const RandomProgram program = random_program(&random, &arena);
        for (int contention = 0; contention < 2; contention++) {
            const EngineResult skipped = run(&program, (EngineOptions){.no_contention = !contention}, &arena);
            const EngineResult whole =
                run(&program, (EngineOptions){.no_contention = !contention, .unroll = true}, &arena);
            same_result(&program, &skipped, &whole, number);
            cr_assert_eq(skipped.instances, whole.instances);
            events += skipped.events;
            instances += skipped.instances;
        }
        arena_free(&arena);
    }
    fprintf(stderr, "simulated %lld of %lld instances\n", (long long)events, (long long)instances);
    cr_assert_lt(events, instances, "nothing was ever skipped");
}

static double last_end_s(const EngineResult *result, int rank) {
    double end_s = 0;
    for (int64_t i = 0; i < result->timeline.span_count; i++) {
        const Span *span = &result->timeline.spans[i];
        end_s = span->rank == rank ? fmax(end_s, span->end_s) : end_s;
    }
    return end_s;
}

// Tasks of so many lanes that stop their host, on ranks of two speeds: its lag is each rank's own, in what is skipped
// too.
static void check_hosts(uint64_t state, int lanes, int programs) {
    Random random = {state};
    int64_t events = 0, instances = 0;
    for (int number = 0; number < programs; number++) {
        Arena arena = {0};
        const RandomProgram program = random_program(&random, &arena);
        float slowdown[RANDOM_MAX_RANKS];
        for (int32_t i = 0; i < program.program->task_count; i++) {
            const bool stops = program.program->tasks[i].lane < lanes && random_below(&random, 4) == 0;
            program.costs[i].host_stop = stops ? (HostStop)(1 + random_below(&random, 2)) : HOST_GOES_ON;
            program.costs[i].host_s += random_below(&random, 3) == 0 ? 1e-7 * random_below(&random, 300) : 0;
        }
        for (int rank = 0; rank < RANDOM_MAX_RANKS; rank++) {
            slowdown[rank] = rank % 2 ? 1 : 1.5f;
        }
        const EngineOptions few = {.rank_slowdown = slowdown, .no_contention = true};
        EngineOptions unrolled = few;
        unrolled.unroll = true;
        const EngineResult skipped = run(&program, few, &arena), whole = run(&program, unrolled, &arena);
        same_result(&program, &skipped, &whole, number);
        for (int rank = 0; rank < RANDOM_MAX_RANKS; rank++) {
            cr_assert_eq(last_end_s(&skipped, rank), last_end_s(&whole, rank), "program %d rank %d", number, rank);
        }
        events += skipped.events;
        instances += skipped.instances;
        arena_free(&arena);
    }
    cr_assert_lt(events, instances, "nothing was ever skipped");
}

Test(engine_random, skipping_equals_unrolling_where_hosts_wait) {
    check_hosts(random_begin("hosts").state, 1, PROGRAMS / 4);
    check_hosts(random_begin("hosts").state, ENGINE_LANES, PROGRAMS / 4);
}

// Program 29 of seed 1, where the host falls behind within a loop and a task beyond it is queued.
Test(engine_random, what_is_queued_early_beyond_a_skipped_loop_is_issued_by_the_lagging_host) {
    check_hosts(8043324696455623683, 1, 1);
}

// Program 11 of seed 26, where the walk's clock was set back below zero and the host that started a task lagged behind.
Test(engine_random, what_a_lagging_host_starts_after_a_skip_is_its_overhead) {
    check_hosts(26, 1, 12);
}

Test(engine_random, one_rank_equals_all_ranks) {
    Random random = random_begin("ranks");
    for (int number = 0; number < PROGRAMS / 4; number++) {
        Arena arena = {0};
        const RandomProgram program = random_program(&random, &arena);
        const EngineResult one = run(&program, (EngineOptions){0}, &arena);
        const EngineResult all = run(&program, (EngineOptions){.all_ranks = true}, &arena);
        same_result(&program, &one, &all, number);
        arena_free(&arena);
    }
}

Test(engine_random, classes_of_stragglers_equal_all_ranks) {
    Random random = random_begin("stragglers");
    for (int number = 0; number < PROGRAMS / 4; number++) {
        Arena arena = {0};
        const RandomProgram program = random_program(&random, &arena);
        float slowdown[RANDOM_MAX_RANKS];
        for (int rank = 0; rank < RANDOM_MAX_RANKS; rank++) {
            slowdown[rank] = random_below(&random, 8) == 0 ? 1.5f : 1;
        }
        const EngineResult classes = run(&program, (EngineOptions){.rank_slowdown = slowdown}, &arena);
        const EngineResult all = run(&program, (EngineOptions){.rank_slowdown = slowdown, .all_ranks = true}, &arena);
        cr_assert_leq(classes.classes, all.classes);
        same_result(&program, &classes, &all, number);
        arena_free(&arena);
    }
}

// Slow ranks and slow links together, of several factors; and skipping iterations changes nothing under them.
Test(engine_random, classes_of_slow_links_equal_all_ranks) {
    static const float factors[] = {1, 1, 1, 1, 1, 1, 1.1f, 1.75f, 3};
    Random random = random_begin("links");
    int several = 0;
    for (int number = 0; number < PROGRAMS / 2; number++) {
        Arena arena = {0};
        const RandomProgram program = random_program(&random, &arena);
        float ranks[RANDOM_MAX_RANKS], links[RANDOM_MAX_RANKS];
        for (int rank = 0; rank < RANDOM_MAX_RANKS; rank++) {
            ranks[rank] = number % 2 ? factors[random_below(&random, 9)] : 1;
            links[rank] = factors[random_below(&random, 9)];
        }
        const EngineOptions few = {.rank_slowdown = ranks, .link_slowdown = links, .no_contention = number % 3 == 0};
        EngineOptions every = few, unrolled = few;
        every.all_ranks = true;
        unrolled.unroll = true;
        const EngineResult classes = run(&program, few, &arena);
        const EngineResult all = run(&program, every, &arena);
        const EngineResult whole = run(&program, unrolled, &arena);
        several += classes.classes > 1 && classes.classes < all.classes;
        cr_assert_eq(classes.representative, all.representative, "program %d", number);
        same_result(&program, &classes, &all, number);
        same_result(&program, &classes, &whole, number);
        arena_free(&arena);
    }
    cr_assert_gt(several, 0, "no program had classes of several ranks");
}

Test(engine_random, the_terms_sum_to_the_step_and_none_is_negative) {
    Random random = random_begin("terms");
    for (int number = 0; number < PROGRAMS; number++) {
        Arena arena = {0};
        const RandomProgram program = random_program(&random, &arena);
        const EngineResult result = run(&program, (EngineOptions){0}, &arena);
        double sum = result.compute_s + result.optimizer_s + result.overhead_s;
        bool negative = result.compute_s < 0 || result.optimizer_s < 0 || result.overhead_s < 0;
        for (int axis = 0; axis < AXIS_COUNT; axis++) {
            sum += result.exposed_s[axis];
            negative |= result.exposed_s[axis] < 0;
        }
        cr_assert(!negative, "program %d", number);
        cr_assert(fabs(sum - result.step_s) <= 1e-12 * result.step_s, "program %d: %.17g and %.17g", number, sum,
                  result.step_s);
        arena_free(&arena);
    }
}

// Contention only slows down; and a step is never longer than all its tasks one after another, each at its worst rate.
Test(engine_random, contention_lies_between_isolated_times_and_a_serial_run) {
    Random random = random_begin("bounds");
    for (int number = 0; number < PROGRAMS; number++) {
        Arena arena = {0};
        const RandomProgram program = random_program(&random, &arena);
        const EngineResult shared = run(&program, (EngineOptions){0}, &arena);
        double busiest = 0, serial = 0, lanes[8] = {0};
        for (int32_t i = 0; i < program.program->task_count; i++) {
            const Task *task = &program.program->tasks[i];
            const double isolated = (double)shared.totals[i].count * program.costs[i].seconds;
            lanes[task->lane] += isolated;
            busiest = fmax(busiest, lanes[task->lane]);
            serial += shared.totals[i].seconds + (double)shared.totals[i].count * program.costs[i].host_s;
            cr_assert_geq(shared.totals[i].seconds, isolated * (1 - 1e-12));
        }
        cr_assert_geq(shared.step_s, busiest * (1 - 1e-12), "program %d", number);
        cr_assert_leq(shared.step_s, serial * (1 + 1e-12), "program %d", number);
        arena_free(&arena);
    }
}

static int compare_start(const void *a, const void *b) {
    const Span *x = a, *y = b;
    return x->start_s != y->start_s ? (x->start_s > y->start_s) - (x->start_s < y->start_s)
                                    : (x->end_s > y->end_s) - (x->end_s < y->end_s);
}

Test(engine_random, tasks_of_a_lane_never_overlap) {
    Random random = random_begin("lanes");
    for (int number = 0; number < PROGRAMS / 2; number++) {
        Arena arena = {0};
        const RandomProgram program = random_program(&random, &arena);
        const EngineResult result = run(&program, (EngineOptions){0}, &arena);
        qsort(result.timeline.spans, (size_t)result.timeline.span_count, sizeof(Span), compare_start);
        double free_s[8] = {0};
        for (int64_t i = 0; i < result.timeline.span_count; i++) {
            const Span *span = &result.timeline.spans[i];
            double *lane = &free_s[program.program->tasks[span->task].lane];
            cr_assert_geq(span->start_s, *lane - 1e-15, "program %d", number);
            cr_assert_geq(span->end_s, span->start_s);
            *lane = span->end_s;
        }
        arena_free(&arena);
    }
}

// With isolated times a schedule of fixed order has no anomalies: longer tasks never shorten the step.
Test(engine_random, longer_tasks_never_shorten_the_step) {
    Random random = random_begin("monotone");
    for (int number = 0; number < PROGRAMS / 2; number++) {
        Arena arena = {0};
        RandomProgram program = random_program(&random, &arena);
        const double before = run(&program, (EngineOptions){.no_contention = true}, &arena).step_s;
        for (int32_t i = 0; i < program.program->task_count; i++) {
            program.costs[i].seconds *= 1 + random_below(&random, 100) / 50.0;
        }
        cr_assert_geq(run(&program, (EngineOptions){.no_contention = true}, &arena).step_s, before, "program %d",
                      number);
        arena_free(&arena);
    }
}
