// Machines for the cost tests, defined by hand so that refitting the shipped profiles does not move their numbers.

#pragma once

#include "sim/cluster/cluster.h"

// An H100 node with InfiniBand: sim/SOURCES.md H1, H4 and C8 (defaults of the class).
static inline ClusterProfile machine_h100(void) {
    ClusterProfile profile = {.name = "h100"};
    profile.accelerator = (Accelerator){.name = "H100",
                                        .device_class = DEVICE_CLASS_GPU,
                                        .memory_bytes = 80e9,
                                        .memory_bytes_per_s = 3.35e12,
                                        .memory_efficiency = 0.89,
                                        .kernel_floor_s = 2.4e-6,
                                        .kernel_gap_s = 1.2e-6,
                                        .sm_count = 132,
                                        .attention_count = 3};
    profile.accelerator.gemm[DTYPE_BF16] = (GemmRate){.peak_flop_per_s = 989e12,
                                                      .burst_flop_per_s = 824e12,
                                                      .sustained_flop_per_s = 735e12,
                                                      .wave_quantisation = 0.04,
                                                      .tile_overhead_s = 1.26e-6,
                                                      .launch_s = 1.8e-6,
                                                      .bandwidth_factor = 0.88,
                                                      .class_efficiency = {1, 0.95, 0.75}};
    profile.accelerator.attention[0] = (AttentionRate){"flash3", 128, 0.683, 183, 0.607, 422, 0.975};
    profile.accelerator.attention[1] = (AttentionRate){"flash", 128, 0.35, 167, 0.35, 167, 0.97};
    profile.accelerator.attention[2] = (AttentionRate){"flash", 64, 0.3, 167, 0.3, 167, 0.97};
    profile.node = (Node){.accelerators = 8,
                          .link_latency_s = 4.5e-6,
                          .step_latency_s = 0.85e-6,
                          .ring_copy = 0.64,
                          .ring = {400e9, 0.5, 8},
                          .nvls_min_ranks = 5,
                          .nvls_latency_s = 20e-6,
                          .nvls = {305e9, 0.7, 3},
                          .p2p_latency_s = 7.3e-6,
                          .p2p = {335e9, 0.68, 10},
                          .ring_ctas = 24,
                          .nvls_ctas = 16};
    profile.fabric = (Fabric){.nics = 8,
                              .nic_bytes_per_s = 50e9,
                              .efficiency = 0.96,
                              .ring_step_latency_s = 13e-6,
                              .tree_step_latency_s = 6.5e-6,
                              .ring = {0, 2, 2.5},
                              .tree = {256e9, 2, 6},
                              .p2p_latency_s = 35e-6,
                              .p2p_efficiency = 0.4,
                              .p2p = {0, 0.8, 3},
                              .p2p_ctas = 8};
    profile.interference = (Interference){.hbm_factor = 2.5, .collective_slowdown = 1.1, .residue = 1.03};
    return profile;
}

// Round numbers and no shape effects: values that can be computed by hand next to the test. 100 SMs, 100 TFLOP/s, 1
// TB/s; ring curve without pipelining loss (g = 0), 100 GB/s links, 4 NICs of 10 GB/s.
static inline ClusterProfile machine_round(void) {
    ClusterProfile profile = {.name = "round"};
    profile.accelerator = (Accelerator){.name = "round",
                                        .device_class = DEVICE_CLASS_GPU,
                                        .memory_bytes = 80e9,
                                        .memory_bytes_per_s = 1e12,
                                        .memory_efficiency = 0.8,
                                        .kernel_floor_s = 2e-6,
                                        .kernel_gap_s = 1e-6,
                                        .sm_count = 100,
                                        .attention_count = 1};
    profile.accelerator.gemm[DTYPE_BF16] = (GemmRate){.peak_flop_per_s = 125e12,
                                                      .burst_flop_per_s = 110e12,
                                                      .sustained_flop_per_s = 100e12,
                                                      .wave_quantisation = 1,
                                                      .tile_overhead_s = 0,
                                                      .launch_s = 0,
                                                      .bandwidth_factor = 1,
                                                      .class_efficiency = {0.5, 0.25, 0.125}};
    profile.accelerator.attention[0] = (AttentionRate){"flash", 128, 0.5, 1024, 0.5, 1024, 0.75};
    profile.node = (Node){.accelerators = 4,
                          .link_latency_s = 5e-6,
                          .step_latency_s = 1e-6,
                          .ring_copy = 0.5,
                          .ring = {100e9, 0, 0},
                          .nvls_min_ranks = 0,
                          .p2p_latency_s = 4e-6,
                          .p2p = {50e9, 0, 0},
                          .ring_ctas = 10,
                          .nvls_ctas = 10};
    profile.fabric = (Fabric){.nics = 4,
                              .nic_bytes_per_s = 10e9,
                              .efficiency = 0.5,
                              .ring_step_latency_s = 10e-6,
                              .tree_step_latency_s = 7e-6,
                              .ring = {0, 0, 0},
                              .tree = {1e12, 0, 0},
                              .p2p_latency_s = 20e-6,
                              .p2p_efficiency = 0.4,
                              .p2p = {0, 0.8, 3},
                              .p2p_ctas = 8};
    profile.interference = (Interference){.hbm_factor = 2, .collective_slowdown = 1, .residue = 1};
    return profile;
}

// A CPU machine of four cores and eight ranks per node.
static inline ClusterProfile machine_cpu(void) {
    ClusterProfile profile = {.name = "cpu"};
    profile.accelerator = (Accelerator){.name = "core",
                                        .device_class = DEVICE_CLASS_CPU,
                                        .memory_bytes = 4e9,
                                        .memory_bytes_per_s = 40e9,
                                        .memory_efficiency = 1,
                                        .kernel_floor_s = 1e-6,
                                        .sm_count = 1,
                                        .attention_count = 1};
    profile.accelerator.gemm[DTYPE_FP32] = (GemmRate){.peak_flop_per_s = 300e9,
                                                      .burst_flop_per_s = 270e9,
                                                      .sustained_flop_per_s = 270e9,
                                                      .wave_quantisation = 0,
                                                      .bandwidth_factor = 1,
                                                      .class_efficiency = {1, 1, 1}};
    profile.accelerator.attention[0] = (AttentionRate){"cpu", 64, 0.3, 0, 0.3, 0, 1};
    profile.node = (Node){.accelerators = 8,
                          .cores = 4,
                          .link_latency_s = 0.5e-6,
                          .step_latency_s = 0.5e-6,
                          .ring_copy = 1,
                          .ring = {10e9, 0, 0},
                          .p2p_latency_s = 1e-6,
                          .p2p = {8e9, 0, 0},
                          .ring_ctas = 1};
    return profile;
}
