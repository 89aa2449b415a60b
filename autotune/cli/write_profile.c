// Writes a fitted profile to a file.

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "autotune/cli/cli.h"

const char *cli_today(Cli *cli) {
    char when[32];
    const time_t now = time(NULL);
    struct tm day;
    strftime(when, sizeof when, "%Y-%m-%d", gmtime_r(&now, &day));
    return arena_text(&cli->arena, when);
}

static Status write_text(const void *text, FILE *out, Error *error) {
    return fputs(text, out) >= 0 ? STATUS_OK : error_set(error, STATUS_ENVIRONMENT, "the profile cannot be written");
}

Status cli_write_profile(Cli *cli, const char *path, const ClusterProfile *profile, const char **text, Error *error) {
    char *made = NULL;
    TRY(cluster_write(profile, &made, error));
    *text = arena_text(&cli->arena, made);
    free(made);
    return cli_blame(cli, OPTION_OUT, cli_write_file(cli, path, write_text, *text, error));
}
