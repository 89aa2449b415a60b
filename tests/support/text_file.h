// A file with this text. An old one of the name goes first: ext4 waits for the disk where one is cut to nothing.

#pragma once

#include <criterion/criterion.h>
#include <stdio.h>

static inline void text_file_write(const char *path, const char *text) {
    remove(path);
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}
