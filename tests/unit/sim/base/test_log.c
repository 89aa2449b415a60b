// Log lines: each is printed once, to stderr, on a single line.

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/log.h"

static void redirect(void) {
    cr_redirect_stderr();
    cr_redirect_stdout();
}

TestSuite(log, .init = redirect);

Test(log, a_warning_is_written_once) {
    log_warn_once("tp=16 crosses nodes");
    log_warn_once("cp=2 crosses nodes");
    log_warn_once("tp=16 crosses nodes");
    fflush(stderr);
    cr_assert_stderr_eq_str("ndtune: warning: tp=16 crosses nodes\nndtune: warning: cp=2 crosses nodes\n");
}

Test(log, results_are_left_alone) {
    log_warn_once("detail");
    printf("result\n");
    fflush(stdout);
    cr_assert_stdout_eq_str("result\n");
}

Test(log, an_endless_line_is_cut) {
    char words[5000];
    memset(words, 'w', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    log_warn_once(words);
    fflush(stderr);
    char expected[2000];
    snprintf(expected, sizeof expected, "ndtune: warning: %.1023s\n", words);
    cr_assert_stderr_eq_str(expected);
}
