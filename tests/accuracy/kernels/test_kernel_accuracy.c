// The shipped profiles against published kernel times (gemm.csv, attention.csv, collectives.csv), with the bounds that
// the project states.
//
// What the constants were fitted on, and what they were not:
//   gemm.csv burst        the grids (ai-dynamo/aiconfigurator) that the GEMM constants were fitted on; 30 % of the (N,
//   K)
//                         pairs of the whole grid were held out of that fit, this sample mixes both: interpolation
//                         errors
//   gemm.csv sustained    timings inside a model (microsoft/vidur), never fitted on; they did decide that "sustained"
//   rates
//                         rather than burst ones are used. The profiles take 3 % off the rate for the slowest chip of a
//                         node (hardware.md 1); these rows are of one chip, so a bias of +3 % is expected here
//   attention.csv         FlashAttention-2 forward and backward, figures of its repository: the "flash" rows were
//   fitted on them collectives.csv node  the sweeps (ai-dynamo/aiconfigurator, NCCL 2.27) that the node constants were
//   fitted on
//   ... other_node        a DGX H100 and an HGX H200 (same NVLink), never fitted on
//   ... fabric            InfiniBand and RoCE clusters of H100 nodes; priced with class defaults, which were chosen
//   after
//                         seeing these rows: no held-out test

#include <criterion/criterion.h>
#include <string.h>

#include "sim/cluster/cluster.h"
#include "sim/cost/cost.h"
#include "tests/accuracy/kernels/samples.h"

enum { MACHINES = 2 };

typedef struct Machines {
    Arena arena;
    ClusterProfile profile[MACHINES];
} Machines;

static const char *const machine_names[MACHINES] = {"dgx-a100-80g", "dgx-h100"};

static void machines_load(Machines *machines) {
    *machines = (Machines){0};
    for (int i = 0; i < MACHINES; i++) {
        Error error;
        const Status status = cluster_find(machine_names[i], &machines->arena, &machines->profile[i], &error);
        cr_assert_eq(status, STATUS_OK, "%s", error.message);
    }
}

static const ClusterProfile *machine(const Machines *machines, const char *name) {
    for (int i = 0; i < MACHINES; i++) {
        if (strcmp(machine_names[i], name) == 0) {
            return &machines->profile[i];
        }
    }
    cr_assert_fail("no profile %s", name);
    return NULL;
}

// The micro-benchmarks run a kernel for 12 to 60 repeats: a long one already feels the power limit. hardware.md 5.1:
// the rate falls from burst by drop x t/(t + 4 ms); drop from the same fit.
static double burst_gemm_s(const ClusterProfile *profile, Dtype dtype, const GemmSample *sample) {
    static const double throttle_s = 4e-3, drop = 0.12;  // fitted: bf16 0.114 A100, 0.126 H100, fp8 0.110
    Accelerator accelerator = profile->accelerator;
    GemmRate *rate = &accelerator.gemm[dtype];
    double seconds = 0;
    for (int i = 0; i < 6; i++) {  // fixed point
        rate->sustained_flop_per_s = rate->burst_flop_per_s * (1 - drop * seconds / (seconds + throttle_s));
        seconds = cost_gemm_s(&accelerator, dtype, sample->m, sample->n, sample->k, 2);
    }
    return seconds;
}

static ErrorSummary gemm_errors(const char *profile, const char *load, Dtype dtype, int64_t smallest_m) {
    static GemmSample samples[SAMPLES_MAX];
    const int count = gemm_samples(samples);
    Machines machines;
    machines_load(&machines);
    const ClusterProfile *on = machine(&machines, profile);
    Errors errors = {.count = 0};
    for (int i = 0; i < count; i++) {
        const GemmSample *row = &samples[i];
        if (strcmp(row->profile, profile) != 0 || strcmp(row->load, load) != 0 ||
            strcmp(row->dtype, dtype_name(dtype)) != 0 || row->m < smallest_m) {
            continue;
        }
        const bool burst = strcmp(load, "burst") == 0;
        const double sustained_s = cost_gemm_s(&on->accelerator, dtype, row->m, row->n, row->k, 2);
        errors_add(&errors, burst ? burst_gemm_s(on, dtype, row) : sustained_s, row->time_s);
    }
    char label[96];
    snprintf(label, sizeof(label), "GEMM %s %s %s, M >= %d", profile, dtype_name(dtype), load, (int)smallest_m);
    const ErrorSummary summary = errors_print(label, &errors);
    arena_free(&machines.arena);
    return summary;
}

Test(accuracy_kernels, gemm_burst_within_5_percent_median_and_15_percent_p90) {
    for (int i = 0; i < MACHINES; i++) {
        const ErrorSummary summary = gemm_errors(machine_names[i], "burst", DTYPE_BF16, 256);
        cr_expect_leq(summary.median_abs, 0.05, "%s", machine_names[i]);
        cr_expect_leq(summary.p90_abs, 0.15, "%s", machine_names[i]);
    }
}

Test(accuracy_kernels, gemm_inside_a_model_within_6_percent_median_from_1024_tokens) {
    for (int i = 0; i < MACHINES; i++) {
        gemm_errors(machine_names[i], "sustained", DTYPE_FP16, 256);
        const ErrorSummary summary = gemm_errors(machine_names[i], "sustained", DTYPE_FP16, 1024);
        cr_expect_leq(summary.median_abs, 0.06, "%s", machine_names[i]);
        cr_expect_leq(summary.p90_abs, 0.20, "%s", machine_names[i]);
    }
}

Test(accuracy_kernels, fp8_gemm_burst_within_5_percent_median_and_15_percent_p90) {
    const ErrorSummary summary = gemm_errors("dgx-h100", "burst", DTYPE_FP8, 256);
    cr_expect_leq(summary.median_abs, 0.05);
    cr_expect_leq(summary.p90_abs, 0.15);
}

static ErrorSummary attention_errors(const char *profile) {
    static AttentionSample samples[SAMPLES_MAX];
    const int count = attention_samples(samples);
    Machines machines;
    machines_load(&machines);
    const Accelerator *accelerator = &machine(&machines, profile)->accelerator;
    Errors errors = {.count = 0};
    for (int i = 0; i < count; i++) {
        const AttentionSample *row = &samples[i];
        if (strcmp(row->profile, profile) != 0) {
            continue;
        }
        double seconds = 0;
        for (int backward = 0; backward < 2; backward++) {
            seconds += cost_attention_s(accelerator, DTYPE_FP16, row->sequences, row->heads, row->head_dim, row->seq,
                                        row->seq, row->causal ? 0.5 : 1, backward);
        }
        errors_add(&errors, seconds, row->time_s);
    }
    char label[96];
    snprintf(label, sizeof(label), "attention %s", profile);
    const ErrorSummary summary = errors_print(label, &errors);
    arena_free(&machines.arena);
    return summary;
}

Test(accuracy_kernels, flash_attention_within_3_percent_median_and_8_percent_p90) {
    for (int i = 0; i < MACHINES; i++) {
        const ErrorSummary summary = attention_errors(machine_names[i]);
        cr_expect_leq(summary.median_abs, 0.03, "%s", machine_names[i]);
        cr_expect_leq(summary.p90_abs, 0.08, "%s", machine_names[i]);
    }
}

static double collective_s(const ClusterProfile *profile, const CollectiveSample *row) {
    const CollectiveKind kind = strcmp(row->kind, "all_gather") == 0       ? COLLECTIVE_ALL_GATHER
                                : strcmp(row->kind, "reduce_scatter") == 0 ? COLLECTIVE_REDUCE_SCATTER
                                                                           : COLLECTIVE_ALL_REDUCE;
    const GroupPlacement group = {row->nodes * row->per_node, row->nodes, row->per_node, 1, 0};
    for (int i = 0; collective_table[i]; i++) {
        if (strcmp(collective_table[i]->name, row->algorithm) == 0) {
            cr_assert(collective_table[i]->applicable(profile, kind, &group));
            return collective_table[i]->cost(profile, kind, &group, row->bytes).seconds;
        }
    }
    return cost_collective_s(profile, kind, &group, row->bytes, NULL);
}

// NULL = every profile, every kind.
static ErrorSummary collective_errors(const char *set, const char *profile, const char *kind, double least_bytes) {
    static CollectiveSample samples[SAMPLES_MAX];
    const int count = collective_samples(samples);
    Machines machines;
    machines_load(&machines);
    Errors errors = {.count = 0};
    for (int i = 0; i < count; i++) {
        const CollectiveSample *row = &samples[i];
        if (strcmp(row->set, set) == 0 && (!profile || strcmp(row->profile, profile) == 0) &&
            (!kind || strcmp(row->kind, kind) == 0) && row->bytes >= least_bytes) {
            errors_add(&errors, collective_s(machine(&machines, row->profile), row), row->time_s);
        }
    }
    char label[96];
    snprintf(label, sizeof(label), "%s %s %s%s", set, profile ? profile : "", kind ? kind : "",
             least_bytes > 0 ? ", >= 4 MB" : "");
    const ErrorSummary summary = errors_print(label, &errors);
    arena_free(&machines.arena);
    return summary;
}

Test(accuracy_kernels, collectives_in_an_nvlink_node_within_6_percent_median) {
    static const char *const kinds[3] = {"all_reduce", "all_gather", "reduce_scatter"};
    for (int i = 0; i < MACHINES; i++) {
        for (int k = 0; k < 3; k++) {
            collective_errors("node", machine_names[i], kinds[k], 0);
        }
    }
    for (int k = 0; k < 3; k++) {
        const ErrorSummary summary = collective_errors("node", NULL, kinds[k], 0);
        cr_expect_leq(summary.median_abs, 0.06, "%s", kinds[k]);
        cr_expect_leq(summary.p90_abs, 0.20, "%s", kinds[k]);
    }
}

Test(accuracy_kernels, other_nvlink_nodes_within_6_percent_median) {
    const ErrorSummary summary = collective_errors("other_node", NULL, NULL, 0);
    cr_expect_leq(summary.median_abs, 0.06);
}

Test(accuracy_kernels, all_reduce_over_infiniband_within_15_percent_median) {
    const ErrorSummary all = collective_errors("fabric", NULL, NULL, 0);
    const ErrorSummary large = collective_errors("fabric", NULL, NULL, 4 << 20);
    cr_expect_leq(all.median_abs, 0.15);
    cr_expect_leq(large.median_abs, 0.15);
}
