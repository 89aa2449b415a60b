// Random lane and event programs, checked against a brute-force transitive closure over all instances.
// The seed is printed, with a failure that of its case; NDTUNE_SEED starts elsewhere.

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "sim/memory/memory.h"
#include "tests/property/sim/memory/oracle.h"
#include "tests/support/hazard_check.h"
#include "tests/support/program_builder.h"
#include "tests/support/seed.h"
#include "tests/support/splitmix.h"

enum { CASES = 300, LANES = 4, BUFFERS = 6 };

static int pick(uint64_t *state, int count) {
    return (int)(splitmix_next(state) % (uint64_t)count);
}

typedef struct Maker {
    ProgramBuilder builder;
    uint64_t state;
    int lanes, buffers;
    int32_t event[BUFFERS][LANES][2];  // [..][read, write]
} Maker;

// Waits and records as data flow asks: a read waits for all writers of its slot, a write for readers too.
static void touch(Maker *maker, int lane, Access access, BufferRef ref) {
    ProgramBuilder *builder = &maker->builder;
    builder_touch_part(builder, access, ref);
    for (int other = 0; other < maker->lanes; other++) {
        if (other != lane) {
            builder_wait_at(builder, maker->event[ref.buffer][other][1], ref.index);
            if (access != ACCESS_READ) {
                builder_wait_at(builder, maker->event[ref.buffer][other][0], ref.index);
            }
        }
    }
    if (access != ACCESS_WRITE) {
        builder_record_at(builder, maker->event[ref.buffer][lane][0], ref.index);
    }
    if (access != ACCESS_READ) {
        builder_record_at(builder, maker->event[ref.buffer][lane][1], ref.index);
    }
}

// Buffers with slots for several micro-steps are also touched at a fixed slot: whatever the micro-step is.
static SlotIndex random_index(Maker *maker, int buffer, bool layered) {
    SlotIndex index = {.layer_scale = (int16_t)(layered ? pick(&maker->state, 2) : 0),
                       .layer_offset = (int16_t)pick(&maker->state, 3)};
    if (maker->builder.program.buffers[buffer].micro_steps > 0 && pick(&maker->state, 4) > 0) {
        index.micro_scale = 1;
        index.micro_offset = (int16_t)pick(&maker->state, 2);
    }
    return index;
}

static void random_task(Maker *maker, bool layered, int number) {
    const int lane = pick(&maker->state, maker->lanes);
    const bool collective = lane > 0 && pick(&maker->state, 2) == 0;
    builder_task(&maker->builder, arena_format(maker->builder.arena, "task %d", number),
                 collective ? TASK_ALL_GATHER : TASK_ADD, (int16_t)lane, PHASE_FORWARD);
    const int touches = 1 + pick(&maker->state, 3);
    int last = -1;
    for (int i = 0; i < touches; i++) {
        const int buffer = pick(&maker->state, maker->buffers);
        if (buffer == last) {
            continue;
        }
        last = buffer;
        const int part = pick(&maker->state, 3);  // whole, first half, second half
        const int64_t bytes = maker->builder.program.buffers[buffer].slot_bytes;
        touch(maker, lane, (Access)(1 + pick(&maker->state, 3)),
              (BufferRef){.buffer = buffer,
                          .index = random_index(maker, buffer, layered),
                          .rank_group = -1,
                          .offset_bytes = part == 2 ? bytes / 2 : 0,
                          .bytes = part == 0 ? bytes : bytes / 2});
    }
}

static void make_buffers(Maker *maker) {
    ProgramBuilder *builder = &maker->builder;
    maker->lanes = 2 + pick(&maker->state, LANES - 1);
    for (int i = 0; i < maker->lanes; i++) {
        builder_lane(builder, arena_format(builder->arena, "lane %d", i), i == 0 ? -1 : pick(&maker->state, 2));
    }
    maker->buffers = 2 + pick(&maker->state, BUFFERS - 1);
    for (int i = 0; i < maker->buffers; i++) {
        const int micro_steps = pick(&maker->state, 3);
        const int32_t buffer = builder_buffer(builder, arena_format(builder->arena, "buffer %d", i), ROLE_ACTIVATION,
                                              (1 + pick(&maker->state, 3)) * (micro_steps > 0 ? micro_steps : 1),
                                              512 * (1 + pick(&maker->state, 4)));
        builder->program.buffers[buffer].micro_steps = micro_steps;
        for (int lane = 0; lane < maker->lanes; lane++) {
            for (int write = 0; write < 2; write++) {
                maker->event[i][lane][write] = builder_event(builder, i, (int16_t)lane, write);
            }
        }
    }
}

// Every byte is written once before the loops, so that no read is of nothing.
static void fill_buffers(Maker *maker) {
    ProgramBuilder *builder = &maker->builder;
    for (int i = 0; i < maker->buffers; i++) {
        for (int slot = 0; slot < builder->program.buffers[i].slots; slot++) {
            builder_task(builder, "fill", TASK_ZERO, 0, PHASE_FORWARD);
            touch(maker, 0, ACCESS_WRITE,
                  (BufferRef){.buffer = i,
                              .index = {.layer_offset = (int16_t)slot},
                              .rank_group = -1,
                              .bytes = builder->program.buffers[i].slot_bytes});
        }
    }
}

static StepProgram *random_program(Maker *maker, Arena *arena, uint64_t seed) {
    *maker = (Maker){.builder = builder_begin(arena, 1 + (int)(seed % 4)), .state = seed};
    make_buffers(maker);
    fill_buffers(maker);
    const int layers = maker->builder.program.layers;
    int number = 0;
    builder_loop(&maker->builder, SEGMENT_MICRO_STEPS, "micro-batches", 0, 1 + pick(&maker->state, 4), 1);
    for (int part = 0; part < 3; part++) {
        const bool layered = part != 1;
        if (layered) {
            const bool down = part == 2;
            builder_loop(&maker->builder, SEGMENT_LAYERS, "layers", down ? layers - 1 : 0, layers, down ? -1 : 1);
        }
        for (int i = 2 + pick(&maker->state, 5); i > 0; i--) {
            random_task(maker, layered, number++);
        }
        if (layered) {
            builder_end(&maker->builder);
        }
    }
    builder_end(&maker->builder);
    return builder_program(&maker->builder);
}

// ---- the laws

Test(random_programs, waits_that_follow_data_flow_leave_no_race_and_plans_are_proved) {
    const uint64_t first = seed_of_run("programs", 1);
    for (uint64_t seed = first; seed < first + CASES; seed++) {
        Arena arena = {0};
        Error error = {0};
        Maker maker;
        MemoryPlan plan;
        StepProgram *program = random_program(&maker, &arena, seed);
        cr_assert_eq(hazard_check(program, NULL, &arena, NULL, &error), STATUS_OK, "seed %llu: %s",
                     (unsigned long long)seed, error.message);
        cr_assert_eq(memory_plan(program, &arena, &plan, &error), STATUS_OK);
        cr_assert_eq(hazard_check(program, &plan, &arena, NULL, &error), STATUS_OK, "seed %llu: %s",
                     (unsigned long long)seed, error.message);
        arena_free(&arena);
    }
}

static void drop_waits(StepProgram *program, uint64_t *state) {
    for (int drops = 1 + pick(state, 3); drops > 0; drops--) {
        Task *task = &program->tasks[pick(state, program->task_count)];
        if (task->wait_count > 0) {
            const int dropped = task->first_wait + pick(state, task->wait_count);
            program->event_refs[dropped] = program->event_refs[task->first_wait + task->wait_count - 1];
            task->wait_count--;
        }
    }
}

Test(random_programs, dropped_waits_are_found_exactly_when_the_transitive_closure_says_so) {
    Oracle *oracle = malloc(sizeof *oracle);
    int races = 0;
    const uint64_t first = seed_of_run("programs", 1);
    for (uint64_t seed = first; seed < first + CASES; seed++) {
        Arena arena = {0};
        Error error = {0};
        Maker maker;
        StepProgram *program = random_program(&maker, &arena, seed);
        drop_waits(program, &maker.state);
        cr_assert(oracle_build(oracle, program));
        const bool race = oracle_finds_race(oracle);
        const Status status = hazard_check(program, NULL, &arena, NULL, &error);
        cr_assert_eq(status, race ? STATUS_INTERNAL : STATUS_OK, "seed %llu: the closure says %s, the check says: %s",
                     (unsigned long long)seed, race ? "race" : "none", error.message);
        races += race;
        arena_free(&arena);
    }
    free(oracle);
    cr_assert(races > CASES / 10 && races < CASES, "%d of %d cases raced: the generator says little", races, CASES);
}

// A temporary's part, so that programs have something to share: written and read once, on one lane.
static void add_temporaries(Maker *maker, int32_t *temporaries, int count) {
    for (int i = 0; i < count; i++) {
        temporaries[i] = builder_buffer(&maker->builder, arena_format(maker->builder.arena, "temporary %d", i),
                                        ROLE_ACTIVATION, 1, 256 * (1 + pick(&maker->state, 3)));
        const int16_t lane = (int16_t)pick(&maker->state, maker->lanes);
        builder_task(&maker->builder, "make", TASK_ZERO, lane, PHASE_BACKWARD);
        builder_touch(&maker->builder, ACCESS_WRITE, temporaries[i]);
        builder_task(&maker->builder, "use", TASK_ADD, lane, PHASE_BACKWARD);
        builder_touch(&maker->builder, ACCESS_READ, temporaries[i]);
    }
}

Test(random_programs, moved_buffers_are_found_exactly_when_brute_force_says_so) {
    enum { TEMPORARIES = 6 };
    Oracle *oracle = malloc(sizeof *oracle);
    int faults = 0;
    const uint64_t first = seed_of_run("programs", 1);
    for (uint64_t seed = first; seed < first + CASES; seed++) {
        Arena arena = {0};
        Error error = {0};
        Maker maker;
        MemoryPlan plan;
        int32_t temporaries[TEMPORARIES];
        random_program(&maker, &arena, seed);
        add_temporaries(&maker, temporaries, TEMPORARIES);
        StepProgram *program = builder_program(&maker.builder);
        cr_assert_eq(memory_plan(program, &arena, &plan, &error), STATUS_OK);
        cr_assert(oracle_build(oracle, program));
        cr_assert_not(oracle_finds_fault(oracle, &plan), "seed %llu", (unsigned long long)seed);
        const int32_t moved = temporaries[pick(&maker.state, TEMPORARIES)];
        plan.offset_bytes[moved] = 256 * pick(&maker.state, (int)(plan.arena_bytes / 256) - 2);
        const bool fault = oracle_finds_fault(oracle, &plan);
        const Status status = hazard_check(program, &plan, &arena, NULL, &error);
        cr_assert_eq(status, fault ? STATUS_INTERNAL : STATUS_OK, "seed %llu: brute force says %s, the check says: %s",
                     (unsigned long long)seed, fault ? "fault" : "none", error.message);
        faults += fault;
        arena_free(&arena);
    }
    free(oracle);
    cr_assert(faults > CASES / 20 && faults < CASES * 19 / 20, "%d of %d cases failed: the generator says little",
              faults, CASES);
}
