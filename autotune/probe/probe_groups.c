// Links and network by the lower quartile of collectives' repeats: what else the machine does only adds. A latency is
// from the smallest message, a bandwidth the median over the larger ones.

#include <math.h>
#include <stdio.h>

#include "autotune/accuracy/statistics.h"
#include "autotune/probe/probe_builder.h"

enum { MOST_VALUES = 64, SOURCE_BYTES = 512 };
static const double SMALLEST_LONG_BYTES = 60000;  // messages from here on tell bandwidth

static const ProbeSample *find_collective(const ProbeResult *probe, const char *name, int nodes, int per_node,
                                          double smallest, int skip) {
    const ProbeSample *sample = NULL;
    while ((sample = probe_next(probe, sample, PROBE_COLLECTIVE, name)) &&
           !(sample->nodes == nodes && sample->per_node == per_node && sample->size[0] >= smallest && skip-- == 0)) {
    }
    return sample;
}

// Bytes per second beyond the start-up, of share * payload: median over the long messages. 0 = no such group.
static double bandwidth_of(const ProbeResult *probe, const char *name, int nodes, int per_node, double share,
                           double start_s) {
    double rates[MOST_VALUES];
    int count = 0;
    const ProbeSample *sample;
    for (int i = 0; (sample = find_collective(probe, name, nodes, per_node, SMALLEST_LONG_BYTES, i)); i++) {
        if (sample->low > start_s) {
            rates[count++] = share * sample->size[0] / (sample->low - start_s);
        }
    }
    return statistics_median(rates, count);
}

static double smallest_s(const ProbeResult *probe, const char *name, int nodes, int per_node) {
    const ProbeSample *sample = find_collective(probe, name, nodes, per_node, 1, 0);
    return sample ? sample->low : 0;
}

static void fit_node(ProbeBuilder *builder) {
    const ProbeResult *probe = builder->probe;
    int ranks = 2;
    while (ranks <= probe->world && !find_collective(probe, "all_gather", 1, ranks, 1, 0)) {
        ranks++;
    }
    if (ranks > probe->world) {
        return;  // one rank per machine
    }
    const double share = (ranks - 1.0) / ranks;
    const double gather_s = smallest_s(probe, "all_gather", 1, ranks),
                 send_s = smallest_s(probe, "send_recv", 1, ranks);
    const double gather = bandwidth_of(probe, "all_gather", 1, ranks, share, gather_s);
    const double scatter = bandwidth_of(probe, "reduce_scatter", 1, ranks, share, gather_s);
    const char *over = builder->about->transport;
    builder->link_s = gather_s / ranks;
    probe_put(builder, "node.link_latency_s", builder->link_s, "all-gather of 4 KB, %d ranks over %s: %.2f us", ranks,
              over, 1e6 * gather_s);
    probe_put(builder, "node.step_latency_s", builder->link_s, "likewise: start-up and steps alike");
    probe_put(builder, "node.ring.bandwidth_bytes_per_s", gather, "all-gather of 64 KB to 8 MB, %d ranks over %s",
              ranks, over);
    probe_put(builder, "node.reduction_bytes_per_s", scatter < gather ? 1 / (1 / scatter - 1 / gather) : 0,
              "what reduce-scatter takes beyond all-gather, %d ranks over %s", ranks, over);
    probe_put(builder, "node.p2p_latency_s", send_s, "exchange of 4 KB, %d ranks over %s", ranks, over);
    probe_put(builder, "node.p2p.bandwidth_bytes_per_s", bandwidth_of(probe, "send_recv", 1, ranks, 1, send_s),
              "exchange of 64 KB to 8 MB, %d ranks over %s", ranks, over);
}

static void fit_fabric(ProbeBuilder *builder) {
    const ProbeResult *probe = builder->probe;
    const int nodes = probe->nodes;
    const double gather_s = smallest_s(probe, "all_gather", nodes, 1),
                 send_s = smallest_s(probe, "send_recv", nodes, 1);
    if (nodes < 2 || gather_s <= 0) {
        return;
    }
    const double share = (nodes - 1.0) / nodes;
    const double gather = bandwidth_of(probe, "all_gather", nodes, 1, share, gather_s);
    const double send = bandwidth_of(probe, "send_recv", nodes, 1, 1, send_s), card = fmax(gather, send);
    const char *over = builder->about->transport;
    probe_put(builder, "node.accelerators", probe->per_node, "ranks per machine of this probe");
    probe_put(builder, "fabric.nics", 1, "the network as one card per machine");
    probe_put(builder, "fabric.nic_bytes_per_s", card,
              "the better of all-gather and exchange, one rank per machine, %s", over);
    probe_put(builder, "fabric.efficiency", probe_clamp(gather / card, 0.01, 1),
              "all-gather of 64 KB to 8 MB: %.1f MB/s", gather / 1e6);
    probe_put(builder, "fabric.ring_step_latency_s", fmax(0, gather_s - builder->link_s) / (nodes - 1),
              "all-gather of 4 KB, one rank per machine: %.1f us", 1e6 * gather_s);
    probe_put(builder, "fabric.p2p_latency_s", send_s, "exchange of 4 KB, one rank per machine");
    probe_put(builder, "fabric.p2p_efficiency", probe_clamp(send / card, 0.01, 1),
              "exchange of 64 KB to 8 MB: %.1f MB/s", send / 1e6);
    probe_put(builder, "fabric.tier1.oversubscription", 1, "no level above the machines of this probe");
}

void probe_links(ProbeBuilder *builder) {
    fit_node(builder);
    fit_fabric(builder);
}

void probe_curves(ProbeBuilder *builder) {
    static const char *const names[] = {"all_gather", "reduce_scatter", "all_reduce", "send_recv", "all_to_all"};
    const ProbeResult *probe = builder->probe;
    json_t *curves = json_object();
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        for (const ProbeSample *first = NULL; (first = probe_next(probe, first, PROBE_COLLECTIVE, names[k]));) {
            const char *key = arena_format(builder->arena, "%s-%dx%d", names[k], first->nodes, first->per_node);
            if (json_object_get(curves, key)) {
                continue;
            }
            json_t *points = json_array();
            const ProbeSample *sample;
            double rising_s = 0;
            for (int n = 0; (sample = find_collective(probe, names[k], first->nodes, first->per_node, 1, n)); n++) {
                rising_s = fmax(rising_s, sample->low);  // a larger message is never cheaper: cluster_curves.c
                json_array_append_new(points, json_pack("[f, f]", sample->size[0], rising_s));
            }
            char source[SOURCE_BYTES];
            snprintf(source, sizeof source, "one group alone over %s, lower quartiles; probe of %s on %s, %s",
                     builder->about->transport, probe->hosts[0].name, builder->about->when, builder->about->program);
            json_object_set_new(curves, key,
                                json_pack("{s:o, s:s, s:s}", "points", points, "source", source, "grade", "measured"));
        }
    }
    json_object_set_new(builder->root, "curves", curves);
}
