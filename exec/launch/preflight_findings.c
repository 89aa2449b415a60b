// Evaluates a preflight. A group is slow relative to its siblings, which did the same at the same time, or relative to
// the profile's prediction; a rank that is in slow groups of every axis is named instead of them. Bounds are wide: on a
// quiet cluster equal groups differ by a tenth, on a shared machine by a third.

#include <math.h>
#include <string.h>

#include "exec/launch/preflight.h"
#include "sim/base/sorted.h"
#include "sim/base/text.h"

static const double SLOW_RANK = 0.5;          // of the median rank's rate
static const double SLOW_GROUP = 2.0;         // times the median group's time
static const double SLOW_LINK = 4.0;          // times the predicted time, across machines
static const double SLOWER_THAN_SAID = 2.0;   // likewise, anywhere: worth a message
static const double CLOCK_SKEW_S = 0.1;       // beyond it ranks' logs do not line up
static const double SHARED_BYTES = 64 << 20;  // Docker's usual /dev/shm, which is too small for data loaders
static const double LOCKED_BYTES = 64 << 20;  // below, RDMA cannot register its buffers

typedef struct Judge {
    const PreflightResult *result;
    Arena *arena;
    PreflightFindings *findings;
    size_t capacity;
    int *slow_groups, *groups_of;  // by rank: how many of its groups are slow, and how many it is in
} Judge;

static void say(Judge *judge, bool bad, const char *sentence) {
    PreflightFindings *findings = judge->findings;
    findings->rows =
        arena_grow(judge->arena, findings->rows, (size_t)findings->count, &judge->capacity, sizeof *findings->rows);
    findings->rows[findings->count++] = (PreflightFinding){bad, sentence};
    findings->bad += bad;
}

static const char *rank_words(const Judge *judge, int rank) {
    return arena_format(judge->arena, "rank %d on %s", rank, judge->result->ranks[rank].host);
}

static bool host_named_before(const Judge *judge, AxisMask axes, const MeshCoordinates *at, int index) {
    const Mesh *mesh = &judge->result->mesh;
    const char *host = judge->result->ranks[mesh_group_member(mesh, axes, at, index)].host;
    for (int i = 0; i < index; i++) {
        if (strcmp(judge->result->ranks[mesh_group_member(mesh, axes, at, i)].host, host) == 0) {
            return true;
        }
    }
    return false;
}

// "ranks 0 4 on node1, node2"
static const char *group_words(const Judge *judge, AxisMask axes, int first) {
    const Mesh *mesh = &judge->result->mesh;
    const MeshCoordinates at = mesh_coordinates(mesh, first);
    const char *ranks = "ranks", *hosts = "";
    for (int i = 0; i < mesh_group_size(mesh, axes); i++) {
        const int rank = mesh_group_member(mesh, axes, &at, i);
        const char *host = judge->result->ranks[rank].host;
        ranks = arena_format(judge->arena, "%s %d", ranks, rank);
        if (!host_named_before(judge, axes, &at, i)) {
            hosts = arena_format(judge->arena, "%s%s%s", hosts, hosts[0] ? ", " : "", host);
        }
    }
    return arena_format(judge->arena, "%s on %s", ranks, hosts);
}

// The lower one for an even count: of two groups, the faster is the reference.
static double median(Judge *judge, const double *values, int count) {
    double *sorted = ARENA_ARRAY(judge->arena, double, count);
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    sorted_doubles(sorted, count);
    return sorted[(count - 1) / 2];
}

static void judge_sums(Judge *judge) {
    const PreflightResult *result = judge->result;
    for (int g = 0; g < result->group_count; g++) {
        const PreflightGroups *groups = &result->groups[g];
        for (int rank = 0; rank < result->world; rank++) {
            if (groups->wrong[rank] > 0) {
                say(judge, true,
                    arena_format(judge->arena, "%s over %s: %.0f elements came out wrong on %s", groups->collective,
                                 mesh_axes_words(groups->axes, judge->arena), groups->wrong[rank],
                                 rank_words(judge, rank)));
            }
        }
    }
}

static void judge_ranks(Judge *judge) {
    const PreflightResult *result = judge->result;
    double *rates = ARENA_ARRAY(judge->arena, double, result->world);
    for (int rank = 0; rank < result->world; rank++) {
        rates[rank] = result->ranks[rank].flop_per_s;
    }
    const double usual = median(judge, rates, result->world);
    for (int rank = 0; rank < result->world; rank++) {
        if (rates[rank] < SLOW_RANK * usual) {
            say(judge, true,
                arena_format(judge->arena, "%s computes slowly: %.1f GFLOP/s where the median rank has %.1f",
                             rank_words(judge, rank), rates[rank] / 1e9, usual / 1e9));
        }
    }
}

typedef struct GroupTimes {
    double *seconds;  // of its slowest member
    int *first;       // lowest rank
    int count, hosts;
} GroupTimes;

static GroupTimes group_times(Judge *judge, const PreflightGroups *groups) {
    const PreflightResult *result = judge->result;
    const int size = mesh_group_size(&result->mesh, groups->axes);
    GroupTimes times = {.seconds = ARENA_ARRAY(judge->arena, double, result->world / size),
                        .first = ARENA_ARRAY(judge->arena, int, result->world / size)};
    for (int rank = 0; rank < result->world; rank++) {
        const MeshCoordinates at = mesh_coordinates(&result->mesh, rank);
        if (mesh_group_index(&result->mesh, groups->axes, &at) != 0) {
            continue;
        }
        double slowest = 0;
        bool spread = false;
        for (int i = 0; i < size; i++) {
            const int member = mesh_group_member(&result->mesh, groups->axes, &at, i);
            slowest = fmax(slowest, groups->seconds[member]);
            spread = spread || result->ranks[member].node != result->ranks[rank].node;
        }
        times.first[times.count] = rank;
        times.seconds[times.count++] = slowest;
        times.hosts = spread ? 2 : times.hosts > 1 ? times.hosts : 1;
    }
    return times;
}

// Combines all collectives over one set of axes, so that one disturbed measurement does not blame a rank.
typedef struct AxesTimes {
    AxisMask axes;
    GroupTimes last;   // of the last collective, for the groups' first ranks
    double *slowness;  // [group][collective]: time over that of the median group
    double *ratios;    // [collective]: median group's time over the predicted one
    int collectives, predicted;
    const PreflightGroups *worst;  // furthest from its prediction
    double worst_ratio, worst_s;
} AxesTimes;

enum { MOST_COLLECTIVES = 8 };

static AxesTimes axes_times(Judge *judge, int first) {
    const PreflightResult *result = judge->result;
    AxesTimes all = {.axes = result->groups[first].axes,
                     .slowness = ARENA_ARRAY(judge->arena, double, (size_t)result->world *MOST_COLLECTIVES),
                     .ratios = ARENA_ARRAY(judge->arena, double, MOST_COLLECTIVES)};
    for (int g = first; g < result->group_count && all.collectives < MOST_COLLECTIVES; g++) {
        const PreflightGroups *groups = &result->groups[g];
        if (groups->axes != all.axes || groups->from) {
            continue;
        }
        all.last = group_times(judge, groups);
        const double usual = median(judge, all.last.seconds, all.last.count);
        for (int i = 0; i < all.last.count; i++) {
            all.slowness[i * MOST_COLLECTIVES + all.collectives] = all.last.seconds[i] / usual;
        }
        if (groups->predicted_s > 0) {
            const double ratio = usual / groups->predicted_s;
            all.ratios[all.predicted++] = ratio;
            all.worst = ratio > all.worst_ratio ? groups : all.worst;
            all.worst_s = ratio > all.worst_ratio ? usual : all.worst_s;
            all.worst_ratio = fmax(ratio, all.worst_ratio);
        }
        all.collectives++;
    }
    return all;
}

static void judge_promise(Judge *judge, const AxesTimes *all) {
    if (all->predicted == 0) {
        return;
    }
    const double ratio = median(judge, all->ratios, all->predicted);
    if (ratio <= SLOWER_THAN_SAID) {
        return;
    }
    const bool network = all->last.hosts > 1;
    say(judge, network && ratio > SLOW_LINK,
        arena_format(judge->arena,
                     "collectives over %s take %.1f times what the profile promises (%s of %s: %s, promised %s)%s",
                     mesh_axes_words(all->axes, judge->arena), ratio, all->worst->collective,
                     text_bytes(UNIT_BUFFER, all->worst->payload_bytes), text_seconds(UNIT_BUFFER, all->worst_s),
                     text_seconds(UNIT_BUFFER, all->worst->predicted_s),
                     network ? ": the network between the machines is slow" : ""));
}

static void note_group(Judge *judge, AxisMask axes, int first, bool slow) {
    const Mesh *mesh = &judge->result->mesh;
    const MeshCoordinates at = mesh_coordinates(mesh, first);
    for (int i = 0; i < mesh_group_size(mesh, axes); i++) {
        const int rank = mesh_group_member(mesh, axes, &at, i);
        judge->groups_of[rank]++;
        judge->slow_groups[rank] += slow;
    }
}

static void judge_groups(Judge *judge, const AxesTimes *all) {
    for (int i = 0; i < all->last.count; i++) {
        const double ratio = median(judge, &all->slowness[i * MOST_COLLECTIVES], all->collectives);
        note_group(judge, all->axes, all->last.first[i], ratio > SLOW_GROUP);
        if (ratio > SLOW_GROUP) {
            say(judge, true,
                arena_format(judge->arena,
                             "collectives over %s are slow between %s: %.1f times what the other groups "
                             "take",
                             mesh_axes_words(all->axes, judge->arena),
                             group_words(judge, all->axes, all->last.first[i]), ratio));
        }
    }
}

static void judge_links(Judge *judge) {
    const PreflightResult *result = judge->result;
    AxisMask seen[AXIS_ALL] = {0};
    int seen_count = 0;
    for (int g = 0; g < result->group_count; g++) {
        bool known = result->groups[g].from != NULL;
        for (int i = 0; i < seen_count; i++) {
            known = known || seen[i] == result->groups[g].axes;
        }
        if (!known && seen_count < (int)AXIS_ALL) {
            seen[seen_count++] = result->groups[g].axes;
            const AxesTimes all = axes_times(judge, g);
            judge_promise(judge, &all);
            judge_groups(judge, &all);
        }
    }
    int suspects = 0, suspect = -1;
    for (int rank = 0; rank < result->world; rank++) {
        if (judge->slow_groups[rank] > 0 && judge->slow_groups[rank] == judge->groups_of[rank]) {
            suspects++;
            suspect = rank;
        }
    }
    if (suspects == 1 && judge->groups_of[suspect] > 1) {
        say(judge, true,
            arena_format(judge->arena, "%s is in a slow group of every axis, and no other rank is: look there",
                         rank_words(judge, suspect)));
    }
}

static double usual_message_s(Judge *judge, const PreflightGroups *links) {
    double *times = ARENA_ARRAY(judge->arena, double, judge->result->world);
    int count = 0;
    for (int rank = 0; rank < judge->result->world; rank++) {
        if (links->from[rank] >= 0) {
            times[count++] = links->seconds[rank];
        }
    }
    return count > 0 ? median(judge, times, count) : 0;
}

// Each link is compared with the others of its direction, and only where the way back is slow too: one disturbed
// measurement does not blame a rank.
static void judge_messages(Judge *judge, const PreflightGroups *links) {
    const PreflightResult *result = judge->result;
    const double usual_s = usual_message_s(judge, links);
    for (int rank = 0; rank < result->world; rank++) {
        const int from = links->from[rank];
        double ratio = from >= 0 ? links->seconds[rank] / usual_s : 0;
        for (int g = 0; g < result->group_count && from >= 0; g++) {
            const PreflightGroups *back = &result->groups[g];
            if (back->from && back->from[from] == rank) {
                ratio = fmin(ratio, back->seconds[from] / usual_message_s(judge, back));
            }
        }
        if (ratio > SLOW_GROUP) {
            say(judge, true,
                arena_format(
                    judge->arena,
                    "messages between stages (%s) are slow from %s to %s: %.1f times what the other links take",
                    links->collective, rank_words(judge, from), rank_words(judge, rank), ratio));
        }
    }
}

// For the machine whose first rank this is.
static void judge_host(Judge *judge, int first) {
    const PreflightResult *result = judge->result;
    const PreflightRank *host = &result->ranks[first];
    int ranks = 0;
    for (int rank = 0; rank < result->world; rank++) {
        ranks += result->ranks[rank].node == host->node;
    }
    if (host->memory_bytes > 0 && ranks * result->arena_bytes > host->memory_bytes) {
        say(judge, true,
            arena_format(judge->arena, "%s has %s free, its %d ranks will ask for %s", host->host,
                         text_bytes(UNIT_BUFFER, host->memory_bytes), ranks,
                         text_bytes(UNIT_BUFFER, ranks * result->arena_bytes)));
    }
    if (host->address_limit_bytes >= 0 && result->arena_bytes > host->address_limit_bytes) {
        say(judge, true,
            arena_format(judge->arena, "ulimit -v of %s on %s is less than the %s of a rank",
                         text_bytes(UNIT_BUFFER, host->address_limit_bytes), host->host,
                         text_bytes(UNIT_BUFFER, result->arena_bytes)));
    }
    if (host->shared_bytes >= 0 && host->shared_bytes < SHARED_BYTES) {
        say(judge, false,
            arena_format(judge->arena, "/dev/shm on %s has only %s free: data loaders will fail there", host->host,
                         text_bytes(UNIT_BUFFER, host->shared_bytes)));
    }
    if (result->ranks[result->world - 1].node > 0 && host->locked_limit_bytes >= 0 &&
        host->locked_limit_bytes < LOCKED_BYTES) {
        say(judge, false,
            arena_format(judge->arena, "ulimit -l on %s is %s: RDMA needs more, best unlimited", host->host,
                         text_bytes(UNIT_BUFFER, host->locked_limit_bytes)));
    }
    if (ranks > host->cores) {
        say(judge, false,
            arena_format(judge->arena, "the %d ranks on %s share %d cores", ranks, host->host, host->cores));
    }
}

static void judge_hosts(Judge *judge) {
    const PreflightResult *result = judge->result;
    int next = 0;
    for (int rank = 0; rank < result->world; rank++) {
        const PreflightRank *row = &result->ranks[rank];
        if (row->node >= next) {
            next = row->node + 1;
            judge_host(judge, rank);
            if (fabs(row->clock_offset_s) > CLOCK_SKEW_S) {
                say(judge, false,
                    arena_format(judge->arena, "the clock of %s is %.1f s %s that of %s", row->host,
                                 fabs(row->clock_offset_s), row->clock_offset_s > 0 ? "ahead of" : "behind",
                                 result->ranks[0].host));
            }
        }
    }
}

void preflight_findings(const PreflightResult *result, Arena *arena, PreflightFindings *findings) {
    *findings = (PreflightFindings){0};
    Judge judge = {.result = result,
                   .arena = arena,
                   .findings = findings,
                   .slow_groups = ARENA_ARRAY(arena, int, result->world),
                   .groups_of = ARENA_ARRAY(arena, int, result->world)};
    judge_sums(&judge);
    judge_ranks(&judge);
    judge_links(&judge);
    for (int g = 0; g < result->group_count; g++) {
        if (result->groups[g].from) {
            judge_messages(&judge, &result->groups[g]);
        }
    }
    judge_hosts(&judge);
}
