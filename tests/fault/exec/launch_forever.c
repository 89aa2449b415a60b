// A launcher for tests to kill: two ranks that run steps until killed. WORKER [TRANSPORT [TIMEOUT]]
// Writes one byte to standard output once steps are running.

#define _GNU_SOURCE  // write

#include <stdio.h>
#include <unistd.h>

#include "exec/launch/launch.h"
#include "tests/support/sizes.h"

static bool say_once(void *context, const char *label, int64_t done, int64_t total) {
    (void)label;
    (void)total;
    bool *said = context;
    if (done > 1 && !*said) {
        *said = write(STDOUT_FILENO, ".", 1) == 1;
    }
    return true;
}

int main(int argc, char **argv) {
    Arena arena = {0};
    Error error = {0};
    RunResult result;
    RunRequest request = {
        .plan = {.mesh = {.size = SIZES(1, 2, 1, 1)}, .seq = 64, .micro_batch = 1, .grad_accum = 1, .zero = 3},
        .options = run_options_default()};
    bool said = false;
    const Progress progress = {.update = say_once, .context = &said};
    const ExecOptions options = {.worker_path = argc > 1 ? argv[1] : NULL, .progress = &progress};
    request.options.steps = 1000000;
    request.options.transport = argc > 2 ? argv[2] : "shm";
    request.options.timeout_s = argc > 3 ? strtod(argv[3], NULL) : 120;
    Status status = model_find("tiny", &arena, &request.model, &error);
    status = status == STATUS_OK ? target_find("ndtune", &request.target, &error) : status;
    status = status == STATUS_OK ? exec_run(&request, &options, &arena, &result, &error) : status;
    fprintf(stderr, "%s\n", error.message);
    arena_free(&arena);
    return status_exit_code(status);
}
