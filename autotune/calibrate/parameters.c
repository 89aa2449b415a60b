// The table of what may be calibrated. Prior widths: how far numbers of a grade were off where we could check them;
// rows with a wider one say why. Numbers stay inside the ranges that a profile file may hold, so that the child profile
// predicts what the fit predicted. Not here: ramps, quantisation, memory sizes, what a kernel's form depends on.

#include "autotune/calibrate/calibrate_internal.h"

#include <math.h>
#include <string.h>

// sim/SOURCES.md H9: fitted and measured rates repeat within 5 to 15 % between machines of one kind, data sheets
// promise up to a third more than a step sees; estimates are ours.
static const double grade_sd[GRADE_COUNT] = {[GRADE_MEASURED] = 0.10,
                                             [GRADE_FITTED] = 0.15,
                                             [GRADE_DATASHEET] = 0.30,
                                             [GRADE_ESTIMATED] = 0.40,
                                             [GRADE_USER] = 0.10};

static const double LEAST_SHARE = -0.9;  // of a runner's time on top: a factor stays above 0
static const double LEAST_EFFICIENCY = 0.01;

static double within(double value, double low, double high) {
    return value < low ? low : value > high ? high : value;
}

// ---------------------------------------------------------------------------------------------- the chip

static bool always(const ClusterProfile *cluster, const TargetRuntime *runtime) {
    (void)cluster;
    (void)runtime;
    return true;
}

static void scale_products(double factor, Accelerator *accelerator, Arena *arena) {
    if (accelerator->product_count == 0) {
        return;
    }
    TimedGemm *products = ARENA_ARRAY(arena, TimedGemm, accelerator->product_count);
    for (int i = 0; i < accelerator->product_count; i++) {
        products[i] = accelerator->products[i];
        products[i].seconds /= factor;
    }
    accelerator->products = products;
}

static void scale_gemm(double factor, const CalibrationScaled *of) {
    scale_products(factor, &of->cluster->accelerator, of->arena);
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        GemmRate *rate = &of->cluster->accelerator.gemm[dtype];
        const double most = cluster_clock_headroom * rate->peak_flop_per_s;
        rate->burst_flop_per_s = fmin(factor * rate->burst_flop_per_s, most);
        rate->sustained_flop_per_s = fmin(factor * rate->sustained_flop_per_s, most);
    }
}

static void scale_attention(double factor, const CalibrationScaled *of) {
    for (int i = 0; i < of->cluster->accelerator.attention_count; i++) {
        AttentionRate *rate = &of->cluster->accelerator.attention[i];
        rate->forward_efficiency = within(factor * rate->forward_efficiency, LEAST_EFFICIENCY, 1);
        rate->backward_efficiency = within(factor * rate->backward_efficiency, LEAST_EFFICIENCY, 1);
    }
}

// An efficiency cannot exceed 1; what is beyond it is in the rate.
static void scale_share(double factor, double *efficiency, double *rate) {
    const double wanted = factor * *efficiency;
    *efficiency = within(wanted, LEAST_EFFICIENCY, 1);
    *rate *= wanted / *efficiency;
}

static void scale_memory(double factor, const CalibrationScaled *of) {
    scale_share(factor, &of->cluster->accelerator.memory_efficiency, &of->cluster->accelerator.memory_bytes_per_s);
    of->cluster->accelerator.beyond_cache_bytes_per_s *= factor;
}

static void scale_overhead(double factor, const CalibrationScaled *of) {
    Accelerator *accelerator = &of->cluster->accelerator;
    accelerator->kernel_floor_s = fmin(1, factor * accelerator->kernel_floor_s);
    accelerator->kernel_gap_s = fmin(1, factor * accelerator->kernel_gap_s);
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        accelerator->gemm[dtype].launch_s = fmin(1, factor * accelerator->gemm[dtype].launch_s);
        accelerator->gemm[dtype].tile_overhead_s = fmin(1, factor * accelerator->gemm[dtype].tile_overhead_s);
    }
}

// ---------------------------------------------------------------------------------------------- links

// Measured curves of groups inside one node, or across nodes: the smallest size's time is start-up, the rest bytes.
static void scale_curves(double start_factor, double bytes_factor, bool across, ClusterProfile *cluster, Arena *arena) {
    if (cluster->curve_count == 0) {
        return;
    }
    MeasuredCurve *curves = ARENA_ARRAY(arena, MeasuredCurve, cluster->curve_count);
    for (int i = 0; i < cluster->curve_count; i++) {
        curves[i] = cluster->curves[i];
        if ((curves[i].nodes > 1) != across) {
            continue;
        }
        double *seconds = ARENA_ARRAY(arena, double, curves[i].count);
        const double start_s = curves[i].seconds[0];
        for (int point = 0; point < curves[i].count; point++) {
            seconds[point] = start_s * start_factor + (curves[i].seconds[point] - start_s) * bytes_factor;
        }
        curves[i].seconds = seconds;
    }
    cluster->curves = curves;
}

static void scale_node_bandwidth(double factor, const CalibrationScaled *of) {
    Node *node = &of->cluster->node;
    node->ring.bandwidth_bytes_per_s *= factor;
    node->nvls.bandwidth_bytes_per_s *= factor;
    node->p2p.bandwidth_bytes_per_s *= factor;
    node->reduction_bytes_per_s *= factor;
    for (int i = 0; i < node->group_count; i++) {
        node->groups[i].ring.bandwidth_bytes_per_s *= factor;
        node->groups[i].p2p.bandwidth_bytes_per_s *= factor;
    }
    scale_curves(1, 1 / factor, false, of->cluster, of->arena);
}

static void scale_node_latency(double factor, const CalibrationScaled *of) {
    Node *node = &of->cluster->node;
    double *const latencies[] = {&node->link_latency_s, &node->step_latency_s, &node->nvls_latency_s,
                                 &node->p2p_latency_s};
    for (size_t i = 0; i < sizeof latencies / sizeof latencies[0]; i++) {
        *latencies[i] = fmin(1, factor * *latencies[i]);
    }
    for (int i = 0; i < node->group_count; i++) {
        node->groups[i].ring_latency_s = fmin(1, factor * node->groups[i].ring_latency_s);
        node->groups[i].p2p_latency_s = fmin(1, factor * node->groups[i].p2p_latency_s);
    }
    scale_curves(factor, 1, false, of->cluster, of->arena);
}

static bool has_fabric(const ClusterProfile *cluster, const TargetRuntime *runtime) {
    (void)runtime;
    return cluster->fabric.nics > 0;
}

static void scale_fabric_bandwidth(double factor, const CalibrationScaled *of) {
    Fabric *fabric = &of->cluster->fabric;
    const double p2p_bytes_per_s = factor * fabric->p2p_efficiency * fabric->nic_bytes_per_s;
    scale_share(factor, &fabric->efficiency, &fabric->nic_bytes_per_s);
    fabric->p2p_efficiency = within(p2p_bytes_per_s / fabric->nic_bytes_per_s, LEAST_EFFICIENCY, 1);
    fabric->group_bytes_per_s *= factor;
    fabric->tree.bandwidth_bytes_per_s *= factor;
    scale_curves(1, 1 / factor, true, of->cluster, of->arena);
}

static void scale_fabric_latency(double factor, const CalibrationScaled *of) {
    Fabric *fabric = &of->cluster->fabric;
    double *const latencies[] = {&fabric->group_latency_s,     &fabric->rail_latency_s, &fabric->ring_step_latency_s,
                                 &fabric->tree_step_latency_s, &fabric->p2p_latency_s,  &fabric->tier[0].latency_s,
                                 &fabric->tier[1].latency_s};
    for (size_t i = 0; i < sizeof latencies / sizeof latencies[0]; i++) {
        *latencies[i] = fmin(1, factor * *latencies[i]);
    }
    scale_curves(factor, 1, true, of->cluster, of->arena);
}

// A machine that others share, or a chip that is throttled, is slower as a whole: one factor, not all of them at once.
static void scale_machine(double factor, const CalibrationScaled *of) {
    scale_gemm(factor, of);
    scale_attention(factor, of);
    scale_memory(factor, of);
    scale_overhead(1 / factor, of);
    scale_node_bandwidth(factor, of);
    scale_node_latency(1 / factor, of);
}

static bool interferes(const ClusterProfile *cluster, const TargetRuntime *runtime) {
    (void)runtime;
    return cluster->interference.collective_slowdown > 1 || cluster->interference.residue > 1;
}

static void scale_interference(double factor, const CalibrationScaled *of) {
    Interference *interference = &of->cluster->interference;
    interference->collective_slowdown = fmin(100, 1 + factor * (interference->collective_slowdown - 1));
    interference->residue = fmin(100, 1 + factor * (interference->residue - 1));
}

// ---------------------------------------------------------------------------------------------- who runs

static void scale_on_top(double factor, double *share) {
    *share = fmax(LEAST_SHARE, factor * (1 + *share) - 1);
}

static void scale_collectives(double factor, const CalibrationScaled *of) {
    scale_on_top(factor, &of->runtime->collective_share);
}

static bool shares_cores(const ClusterProfile *cluster, const TargetRuntime *runtime) {
    (void)runtime;
    return cluster->accelerator.device_class == DEVICE_CLASS_CPU;
}

static void scale_crowding(double factor, const CalibrationScaled *of) {
    scale_on_top(factor, &of->runtime->crowding_share);
}

static bool has_host(const ClusterProfile *cluster, const TargetRuntime *runtime) {
    (void)cluster;
    return runtime->host_s_per_op > 0;
}

static void scale_host(double factor, const CalibrationScaled *of) {
    of->runtime->host_s_per_op = fmin(1, factor * of->runtime->host_s_per_op);
}

static void scale_other(double factor, const CalibrationScaled *of) {
    scale_on_top(factor, &of->runtime->other_share);
}

static bool has_edges(const ClusterProfile *cluster, const TargetRuntime *runtime) {
    (void)cluster;
    return runtime->step_fixed_s > 0;
}

static void scale_edges(double factor, const CalibrationScaled *of) {
    of->runtime->step_fixed_s *= factor;
}

static void scale_copies(double factor, const CalibrationScaled *of) {
    of->runtime->optimizer_bytes_per_parameter *= factor;
    of->runtime->memory_passes *= factor;         // 0 stays 0: by the plan's fused mode
    of->runtime->loss_bytes_per_logit *= factor;  // likewise
}

static void scale_allocator(double factor, const CalibrationScaled *of) {
    of->runtime->allocator_slack = fmax(0, factor * (1 + of->runtime->allocator_slack) - 1);
}

// ---------------------------------------------------------------------------------------------- the table

static const CalibrationParameter table[] = {
    {"machine_speed", "all rates of the chip and inside a node together, start-ups the other way", false, false,
     "relative_uncertainty", 0, NULL, always, scale_machine},
    {"gemm_rate", "burst and sustained FLOP rates of the GEMMs", false, false,
     "accelerator.gemm.*.sustained_flop_per_s", 0, NULL, always, scale_gemm},
    {"attention_rate", "efficiencies of the attention kernels", false, false,
     "accelerator.attention.*.forward_efficiency", 0, NULL, always, scale_attention},
    {"memory_rate", "memory bandwidth that streaming kernels reach", false, false, "accelerator.memory_efficiency", 0,
     NULL, always, scale_memory},
    {"op_overhead", "start, floor and gap of a kernel", false, false, "accelerator.kernel_floor_s", 0.5,
     "start-ups in a step differ from a benchmark's", always, scale_overhead},
    {"node_bandwidth", "bandwidth of the links inside a node, and of summing", false, false,
     "node.ring.bandwidth_bytes_per_s", 0.3, "one group alone is a benchmark, a step is not", always,
     scale_node_bandwidth},
    {"node_latency", "start-up times inside a node", false, false, "node.link_latency_s", 1,
     "start-ups in a step differ from a benchmark's by multiples", always, scale_node_latency},
    {"fabric_bandwidth", "share of the network cards that collectives reach", false, false, "fabric.efficiency", 0.3,
     "one group alone is a benchmark, a step is not", has_fabric, scale_fabric_bandwidth},
    {"fabric_latency", "start-up times between nodes", false, false, "fabric.ring_step_latency_s", 1,
     "start-ups in a step differ from a benchmark's by multiples", has_fabric, scale_fabric_latency},
    {"interference", "what kernels and collectives lose beside each other", false, false, "interference.residue", 0.5,
     "few measured it", interferes, scale_interference},
    {"collective_overhead", "time of collectives over what the links need: late ranks, bookkeeping", true, false, NULL,
     0.5, "judged", always, scale_collectives},
    {"crowding", "time of a task while others wait for its core", true, false, NULL, 0.3, "judged", shares_cores,
     scale_crowding},
    {"host_launch", "host time to issue an operation", true, false, NULL, 0.5,
     "13 to 39 us between the stacks of sim/SOURCES.md A3", has_host, scale_host},
    {"layer_overhead", "device time of layers that no kernel explains", true, true, NULL, 0.15,
     "0.97 to 1.28 between the stacks of sim/SOURCES.md A6", always, scale_other},
    {"step_edges", "fixed time around a step", true, true, NULL, 0.7,
     "3 to 40 ms between the stacks of sim/SOURCES.md A6", has_edges, scale_edges},
    {"optimizer_and_copies", "bytes that optimizer, norms and loss move", true, true, NULL, 0.3,
     "20 to 60 bytes per parameter between the stacks of sim/SOURCES.md A6", always, scale_copies},
    {"allocator", "reserved over allocated memory", true, true, NULL, 0.1, "0 to 20 % between the stacks", always,
     scale_allocator},
};

const CalibrationParameter *calibration_parameters(int *count) {
    *count = (int)(sizeof table / sizeof table[0]);
    return table;
}

// "accelerator.gemm.*.launch_s": the star is one or more words.
static bool path_matches(const char *path, const char *pattern) {
    const char *star = strchr(pattern, '*');
    if (!star) {
        return strcmp(path, pattern) == 0;
    }
    const size_t head = (size_t)(star - pattern), tail = strlen(star + 1), length = strlen(path);
    return length > head + tail && strncmp(path, pattern, head) == 0 && strcmp(path + length - tail, star + 1) == 0;
}

double calibration_prior(const CalibrationParameter *parameter, const ClusterProfile *base, Arena *arena,
                         const char **source) {
    *source = parameter->prior_why;
    if (parameter->grade_of && strcmp(parameter->grade_of, "relative_uncertainty") == 0) {
        *source = "the profile's own uncertainty";
        return base->relative_uncertainty;
    }
    if (!parameter->grade_of) {
        return parameter->prior_sd;
    }
    int worst = -1;
    for (int i = 0; i < base->provenance_count; i++) {
        const Provenance *row = &base->provenance[i];
        if (path_matches(row->path, parameter->grade_of) && (worst < 0 || grade_sd[row->grade] > grade_sd[worst])) {
            worst = (int)row->grade;
        }
    }
    const double of_grade = worst < 0 ? grade_sd[GRADE_ESTIMATED] : grade_sd[worst];
    if (of_grade >= parameter->prior_sd) {
        *source = arena_format(arena, "%s numbers", grade_name(worst < 0 ? GRADE_ESTIMATED : (Grade)worst));
    }
    return fmax(of_grade, parameter->prior_sd);
}

bool calibration_same_runner(const Target *a, const Target *b) {
    return a == b || (a && b && strcmp(a->name, b->name) == 0 && strcmp(a->version, b->version) == 0);
}

void calibration_apply(const CalibrationPosterior *posterior, const double *theta, const Target *runner, Arena *arena,
                       ClusterProfile *cluster, TargetRuntime *runtime) {
    const CalibrationScaled scaled = {cluster, runtime, arena};
    for (int i = 0; i < posterior->count; i++) {
        const CalibrationCoordinate *at = &posterior->at[i];
        const bool meant = !at->target || calibration_same_runner(at->target, runner);
        if (meant && (theta[i] < 0 || theta[i] > 0)) {
            at->parameter->scale(exp(theta[i]), &scaled);
        }
    }
}
