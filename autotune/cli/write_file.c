// Writes a result file atomically: a temporary file in the same folder is renamed over it. An existing path that is not
// a regular file (a pipe, /dev/stdout) is written to directly.

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "autotune/cli/cli.h"

static Status cannot_write(const char *path, Error *error) {
    return error_set(error, STATUS_ENVIRONMENT, "%s cannot be written: %s", path, strerror(errno));
}

static Status write_to(const char *opened, const char *path, Renderer writer, const void *what, Error *error) {
    FILE *file = fopen(opened, "w");
    if (!file) {
        return cannot_write(path, error);
    }
    Status status = writer(what, file, error);
    if (fclose(file) != 0 && status == STATUS_OK) {
        status = cannot_write(path, error);
    }
    return status;
}

static const char *beside(Cli *cli, const char *path) {
    return arena_format(&cli->arena, "%s.%ld.tmp", path, (long)getpid());
}

Status cli_check_output(Cli *cli, OptionId id, Error *error) {
    struct stat about;
    const char *path = cli_text_or(cli, id, NULL);
    if (!path || (stat(path, &about) == 0 && !S_ISREG(about.st_mode))) {
        return STATUS_OK;
    }
    const char *temporary = beside(cli, path);
    FILE *file = fopen(temporary, "w");
    if (!file) {
        return cli_blame(cli, id, cannot_write(path, error));
    }
    fclose(file);
    unlink(temporary);
    return STATUS_OK;
}

Status cli_write_file(Cli *cli, const char *path, Renderer writer, const void *what, Error *error) {
    struct stat about;
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode)) {
        return write_to(path, path, writer, what, error);
    }
    const char *temporary = beside(cli, path);
    Status status = write_to(temporary, path, writer, what, error);
    if (status == STATUS_OK && rename(temporary, path) != 0) {
        status = cannot_write(path, error);
    }
    if (status != STATUS_OK) {
        unlink(temporary);
    }
    return status;
}

Status cli_write_option(Cli *cli, OptionId id, Renderer writer, const void *what, Error *error) {
    return cli_given(cli, id) ? cli_blame(cli, id, cli_write_file(cli, cli_value(cli, id)->text, writer, what, error))
                              : STATUS_OK;
}
