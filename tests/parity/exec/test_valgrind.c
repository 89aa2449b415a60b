// One small run with both ranks under valgrind: no uninitialised reads, no accesses outside a block, no leaks. The
// worker is found through $NDTUNE_WORKER, which names a wrapper here.

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/run_program.h"

// The first folder of $PATH that has valgrind, else NULL.
static const char *find_valgrind(char path[512]) {
    const char *folder = getenv("PATH");
    while (folder && *folder) {
        const int length = (int)strcspn(folder, ":");
        snprintf(path, 512, "%.*s/valgrind", length, folder);
        if (access(path, X_OK) == 0) {
            return path;
        }
        folder += length + (folder[length] == ':');
    }
    return NULL;
}

static void write_wrapper(const char *path, const char *valgrind) {
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fprintf(file,
            "#!/bin/sh\nexec %s -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite %s \"$@\"\n",
            valgrind, NDTUNE_BIN_DIR "/ndtune-worker");
    fclose(file);
    cr_assert_eq(chmod(path, 0700), 0);
}

static void runs_clean(const char *const *words) {
#if defined(__SANITIZE_ADDRESS__)
    cr_skip_test("valgrind cannot run a program that has a sanitizer in it");
#endif
    char found[512], wrapper[512], setting[600], data[600];
    const char *valgrind = find_valgrind(found);
    if (!valgrind) {
        cr_skip_test("valgrind is not installed");
    }
    char *folder = temp_dir_make();
    snprintf(wrapper, sizeof wrapper, "%s/worker", folder);
    write_wrapper(wrapper, valgrind);
    snprintf(setting, sizeof setting, "NDTUNE_WORKER=%s", wrapper);
    snprintf(data, sizeof data, "XDG_DATA_HOME=%s", folder);
    const char *const environment[] = {setting, data, NULL};
    ProgramRun run = program_run(words, environment, 300);
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    program_run_free(&run);
    temp_dir_remove(folder);
}

#define RUN(...)                                                                                                       \
    runs_clean((const char *const[]){"ndtune", "run", "--model", "tiny", "--layers", "1", "--seq", "32", "--steps",    \
                                     "2", "--mesh", __VA_ARGS__, NULL})

Test(valgrind, finds_nothing_in_two_ranks_of_our_own_program) {
    RUN("dp_shard=2");
}

Test(valgrind, finds_nothing_in_two_ranks_of_another_targets_program_with_lanes_in_threads) {
    RUN("tp=2", "--target", "accelerate", "--recompute", "full", "--lanes", "async");
}
