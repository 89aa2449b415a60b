// Shared by several targets: the bytes as a file, and what a refusal must look like.

#include "tests/fuzz/fuzz.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void fuzz_write_file(const char *path, const uint8_t *data, size_t size) {
    remove(path);  // cutting it to nothing would wait for the disk
    FILE *file = fopen(path, "wb");
    ASSERT(file);
    ASSERT(fwrite(data, 1, size, file) == size);
    fclose(file);
}

static bool is_sentence(const char *text, size_t bytes) {
    return memchr(text, '\0', bytes) && !strchr(text, '\n');
}

void fuzz_refused(const Error *error) {
    ASSERT(error->status == STATUS_USAGE);
    ASSERT(error->message[0] != '\0');
    ASSERT(is_sentence(error->message, sizeof error->message) && is_sentence(error->hint, sizeof error->hint));
}
