// The n-th allocation fails, or the n-th read of a dump, for every possible n: the result is one sentence and one of
// our exit codes, or the answer without that file; never a signal, never a hang.

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "autotune/blame/verdict.h"

#define STOPPED NDTUNE_SOURCE_DIR "/tests/golden/blame/stopped"

enum { NEVER = 1 << 30, MOST = 4000, RANKS = 4 };

static int allocations = NEVER, reads = NEVER;  // until one fails

void *__real_malloc(size_t bytes);
size_t __real_fread(void *into, size_t bytes, size_t count, FILE *file);
int __real_ferror(FILE *file);
void *__wrap_malloc(size_t bytes);
size_t __wrap_fread(void *into, size_t bytes, size_t count, FILE *file);
int __wrap_ferror(FILE *file);

static FILE *broken;

void *__wrap_malloc(size_t bytes) {
    return allocations > 0 && --allocations == 0 ? NULL : __real_malloc(bytes);
}

size_t __wrap_fread(void *into, size_t bytes, size_t count, FILE *file) {
    if (--reads != 0) {
        return __real_fread(into, bytes, count, file);
    }
    broken = file;
    errno = EIO;
    return 0;
}

int __wrap_ferror(FILE *file) {
    const bool is = file == broken;
    broken = NULL;
    return is || __real_ferror(file);
}

// In a separate process: 10 + the ranks whose dump was read, or the exit code; its message goes to the file.
static int judge_there(const char *words) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        Arena arena = {0};
        Error error = {0};
        Job job;
        Verdict verdict;
        const int out = open(words, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(out, STDERR_FILENO);
        alarm(20);
        if (job_read(STOPPED, 0, &arena, &job, &error) != STATUS_OK) {
            fprintf(stderr, "%s\n", error.message);
            _exit(status_exit_code(error.status));
        }
        verdict_find(&job, 0, &arena, &verdict);
        _exit(10 + job.dump_count);
    }
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status), "signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

// The leak checker would report in a child that ends early.
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0";
}

static void expect_sentence(const char *path) {
    char text[1024] = "";
    FILE *file = fopen(path, "r");
    const size_t length = __real_fread(text, 1, sizeof text - 1, file);
    fclose(file);
    cr_expect_gt(length, 10);
    cr_expect_eq(strchr(text, '\n'), text + length - 1, "not one line: %s", text);
}

Test(blame_faults, an_allocation_that_fails_ends_in_one_sentence) {
    char words[] = "/tmp/ndtune-faults-XXXXXX";
    close(mkstemp(words));
    int failed = 0, n = 1;
    for (; n < MOST; n++) {
        allocations = n;
        const int code = judge_there(words);
        allocations = NEVER;
        if (code == 10 + RANKS) {
            break;
        }
        failed++;
        cr_expect(code == 1 || code == 3 || code == 4, "allocation %d: exit code %d", n, code);
        expect_sentence(words);
    }
    cr_expect_gt(failed, 5);
    cr_expect_lt(n, MOST);
    remove(words);
}

Test(blame_faults, a_read_that_fails_leaves_that_dump_out) {
    char words[] = "/tmp/ndtune-faults-XXXXXX";
    close(mkstemp(words));
    int failed = 0, n = 1;
    for (; n < MOST; n++) {
        reads = n;
        const int code = judge_there(words);
        reads = NEVER;
        if (code == 10 + RANKS) {
            break;
        }
        failed++;
        cr_expect_eq(code, 10 + RANKS - 1, "read %d: exit code %d", n, code);
    }
    cr_expect_geq(failed, 2 * RANKS);  // for each dump, its bytes and its end
    cr_expect_lt(n, MOST);
    remove(words);
}
