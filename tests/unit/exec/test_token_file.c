// Token files: both widths, the place of a sequence, and everything that can be wrong with a file, with its message.

#define _DEFAULT_SOURCE  // mkstemps

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/data/data.h"

static char path[64];

static void clean(void) {
    if (path[0]) {
        unlink(path);
    }
}

TestSuite(token_file, .fini = clean);

static const char *file_of(const char *end, const void *bytes, size_t count) {
    snprintf(path, sizeof path, "/tmp/ndtune-tokens-XXXXXX%s", end);
    const int fd = mkstemps(path, (int)strlen(end));
    cr_assert(fd >= 0 && write(fd, bytes, count) == (ssize_t)count);
    close(fd);
    return path;
}

static TokenFile opened(const char *end, const void *bytes, size_t count, int32_t vocab) {
    TokenFile file;
    Error error = {0};
    cr_assert(token_file_open(file_of(end, bytes, count), vocab, &file, &error) == STATUS_OK, "%s", error.message);
    return file;
}

static const uint16_t words[] = {7, 300, 2, 65535, 1, 9, 8, 3};

Test(token_file, of_uint16_is_read_as_it_was_written) {
    TokenFile file = opened(".bin", words, sizeof words, 65536);
    int32_t tokens[3];
    token_file_read(&file, 1, 3, tokens);
    cr_assert(file.count == 8 && tokens[0] == 300 && tokens[1] == 2 && tokens[2] == 65535);
    token_file_close(&file);
}

Test(token_file, of_uint32_is_read_as_it_was_written) {
    const uint32_t wide[] = {100000, 3, 128255};
    TokenFile file = opened(".bin", wide, sizeof wide, 128256);
    int32_t tokens[2];
    token_file_read(&file, 1, 2, tokens);
    cr_assert(file.count == 3 && tokens[0] == 3 && tokens[1] == 128255);
    token_file_close(&file);
}

Test(token_file, the_name_says_the_type_before_the_vocabulary_does) {
    TokenFile file = opened(".u32", words, sizeof words, 1000);
    cr_expect(file.width == 4 && file.count == 4);
    token_file_close(&file);
    clean();
    file = opened(".uint16", words, sizeof words, 100000);
    cr_expect(file.width == 2 && file.count == 8);
    token_file_close(&file);
}

Test(token_file, the_place_of_a_sequence_is_a_function_of_seed_step_and_index) {
    TokenFile file = opened(".bin", words, sizeof words, 65536);
    file.count = 1000000;  // only places are drawn, nothing is read
    const int64_t place = token_file_place(&file, 1, 2, 3, 129);
    cr_expect(place == token_file_place(&file, 1, 2, 3, 129));
    cr_expect(place != token_file_place(&file, 2, 2, 3, 129) && place != token_file_place(&file, 1, 3, 3, 129) &&
              place != token_file_place(&file, 1, 2, 4, 129));
    file.count = 8;
    token_file_close(&file);
}

Test(token_file, places_reach_from_the_first_token_to_the_last_sequence) {
    TokenFile file = opened(".bin", words, sizeof words, 65536);
    bool seen[4] = {false};
    for (int64_t step = 0; step < 100; step++) {
        const int64_t place = token_file_place(&file, 5, step, 0, 5);
        cr_assert(place >= 0 && place <= 3);
        seen[place] = true;
    }
    cr_assert(seen[0] && seen[1] && seen[2] && seen[3]);
    token_file_close(&file);
}

static void refused(const TokenFile *file, int32_t vocab, int32_t count, const char *said) {
    const TokenNeed need = {.seed = 1, .vocab = vocab, .steps = 20, .sequences = 2, .count = count};
    Error error = {0};
    cr_assert(token_file_check(file, &need, &error) == STATUS_USAGE);
    cr_assert_not_null(strstr(error.message, said), "%s", error.message);
}

Test(token_file, a_token_outside_the_vocabulary_is_named_with_its_place) {
    TokenFile file = opened(".bin", words, sizeof words, 65535);
    refused(&file, 65535, 5, "token 65535 at place 3 is outside the model's vocabulary of 65535 (read as uint16)");
    token_file_close(&file);
}

Test(token_file, one_that_is_too_short_says_what_a_sequence_needs) {
    TokenFile file = opened(".bin", words, sizeof words, 65536);
    refused(&file, 65536, 9, "holds 8 tokens (read as uint16), a sequence and its last target need 9");
    token_file_close(&file);
}

Test(token_file, uint32_under_a_name_of_no_type_is_recognised) {
    uint32_t wide[100];
    for (uint32_t i = 0; i < 100; i++) {
        wide[i] = i + 1;
    }
    TokenFile file = opened(".bin", wide, sizeof wide, 1000);
    refused(&file, 1000, 33, "its tokens are uint32");
    token_file_close(&file);
}

Test(token_file, one_that_is_good_is_accepted) {
    TokenFile file = opened(".bin", words, sizeof words, 65536);
    const TokenNeed need = {.seed = 1, .vocab = 65536, .steps = 3, .sequences = 2, .count = 8};
    Error error = {0};
    cr_assert(token_file_check(&file, &need, &error) == STATUS_OK, "%s", error.message);
    token_file_close(&file);
}

Test(token_file, another_one_on_another_host_is_refused_in_words) {
    DataSetup setup = {.vocab = 65536, .path = file_of(".bin", words, sizeof words), .tokens = 8};
    DataSource source;
    Error error = {0};
    cr_assert(data_open(&setup, &source, &error) == STATUS_OK, "%s", error.message);
    data_close(&source);
    setup.tokens = 9;
    cr_expect(data_open(&setup, &source, &error) == STATUS_ENVIRONMENT);
    cr_expect(strstr(error.message, "8 tokens for this rank, and 9 where"), "%s", error.message);
    cr_expect(strstr(error.hint, "every host"), "%s", error.hint);
}

Test(token_file, an_absent_file_a_folder_and_half_a_token_are_refused_in_words) {
    TokenFile file;
    Error error = {0};
    cr_expect(token_file_open("/tmp/ndtune-no-such-file", 100, &file, &error) == STATUS_USAGE);
    cr_expect(strstr(error.message, "No such file"), "%s", error.message);
    cr_expect(token_file_open("/tmp", 100, &file, &error) == STATUS_USAGE);
    cr_expect(strstr(error.message, "not a file of tokens"), "%s", error.message);
    cr_expect(token_file_open(file_of(".bin", words, 5), 100, &file, &error) == STATUS_USAGE);
    cr_expect(strstr(error.message, "5 bytes"), "%s", error.message);
}
