// ndtune probe: measures this machine through the workers and writes a cluster profile of it. The file is read back
// before the command says that it is good.

#include <stdio.h>
#include <string.h>

#include "autotune/cli/cli.h"
#include "autotune/cli/executor_options.h"
#include "autotune/cli/request.h"
#include "autotune/probe/probe_profile.h"
#include "exec/launch/launchers.h"
#include "exec/protocol/cores.h"
#include "reports/reports.h"
#include "sim/base/json.h"
#include "sim/base/text.h"
#include "sim/cluster/cluster.h"

enum { MOST_RANKS = 8 };  // local-cpu's most ranks on one machine

// Two ranks per core, so that groups with a core per rank and groups that share cores are both measured.
static int usual_ranks(void) {
    const int cores = cores_allowed();
    return 2 * cores > MOST_RANKS ? MOST_RANKS : 2 * cores;
}

// On each machine pairs below larger groups, where there are enough ranks for both; machines are the slowest axis, so
// that there are groups of one rank per machine too.
static Status choose_mesh(Cli *cli, const char *transport, Mesh *mesh, Error *error) {
    const LaunchOptions launch = executor_launch(cli);
    const Launcher *launcher;
    const char *because;
    TRY(launcher_choose(&launch, transport, &cli->arena, &launcher, &because, error));
    const int hosts = launcher_hosts(launcher, &launch);
    if (cli_given(cli, OPTION_MESH)) {
        TRY(cli_blame(cli, OPTION_MESH, mesh_parse(cli_value(cli, OPTION_MESH)->text, mesh, error)));
    } else {
        const int usual = cli_on_gpu(cli) ? 1 : usual_ranks();
        const int ranks = cli_given(cli, OPTION_WORLD) ? (int)cli_value(cli, OPTION_WORLD)->integer : usual;
        const int machines = ranks % hosts == 0 ? hosts : 1, each = ranks / machines;
        const int pairs = each % 2 == 0 && ranks > 2 ? 2 : 1;
        *mesh = mesh_of_one();
        mesh->size[AXIS_DP_REPLICATE] = machines;
        mesh->size[AXIS_DP_SHARD] = each / pairs;
        mesh->size[AXIS_TP] = pairs;
    }
    FAIL_WITH(mesh_world(mesh) < 2 && !cli_on_gpu(cli),
              cli_refuse(cli, cli_given(cli, OPTION_WORLD) ? OPTION_WORLD : OPTION_MESH, error,
                         "one rank has nobody to exchange with: a probe needs at least 2"));
    return STATUS_OK;
}

static const char *profile_name(const char *path, Arena *arena) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const size_t length = strcspn(base, ".");
    return length > 0 ? arena_format(arena, "%.*s", (int)length, base) : "probed";
}

static Status save(Cli *cli, const ProbeResult *probe, const char *transport, const char *path, Error *error) {
    ClusterProfile parent;
    const char *extends = cli_given(cli, OPTION_CLUSTER) ? cli_value(cli, OPTION_CLUSTER)->text
                          : cli_on_gpu(cli)              ? search_defaults.cluster
                                                         : "local-cpu";
    TRY(cluster_find(extends, &cli->arena, &parent, error));
    const ProbeProfile about = {.name = profile_name(path, &cli->arena),
                                .extends = extends,
                                .parent = &parent,
                                .when = cli_today(cli),
                                .program = arena_format(&cli->arena, "ndtune %s", tune_engine_version()),
                                .transport = transport};
    json_t *root = NULL;
    TRY(probe_profile(&about, probe, &cli->arena, &root, error));
    const Status status = json_file_save(path, root, error);
    json_decref(root);
    return cli_blame(cli, OPTION_OUT, status);
}

static Status print_profile(const Cli *cli, const ClusterProfile *profile, const ProbeResult *probe, const char *path,
                            Error *error) {
    TRY(cli_answer(cli, &answer_cluster, profile, error));
    if (cli_format(cli) == FORMAT_TABLE) {
        printf("\n%d samples of %d ranks on %d machine%s; the profile is %s\n", probe->sample_count, probe->world,
               probe->nodes, probe->nodes > 1 ? "s" : "", path);
    }
    return STATUS_OK;
}

// The parent is asked for before anything is measured.
static Status check_parent(Cli *cli, Error *error) {
    if (!cli_given(cli, OPTION_CLUSTER)) {
        return STATUS_OK;
    }
    int count;
    const char *const *names = cluster_names(&count);
    const char *wanted = cli_value(cli, OPTION_CLUSTER)->text;
    if (text_index(names, (size_t)count, wanted) >= 0) {
        return STATUS_OK;
    }
    cli_refuse(cli, OPTION_CLUSTER, error, "a probed profile extends a built-in one, and %s is none", wanted);
    return error_hint(error, "ndtune clusters lists them");
}

Status cmd_probe(Cli *cli, Error *error) {
    const char *path = cli_text_or(cli, OPTION_OUT, "probed.json");
    RunOptions options;
    Mesh mesh;
    executor_options(cli, &options);
    TRY(check_parent(cli, error));
    TRY(choose_mesh(cli, options.transport, &mesh, error));
    cli_warn_if_busy("collectives will look slow");
    const Progress progress = cli_progress(cli);
    const ExecOptions exec_options = {.progress = &progress, .launch = executor_launch(cli)};
    ProbeResult probe;
    const Status status = exec_probe(&mesh, &options, &exec_options, &cli->arena, &probe, error);
    cli_progress_clear(cli);
    TRY(status);
    TRY(save(cli, &probe, options.transport, path, error));
    ClusterProfile profile;
    FAIL_WITH(cluster_find(path, &cli->arena, &profile, error) != STATUS_OK, error_wrap(error, "the probed profile"));
    return print_profile(cli, &profile, &probe, path, error);
}
