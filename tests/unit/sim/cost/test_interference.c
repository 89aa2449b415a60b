// Rates of concurrent tasks against cases computed by hand.

#include "sim/cost/interference.h"

#include <criterion/criterion.h>
#include <math.h>

static const Interference ideal = {.hbm_factor = 1, .collective_slowdown = 1, .residue = 1};

static void check(const ShareDemand *demands, int count, const Interference *interference, const double *expected) {
    const ShareDemand *list[SHARE_MAX_ACTIVE];
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
    const ShareDemand demands[] = {{.collective = true, .sm_share = 0.25f, .use = {1, 1, 0.5f}}};
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

// A needs node links 1 and NIC 0.5, B only the NIC 1. Dominant shares grow together: NIC full when 0.5 L + L = 1, L = 2/3; both
// are on the NIC and stop: rates 2/3.
Test(interference, dominant_shares_grow_together_over_two_links) {
    const ShareDemand demands[] = {{.collective = true, .use = {1, 0.5f, 0}}, {.collective = true, .use = {0, 1, 0}}};
    check(demands, 2, &ideal, (double[]){2.0 / 3, 2.0 / 3});
}

// A and B fill the NIC (0.5 each); C on the node link alone goes on to full rate.
Test(interference, a_full_link_stops_only_those_that_need_it) {
    const ShareDemand demands[] = {{.collective = true, .use = {0, 1, 0}},
                                   {.collective = true, .use = {0, 1, 0}},
                                   {.collective = true, .use = {1, 0, 0}}};
    check(demands, 3, &ideal, (double[]){0.5, 0.5, 1});
}

// H100 ring of collectives.md 4.2: 24 of 132 SMs -> kernel slower by 1/(1 - 24/132) = 1.2222, x 1.03; collective 1.10.
Test(interference, a_kernel_loses_the_sms_of_the_collective_beside_it) {
    const Interference interference = {.hbm_factor = 2.5, .collective_slowdown = 1.10, .residue = 1.03};
    const float share = 24.0f / 132.0f;
    const ShareDemand demands[] = {{.sm_share = 1}, {.collective = true, .sm_share = share, .use = {0, 1, 0.1f}}};
    check(demands, 2, &interference, (double[]){(1 - (double)share) / 1.03, 1 / 1.10});
}

// A streaming kernel that needs 0.95 of HBM beside 0.30: 1.25 is more than what the SMs cost (1/0.9 = 1.111).
Test(interference, a_streaming_kernel_loses_memory_bandwidth) {
    const ShareDemand demands[] = {{.sm_share = 1, .memory_bound = 1, .use = {0, 0, 0.95f}},
                                   {.collective = true, .sm_share = 0.1f, .use = {1, 0, 0.3f}}};
    check(demands, 2, &ideal, (double[]){1 / ((double)0.95f + (double)0.3f), 1});
}

// A copy (HBM 0.9, no arithmetic) beside a GEMM (HBM 0.3, all arithmetic): HBM 1.2 is what they lack.
Test(interference, a_copy_and_a_gemm_mostly_overlap) {
    const ShareDemand demands[] = {{.sm_share = 1, .memory_bound = 1, .use = {0, 0, 0.9f}},
                                   {.sm_share = 1, .use = {0, 0, 0.3f}}};
    const double rate = 1 / ((double)0.9f + (double)0.3f);
    check(demands, 2, &ideal, (double[]){rate, rate});
}

Test(interference, two_gemms_share_the_arithmetic) {
    const ShareDemand demands[] = {{.sm_share = 1, .use = {0, 0, 0.3f}}, {.sm_share = 1, .use = {0, 0, 0.3f}}};
    check(demands, 2, &ideal, (double[]){0.5, 0.5});
}

// The collectives at half rate take half of their memory traffic: 0.8 + 2 x 0.5 x 0.4 = 1.2.
Test(interference, memory_traffic_of_a_slowed_collective_shrinks) {
    const ShareDemand demands[] = {{.sm_share = 1, .use = {0, 0, 0.8f}},
                                   {.collective = true, .use = {1, 0, 0.4f}},
                                   {.collective = true, .use = {1, 0, 0.4f}}};
    check(demands, 3, &ideal, (double[]){1 / ((double)0.8f + (double)0.4f), 0.5, 0.5});
}
