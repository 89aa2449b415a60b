// A result file: whole or not at all. A temporary file beside it takes its place.

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "autotune/cli/cli.h"

static Status cannot_write(const char *path, Error *error) {
    return error_set(error, STATUS_ENVIRONMENT, "%s cannot be written: %s", path, strerror(errno));
}

Status cli_write_file(Cli *cli, const char *path, FileWriter writer, const void *what, Error *error) {
    const char *temporary = arena_format(&cli->arena, "%s.%ld.tmp", path, (long)getpid());
    FILE *file = fopen(temporary, "w");
    if (!file) {
        return cannot_write(path, error);
    }
    Status status = writer(what, file, error);
    if (fclose(file) != 0 && status == STATUS_OK) {
        status = cannot_write(path, error);
    }
    if (status == STATUS_OK && rename(temporary, path) != 0) {
        status = cannot_write(path, error);
    }
    if (status != STATUS_OK) {
        unlink(temporary);
    }
    return status;
}
