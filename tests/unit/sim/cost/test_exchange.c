// All-to-alls between nodes: the cards and the pieces that they wait for.

#include <criterion/criterion.h>

#include "sim/cost/cost.h"
#include "tests/unit/sim/cost/machines.h"

// 2 nodes of 4 ranks, a part of 1 MB for each: a rank sends 4 MB to the other node over one card of 10 GB/s, of which
// 0.5 are the machine's: 0.8 ms, and 3 MB inside. Twice the parts of others take twice the transfer.
Test(exchange, waits_for_the_cards) {
    ClusterProfile round = machine_round();
    round.fabric.exchange_efficiency = 0.5;
    round.fabric.p2p = (LinkCurve){0};
    round.fabric.p2p_latency_s = 0;
    round.fabric.exchange_peer_s = 1e-12;
    const GroupPlacement two_nodes = {8, 2, 4, 1, 8, 0};
    const CollectiveCost cost = cost_collective(&round, COLLECTIVE_ALL_TO_ALL, &two_nodes, 8e6, NULL);
    cr_expect_float_eq(cost.nic_s, 0.8e-3, 1e-9);
    cr_expect_float_eq(cost.wire_bytes, 7e6, 1);
    cr_expect_geq(cost.seconds, 0.8e-3);
    // Four ranks and two: each of the two sends four parts to the other node.
    const GroupPlacement uneven = {6, 2, 4, 1, 6, 0};
    cr_expect_float_eq(cost_collective(&round, COLLECTIVE_ALL_TO_ALL, &uneven, 6e6, NULL).nic_s, 0.8e-3, 1e-9);
    // Four, four and two: each of the two sends eight.
    const GroupPlacement three = {10, 3, 4, 1, 10, 0};
    cr_expect_float_eq(cost_collective(&round, COLLECTIVE_ALL_TO_ALL, &three, 10e6, NULL).nic_s, 1.6e-3, 1e-9);
}

// Of 16 ranks on two nodes, 8 of which are elsewhere: each piece takes as long whatever its size.
Test(exchange, waits_for_each_piece) {
    enum { KIB = 1 << 10, RANKS = 16, ELSEWHERE = 8 };
    static const struct {
        double largest, part, pieces;
    } rows[] = {{0, 128 * KIB, 2},          {0, 1024 * KIB, 8},         {512 * KIB, 256 * KIB, 2},
                {512 * KIB, 1024 * KIB, 4}, {512 * KIB, 4096 * KIB, 8}, {512 * KIB, 4097 * KIB, 9}};
    ClusterProfile round = machine_round();
    const GroupPlacement two_nodes = {RANKS, 2, 8, 1, 0, 0}, once = {RANKS, 2, 8, 1, 0, 1};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const double payload = RANKS * rows[i].part;
        round.fabric.exchange_piece_bytes = rows[i].largest;
        round.fabric.exchange_piece_s = 0;
        const double free_s = cost_collective_s(&round, COLLECTIVE_ALL_TO_ALL, &two_nodes, payload, NULL);
        const double once_s = cost_collective_s(&round, COLLECTIVE_ALL_TO_ALL, &once, payload, NULL);
        round.fabric.exchange_piece_s = 1;
        const double taken_s = cost_collective_s(&round, COLLECTIVE_ALL_TO_ALL, &two_nodes, payload, NULL) - free_s;
        cr_expect_float_eq(taken_s, ELSEWHERE * rows[i].pieces, 0.1, "row %zu: %g", i, taken_s);
        cr_expect_eq(cost_collective_s(&round, COLLECTIVE_ALL_TO_ALL, &once, payload, NULL), once_s, "no pieces");
    }
}
