// What a preflight measured, compared with what the profile promises, as the store keeps it.

#include "autotune/measure/preflight.h"

#include <string.h>

#include "sim/cost/cost.h"

// Of two ranks: on machines of their own where a link crosses them.
static GroupPlacement link_placement(const PreflightResult *result, const PreflightGroups *links) {
    GroupPlacement placement = {.size = 2, .per_node = 2, .nodes = 1};
    for (int rank = 0; rank < result->world; rank++) {
        const int from = links->from[rank];
        if (from >= 0 && result->ranks[from].node != result->ranks[rank].node) {
            placement = (GroupPlacement){.size = 2, .per_node = 1, .nodes = 2};
        }
    }
    return placement;
}

// What the profile promises each collective, on the nodes where the ranks really stand.
static void predict(const ClusterProfile *cluster, PreflightResult *result) {
    static const char *const names[] = {"all_gather", "reduce_scatter", "all_reduce", "send_recv"};
    int on_first = 0;
    for (int rank = 0; rank < result->world; rank++) {
        on_first += result->ranks[rank].node == 0;
    }
    const ClusterProfile profile = cost_shared_profile(cluster, on_first);
    for (int g = 0; g < result->group_count; g++) {
        PreflightGroups *groups = &result->groups[g];
        const GroupPlacement placement =
            groups->from ? link_placement(result, groups) : mesh_group_placement(&result->mesh, groups->axes, on_first);
        for (int kind = 0; kind < 4; kind++) {
            const bool same = strcmp(names[kind], groups->from ? "send_recv" : groups->collective) == 0;
            if (same && (placement.nodes == 1 || profile.fabric.nics > 0)) {
                groups->predicted_s =
                    cost_collective_s(&profile, (CollectiveKind)kind, &placement, groups->payload_bytes, NULL);
            }
        }
    }
}

// What is said and stored of all groups of some axes.
static StoredGroups summary(const PreflightResult *result, const PreflightGroups *groups, Arena *arena) {
    StoredGroups sum = {.axes = mesh_axes_words(groups->axes, arena),
                        .collective = groups->collective,
                        .ranks = mesh_group_size(&result->mesh, groups->axes),
                        .payload_bytes = groups->payload_bytes,
                        .predicted_s = groups->predicted_s};
    for (int rank = 0; rank < result->world; rank++) {
        sum.measured_s = groups->seconds[rank] > sum.measured_s ? groups->seconds[rank] : sum.measured_s;
        sum.wrong_elements += groups->wrong[rank];
    }
    return sum;
}

static const char *hosts_of(const PreflightResult *result, Arena *arena) {
    const char *hosts = "";
    for (int rank = 0; rank < result->world; rank++) {
        const char *host = result->ranks[rank].host;
        bool named = false;
        for (int before = 0; before < rank && !named; before++) {
            named = strcmp(result->ranks[before].host, host) == 0;
        }
        hosts = named ? hosts : arena_format(arena, "%s%s%s", hosts, hosts[0] ? ", " : "", host);
    }
    return hosts;
}

static void describe(Preflight *preflight) {
    const MeasuredRun *run = &preflight->run;
    const PreflightResult *result = &preflight->result;
    PreflightFindings found;
    preflight_findings(result, run->arena, &found);
    StoredFinding *rows = ARENA_ARRAY(run->arena, StoredFinding, found.count);
    StoredGroups *groups = ARENA_ARRAY(run->arena, StoredGroups, result->group_count);
    for (int i = 0; i < found.count; i++) {
        rows[i] = (StoredFinding){found.rows[i].bad, found.rows[i].sentence};
    }
    for (int g = 0; g < result->group_count; g++) {
        groups[g] = summary(result, &result->groups[g], run->arena);
    }
    preflight->stored = (StoredPreflight){.command = run->request->command,
                                          .cluster = run->request->cluster.name,
                                          .hosts = hosts_of(result, run->arena),
                                          .device = run->record.device,
                                          .transport = run->record.transport,
                                          .world = result->world,
                                          .ready = found.bad == 0,
                                          .findings = rows,
                                          .groups = groups,
                                          .finding_count = found.count,
                                          .group_count = result->group_count};
}

Status preflight_run(Preflight *preflight, const Progress *progress, Error *error) {
    MeasuredRun *run = &preflight->run;
    const ExecOptions options = {.progress = progress, .launch = run->launch};
    TRY(exec_preflight(&run->run, &options, run->arena, &preflight->result, error));
    predict(&run->request->cluster, &preflight->result);
    describe(preflight);
    return STATUS_OK;
}

Status preflight_verdict(const Preflight *preflight, Error *error) {
    for (int i = 0; i < preflight->stored.finding_count; i++) {
        const StoredFinding *finding = &preflight->stored.findings[i];
        FAIL_IF(finding->bad, error, STATUS_ENVIRONMENT, "not ready: %s", finding->sentence);
    }
    return STATUS_OK;
}
