// Files and pipes that the user named.

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/open.h"

static char folder[] = "/tmp/ndtune-open-XXXXXX", path[64];

static void begin(void) {
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
}

static void end(void) {
    remove(path);
    rmdir(folder);
}

TestSuite(open_to_read, .init = begin, .fini = end);

static void reads(const char *text) {
    const char *why = NULL;
    char got[64] = "";
    FILE *file = open_to_read(path, &why);
    cr_assert_not_null(file, "%s", why);
    cr_expect_eq(fread(got, 1, sizeof got - 1, file), strlen(text));
    cr_expect_str_eq(got, text);
    fclose(file);
}

Test(open_to_read, a_file_is_read) {
    FILE *file = fopen(path, "w");
    fputs("text", file);
    fclose(file);
    reads("text");
}

Test(open_to_read, what_is_not_there_is_said) {
    const char *why = NULL;
    cr_expect_null(open_to_read(path, &why));
    cr_expect_str_eq(why, "No such file or directory");
}

Test(open_to_read, a_pipe_that_nobody_writes_to_is_refused) {
    const char *why = NULL;
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_expect_null(open_to_read(path, &why));
    cr_expect_str_eq(why, "it is a pipe that nobody writes to");
}

// Longer than anybody waits for a writer.
Test(open_to_read, a_slow_writer_is_waited_for) {
    cr_assert_eq(mkfifo(path, 0600), 0);
    const pid_t child = fork();
    if (child == 0) {
        const int out = open(path, O_WRONLY);
        sleep(4);
        _exit(write(out, "late", 4) == 4 ? 0 : 1);
    }
    reads("late");
    cr_expect_eq(waitpid(child, NULL, 0), child);
}
