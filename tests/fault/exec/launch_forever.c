// A launcher for tests to kill: two ranks, as many steps as there is time for. WORKER [TRANSPORT [TIMEOUT]]

#include <stdio.h>

#include "exec/launch/launch.h"

int main(int argc, char **argv) {
    Arena arena = {0};
    Error error = {0};
    RunResult result;
    RunRequest request = {
        .plan = {.mesh = {.size = {1, 2, 1, 1}}, .seq = 64, .micro_batch = 1, .grad_accum = 1, .zero = 3},
        .options = run_options_default()};
    const ExecOptions options = {.worker_path = argc > 1 ? argv[1] : NULL};
    request.options.steps = 1 << 30;
    request.options.transport = argc > 2 ? argv[2] : "shm";
    request.options.timeout_s = argc > 3 ? strtod(argv[3], NULL) : 120;
    Status status = model_find("tiny", &arena, &request.model, &error);
    status = status == STATUS_OK ? target_find("ndtune", &request.target, &error) : status;
    status = status == STATUS_OK ? exec_run(&request, &options, &arena, &result, &error) : status;
    fprintf(stderr, "%s\n", error.message);
    arena_free(&arena);
    return status_exit_code(status);
}
