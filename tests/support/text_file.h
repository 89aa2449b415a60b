// A file with this text.

#pragma once

#include <criterion/criterion.h>
#include <stdio.h>

static inline void text_file_write(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}
