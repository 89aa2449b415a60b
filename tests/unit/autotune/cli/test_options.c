// The option table and its parser.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/cli/options.h"

static Options options;
static Error error;
static ParseContext context;

// Parses the words after the command, up to NULL.
static Status parse(CommandId command, char *const *words) {
    int count = 0;
    while (words[count]) {
        count++;
    }
    error = (Error){0};
    context = (ParseContext){.argc = count, .argv = words, .command = command};
    return options_parse(&context, &options, &error);
}

#define PARSE(command, ...) parse(command, (char *const[]){__VA_ARGS__, NULL})

Test(options, every_row_has_a_name_help_and_a_command) {
    for (int i = 0; i < OPTION_COUNT; i++) {
        const OptionRow row = option_row((OptionId)i);
        cr_assert_not_null(row.name, "row %d", i);
        cr_assert_not_null(row.help, "%s", row.name);
        cr_assert_neq(row.commands, 0, "%s", row.name);
        cr_assert(row.type == VALUE_FLAG || row.value, "%s", row.name);
    }
}

Test(options, no_name_comes_twice) {
    for (int i = 0; i < OPTION_COUNT; i++) {
        for (int j = 0; j < i; j++) {
            cr_assert_str_neq(option_row((OptionId)i).name, option_row((OptionId)j).name);
        }
    }
}

Test(options, a_value_follows_as_a_word_or_after_an_equals_sign) {
    cr_assert_eq(PARSE(COMMAND_PLAN, "--world", "32", "--seq=2048"), STATUS_OK);
    cr_assert_eq(options.values[OPTION_WORLD].integer, 32);
    cr_assert_eq(options.values[OPTION_SEQ].integer, 2048);
}

Test(options, underscores_stand_for_dashes) {
    cr_assert_eq(PARSE(COMMAND_PLAN, "--global_batch", "8"), STATUS_OK);
    cr_assert_eq(options.values[OPTION_GLOBAL_BATCH].integer, 8);
}

Test(options, auto_is_a_value_of_micro_batch) {
    cr_assert_eq(PARSE(COMMAND_PLAN, "--micro-batch", "auto"), STATUS_OK);
    cr_assert(options.values[OPTION_MICRO_BATCH].given);
    cr_assert_eq(options.values[OPTION_MICRO_BATCH].integer, 0);
}

Test(options, a_word_becomes_its_index) {
    cr_assert_eq(PARSE(COMMAND_PLAN, "--recompute", "full"), STATUS_OK);
    cr_assert_eq(options.values[OPTION_RECOMPUTE].integer, 3);  // auto none selective full
}

Test(options, worlds_are_a_rising_list) {
    cr_assert_eq(PARSE(COMMAND_PLAN, "--world", "8,16,32"), STATUS_OK);
    cr_assert_eq(options.list_count, 3);
    cr_assert_eq(options.list[2], 32);
    cr_assert_eq(options.values[OPTION_WORLD].integer, 8);
    cr_assert_eq(PARSE(COMMAND_PLAN, "--world", "8,8"), STATUS_USAGE);
    cr_assert_eq(PARSE(COMMAND_PLAN, "--world", "8,"), STATUS_USAGE);
}

Test(options, counts_may_end_in_a_letter) {
    cr_assert_eq(PARSE(COMMAND_PLAN, "--tokens", "2T"), STATUS_OK);
    cr_assert_eq(options.values[OPTION_TOKENS].number, 2e12);
    cr_assert_eq(PARSE(COMMAND_PLAN, "--tokens", "300e9"), STATUS_OK);
    cr_assert_eq(options.values[OPTION_TOKENS].number, 300e9);
    cr_assert_eq(PARSE(COMMAND_PLAN, "--tokens", "T"), STATUS_USAGE);
    cr_assert_eq(PARSE(COMMAND_PLAN, "--tokens", "1e30"), STATUS_USAGE);
}

Test(options, sizes_have_units) {
    cr_assert_eq(PARSE(COMMAND_PLAN, "--memory-limit", "70GiB"), STATUS_OK);
    cr_assert_eq(options.values[OPTION_MEMORY_LIMIT].integer, 70LL << 30);
}

Test(options, set_repeats_and_takes_several_words) {
    cr_assert_eq(PARSE(COMMAND_PLAN, "--set", "a=1", "b=2", "--set", "c=3", "--world", "8"), STATUS_OK);
    cr_assert_eq(options.set_count, 3);
    cr_assert_str_eq(options.sets[1], "b=2");
    cr_assert_eq(options.values[OPTION_WORLD].integer, 8);
}

Test(options, an_unknown_option_is_underlined_and_the_nearest_named) {
    cr_assert_eq(PARSE(COMMAND_PLAN, "--world", "8", "--modle", "7b"), STATUS_USAGE);
    cr_assert_eq(context.blame, 2);
    cr_assert_not_null(strstr(error.hint, "did you mean --model?"));
}

Test(options, a_bad_value_is_underlined_itself) {
    cr_assert_eq(PARSE(COMMAND_PLAN, "--world", "abc"), STATUS_USAGE);
    cr_assert_eq(context.blame, 1);
    cr_assert_not_null(strstr(error.message, "\"abc\""));
}

Test(options, numbers_out_of_range_are_refused) {
    cr_assert_eq(PARSE(COMMAND_PLAN, "--world", "0"), STATUS_USAGE);
    cr_assert_eq(PARSE(COMMAND_PLAN, "--world", "-3"), STATUS_USAGE);
    cr_assert_eq(PARSE(COMMAND_PLAN, "--world", "100000000000000000000"), STATUS_USAGE);
    cr_assert_eq(PARSE(COMMAND_PLAN, "--world", "8x"), STATUS_USAGE);
    cr_assert_eq(PARSE(COMMAND_PLAN, "--memory-limit", "0"), STATUS_USAGE);
    cr_assert_eq(PARSE(COMMAND_RUN, "--lr", "nan"), STATUS_USAGE);
}

Test(options, a_bad_word_lists_what_is_allowed_and_suggests) {
    cr_assert_eq(PARSE(COMMAND_PLAN, "--format", "jsno"), STATUS_USAGE);
    cr_assert_not_null(strstr(error.message, "table|json|csv"));
    cr_assert_str_eq(error.hint, "did you mean json?");
}

Test(options, an_option_of_another_command_says_whose_it_is) {
    cr_assert_eq(PARSE(COMMAND_PREDICT, "--world", "8"), STATUS_USAGE);
    cr_assert_not_null(strstr(error.message, "belongs to plan"));
}

Test(options, twice_is_an_error) {
    cr_assert_eq(PARSE(COMMAND_PLAN, "--world", "8", "--world", "8"), STATUS_USAGE);
    cr_assert_eq(context.blame, 2);
}

Test(options, a_missing_value_is_an_error) {
    cr_assert_eq(PARSE(COMMAND_PLAN, "--world"), STATUS_USAGE);
    cr_assert_not_null(strstr(error.message, "needs a value"));
}

Test(options, logs_are_kept_in_order) {
    cr_assert_eq(PARSE(COMMAND_CALIBRATE, "--log", "a.log", "--log", "b.log@tp=2"), STATUS_OK);
    cr_assert_null(options_repeated(&options, OPTION_LOG, 2));
    cr_assert_str_eq(options_repeated(&options, OPTION_LOG, 1)->text, "b.log@tp=2");
    cr_assert_eq(options_repeated(&options, OPTION_LOG, 1)->argument, 3);
}

Test(options, values_of_options_that_may_be_repeated_are_kept_apart) {
    cr_assert_eq(PARSE(COMMAND_ACCURACY, "--runs", "a.csv", "--groups", "g.csv", "--runs", "b.csv"), STATUS_OK);
    cr_assert_str_eq(options_repeated(&options, OPTION_RUNS, 0)->text, "a.csv");
    cr_assert_str_eq(options_repeated(&options, OPTION_RUNS, 1)->text, "b.csv");
    cr_assert_str_eq(options_repeated(&options, OPTION_GROUPS, 0)->text, "g.csv");
    cr_assert_null(options_repeated(&options, OPTION_OOM, 0));
}

Test(options, words_out_of_place_are_refused) {
    cr_assert_eq(PARSE(COMMAND_PLAN, "--world", "8", "16"), STATUS_USAGE);
    cr_assert_eq(context.blame, 2);
    cr_assert_eq(PARSE(COMMAND_PLAN, "-world", "8"), STATUS_USAGE);
    cr_assert_str_eq(error.hint, "did you mean --world?");
}

Test(options, commands_have_their_words) {
    cr_assert_eq(PARSE(COMMAND_CLUSTERS, "dgx-h100"), STATUS_OK);
    cr_assert_str_eq(options.words[0], "dgx-h100");
    cr_assert_eq(PARSE(COMMAND_CLUSTERS, "dgx-h100", "dgx-a100-80g"), STATUS_USAGE);
}

Test(options, lengths_may_end_in_k_or_m) {
    cr_assert_eq(PARSE(COMMAND_PLAN, "--seq", "128k"), STATUS_OK);
    cr_assert_eq(options.values[OPTION_SEQ].integer, 131072);
    cr_assert_eq(PARSE(COMMAND_PLAN, "--seq", "1M"), STATUS_OK);
    cr_assert_eq(options.values[OPTION_SEQ].integer, 1048576);
    cr_assert_eq(PARSE(COMMAND_PLAN, "--seq", "17M"), STATUS_USAGE);
    cr_assert_eq(PARSE(COMMAND_PLAN, "--seq", "M"), STATUS_USAGE);
    cr_assert_eq(PARSE(COMMAND_PLAN, "--global-batch", "8k"), STATUS_USAGE);
}

Test(options, words_of_a_command_replace_those_of_all) {
    char words[128];
    const char *text = "10; of --with 3; validate, tune: 3; a list";
    cr_assert_str_eq(option_words_of(text, COMMAND_PLAN, words, sizeof words), "10; of --with 3; a list");
    cr_assert_str_eq(option_words_of(text, COMMAND_TUNE, words, sizeof words), "3");
    cr_assert_str_eq(option_words_of("report: x.html", COMMAND_PLAN, words, sizeof words), "");
}
