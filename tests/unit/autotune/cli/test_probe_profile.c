// A probe's samples made from known numbers by the cost model's own formulas: the profile must give the numbers back.

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "autotune/cli/probe_profile.h"
#include "sim/base/json.h"
#include "sim/cost/cost.h"
#include "tests/support/run_program.h"

enum { MOST = 200 };

static Arena arena;
static ProbeSample samples[MOST];
static ProbeHost hosts[4];
static ProbeResult probe;
static ClusterProfile profile;

static const double rate = 2e11, launch_s = 1e-6, floor_s = 2e-7, memory = 8e10, ring = 5e9, network = 1.2e8;
static const double latency_s = 4e-6, network_latency_s = 1e-4;

static ProbeSample *add(ProbeKind kind, const char *name, double seconds) {
    ProbeSample *sample = &samples[probe.sample_count++];
    *sample = (ProbeSample){.kind = kind,
                            .name = name,
                            .nodes = 1,
                            .per_node = 1,
                            .seconds = seconds,
                            .low = seconds,
                            .high = seconds,
                            .repeats = 9};
    return sample;
}

static void add_gemm(double m, double n, double k) {
    ProbeSample *sample = add(PROBE_GEMM, "nt", launch_s + 2 * m * n * k / rate);
    sample->size[0] = m;
    sample->size[1] = n;
    sample->size[2] = k;
}

static void add_stream(const char *name, double elements, double bytes) {
    add(PROBE_STREAM, name, floor_s + bytes * elements / memory)->size[0] = elements;
}

static void add_shared(const char *name, double seconds, int ranks) {
    ProbeSample *sample = add(PROBE_SHARED, name, seconds);
    sample->repeats = ranks;
}

static void add_collectives(int nodes, int per_node, double start_s, double bytes_per_s) {
    static const char *const names[] = {"all_gather", "reduce_scatter", "all_reduce", "send_recv"};
    static const double sizes[] = {4096, 65536, 1 << 20, 8 << 20};
    const int members = nodes * per_node;
    for (int k = 0; k < 4; k++) {
        for (int s = 0; s < 4; s++) {
            const double share = k == 3 ? 1 : k == 2 ? 2.0 * (members - 1) / members : (members - 1.0) / members;
            const double transfer_s = s == 0 ? 0 : share * sizes[s] / bytes_per_s;
            ProbeSample *sample = add(PROBE_COLLECTIVE, names[k], start_s + transfer_s);
            sample->size[0] = sizes[s];
            sample->nodes = nodes;
            sample->per_node = per_node;
        }
    }
}

static void begin(void) {
    arena = (Arena){0};
    probe = (ProbeResult){.hosts = hosts, .world = 4, .nodes = 2, .per_node = 2, .samples = samples};
    for (int rank = 0; rank < 4; rank++) {
        hosts[rank] = (ProbeHost){.name = rank < 2 ? "one" : "two",
                                  .processor = "Some Processor",
                                  .boot = "kernel",
                                  .node = rank / 2,
                                  .cores = 2,
                                  .memory_bytes = 2e10};
    }
    const double gemms[][3] = {{1, 1, 1},       {64, 64, 256},   {64, 128, 256},    {128, 128, 256},
                               {256, 768, 768}, {512, 512, 512}, {1024, 1024, 1024}};
    for (int i = 0; i < 7; i++) {
        add_gemm(gemms[i][0], gemms[i][1], gemms[i][2]);
    }
    samples[0].seconds = launch_s;
    add(PROBE_STREAM, "floor", floor_s)->size[0] = 16;
    add_stream("add", 32 << 10, 12);
    add_stream("norm", 256 << 10, 8);
    add_stream("swiglu", 256 << 10, 12);
    add_stream("adamw", 64 << 10, 28);
    add_shared("gemm", 1e-3, 1);
    add_shared("gemm", 1e-3, 4);
    add_shared("stream", 1e-3, 1);
    add_shared("stream", 1e-3, 4);
    add(PROBE_GAP, "between tasks", 3e-7);
    add_collectives(1, 2, latency_s, ring);
    add_collectives(2, 1, network_latency_s, network);
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(probe_profile, .init = begin, .fini = end);

static void build_on(const char *extends) {
    const ProbeProfile about = {
        .name = "probed", .extends = extends, .when = "2026-11-20", .program = "ndtune 1", .transport = "mpi"};
    Error error = {0};
    json_t *root = NULL;
    char *folder = temp_dir_make();
    const char *path = arena_format(&arena, "%s/probed.json", folder);
    cr_assert_eq(probe_profile(&about, &probe, &arena, &root, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(json_file_save(path, root, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(cluster_find(path, &arena, &profile, &error), STATUS_OK, "%s", error.message);
    json_decref(root);
    temp_dir_remove(folder);
}

static void build(void) {
    build_on("local-cpu");
}

static void near(double value, double expected, const char *what) {
    cr_assert_float_eq(value, expected, 0.01 * expected, "%s: %g, expected %g", what, value, expected);
}

Test(probe_profile, rates_and_latencies_come_back) {
    build();
    near(profile.accelerator.gemm[DTYPE_FP32].sustained_flop_per_s, rate, "GEMM");
    near(profile.accelerator.gemm[DTYPE_FP32].launch_s, launch_s, "launch");
    near(profile.accelerator.memory_bytes_per_s, memory, "memory");
    near(profile.accelerator.kernel_floor_s, floor_s, "floor");
    near(profile.node.ring.bandwidth_bytes_per_s, ring, "ring");
    near(profile.node.p2p_latency_s, latency_s, "exchange");
    near(profile.fabric.nic_bytes_per_s, network, "network");
    near(profile.fabric.p2p_latency_s, network_latency_s, "network exchange");
}

Test(probe_profile, machines_on_one_kernel_share_its_cores) {
    build();
    cr_assert_eq(profile.node.cores, 1);  // two cores, two machines
    cr_assert_eq(profile.node.accelerators, 2);
    hosts[2].boot = hosts[3].boot = "another kernel";
    build();
    cr_assert_eq(profile.node.cores, 2);
}

Test(probe_profile, a_busy_core_keeps_what_all_ranks_at_once_kept) {
    for (int i = 0; i < probe.sample_count; i++) {
        if (samples[i].kind == PROBE_SHARED && samples[i].repeats == 4) {
            samples[i].seconds = 1.25e-3;
        }
    }
    build();
    near(profile.accelerator.gemm[DTYPE_FP32].sustained_flop_per_s, 0.8 * rate, "GEMM");
    near(profile.accelerator.memory_bytes_per_s, 0.8 * memory, "memory");
}

Test(probe_profile, what_was_measured_is_predicted) {
    build();
    const GroupPlacement across = {.size = 2, .nodes = 2, .per_node = 1, .siblings = 1};
    near(cost_collective_s(&profile, COLLECTIVE_ALL_REDUCE, &across, 1 << 20, NULL),
         network_latency_s + (1 << 20) / network, "all-reduce across");
    const GroupPlacement siblings = {.size = 2, .nodes = 2, .per_node = 1, .siblings = 2};  // no curve: the formula
    near(cost_collective_s(&profile, COLLECTIVE_ALL_GATHER, &siblings, 8 << 20, NULL),
         network_latency_s + 2 * 0.5 * (8 << 20) / network, "two all-gathers at once");
}

Test(probe_profile, every_measured_number_says_where_and_when) {
    build();
    int measured = 0;
    for (int i = 0; i < profile.provenance_count; i++) {
        const Provenance *row = &profile.provenance[i];
        if (strstr(row->source, "probe of one on 2026-11-20, ndtune 1")) {
            cr_assert_eq(row->grade, GRADE_MEASURED, "%s", row->path);
            measured++;
        }
    }
    cr_assert_gt(measured, 25);
    cr_assert_str_eq(profile.extends, "local-cpu");
}

Test(probe_profile, a_probe_without_its_samples_is_refused) {
    const ProbeProfile about = {"p", "local-cpu", "2026-11-20", "ndtune 1", "shm"};
    Error error = {0};
    json_t *root = NULL;
    probe.sample_count = 3;
    cr_assert_eq(probe_profile(&about, &probe, &arena, &root, &error), STATUS_ENVIRONMENT);
    cr_assert_not_null(strstr(error.message, "probe"), "%s", error.message);
}

static void add_gpu_stream(const char *name, double bytes, double bytes_per_s) {
    const double elements = 1 << 26;
    add(PROBE_STREAM, name, bytes * elements / bytes_per_s)->size[0] = elements;
}

// Products at one rate and streams at three: on top of a built-in profile of GPUs.
Test(probe_profile, rates_of_a_gpu_come_back) {
    probe.sample_count = 0;
    probe.world = probe.nodes = probe.per_node = 1;
    probe.chip = "NVIDIA H200, driver 13000, cuBLASLt 130000";
    add(PROBE_GEMM, "nt", 1e-5)->size[0] = 128;  // too small to count
    for (int i = 0; i < 5; i++) {
        ProbeSample *sample = add(PROBE_GEMM, "nt", 2.0 * 4096 * 4096 * 4096 / 7e14);
        sample->size[0] = sample->size[1] = sample->size[2] = 4096;
    }
    add(PROBE_STREAM, "floor", 2e-6)->size[0] = 4096;
    add_gpu_stream("add", 6, 4.2e12);
    add_gpu_stream("adamw", 28, 4.0e12);
    add_gpu_stream("norm", 4, 3.8e12);
    build_on("dgx-h200");
    cr_expect_str_eq(profile.accelerator.name, "NVIDIA H200");
    near(profile.accelerator.gemm[DTYPE_BF16].burst_flop_per_s, 7e14, "GEMM");
    near(profile.accelerator.memory_bytes_per_s, 4.2e12, "memory");
    near(profile.accelerator.memory_efficiency, 4.0 / 4.2, "efficiency");
    near(profile.accelerator.kernel_floor_s, 2e-6, "floor");
    cr_expect_eq(profile.accelerator.kernel_gap_s, 0);
}
