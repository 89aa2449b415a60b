// ndtune clusters: the built-in profiles; with a name or a file, every number with its source and grade.

#include <stdio.h>
#include <stdlib.h>

#include "autotune/cli/cli.h"
#include "reports/reports.h"

static Status print_profile(Cli *cli, const ClusterProfile *profile, Error *error) {
    if (cli_format(cli) != FORMAT_JSON) {
        return cli_answer(cli, &answer_cluster, profile, error);
    }
    char *text = NULL;  // a profile file that --cluster reads back
    TRY(cluster_write(profile, &text, error));
    fputs(text, stdout);
    free(text);
    return STATUS_OK;
}

static Status print_all(Cli *cli, Error *error) {
    int count = 0;
    const char *const *names = cluster_names(&count);
    ClusterProfile *profiles = ARENA_ARRAY(&cli->arena, ClusterProfile, count);
    for (int i = 0; i < count; i++) {
        TRY(cluster_find(names[i], &cli->arena, &profiles[i], error));
    }
    return cli_answer(cli, &answer_clusters, &(ClustersReport){profiles, count}, error);
}

Status cmd_clusters(Cli *cli, Error *error) {
    if (cli->options.word_count == 0) {
        if (cli->options.set_count > 0) {
            cli->blame = cli->options.set_argument[0];
            return error_set(error, STATUS_USAGE, "--set needs the name of a cluster to change");
        }
        return print_all(cli, error);
    }
    ClusterProfile profile;
    Status status = cluster_find(cli->options.words[0], &cli->arena, &profile, error);
    cli->blame = cli->options.word_argument[0];
    for (int i = 0; i < cli->options.set_count && status == STATUS_OK; i++) {
        cli->blame = cli->options.set_argument[i];
        status = cluster_set(&profile, cli->options.sets[i], &cli->arena, error);
    }
    return status == STATUS_OK ? print_profile(cli, &profile, error) : status;
}
