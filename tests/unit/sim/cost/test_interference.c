// Rates of concurrent tasks against hand-computed cases.

#include "sim/cost/interference.h"

#include <criterion/criterion.h>
#include <math.h>

static const Interference ideal = {.hbm_factor = 1, .collective_slowdown = 1, .residue = 1};

static void check(const ShareDemand *demands, int count, const Interference *interference, const double *expected) {
    const ShareDemand *list[SHARE_MAX_ACTIVE] = {0};
    double rates[SHARE_MAX_ACTIVE];
    for (int i = 0; i < count; i++) {
        list[i] = &demands[i];
    }
    share_rates(list, count, interference, rates);
    for (int i = 0; i < count; i++) {
        cr_assert(fabs(rates[i] - expected[i]) < 1e-9, "rate %d is %.12g, expected %.12g", i, rates[i], expected[i]);
    }
}

Test(interference, one_task_alone_runs_at_full_rate) {
    const ShareDemand demands[] = {{.collective = true, .sm_share = 0.25f, .use = {1, 1, 0, 0.5f}}};
    check(demands, 1, &ideal, (double[]){1});
}

Test(interference, two_collectives_that_each_fill_a_link_run_at_half_rate) {
    const ShareDemand demands[] = {{.collective = true, .use = {0, 1, 0}}, {.collective = true, .use = {0, 1, 0}}};
    check(demands, 2, &ideal, (double[]){0.5, 0.5});
}

Test(interference, collectives_on_different_links_do_not_disturb_each_other) {
    const ShareDemand demands[] = {{.collective = true, .use = {1, 0, 0}}, {.collective = true, .use = {0, 1, 0}}};
    check(demands, 2, &ideal, (double[]){1, 1});
}

// Link of 1: demands 0.25, 1, 1. Max-min gives the small one all it wants, the others (1 - 0.25) / 2 = 0.375 each.
Test(interference, a_small_demand_is_met_before_the_rest_is_divided) {
    const ShareDemand demands[] = {{.collective = true, .use = {0, 0.25f, 0}},
                                   {.collective = true, .use = {0, 1, 0}},
                                   {.collective = true, .use = {0, 1, 0}}};
    check(demands, 3, &ideal, (double[]){1, 0.375, 0.375});
}

// A needs node links 1 and NIC 0.5, B only the NIC 1. Half of the NIC is A's fair share and all that it asks; B has the
// rest.
Test(interference, a_fair_share_is_of_the_link_that_is_full) {
    const ShareDemand demands[] = {{.collective = true, .use = {1, 0.5f, 0}}, {.collective = true, .use = {0, 1, 0}}};
    check(demands, 2, &ideal, (double[]){1, 0.5});
}

// A across nodes passes a fifth of the node links, B inside wants them all: A is not disturbed, B keeps four fifths.
Test(interference, a_collective_across_nodes_is_met_before_the_one_inside_that_wants_all) {
    const ShareDemand demands[] = {{.collective = true, .use = {0.25f, 1, 0}}, {.collective = true, .use = {1, 0, 0}}};
    check(demands, 2, &ideal, (double[]){1, 0.75});
}

// Each has the link of its own full: A r + B r/2 = 1 on the node links and the mirror image on the NIC, r = 2/3; the
// larger share of each link, 2/3, is that of the one that it limits.
Test(interference, two_links_can_be_full_at_once) {
    const ShareDemand demands[] = {{.collective = true, .use = {1, 0.5f, 0}},
                                   {.collective = true, .use = {0.5f, 1, 0}}};
    check(demands, 2, &ideal, (double[]){2.0 / 3, 2.0 / 3});
}

// The same with 0.96: r = 1/1.96, where rounds of one link after the other creep.
Test(interference, two_links_that_nearly_the_same_fill_are_shared_exactly) {
    const double u = (double)0.96f;
    const ShareDemand demands[] = {{.collective = true, .use = {1, 0.96f, 0}},
                                   {.collective = true, .use = {0.96f, 1, 0}}};
    check(demands, 2, &ideal, (double[]){1 / (1 + u), 1 / (1 + u)});
}

// A and B share the NIC, 0.5 each; of the node links that leaves A with 0.5 x 0.5, and C takes the other 0.75.
Test(interference, what_one_link_holds_back_is_free_on_the_other) {
    const ShareDemand demands[] = {{.collective = true, .use = {0.5f, 1, 0}},
                                   {.collective = true, .use = {0, 1, 0}},
                                   {.collective = true, .use = {1, 0, 0}}};
    check(demands, 3, &ideal, (double[]){0.5, 0.5, 0.75});
}

// Three thirds of the node links: A and C run at 1/3, B needs half of them for full rate and runs at 2/3. The NIC then
// carries 0.25 x 1/3 + 2/3 = 0.75 and is no bottleneck.
Test(interference, a_link_that_another_keeps_from_filling_limits_nobody) {
    const ShareDemand demands[] = {{.collective = true, .use = {1, 0.25f, 0}},
                                   {.collective = true, .use = {0.5f, 1, 0}},
                                   {.collective = true, .use = {1, 0, 0}}};
    check(demands, 3, &ideal, (double[]){1.0 / 3, 2.0 / 3, 1.0 / 3});
}

// NIC of 1 for 0.125, 0.25, 1, 1: the first two get what they ask, (1 - 0.375) / 2 = 0.3125 is left for each of the
// others.
Test(interference, filling_goes_on_until_nobody_asks_less_than_the_rest) {
    const ShareDemand demands[] = {{.collective = true, .use = {0, 1, 0}},
                                   {.collective = true, .use = {0, 0.125f, 0}},
                                   {.collective = true, .use = {0, 1, 0}},
                                   {.collective = true, .use = {0, 0.25f, 0}}};
    check(demands, 4, &ideal, (double[]){0.3125, 1, 0.3125, 1});
}

// An uplink of half the NICs: each of two collectives fills it alone, and with it half of the NIC. Half of the uplink
// each is a quarter of the NIC each, so that a third one, below the uplink, has the other half of the NIC.
Test(interference, a_narrow_uplink_leaves_the_nic_to_what_stays_below) {
    const ShareDemand demands[] = {{.collective = true, .use = {0, 0.5f, 1}},
                                   {.collective = true, .use = {0, 0.5f, 1}},
                                   {.collective = true, .use = {0, 1, 0}}};
    check(demands, 3, &ideal, (double[]){0.5, 0.5, 0.5});
}

// Two that each ask half of the NIC and of the uplink are met by the uplink; of the NIC the third one would leave them
// a third each: they run at 2/3, it at 1/3.
Test(interference, an_uplink_that_the_nic_keeps_from_filling_limits_nobody) {
    const ShareDemand demands[] = {{.collective = true, .use = {0, 0.5f, 0.5f}},
                                   {.collective = true, .use = {0, 0.5f, 0.5f}},
                                   {.collective = true, .use = {0, 1, 0}}};
    check(demands, 3, &ideal, (double[]){2.0 / 3, 2.0 / 3, 1.0 / 3});
}

// 0.5 + 0.25 + 0.25 fill the NIC and no more.
Test(interference, demands_that_just_fit_are_all_met) {
    const ShareDemand demands[] = {{.collective = true, .use = {0.5f, 0.5f, 0}},
                                   {.collective = true, .use = {0.25f, 0.25f, 0}},
                                   {.collective = true, .use = {0.25f, 0.25f, 0}}};
    check(demands, 3, &ideal, (double[]){1, 1, 1});
}

// A and B fill the NIC (0.5 each); C on the node link alone goes on to full rate.
Test(interference, a_full_link_stops_only_those_that_need_it) {
    const ShareDemand demands[] = {{.collective = true, .use = {0, 1, 0}},
                                   {.collective = true, .use = {0, 1, 0}},
                                   {.collective = true, .use = {1, 0, 0}}};
    check(demands, 3, &ideal, (double[]){0.5, 0.5, 1});
}

// H100 ring of sim/SOURCES.md C9: 24 of 132 SMs -> kernel slower by 1/(1 - 24/132) = 1.2222, x 1.03; collective 1.10.
Test(interference, a_kernel_loses_the_sms_of_the_collective_beside_it) {
    const Interference interference = {.hbm_factor = 2.5, .collective_slowdown = 1.10, .residue = 1.03};
    const float share = 24.0f / 132.0f;
    const ShareDemand demands[] = {{.sm_share = 1}, {.collective = true, .sm_share = share, .use = {0, 1, 0, 0.1f}}};
    check(demands, 2, &interference, (double[]){(1 - (double)share) / 1.03, 1 / 1.10});
}

// A streaming kernel needs 0.95 of HBM, concurrently with 0.30: 1.25 is more than the SMs cost (1/0.9 = 1.111).
Test(interference, a_streaming_kernel_loses_memory_bandwidth) {
    const ShareDemand demands[] = {{.sm_share = 1, .memory_bound = 1, .use = {0, 0, 0, 0.95f}},
                                   {.collective = true, .sm_share = 0.1f, .use = {1, 0, 0, 0.3f}}};
    check(demands, 2, &ideal, (double[]){1 / ((double)0.95f + (double)0.3f), 1});
}

// A copy (HBM 0.9, no arithmetic) concurrent with a GEMM (HBM 0.3, all arithmetic): HBM 1.2 is the bottleneck.
Test(interference, a_copy_and_a_gemm_mostly_overlap) {
    const ShareDemand demands[] = {{.sm_share = 1, .memory_bound = 1, .use = {0, 0, 0, 0.9f}},
                                   {.sm_share = 1, .use = {0, 0, 0, 0.3f}}};
    const double rate = 1 / ((double)0.9f + (double)0.3f);
    check(demands, 2, &ideal, (double[]){rate, rate});
}

Test(interference, two_gemms_share_the_arithmetic) {
    const ShareDemand demands[] = {{.sm_share = 1, .use = {0, 0, 0, 0.3f}}, {.sm_share = 1, .use = {0, 0, 0, 0.3f}}};
    check(demands, 2, &ideal, (double[]){0.5, 0.5});
}

// The collectives at half rate take half of their memory traffic: 0.8 + 2 x 0.5 x 0.4 = 1.2.
Test(interference, memory_traffic_of_a_slowed_collective_shrinks) {
    const ShareDemand demands[] = {{.sm_share = 1, .use = {0, 0, 0, 0.8f}},
                                   {.collective = true, .use = {1, 0, 0, 0.4f}},
                                   {.collective = true, .use = {1, 0, 0, 0.4f}}};
    check(demands, 3, &ideal, (double[]){1 / ((double)0.8f + (double)0.4f), 0.5, 0.5});
}

// Four ranks on two cores: any work of a rank needs its whole share. A kernel and a copy then take turns.
Test(interference, a_collective_of_copies_takes_the_cores_from_the_kernel) {
    const ShareDemand demands[] = {{.sm_share = 1, .use = {[RESOURCE_CORES] = 1}},
                                   {.collective = true, .use = {[RESOURCE_CORES] = 1}}};
    check(demands, 1, &ideal, (double[]){1});
    check(demands, 2, &ideal, (double[]){0.5, 0.5});
}

// Two threads of four cores' half and one thread: 1 + 1/2 of the part.
Test(interference, one_thread_of_copies_takes_its_share_of_several_cores) {
    const ShareDemand demands[] = {{.sm_share = 1, .use = {[RESOURCE_CORES] = 1}},
                                   {.collective = true, .use = {[RESOURCE_CORES] = 0.5f}}};
    check(demands, 2, &ideal, (double[]){2.0 / 3, 2.0 / 3});
}

// It takes SMs from a concurrent kernel, as a collective does, and not half of its arithmetic.
Test(interference, a_message_between_stages_is_no_kernel) {
    const Task task = {.kind = TASK_SEND};
    const TaskCost cost = {.seconds = 1, .sm_share = 0.25f, .use = {0, 1, 0, 0.125f}};
    const ShareDemand demands[] = {{.sm_share = 1}, share_demand(&task, &cost)};
    check(demands, 2, &ideal, (double[]){0.75, 1});
}
