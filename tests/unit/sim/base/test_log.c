// Log lines: the level decides, the stream is stderr, a line is one line.

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

Test(log, warnings_are_shown_by_default_and_info_is_not) {
    log_write(LOG_INFO, "quiet");
    log_write(LOG_WARN, "tp=%d crosses nodes", 16);
    fflush(stderr);
    cr_assert_stderr_eq_str("ndtune: warning: tp=16 crosses nodes\n");
}

Test(log, a_level_shows_itself_and_what_is_graver) {
    log_set_level(LOG_INFO);
    log_write(LOG_DEBUG, "detail");
    log_write(LOG_INFO, "note");
    log_write(LOG_ERROR, "broken");
    fflush(stderr);
    cr_assert_stderr_eq_str("ndtune: info: note\nndtune: error: broken\n");
}

Test(log, results_are_left_alone) {
    log_set_level(LOG_DEBUG);
    log_write(LOG_DEBUG, "detail");
    printf("result\n");
    fflush(stdout);
    cr_assert_stdout_eq_str("result\n");
}

Test(log, an_endless_line_is_cut) {
    char words[5000];
    memset(words, 'w', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    log_write(LOG_ERROR, "%s", words);
    fflush(stderr);
    char expected[2000];
    snprintf(expected, sizeof expected, "ndtune: error: %.1023s\n", words);  // log_write's line holds 1024 bytes
    cr_assert_stderr_eq_str(expected);
}
