// Each row of the table at the end has a function above it.

#include "autotune/accuracy/fitted.h"

#include <string.h>

static bool on_chip(const RunCase *run, const char *name) {
    return strstr(run->request.cluster.accelerator.name, name) != NULL;
}

static bool on_fabric(const RunCase *run) {
    return run->request.cluster.fabric.group_latency_s > 1e-4;  // EFA v2 as seen in one sweep
}

static bool scale_products(double factor, RunCase *run, bool there) {
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        run->request.cluster.accelerator.gemm[dtype].sustained_flop_per_s *= there ? factor : 1;
    }
    return there;
}

static bool host(double factor, MovedRun *moved) {
    moved->target.runtime.host_s_per_op *= factor;
    return moved->target.runtime.host_s_per_op > 20e-6 * factor;  // the Python stacks of 2022 to 2024
}

static bool lost_lead(double factor, MovedRun *moved) {
    moved->target.runtime.lost_lead *= factor;
    return moved->target.runtime.lost_lead > 0 || factor <= 0;
}

static bool scale_fabric(double *number, double factor, const RunCase *run) {
    const bool there = on_fabric(run);
    *number *= there ? factor : 1;
    return there;
}

static bool group_latency(double factor, MovedRun *moved) {
    return scale_fabric(&moved->run.request.cluster.fabric.group_latency_s, factor, &moved->run);
}

static bool efficiency(double factor, MovedRun *moved) {
    return scale_fabric(&moved->run.request.cluster.fabric.efficiency, factor, &moved->run);
}

static bool a100_rate(double factor, MovedRun *moved) {
    return scale_products(factor, &moved->run, on_chip(&moved->run, "A100") || on_chip(&moved->run, "A800"));
}

static bool mi300x_attention(double factor, MovedRun *moved) {
    const bool there = on_chip(&moved->run, "MI300X");
    for (int i = 0; i < moved->run.request.cluster.accelerator.attention_count; i++) {
        moved->run.request.cluster.accelerator.attention[i].backward_efficiency *= there ? factor : 1;
    }
    return there;
}

static bool h100_rate(double factor, MovedRun *moved) {
    return scale_products(factor, &moved->run,
                          on_chip(&moved->run, "H100") && moved->run.request.cluster.accelerator.power_w > 600);
}

static bool sharded_share(double factor, MovedRun *moved) {
    double *share = &moved->run.request.cluster.accelerator.sharded_gemm_share;
    const bool there = *share < 1 && moved->run.plan.zero == 3;
    *share *= there ? factor : 1;
    return there;
}

static bool chip_spread(double factor, MovedRun *moved) {
    moved->run.request.cluster.accelerator.chip_spread *= factor;
    return true;
}

static bool other_share(double factor, MovedRun *moved) {
    const bool there = moved->target.runtime.other_share > 0;
    moved->target.runtime.other_share =
        there ? (1 + moved->target.runtime.other_share) * factor - 1 : moved->target.runtime.other_share;
    return there;
}

const Fitted fitted_numbers[] = {
    {"host time per operation", 13 / 39.5, 0.7, "PyTorch of today, sim/SOURCES.md H7", host},
    {"lost lead", 0, 1, "host and device time do not add", lost_lead},
    {"latency of groups, EFA", 0, 1, "no sweep of the network shows it", group_latency},
    {"efficiency, EFA", 0.8 / 0.74, 0.1, "sweeps of the network alone", efficiency},
    {"products on A100", 246 / 256.0, 0.04, "the grid of short products", a100_rate},
    {"products on H100", 735 / 690.0, 0.06, "the grid of short products", h100_rate},
    {"attention's gradients on MI300X", 205 / 105.0, 0.4, "CK's FlashAttention 2", mi300x_attention},
    {"products beside gathers", 1 / 0.93, 0.07, "as others", sharded_share},
    {"spread of chips", 0.018 / 0.036, 0.5, "5 % between the best and the worst of eight", chip_spread},
    {"layers' time that nothing explains", 1 / 1.06, 0.05, "none", other_share},
};

const int fitted_count = sizeof fitted_numbers / sizeof fitted_numbers[0];
