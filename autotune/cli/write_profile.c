// A calibrated profile as a file: what cannot be read back is not written.

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "autotune/cli/cli.h"
#include "sim/base/json.h"
#include "sim/cluster/cluster_fields.h"

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

// Runs that are nothing like their predictions can leave numbers that no profile may hold.
static Status read_back(Cli *cli, const char *text, const char *path, Error *error) {
    ClusterProfile again;
    json_t *root = NULL;
    Status status = json_text_load(text, path, &root, error);
    status = status == STATUS_OK ? cluster_read(root, path, &cli->arena, &again, error) : status;
    json_decref(root);
    if (status != STATUS_OK) {
        error_wrap(error, "the runs make an impossible profile");
        error_hint(error, "are these the step times, in seconds, of that cluster, model and mesh?");
    }
    return status;
}

Status cli_write_profile(Cli *cli, const char *path, const ClusterProfile *profile, const char **text, Error *error) {
    char *made = NULL;
    TRY(cluster_write(profile, &made, error));
    *text = arena_text(&cli->arena, made);
    free(made);
    TRY(read_back(cli, *text, path, error));
    return cli_blame(cli, OPTION_OUT, cli_write_file(cli, path, write_text, *text, error));
}
