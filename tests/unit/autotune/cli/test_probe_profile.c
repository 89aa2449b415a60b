// A probe's samples made from known numbers by the cost model's own formulas: the profile must give the numbers back.

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "autotune/probe/probe_profile.h"
#include "sim/base/json.h"
#include "sim/cost/compute.h"
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

static void add_product(const char *name, double m, double n, double k, double flop_per_s) {
    ProbeSample *sample = add(PROBE_GEMM, name, launch_s + 2 * m * n * k / flop_per_s);
    sample->size[0] = m;
    sample->size[1] = n;
    sample->size[2] = k;
}

static void add_gemm(double m, double n, double k) {
    add_product("nt", m, n, k, rate);
}

static void add_stream(const char *name, double elements, double bytes) {
    add(PROBE_STREAM, name, floor_s + bytes * elements / memory)->size[0] = elements;
}

static void add_far(const char *name, double mebibytes, double bytes, double bytes_per_s) {
    enum { ELEMENTS = 256 << 10 };
    ProbeSample *sample = add(PROBE_FAR, name, bytes * ELEMENTS / bytes_per_s);
    sample->size[0] = ELEMENTS;
    sample->size[1] = mebibytes * 1048576;
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
    ClusterProfile parent;
    Error error = {0};
    cr_assert_eq(cluster_find(extends, &arena, &parent, &error), STATUS_OK, "%s", error.message);
    const ProbeProfile about = {.name = "probed",
                                .extends = extends,
                                .when = "2026-11-20",
                                .program = "ndtune 1",
                                .transport = "mpi",
                                .parent = &parent};
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

// Groups of few rows are slower by what the samples say, and predicted as they were timed.
Test(probe_profile, of_grouped_products_the_ramp_comes_back_and_predicts_them) {
    static const double ramp = 24, rows[] = {8, 32, 128};
    build();
    cr_expect(profile.accelerator.grouped_ramp_rows <= 0, "a ramp that nobody measured");
    for (int i = 0; i < 3; i++) {
        const double flops = 2 * rows[i] * 256 * 256;
        ProbeSample *sample = add(PROBE_GEMM, "grouped", 8 * (launch_s + flops / rate * (1 + ramp / rows[i])));
        memcpy(sample->size, (double[]){rows[i], 256, 256, 8}, sizeof sample->size);
    }
    build();
    near(profile.accelerator.grouped_ramp_rows, ramp, "ramp");
    Accelerator core = profile.accelerator;
    core.memory_bytes_per_s = 1e15;  // arithmetic alone
    const GemmShape shape = {.m = 32, .n = 256, .k = 256, .groups = 8, .output_bytes = 4, .output = DTYPE_FP32};
    near(gemm_time(&core, DTYPE_FP32, &shape).seconds, samples[probe.sample_count - 2].seconds, "32 rows each");
}

// Products in bf16 are on some processors; the rates of those in fp32 are their own.
Test(probe_profile, of_products_in_bf16_rates_come_back_where_there_are_samples) {
    static const double shapes[][3] = {{1, 1, 1},       {64, 64, 256},   {64, 128, 256},    {128, 128, 256},
                                       {256, 768, 768}, {512, 512, 512}, {1024, 1024, 1024}};
    build();
    cr_expect(profile.accelerator.gemm[DTYPE_BF16].burst_flop_per_s <= 0, "a rate that nobody measured");
    for (int i = 0; i < 7; i++) {
        add_product("nt bf16", shapes[i][0], shapes[i][1], shapes[i][2], 6 * rate);
    }
    build();
    near(profile.accelerator.gemm[DTYPE_BF16].sustained_flop_per_s, 6 * rate, "GEMM in bf16");
    near(profile.accelerator.gemm[DTYPE_FP32].sustained_flop_per_s, rate, "GEMM in fp32");
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

// 5 % above the mean is what slowest_chip_factor gives for two cores, one of each machine.
Test(probe_profile, cores_that_wander_apart_hold_up_a_step) {
    for (int i = 0; i < probe.sample_count; i++) {
        if (samples[i].kind == PROBE_SHARED && samples[i].repeats == 4) {
            samples[i].high = 1.05 * samples[i].seconds;
        }
    }
    build();
    near(slowest_chip_factor(&profile.accelerator, 2), 1.05, "factor");
}

Test(probe_profile, rounds_at_several_speeds_count_by_their_mean) {
    add_shared("gemm", 3e-3, 1);
    add_shared("gemm", 4e-3, 4);
    build();
    near(profile.accelerator.gemm[DTYPE_FP32].sustained_flop_per_s, 0.8 * rate, "GEMM");
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
    const ProbeProfile about = {
        .name = "p", .extends = "local-cpu", .when = "2026-11-20", .program = "ndtune 1", .transport = "shm"};
    Error error = {0};
    json_t *root = NULL;
    probe.sample_count = 3;
    cr_assert_eq(probe_profile(&about, &probe, &arena, &root, &error), STATUS_ENVIRONMENT);
    cr_assert_not_null(strstr(error.message, "probe"), "%s", error.message);
}

static const double gpu_floor_s = 4e-6;  // a kernel with its pause

static void add_gpu_stream(const char *name, double bytes, double bytes_per_s) {
    const double elements = 1 << 26;
    add(PROBE_STREAM, name, gpu_floor_s + bytes * elements / bytes_per_s)->size[0] = elements;
}

static void add_gpu_product(ProbeKind kind, double side, double flop_per_s) {
    ProbeSample *sample = add(kind, "nt", 2.0 * side * side * side / flop_per_s);
    sample->size[0] = sample->size[1] = sample->size[2] = side;
}

// As sim/cost/compute_attention.c has it, for 32 heads on 128 multiprocessors, whose waves are whole at these lengths.
static void add_gpu_attention(const char *name, double length, bool causal, int dim, double flop_per_s, double ramp) {
    const double share = causal ? 0.5 : 1, keys = share * length;
    const double flops = 4.0 * 32 * length * length * dim * share * (strstr(name, "backward") ? 2.5 : 1);
    const double reached = flop_per_s * keys / (keys + ramp) * (causal ? 0.9 * length / (length + 128) : 1);
    ProbeSample *sample = add(PROBE_ATTENTION, name, gpu_floor_s + flops / reached);
    sample->size[0] = length;
    sample->size[1] = causal ? 0 : length;
    sample->size[2] = 32;
    sample->size[3] = dim;
}

// Products at one rate, streams at three, attention of our own kernel.
static void begin_gpu(void) {
    static const double lengths[] = {1024, 8192};
    probe.sample_count = 0;
    probe.world = probe.nodes = probe.per_node = 1;
    probe.chip = "NVIDIA H200, driver 13000, cuBLASLt 130000";
    probe.device = (ProbeDevice){.divisor = 1, .processors = 128, .memory_bytes = 1.4e11, .cache_bytes = 60 << 20};
    add_gpu_product(PROBE_GEMM, 128, 1e13);  // too small to count
    for (int i = 0; i < 5; i++) {
        add_gpu_product(PROBE_GEMM, 4096 + 1024 * i, 7e14);
    }
    add_gpu_product(PROBE_SUSTAINED, 8192, 6.3e14);
    add(PROBE_STREAM, "floor", gpu_floor_s)->size[0] = 4096;
    add(PROBE_STREAM, "add", gpu_floor_s + 1e-6)->size[0] = 1 << 20;  // in the cache
    add_gpu_stream("add", 6, 4.2e12);
    add_gpu_stream("adamw", 28, 4.0e12);
    add_gpu_stream("norm", 4, 3.8e12);
    for (int i = 0; i < 4; i++) {
        add_gpu_attention("own forward", lengths[i / 2], i % 2, 128, 4e14, 200);
        add_gpu_attention("own backward", lengths[i / 2], i % 2, 128, 3e14, 400);
    }
}

static const Provenance *row_of(const char *path) {
    for (int i = 0; i < profile.provenance_count; i++) {
        if (strcmp(profile.provenance[i].path, path) == 0) {
            return &profile.provenance[i];
        }
    }
    cr_assert_fail("no row %s", path);
    return NULL;
}

Test(probe_profile, rates_of_a_gpu_come_back) {
    begin_gpu();
    build_on("dgx-h200");
    cr_expect_str_eq(profile.accelerator.name, "NVIDIA H200");
    near(profile.accelerator.gemm[DTYPE_BF16].burst_flop_per_s, 7e14, "GEMM");
    near(profile.accelerator.gemm[DTYPE_BF16].sustained_flop_per_s, 6.3e14, "sustained GEMM");
    near(profile.accelerator.memory_bytes_per_s, 4.2e12, "memory");
    near(profile.accelerator.memory_efficiency, 4.0 / 4.2, "efficiency");
    near(profile.accelerator.memory_bytes, 1.4e11, "size of memory");
    cr_expect_eq(profile.accelerator.sm_count, 128);
}

Test(probe_profile, a_kernel_and_its_pause_are_told_apart_by_the_built_in_pause_and_say_so) {
    begin_gpu();
    build_on("dgx-h200");
    near(profile.accelerator.kernel_floor_s + profile.accelerator.kernel_gap_s, gpu_floor_s, "kernel and pause");
    cr_expect_not_null(strstr(row_of("accelerator.kernel_floor_s")->source, "less the pause of"));
    cr_expect_null(strstr(row_of("accelerator.kernel_gap_s")->source, "probe of"));
    cr_expect_not_null(strstr(profile.description, "of dgx-h200: peak"), "%s", profile.description);
}

Test(probe_profile, attention_of_a_gpu_comes_back_with_its_tier_named) {
    begin_gpu();
    build_on("dgx-h200");
    const AttentionRate *found = NULL;
    for (int i = 0; i < profile.accelerator.attention_count; i++) {
        const AttentionRate *row = &profile.accelerator.attention[i];
        found = strcmp(row->kernel, "flash") == 0 && row->head_dim == 128 ? row : found;
    }
    cr_assert_not_null(found);
    const double peak = profile.accelerator.gemm[DTYPE_BF16].peak_flop_per_s;
    near(found->forward_efficiency, 4e14 / peak, "forward");
    near(found->backward_efficiency, 3e14 / peak, "backward");
    near(found->forward_ramp, 200, "ramp");
    near(found->backward_ramp, 400, "ramp backward");
    near(found->causal_factor, 0.9, "causal");
    const char *source = row_of("accelerator.attention.flash-128.forward_efficiency")->source;
    cr_expect_not_null(strstr(source, "tier own"), "%s", source);
}

Test(probe_profile, a_product_of_the_probe_is_predicted_as_it_was_timed) {
    begin_gpu();
    build_on("dgx-h200");
    const TimedGemm wanted = {
        .m = 4096, .n = 4096, .k = 4096, .input = DTYPE_BF16, .output = DTYPE_BF16, .trans_b = true};
    const TimedGemm *found = cluster_product_find(&profile.accelerator, &wanted);
    cr_assert_not_null(found);
    near(found->seconds, 2.0 * 4096 * 4096 * 4096 / 7e14, "product");
}

Test(probe_profile, a_gpu_without_measured_links_keeps_the_built_in_ones) {
    begin_gpu();
    build_on("dgx-h200");
    const int built_in = profile.curve_count;
    cr_expect_not_null(strstr(profile.description, "links"), "%s", profile.description);
    add_collectives(1, 4, latency_s, ring);
    build_on("dgx-h200");
    cr_expect_eq(profile.curve_count, built_in + 4);
    cr_expect_null(strstr(profile.description, "links"), "%s", profile.description);
}

Test(probe_profile, streams_beyond_the_caches_have_a_rate_of_their_own) {
    build();
    cr_assert_eq(profile.accelerator.beyond_cache_bytes_per_s, 0, "a probe without these samples");
    add_far("add", 24, 12, memory);
    add_far("add", 48, 12, 0.6 * memory);  // nearer to the caches' rate than to a tenth of it
    add_far("add", 112, 12, 0.1 * memory);
    add_far("norm", 112, 8, 0.1 * memory);
    add_far("adamw", 112, 28, 0.2 * memory);
    build();
    near(profile.accelerator.cache_bytes, 48 * 1048576.0, "caches");
    near(profile.accelerator.beyond_cache_bytes_per_s, 0.1 * memory, "memory");
}

Test(probe_profile, memory_as_fast_as_the_caches_needs_no_rate_of_its_own) {
    add_far("add", 24, 12, memory);
    add_far("add", 112, 12, memory);
    build();
    cr_assert_eq(profile.accelerator.beyond_cache_bytes_per_s, 0);
}
