// Hand-written situations, then random ones: flows of random size, limit, start and order over one to three links.

#include "tests/parity/engine/situations.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// One link: the same model on both sides. What is left is the engine's float demands (6e-8) and SimGrid's precision.
static const double same_model = 1e-6;
static const double house_tolerance = 0.03;  // judged: contention of flows
static const double nic = 25e9;

static const char *const start_up_is_spread =
    "the engine spreads a collective's start-up over its whole time: its demand on the link is the average";

static json_t *add(json_t *list, const char *name, double within, const char *why) {
    json_t *situation =
        json_pack("{s:s, s:f, s:s, s:[], s:[]}", "name", name, "within", within, "why", why, "links", "tasks");
    json_array_append_new(list, situation);
    return situation;
}

static void add_link(json_t *situation, const char *name, const char *resource, double bytes_per_s, double latency_s) {
    json_array_append_new(json_object_get(situation, "links"),
                          json_pack("{s:s, s:s, s:f, s:f}", "name", name, "resource", resource, "bytes_per_s",
                                    bytes_per_s, "latency_s", latency_s));
}

typedef struct TaskText {
    const char *name, *lane, *links, *after;
} TaskText;

static void add_flow(json_t *situation, TaskText text, double bytes) {
    json_array_append_new(json_object_get(situation, "tasks"),
                          json_pack("{s:s, s:s, s:s, s:s, s:f}", "name", text.name, "lane", text.lane, "links",
                                    text.links, "after", text.after, "bytes", bytes));
}

// Time on a lane without a link: a kernel on "compute", elsewhere a pause before a late flow.
static void add_time(json_t *situation, TaskText text, double seconds) {
    json_array_append_new(json_object_get(situation, "tasks"),
                          json_pack("{s:s, s:s, s:s, s:s, s:f}", "name", text.name, "lane", text.lane, "links", "",
                                    "after", text.after, "seconds", seconds));
}

// ---------------------------------------------------------------------------------------------- by hand

static void add_equal(json_t *list) {
    static const char *const lanes[] = {"ag", "rs", "rep", "tp"};
    for (int flows = 1; flows <= 4; flows++) {
        char name[64];
        snprintf(name, sizeof name, "%d equal flow%s on one NIC", flows, flows > 1 ? "s" : "");
        json_t *situation = add(list, name, flows == 1 ? 1e-9 : same_model, "");
        add_link(situation, "nic", "nic", nic, 0);
        for (int i = 0; i < flows; i++) {
            add_flow(situation, (TaskText){lanes[i], lanes[i], "nic", ""}, 50e6);
        }
    }
}

static void add_late(json_t *list) {
    json_t *situation = add(list, "a second flow starts halfway through the first", same_model, "");
    add_link(situation, "nic", "nic", nic, 0);
    add_flow(situation, (TaskText){"first", "ag", "nic", ""}, 100e6);
    add_time(situation, (TaskText){"pause", "rs", "", ""}, 2e-3);
    add_flow(situation, (TaskText){"second", "rs", "nic", ""}, 80e6);

    situation = add(list, "three flows start one after the other and end in another order", same_model, "");
    add_link(situation, "nic", "nic", nic, 0);
    add_flow(situation, (TaskText){"long", "ag", "nic", ""}, 200e6);
    add_time(situation, (TaskText){"pause 1", "rs", "", ""}, 1e-3);
    add_flow(situation, (TaskText){"short", "rs", "nic", ""}, 10e6);
    add_time(situation, (TaskText){"pause 2", "tp", "", ""}, 1.2e-3);
    add_flow(situation, (TaskText){"middle", "tp", "nic", ""}, 60e6);
}

static void add_limited(json_t *list) {
    json_t *situation = add(list, "a flow limited elsewhere leaves the rest of the NIC to the other", same_model, "");
    add_link(situation, "nic", "nic", nic, 0);
    add_link(situation, "slow", "", 5e9, 0);
    add_flow(situation, (TaskText){"limited", "ag", "nic,slow", ""}, 20e6);
    add_flow(situation, (TaskText){"free", "rs", "nic", ""}, 100e6);

    situation = add(list, "progressive filling: limits of 0.1, 0.3 and none", same_model, "");
    add_link(situation, "nic", "nic", nic, 0);
    add_link(situation, "tenth", "", 2.5e9, 0);
    add_link(situation, "third", "", 7.5e9, 0);
    add_flow(situation, (TaskText){"a", "ag", "nic,tenth", ""}, 10e6);
    add_flow(situation, (TaskText){"b", "rs", "nic,third", ""}, 30e6);
    add_flow(situation, (TaskText){"c", "tp", "nic", ""}, 90e6);
    add_flow(situation, (TaskText){"d", "cp", "nic", ""}, 90e6);

    situation = add(list, "limits that together fit disturb nobody", 1e-9, "");
    add_link(situation, "nic", "nic", nic, 0);
    add_link(situation, "half", "", 12.5e9, 0);
    add_link(situation, "quarter 1", "", 6.25e9, 0);
    add_link(situation, "quarter 2", "", 6.25e9, 0);
    add_flow(situation, (TaskText){"a", "ag", "nic,half", ""}, 50e6);
    add_flow(situation, (TaskText){"b", "rs", "nic,quarter 1", ""}, 50e6);
    add_flow(situation, (TaskText){"c", "tp", "nic,quarter 2", ""}, 10e6);
}

static void add_two_links(json_t *list) {
    json_t *situation = add(list, "flows on different links do not meet", 1e-9, "");
    add_link(situation, "nic", "nic", nic, 0);
    add_link(situation, "nvlink", "node_link", 300e9, 0);
    add_flow(situation, (TaskText){"out", "ag", "nic", ""}, 50e6);
    add_flow(situation, (TaskText){"inside", "tp", "nvlink", ""}, 900e6);

    situation = add(list, "two share the NIC, one has the node link", same_model, "");
    add_link(situation, "nic", "nic", nic, 0);
    add_link(situation, "nvlink", "node_link", 300e9, 0);
    add_flow(situation, (TaskText){"gather", "ag", "nic", ""}, 50e6);
    add_flow(situation, (TaskText){"scatter", "rs", "nic", ""}, 70e6);
    add_flow(situation, (TaskText){"inside", "tp", "nvlink", ""}, 900e6);

    situation = add(list, "two flows cross the NIC and the much faster node link", same_model, "");
    add_link(situation, "nic", "nic", nic, 0);
    add_link(situation, "nvlink", "node_link", 300e9, 0);
    add_flow(situation, (TaskText){"out", "ag", "nic,nvlink", ""}, 50e6);
    add_flow(situation, (TaskText){"other", "rs", "nic,nvlink", ""}, 70e6);

    situation = add(list, "a flow limited by the NIC takes a fifth of the node link from one inside", same_model, "");
    add_link(situation, "nic", "nic", nic, 0);
    add_link(situation, "nvlink", "node_link", 5 * nic, 0);
    add_flow(situation, (TaskText){"out", "ag", "nic,nvlink", ""}, 50e6);
    add_flow(situation, (TaskText){"inside", "tp", "nvlink", ""}, 900e6);

    situation = add(list, "half of the NIC asked for by a flow that its node link limits", same_model, "");
    add_link(situation, "nic", "nic", 50e9, 0);
    add_link(situation, "nvlink", "node_link", 25e9, 0);
    add_flow(situation, (TaskText){"limited", "ag", "nic,nvlink", ""}, 100e6);
    add_flow(situation, (TaskText){"free", "rs", "nic", ""}, 200e6);
}

static void add_uplink(json_t *list) {
    json_t *situation = add(list, "one flow crosses an uplink of half a NIC, one stays below it", same_model, "");
    add_link(situation, "nic", "nic", nic, 0);
    add_link(situation, "uplink", "uplink", nic / 2, 0);
    add_flow(situation, (TaskText){"across", "rep", "nic,uplink", ""}, 50e6);
    add_flow(situation, (TaskText){"below", "ag", "nic", ""}, 80e6);

    situation = add(list, "two flows cross an uplink as wide as the NIC", same_model, "");
    add_link(situation, "nic", "nic", nic, 0);
    add_link(situation, "uplink", "uplink", nic, 0);
    add_flow(situation, (TaskText){"gather", "ag", "nic,uplink", ""}, 50e6);
    add_flow(situation, (TaskText){"scatter", "rs", "nic,uplink", ""}, 80e6);

    situation = add(list, "two flows cross an uplink of half a NIC", same_model, "");
    add_link(situation, "nic", "nic", nic, 0);
    add_link(situation, "uplink", "uplink", nic / 2, 0);
    add_flow(situation, (TaskText){"gather", "ag", "nic,uplink", ""}, 50e6);
    add_flow(situation, (TaskText){"scatter", "rs", "nic,uplink", ""}, 50e6);

    situation = add(list, "two flows cross an uplink of half a NIC, a third one stays below it", same_model, "");
    add_link(situation, "nic", "nic", nic, 0);
    add_link(situation, "uplink", "uplink", nic / 2, 0);
    add_flow(situation, (TaskText){"gather", "ag", "nic,uplink", ""}, 50e6);
    add_flow(situation, (TaskText){"reduce", "rep", "nic,uplink", ""}, 30e6);
    add_flow(situation, (TaskText){"below", "rs", "nic", ""}, 80e6);
}

// Gathers a layer ahead of the kernels, scatters after them: FSDP's backward over one NIC, each on its own
// communicator.
static void add_backward(json_t *list) {
    json_t *situation = add(list, "backward of four layers: gathers ahead, scatters behind", same_model, "");
    add_link(situation, "nic", "nic", nic, 0);
    for (int layer = 0; layer < 4; layer++) {
        char gather[16], kernel[16], scatter[16], before[32];
        snprintf(gather, sizeof gather, "gather%d", layer);
        snprintf(kernel, sizeof kernel, "kernel%d", layer);
        snprintf(scatter, sizeof scatter, "scatter%d", layer);
        snprintf(before, sizeof before, layer > 1 ? "kernel%d" : "", layer - 2);
        add_flow(situation, (TaskText){gather, "ag", "nic", before}, 50e6);
        add_time(situation, (TaskText){kernel, "compute", "", gather}, 2.5e-3);
        add_flow(situation, (TaskText){scatter, "rs", "nic", kernel}, 80e6);
    }
}

static void add_start_up(json_t *list) {
    static const double shares[] = {0.005, 0.01, 0.02, 0.05, 0.2};
    for (int i = 0; i < 5; i++) {
        char name[96];
        const double share = shares[i];
        snprintf(name, sizeof name, "two flows at once, start-up %g of their time alone", share);
        // Together: engine 2 (1 - x) T, SimGrid x T + 2 (1 - x) T = (2 - x) T, so that x / (2 - x) is the difference.
        json_t *situation = add(list, name, share / (2 - share) + same_model, start_up_is_spread);
        const double bytes = 50e6;
        add_link(situation, "nic", "nic", nic, share / (1 - share) * bytes / nic);
        add_flow(situation, (TaskText){"gather", "ag", "nic", ""}, bytes);
        add_flow(situation, (TaskText){"scatter", "rs", "nic", ""}, bytes);
    }
}

// ---------------------------------------------------------------------------------------------- drawn

static double draw(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(*state >> 11) / 9007199254740992.0;
}

static bool has_link(const json_t *situation, size_t index, const char *name) {
    const json_t *link = json_array_get(json_object_get(situation, "links"), index);
    return link && strcmp(json_string_value(json_object_get(link, "name")), name) == 0;
}

static void add_drawn_task(json_t *situation, uint64_t *state, int index, int lanes) {
    static const char *const names[] = {"compute", "ag", "rs", "rep", "tp", "cp"};
    static const char *const routes[] = {"nic", "nic,nvlink", "nvlink", "nic,uplink", "nic,nvlink,uplink"};
    const int route_count = has_link(situation, 2, "uplink") ? 5 : has_link(situation, 1, "nvlink") ? 3 : 1;
    char name[16], after[16] = "", limit[16], links[48];
    snprintf(name, sizeof name, "t%d", index);
    if (index > 0 && draw(state) < 0.4) {
        snprintf(after, sizeof after, "t%d", (int)(draw(state) * index));
    }
    const char *lane = names[(int)(draw(state) * lanes)];
    if (lane == names[0] || draw(state) < 0.15) {
        add_time(situation, (TaskText){name, lane, "", after}, (1 + (int)(draw(state) * 2000)) * 1e-6);
        return;
    }
    const char *shared = routes[(int)(draw(state) * route_count)];
    snprintf(links, sizeof links, "%s", shared);
    if (draw(state) < 0.5) {
        snprintf(limit, sizeof limit, "limit%d", index);
        add_link(situation, limit, "", nic * (1 + (int)(draw(state) * 25)) / 20, 0);
        snprintf(links, sizeof links, "%s,%s", shared, limit);
    }
    add_flow(situation, (TaskText){name, lane, links, after}, (1 + (int)(draw(state) * 1000)) * 1e5);
}

static void add_drawn(json_t *list) {
    uint64_t state = 20240607;
    for (int i = 0; i < 120; i++) {
        char name[48];
        snprintf(name, sizeof name, "drawn %d, %s", i, i < 40 ? "one link" : i < 80 ? "two links" : "three links");
        json_t *situation = add(list, name, same_model, "");
        add_link(situation, "nic", "nic", nic, 0);
        if (i >= 40) {
            add_link(situation, "nvlink", "node_link", nic * (1 + (int)(draw(&state) * 20)) / 5, 0);
        }
        if (i >= 80) {
            add_link(situation, "uplink", "uplink", nic * (1 + (int)(draw(&state) * 6)) / 4, 0);
        }
        const int tasks = 4 + (int)(draw(&state) * 9), lanes = 3 + (int)(draw(&state) * 4);
        for (int t = 0; t < tasks; t++) {
            add_drawn_task(situation, &state, t, lanes);
        }
    }
}

json_t *situations_flows(void) {
    json_t *list = json_array();
    add_equal(list);
    add_late(list);
    add_limited(list);
    add_two_links(list);
    add_uplink(list);
    add_backward(list);
    add_start_up(list);
    add_drawn(list);
    return list;
}

// ---------------------------------------------------------------------------------------------- rings

static json_t *add_ring(json_t *list, const char *name, int ranks, double within) {
    json_t *ring = json_pack("{s:s, s:f, s:s, s:i, s:f, s:f, s:[]}", "name", name, "within", within, "why",
                             within > 1e-9 ? start_up_is_spread : "", "ranks", ranks, "bytes_per_s", nic, "latency_s",
                             2e-6, "collectives");
    json_array_append_new(list, ring);
    return ring;
}

static void add_collective(json_t *ring, const char *kind, double payload_bytes, double start_s) {
    json_array_append_new(
        json_object_get(ring, "collectives"),
        json_pack("{s:s, s:f, s:f}", "kind", kind, "payload_bytes", payload_bytes, "start_s", start_s));
}

json_t *situations_rings(void) {
    static const int ranks[] = {2, 3, 4, 8, 64};
    static const char *const kinds[] = {"all_gather", "reduce_scatter", "all_reduce"};
    json_t *list = json_array();
    for (int r = 0; r < 5; r++) {
        for (int size = 0; size < 3; size++) {
            const double payload =
                3072.0 * (double)(1 << (6 * size + 2));  // 12 KiB, 768 KiB, 48 MiB; / 64 and / 3 whole
            char name[64];
            snprintf(name, sizeof name, "ring of %d, %g KiB", ranks[r], payload / 1024);
            add_collective(add_ring(list, name, ranks[r], 1e-9), kinds[(r + size) % 3], payload, 0);
        }
    }
    json_t *ring = add_ring(list, "an all-gather and a reduce-scatter over the same NICs", 4, house_tolerance);
    add_collective(ring, "all_gather", 120e6, 0);
    add_collective(ring, "reduce_scatter", 200e6, 0);
    ring = add_ring(list, "a reduce-scatter starts within an all-gather", 8, house_tolerance);
    add_collective(ring, "all_gather", 240e6, 0);
    add_collective(ring, "reduce_scatter", 160e6, 4e-3);
    ring = add_ring(list, "three collectives of different kinds and starts over the same NICs", 8, house_tolerance);
    add_collective(ring, "all_gather", 240e6, 0);
    add_collective(ring, "reduce_scatter", 80e6, 1e-3);
    add_collective(ring, "all_reduce", 40e6, 2.5e-3);
    ring = add_ring(list, "two small all-reduces, a quarter of whose time is start-up", 8, 0.15);
    add_collective(ring, "all_reduce", 1.2e6, 0);
    add_collective(ring, "all_reduce", 1.2e6, 0);
    return list;
}
