// Runs every file of a corpus through its fuzz target, in the normal test run: what the fuzzer once found stays fixed.
// FUZZ_CORPUS is the folder below tests/fuzz/corpus.

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"

enum { INPUT_BYTES = 1 << 20 };

static void run_file(const char *path) {
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "%s", path);
    uint8_t *bytes = malloc(INPUT_BYTES);
    const size_t size = fread(bytes, 1, INPUT_BYTES, file);
    fclose(file);
    cr_assert_eq(LLVMFuzzerTestOneInput(bytes, size), 0);
    free(bytes);
}

Test(corpus, every_file_keeps_the_promises) {
    static const char folder[] = NDTUNE_SOURCE_DIR "/tests/fuzz/corpus/" FUZZ_CORPUS;
    DIR *entries = opendir(folder);
    cr_assert_not_null(entries);
    int files = 0;
    for (const struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) {
        if (entry->d_name[0] != '.') {
            char path[sizeof folder + sizeof entry->d_name + 1];
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            run_file(path);
            files++;
        }
    }
    closedir(entries);
    cr_assert_gt(files, 10);
}
