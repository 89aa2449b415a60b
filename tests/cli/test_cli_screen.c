// The default answer fits on one screen: at most 25 lines of 80 columns, and the output of five requests. The files of
// tests/golden/answers are whole answers to read; only their words are checked: digits are the guard's (tests/guard),
// and column widths follow from them.

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/cli.h"

typedef struct Request {
    const char *name;
    const char *words[12];
} Request;

static const Request requests[] = {
    {"default", {"--world", "32", "--model", "7b"}},
    {"long_rows", {"--world", "64", "--model", "llama-3-70b", "--seq", "8192", "--target", "torchtitan"}},
    {"tight", {"--world", "8", "--model", "3b", "--cluster", "RTX 4090", "--global-batch", "64"}},
    {"baseline", {"--nodes", "2", "--model", "Qwen/Qwen3-8B", "--baseline", "dp_shard=8,tp=2", "--tokens", "1e9"}},
    {"nothing", {"--world", "2", "--model", "70b"}},
};

enum { REQUESTS = sizeof requests / sizeof requests[0], SCREEN_LINES = 25, SCREEN_COLUMNS = 80 };

static void check_screen(const Request *request, const char *text) {
    int lines = 0;
    for (const char *line = text; *line; lines++) {
        const size_t bytes = strcspn(line, "\n");
        int columns = 0;
        for (size_t i = 0; i < bytes; i++) {
            columns += ((unsigned char)line[i] & 0xc0) != 0x80;
        }
        cr_expect_leq(columns, SCREEN_COLUMNS, "%s: %.*s", request->name, (int)bytes, line);
        line += bytes + (line[bytes] == '\n');
    }
    cr_expect_leq(lines, SCREEN_LINES, "%s: %d lines\n%s", request->name, lines, text);
}

Test(cli_screen, an_answer_is_one_screen_of_80_columns) {
    for (int i = 0; i < REQUESTS; i++) {
        ProgramRun run = cli_words_once(requests[i].words);
        check_screen(&requests[i], run.out);
        program_run_free(&run);
    }
}

Test(cli_screen, every_answer_but_a_refusal_says_best_batch_evidence_and_two_commands) {
    static const char *const parts[] = {"\nBest: --mesh ",
                                        "\n  step ",
                                        "\nBatch: ",
                                        "\nEvidence: ",
                                        "\nNext: ndtune export",
                                        "\n      ndtune report --open"};
    for (int i = 0; i + 1 < REQUESTS; i++) {
        ProgramRun run = cli_words_once(requests[i].words);
        cr_expect_eq(run.exit_code, 0, "%s: %s", requests[i].name, run.err);
        for (size_t part = 0; part < sizeof parts / sizeof parts[0]; part++) {
            cr_expect_not_null(strstr(run.out, parts[part]), "%s: no %s in %s", requests[i].name, parts[part], run.out);
        }
        program_run_free(&run);
    }
}

Test(cli_screen, a_target_without_a_config_file_has_no_export_to_go_on_with) {
    ProgramRun run = CLI("--world", "8", "--model", "1b", "--target", "fsdp1", "--effort", "estimate");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_null(strstr(run.out, "ndtune export"), "%s", run.out);
    cr_expect_not_null(strstr(run.out, "\nNext: ndtune report --open"), "%s", run.out);
    program_run_free(&run);
}

static char *golden_of(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/answers/%s.txt", NDTUNE_SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "%s", path);
    char *text = calloc(1, 1 << 14);
    cr_assert_lt(fread(text, 1, (1 << 14) - 1, file), (1 << 14) - 1);
    fclose(file);
    return text;
}

// Numbers become one sign, spaces one space.
static char *words_of(const char *text) {
    char *out = calloc(1, strlen(text) + 1);
    size_t used = 0;
    for (const char *at = text; *at;) {
        const size_t digits = strspn(at, "0123456789."), spaces = strspn(at, " ");
        out[used++] = digits > 0 ? '0' : *at;
        at += digits > 0 ? digits : spaces > 0 ? spaces : 1;
    }
    return out;
}

Test(cli_screen, five_requests_print_what_is_committed) {
    for (int i = 0; i < REQUESTS; i++) {
        ProgramRun run = cli_words_once(requests[i].words);
        char *golden = golden_of(requests[i].name);
        char *printed = words_of(run.out), *committed = words_of(golden);
        cr_expect_str_eq(printed, committed, "%s prints\n%s\nnot\n%s", requests[i].name, run.out, golden);
        free(printed);
        free(committed);
        free(golden);
        program_run_free(&run);
    }
}

// Longer sequences than the model was made for, in memory without a margin.
Test(cli_screen, of_several_warnings_one_stands_with_the_count_of_the_others) {
    ProgramRun run =
        CLI("--world", "8", "--model", "7b", "--seq", "8k", "--memory-limit", "70G", "--effort", "estimate");
    const char *warning = strstr(run.out, "Warning: ");
    cr_assert_not_null(warning, "%s", run.out);
    cr_expect_not_null(strstr(warning, "; 1 more: --verbose"), "%s", run.out);
    program_run_free(&run);
}
