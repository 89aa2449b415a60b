// One rank's training step on CPU threads, by kind of task, and the step's own matrix products alone: the BLAS' time
// for them when nothing else runs in between. The shape of llm.c's CPU example by default.
//   bench_step [threads 1] [model gpt2] [seq 64] [micro-batch 4] [steps 8]
// Each number is the fastest of the steps: other programs on the machine can only slow steps down. CPU seconds are
// those of all threads of the process, including waiting in the pool.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/worker/session.h"
#include "kernels/kernels.h"
#include "sim/base/clock.h"
#include "sim/base/text.h"
#include "tests/support/sizes.h"

enum { REPEATS = 3 };

static Status request_open(int argc, char **argv, RunRequest *request, Arena *arena, Error *error) {
    int64_t number[5] = {1, 0, 64, 4, 8};
    for (int i = 1; i < argc && i <= 5; i++) {
        if (i != 2 && (!text_parse_int(argv[i], &number[i - 1]) || number[i - 1] < 1)) {
            return error_set(error, STATUS_USAGE, "usage: bench_step [threads] [model] [seq] [micro-batch] [steps]");
        }
    }
    *request = (RunRequest){.plan = {.mesh = {SIZES(1, 1, 1, 1)},
                                     .seq = (int)number[2],
                                     .micro_batch = (int)number[3],
                                     .grad_accum = 1,
                                     .precision = DTYPE_FP32},
                            .options = run_options_default(),
                            .segment_fd = -1};
    request->options.threads = (int)number[0];
    request->options.steps = (int)number[4];
    TRY(model_find(argc > 2 ? argv[2] : "gpt2", arena, &request->model, error));
    TRY(target_find("ndtune", &request->target, error));
    plan_canonical(&request->plan);
    StepProgram program;
    TRY(step_lower(&request->model, &request->plan, request->target, arena, &program, error));
    request->template_hash = step_template_hash(&program);
    return STATUS_OK;
}

typedef struct Spent {
    double wall_s, cpu_s;
} Spent;

typedef struct Costs {
    Spent step, kind[TASK_KIND_COUNT];
} Costs;

static Spent now(void) {
    return (Spent){clock_of_s(CLOCK_MONOTONIC), clock_of_s(CLOCK_PROCESS_CPUTIME_ID)};
}

static void add_since(Spent *spent, const Spent *from, const Spent *to) {
    spent->wall_s += to->wall_s - from->wall_s;
    spent->cpu_s += to->cpu_s - from->cpu_s;
}

// One rank has no collectives, so every task is the device's.
static Costs step_run(Session *session, int64_t step) {
    Costs costs = {0};
    StepCursor cursor = step_cursor_begin(&session->program);
    StepInstance instance;
    const Spent begin = now();
    Spent last = begin;
    session->devices->begin_step(session->device, step, false);
    while (step_cursor_next(&cursor, &instance)) {
        session->devices->run(session->device, &instance, 0);
        const Spent end = now();
        add_since(&costs.kind[session->program.tasks[instance.task].kind], &last, &end);
        last = end;
    }
    add_since(&costs.step, &begin, &last);
    return costs;
}

static void keep_less(Spent *least, const Spent *spent) {
    least->wall_s = spent->wall_s < least->wall_s ? spent->wall_s : least->wall_s;
    least->cpu_s = spent->cpu_s < least->cpu_s ? spent->cpu_s : least->cpu_s;
}

static void keep_least(Costs *least, const Costs *costs) {
    keep_less(&least->step, &costs->step);
    for (int kind = 0; kind < TASK_KIND_COUNT; kind++) {
        keep_less(&least->kind[kind], &costs->kind[kind]);
    }
}

typedef struct Products {
    Spent spent;
    double flop;
} Products;

// Every product of the step by itself: the fastest of a few runs, times how often it occurs.
static Products products_alone(Session *session) {
    const StepProgram *program = &session->program;
    Products products = {0};
    StepCursor cursor = step_cursor_begin(program);
    StepInstance instance;
    while (step_cursor_next(&cursor, &instance)) {
        if (program->tasks[instance.task].kind != TASK_GEMM) {
            continue;
        }
        Spent best = {0};
        for (int i = 0; i < REPEATS; i++) {
            Spent once = {0};
            const Spent begin = now();
            session->devices->run(session->device, &instance, 0);
            const Spent end = now();
            add_since(&once, &begin, &end);
            best = i == 0 ? once : best;
            keep_less(&best, &once);
        }
        products.spent.wall_s += best.wall_s;
        products.spent.cpu_s += best.cpu_s;
        products.flop += program->tasks[instance.task].flops;
    }
    return products;
}

static void print_line(const char *name, const Spent *spent, double flop) {
    printf("%-26s %10.3f %10.3f", name, 1e3 * spent->wall_s, 1e3 * spent->cpu_s);
    if (flop > 0) {
        printf("   %.0f GFLOP/s, %.0f per cpu second", 1e-9 * flop / spent->wall_s, 1e-9 * flop / spent->cpu_s);
    }
    printf("\n");
}

static void report(const RunRequest *request, const Costs *least, const Products *alone) {
    printf("%s, %d sequences of %d tokens, fp32, %d thread%s, blas %s%s\n", request->model.name,
           request->plan.micro_batch, request->plan.seq, request->options.threads,
           request->options.threads == 1 ? "" : "s", kernel_blas_name(),
           kernel_blas_is_slow() ? " (narrower than this processor)" : "");
    printf("%-26s %10s %10s\n", "", "ms", "cpu ms");
    print_line("step", &least->step, 0);
    print_line("its products alone", &alone->spent, alone->flop);
    for (int kind = 0; kind < TASK_KIND_COUNT; kind++) {
        if (least->kind[kind].wall_s > 0) {
            print_line(task_kind_name((TaskKind)kind), &least->kind[kind], kind == TASK_GEMM ? alone->flop : 0);
        }
    }
    const Spent *gemm = &least->kind[TASK_GEMM];
    printf("share of products: %.0f %% of the step, %.0f %% of its cpu seconds\n",
           100 * gemm->wall_s / least->step.wall_s, 100 * gemm->cpu_s / least->step.cpu_s);
}

static Status bench(int argc, char **argv, Arena *arena, Error *error) {
    RunRequest request;
    Session session = {0};
    TRY(request_open(argc, argv, &request, arena, error));
    TRY(session_join(&request, &(RankPlace){0}, arena, &session, error));
    step_run(&session, 0);  // warms up
    Costs least = step_run(&session, 1);
    for (int step = 2; step <= request.options.steps; step++) {
        const Costs costs = step_run(&session, step);
        keep_least(&least, &costs);
    }
    const Products alone = products_alone(&session);
    report(&request, &least, &alone);
    session_close(&session);
    return STATUS_OK;
}

int main(int argc, char **argv) {
    kernel_core_settle(argv);
    Arena arena = {0};
    Error error = {0};
    const Status status = bench(argc, argv, &arena, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "bench_step: %s\n", error.message);
    }
    arena_free(&arena);
    return status_exit_code(status);
}
