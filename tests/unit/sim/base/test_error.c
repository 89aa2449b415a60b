// Errors as values: the context outside, the fact inside, nothing lost except the tail.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/base/error.h"

Test(error, set_returns_the_status_and_formats_the_sentence) {
    Error error = {0};
    cr_assert_eq(error_set(&error, STATUS_USAGE, "tp must be positive, got %d", -3), STATUS_USAGE);
    cr_assert_eq(error.status, STATUS_USAGE);
    cr_assert_str_eq(error.message, "tp must be positive, got -3");
    cr_assert_str_empty(error.hint);
}

Test(error, wraps_read_from_the_outside_in) {
    Error error = {0};
    error_set(&error, STATUS_ENVIRONMENT, "no such file");
    error_wrap(&error, "profile %s", "x.json");
    cr_assert_eq(error_wrap(&error, "plan"), STATUS_ENVIRONMENT);
    cr_assert_str_eq(error.message, "plan: profile x.json: no such file");
}

Test(error, a_wrap_keeps_the_hint) {
    Error error = {0};
    error_set(&error, STATUS_USAGE, "unknown model");
    cr_assert_eq(error_hint(&error, "did you mean %s?", "7b"), STATUS_USAGE);
    error_wrap(&error, "plan");
    cr_assert_str_eq(error.hint, "did you mean 7b?");
}

Test(error, a_new_error_forgets_the_old_hint) {
    Error error = {0};
    error_set(&error, STATUS_USAGE, "first");
    error_hint(&error, "a hint");
    error_set(&error, STATUS_USAGE, "second");
    cr_assert_str_empty(error.hint);
}

Test(error, a_message_that_is_too_long_loses_its_tail_not_its_context) {
    Error error = {0};
    char fact[2 * ERROR_MESSAGE_BYTES];
    memset(fact, 'f', sizeof fact - 1);
    fact[sizeof fact - 1] = '\0';
    error_set(&error, STATUS_USAGE, "%s", fact);
    cr_assert_eq(strlen(error.message), ERROR_MESSAGE_BYTES - 1);
    error_wrap(&error, "context");
    cr_assert_eq(strncmp(error.message, "context: fff", 12), 0);
    cr_assert_eq(strlen(error.message), ERROR_MESSAGE_BYTES - 1);
}

Test(error, its_own_message_may_be_an_argument) {
    Error error = {0};
    error_set(&error, STATUS_USAGE, "inner");
    error_set(&error, STATUS_USAGE, "outer of %s", error.message);
    cr_assert_str_eq(error.message, "outer of inner");
}

Test(error, nobody_has_to_take_the_error) {
    cr_assert_eq(error_set(NULL, STATUS_INFEASIBLE, "nothing fits"), STATUS_INFEASIBLE);
    cr_assert_neq(error_wrap(NULL, "context"), STATUS_OK);
    cr_assert_neq(error_hint(NULL, "hint"), STATUS_OK);
}

Test(error, exit_codes_are_those_of_the_contract) {
    cr_assert_eq(status_exit_code(STATUS_OK), 0);
    cr_assert_eq(status_exit_code(STATUS_USAGE), 1);
    cr_assert_eq(status_exit_code(STATUS_INFEASIBLE), 2);
    cr_assert_eq(status_exit_code(STATUS_ENVIRONMENT), 3);
    cr_assert_eq(status_exit_code(STATUS_INTERNAL), 4);
}

static Status fails(Error *error) {
    TRY(error_set(error, STATUS_USAGE, "inside"));
    return STATUS_OK;
}

Test(error, try_returns_the_first_failure) {
    Error error = {0};
    cr_assert_eq(fails(&error), STATUS_USAGE);
}

Test(error, control_characters_cannot_break_the_line_or_steer_a_terminal) {
    Error error = {0};
    error_set(&error, STATUS_USAGE, "unknown name \"%s\"", "a\nb\033[2Jc\x7f");
    cr_assert_str_eq(error.message, "unknown name \"a?b?[2Jc?\"");
    error_hint(&error, "did you mean %s?", "a\tb");
    cr_assert_str_eq(error.hint, "did you mean a?b?");
    error_wrap(&error, "%s", "file\r.json");
    cr_assert_str_eq(error.message, "file?.json: unknown name \"a?b?[2Jc?\"");
    error_set(&error, STATUS_USAGE, "%s",
              "\xc2\x9b"
              "2J \xe2\x80\xa8 \xff caf\xc3\xa9");
    cr_assert_str_eq(error.message, "?2J ? ? caf\xc3\xa9");
}

Test(error, a_character_that_the_buffer_cuts_goes_as_a_whole) {
    Error error = {0};
    char word[2 * ERROR_MESSAGE_BYTES] = "x";
    while (strlen(word) < ERROR_MESSAGE_BYTES + 8) {
        strncat(word, "\u00e9", sizeof word - strlen(word) - 1);  // two bytes; the odd x makes the end fall inside
    }
    error_set(&error, STATUS_USAGE, "%s", word);
    const size_t length = strlen(error.message);
    cr_assert_gt(length, ERROR_MESSAGE_BYTES - 8);
    cr_assert_eq((unsigned char)error.message[length - 1] & 0xC0, 0x80, "ends with a whole character");
    cr_assert_eq(length % 2, 1);
}
