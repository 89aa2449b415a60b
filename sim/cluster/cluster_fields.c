// The field table. A new number of a profile is a row here and a member in cluster.h; files without it are refused by
// name, so that nothing is silently defaulted. Ranges are physical plausibility, wide enough for any machine of the
// next decade.

#include "sim/cluster/cluster_fields.h"

const char *const device_class_names[DEVICE_CLASS_COUNT] = {"gpu", "cpu"};

const ClusterText cluster_texts[CLUSTER_TEXT_COUNT] = {
    {"schema", "the file format, \"" CLUSTER_SCHEMA "\""},
    {"name", "the profile's name"},
    {"description", "one line about the machine"},
    {"stack", "driver and library versions that the numbers belong to"},
    {"date", "when the numbers were taken, YYYY-MM-DD or YYYY-MM"},
    {"accelerator.name", "the accelerator's name"},
    {"accelerator.class", "\"gpu\" or \"cpu\""},
};

#define NUMBER(path, type, member, unit, low, high)                                                                    \
    { path, offsetof(type, member), FIELD_NUMBER, unit, low, high, FIELD_REQUIRED }
#define INTEGER(path, type, member, unit, low, high)                                                                   \
    { path, offsetof(type, member), FIELD_INTEGER, unit, low, high, FIELD_REQUIRED }

static const double byte_rate_high = 1e16;  // bytes/s
static const double flop_rate_high = 1e19;  // flop/s
static const double latency_high_s = 1.0;

#define ACCELERATOR(name, unit, low, high)                                                                             \
    NUMBER("accelerator." #name, ClusterProfile, accelerator.name, unit, low, high)
static const ClusterField accelerator_fields[] = {
    ACCELERATOR(memory_bytes, "bytes", 1e6, 1e15),
    ACCELERATOR(memory_bytes_per_s, "bytes/s", 1e6, byte_rate_high),
    ACCELERATOR(memory_efficiency, "1", 0.01, 1.0),
    ACCELERATOR(kernel_floor_s, "s", 0.0, latency_high_s),
    ACCELERATOR(kernel_gap_s, "s", 0.0, latency_high_s),
    ACCELERATOR(power_w, "W", 0.0, 1e5),
    ACCELERATOR(chip_spread, "1", 0.0, 0.2),
    ACCELERATOR(fp8_exact_share, "1", 0.1, 1.0),
    ACCELERATOR(sharded_gemm_share, "1", 0.1, 1.0),
    INTEGER("accelerator.sm_count", ClusterProfile, accelerator.sm_count, "1", 1, 1e6),
};

#define GEMM(name, unit, low, high) NUMBER(#name, GemmRate, name, unit, low, high)
static const ClusterField gemm_fields[] = {
    GEMM(peak_flop_per_s, "flop/s", 1e6, flop_rate_high),
    GEMM(burst_flop_per_s, "flop/s", 1e6, flop_rate_high),
    GEMM(sustained_flop_per_s, "flop/s", 1e6, flop_rate_high),
    GEMM(wave_quantisation, "1", 0.0, 1.0),
    GEMM(tile_overhead_s, "s", 0.0, latency_high_s),
    GEMM(launch_s, "s", 0.0, latency_high_s),
    GEMM(bandwidth_factor, "1", 0.01, 10.0),
    NUMBER("class_efficiency_1", GemmRate, class_efficiency[0], "1", 0.01, 1.5),
    NUMBER("class_efficiency_2", GemmRate, class_efficiency[1], "1", 0.01, 1.5),
    NUMBER("class_efficiency_3", GemmRate, class_efficiency[2], "1", 0.01, 1.5),
};

#define ATTENTION(name, low, high) NUMBER(#name, AttentionRate, name, "1", low, high)
static const ClusterField attention_fields[] = {
    ATTENTION(forward_efficiency, 0.001, 1.0),  ATTENTION(forward_ramp, 0.0, 1e6),
    ATTENTION(backward_efficiency, 0.001, 1.0), ATTENTION(backward_ramp, 0.0, 1e6),
    ATTENTION(causal_factor, 0.1, 2.0),
};

#define PLACE(path, unit, low, high) NUMBER(#path, ClusterProfile, path, unit, low, high)
#define OPTIONAL(path, unit, high)                                                                                     \
    { #path, offsetof(ClusterProfile, path), FIELD_NUMBER, unit, 0.0, high, FIELD_OPTIONAL }
#define WHAT_IF(path, unit, high)                                                                                      \
    { #path, offsetof(ClusterProfile, path), FIELD_NUMBER, unit, 0.0, high, FIELD_WHAT_IF }
// Level n of the network is element n - 1; a plain [] would count from 0.
#define TIER(n)                                                                                                        \
    INTEGER("fabric.tier" #n ".nodes", ClusterProfile, fabric.tier[n - 1].nodes, "1", 0, 1e6),                         \
        NUMBER("fabric.tier" #n ".oversubscription", ClusterProfile, fabric.tier[n - 1].oversubscription, "1", 1.0,    \
               1000.0),                                                                                                \
        NUMBER("fabric.tier" #n ".latency_s", ClusterProfile, fabric.tier[n - 1].latency_s, "s", 0.0, latency_high_s)
static const ClusterField system_fields[] = {
    INTEGER("node.accelerators", ClusterProfile, node.accelerators, "1", 1, 1024),
    INTEGER("node.hosts", ClusterProfile, node.hosts, "1", 1, 1024),
    PLACE(node.cores, "1", 0.0, 1e5),
    PLACE(node.link_latency_s, "s", 0.0, latency_high_s),
    PLACE(node.step_latency_s, "s", 0.0, latency_high_s),
    PLACE(node.ring_copy, "1", 0.0, 10.0),
    PLACE(node.ring.bandwidth_bytes_per_s, "bytes/s", 1e6, byte_rate_high),
    PLACE(node.ring.pipelining, "1", 0.0, 100.0),
    PLACE(node.ring.ceiling, "1", 0.0, 1000.0),
    PLACE(node.reduction_bytes_per_s, "bytes/s", 0.0, byte_rate_high),
    INTEGER("node.nvls_min_ranks", ClusterProfile, node.nvls_min_ranks, "1", 0, 1024),
    PLACE(node.nvls_latency_s, "s", 0.0, latency_high_s),
    PLACE(node.nvls.bandwidth_bytes_per_s, "bytes/s", 0.0, byte_rate_high),
    PLACE(node.nvls.pipelining, "1", 0.0, 100.0),
    PLACE(node.nvls.ceiling, "1", 0.0, 1000.0),
    PLACE(node.p2p_latency_s, "s", 0.0, latency_high_s),
    PLACE(node.p2p.bandwidth_bytes_per_s, "bytes/s", 1e6, byte_rate_high),
    PLACE(node.p2p.pipelining, "1", 0.0, 100.0),
    PLACE(node.p2p.ceiling, "1", 0.0, 1000.0),
    PLACE(node.ring_ctas, "1", 0.0, 1e6),
    PLACE(node.nvls_ctas, "1", 0.0, 1e6),
    INTEGER("fabric.nics", ClusterProfile, fabric.nics, "1", 0, 1024),
    PLACE(fabric.nic_bytes_per_s, "bytes/s", 0.0, byte_rate_high),
    PLACE(fabric.efficiency, "1", 0.0, 1.0),
    PLACE(fabric.group_bytes_per_s, "bytes/s", 0.0, byte_rate_high),
    PLACE(fabric.group_decay, "1", 0.0, 0.9),
    PLACE(fabric.group_latency_s, "s", 0.0, latency_high_s),
    PLACE(fabric.rail_latency_s, "s", 0.0, latency_high_s),
    PLACE(fabric.ring_step_latency_s, "s", 0.0, latency_high_s),
    PLACE(fabric.tree_step_latency_s, "s", 0.0, latency_high_s),
    PLACE(fabric.ring.pipelining, "1", 0.0, 100.0),
    PLACE(fabric.ring.ceiling, "1", 0.0, 1000.0),
    PLACE(fabric.tree.bandwidth_bytes_per_s, "bytes/s", 0.0, byte_rate_high),
    PLACE(fabric.tree.pipelining, "1", 0.0, 100.0),
    PLACE(fabric.tree.ceiling, "1", 0.0, 1000.0),
    PLACE(fabric.decay, "1", 0.0, 0.5),
    PLACE(fabric.p2p_latency_s, "s", 0.0, latency_high_s),
    PLACE(fabric.p2p_efficiency, "1", 0.0, 1.0),
    PLACE(fabric.p2p.pipelining, "1", 0.0, 100.0),
    PLACE(fabric.p2p.ceiling, "1", 0.0, 1000.0),
    PLACE(fabric.p2p_ctas, "1", 0.0, 1e6),
    TIER(1),
    TIER(2),
    PLACE(interference.hbm_factor, "1", 0.0, 100.0),
    PLACE(interference.collective_slowdown, "1", 1.0, 100.0),
    PLACE(interference.residue, "1", 1.0, 100.0),
    PLACE(price_usd_per_accelerator_hour, "usd/h", 0.0, 1e6),
    PLACE(relative_uncertainty, "1", 0.001, 2.0),
    OPTIONAL(node.host_link_bytes_per_s, "bytes/s", byte_rate_high),
    OPTIONAL(node.host_memory_bytes_per_s, "bytes/s", byte_rate_high),
    OPTIONAL(node.host_memory_bytes, "bytes", 1e15),
    OPTIONAL(node.host_pace, "1", 100.0),
    OPTIONAL(node.mesh, "1", 1.0),
    OPTIONAL(accelerator.element_s, "s", latency_high_s),
    OPTIONAL(accelerator.atomic_s, "s", latency_high_s),
    OPTIONAL(accelerator.sorted_s, "s", latency_high_s),
    OPTIONAL(accelerator.norm_sums_s, "s", latency_high_s),
    OPTIONAL(accelerator.clock_hz, "1/s", 1e11),
    OPTIONAL(accelerator.fp8_exact_share_cuda_13, "1", 1.0),
    OPTIONAL(accelerator.fp8_row_share, "1", 1.0),
    OPTIONAL(fabric.exchange_efficiency, "1", 1.0),
    OPTIONAL(fabric.exchange_peer_s, "s", latency_high_s),
    WHAT_IF(node.sequence_read_s, "s", 1000.0),
    WHAT_IF(node.sequence_read_spread, "1", 10.0),
    WHAT_IF(accelerator.cache_bytes, "bytes", 1e15),
    WHAT_IF(accelerator.beyond_cache_bytes_per_s, "bytes/s", byte_rate_high),
    WHAT_IF(accelerator.grouped_ramp_rows, "1", 1e6),
    WHAT_IF(accelerator.attention_forward_flop_per_s, "flop/s", flop_rate_high),
    WHAT_IF(accelerator.attention_backward_flop_per_s, "flop/s", flop_rate_high),
    WHAT_IF(node.symmetric_ctas, "1", 1e6),
    WHAT_IF(fabric.sharp_ctas, "1", 1e6),
    OPTIONAL(accelerator.norm_element_s, "s", latency_high_s),
    OPTIONAL(accelerator.norm_backward_element_s, "s", latency_high_s),
    OPTIONAL(accelerator.norm_backward_sums_s, "s", latency_high_s),
};

#define GROUP(name, unit, low, high) NUMBER(#name, GroupRate, name, unit, low, high)
static const ClusterField group_fields[] = {
    GROUP(ring_latency_s, "s", 0.0, latency_high_s), GROUP(ring.bandwidth_bytes_per_s, "bytes/s", 1e6, byte_rate_high),
    GROUP(ring.pipelining, "1", 0.0, 100.0),         GROUP(ring.ceiling, "1", 0.0, 1000.0),
    GROUP(p2p_latency_s, "s", 0.0, latency_high_s),  GROUP(p2p.bandwidth_bytes_per_s, "bytes/s", 1e6, byte_rate_high),
    GROUP(p2p.pipelining, "1", 0.0, 100.0),          GROUP(p2p.ceiling, "1", 0.0, 1000.0),
};

#define TARGET(name, unit, high) NUMBER(#name, ClusterTarget, name, unit, 0.0, high)
#define ON_TOP(name) NUMBER(#name, ClusterTarget, name, "1", -0.9, 100.0)
static const ClusterField target_fields[] = {
    TARGET(host_s_per_op, "s", latency_high_s),
    ON_TOP(other_share),
    ON_TOP(collective_share),
    ON_TOP(crowding_share),
    TARGET(step_fixed_s, "s", 1000.0),
    TARGET(memory_passes, "1", 1000.0),
    TARGET(loss_bytes_per_logit, "bytes", 1e4),
    TARGET(optimizer_bytes_per_parameter, "bytes", 1e4),
    TARGET(allocator_slack, "1", 10.0),
    TARGET(relative_uncertainty, "1", 2.0),
};

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

// The key of a target below "targets": "name@1_14".
static const char *cluster_target_key(const char *name, Arena *arena) {
    char *key = arena_text(arena, name);
    for (char *p = key; *p; p++) {
        *p = *p == '.' ? '_' : *p;  // a dot would begin another section
    }
    return key;
}

unsigned cluster_dtypes(const ClusterProfile *profile) {
    unsigned mask = 0;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        mask |= profile->accelerator.gemm[dtype].peak_flop_per_s > 0.0 ? 1u << dtype : 0;
    }
    return mask;
}

typedef struct Section {
    const char *prefix;  // "accelerator.gemm.bf16."
    const ClusterField *fields;
    int count;
    void *base;  // what the offsets count from
} Section;

static void slots_add(ClusterSlots *slots, const Section *section, Arena *arena) {
    for (int i = 0; i < section->count; i++) {
        const ClusterField *field = &section->fields[i];
        slots->rows[slots->count++] = (ClusterSlot){.path = arena_format(arena, "%s%s", section->prefix, field->path),
                                                    .field = field,
                                                    .place = (char *)section->base + field->offset};
    }
}

ClusterSlots cluster_slots(ClusterProfile *profile, unsigned dtypes, Arena *arena) {
    Accelerator *accelerator = &profile->accelerator;
    const int most = COUNT(accelerator_fields) + DTYPE_COUNT * COUNT(gemm_fields) +
                     CLUSTER_MAX_ATTENTION * COUNT(attention_fields) + CLUSTER_MAX_GROUPS * COUNT(group_fields) +
                     CLUSTER_MAX_TARGETS * COUNT(target_fields) + COUNT(system_fields);
    ClusterSlots slots = {.rows = ARENA_ARRAY(arena, ClusterSlot, most)};
    slots_add(&slots, &(Section){"", accelerator_fields, COUNT(accelerator_fields), profile}, arena);
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        if (dtypes & (1u << dtype)) {
            const char *prefix = arena_format(arena, "accelerator.gemm.%s.", dtype_name((Dtype)dtype));
            slots_add(&slots, &(Section){prefix, gemm_fields, COUNT(gemm_fields), &accelerator->gemm[dtype]}, arena);
        }
    }
    for (int i = 0; i < accelerator->attention_count; i++) {
        AttentionRate *rate = &accelerator->attention[i];
        const char *prefix = arena_format(arena, "accelerator.attention.%s-%d.", rate->kernel, rate->head_dim);
        slots_add(&slots, &(Section){prefix, attention_fields, COUNT(attention_fields), rate}, arena);
    }
    for (int i = 0; i < profile->node.group_count; i++) {
        GroupRate *rate = &profile->node.groups[i];
        const char *prefix = arena_format(arena, "node.groups.%d.", rate->ranks);
        slots_add(&slots, &(Section){prefix, group_fields, COUNT(group_fields), rate}, arena);
    }
    for (int i = 0; i < profile->target_count; i++) {
        ClusterTarget *target = &profile->targets[i];
        const char *prefix = arena_format(arena, "targets.%s.", cluster_target_key(target->name, arena));
        slots_add(&slots, &(Section){prefix, target_fields, COUNT(target_fields), target}, arena);
    }
    slots_add(&slots, &(Section){"", system_fields, COUNT(system_fields), profile}, arena);
    return slots;
}

double cluster_slot_value(const ClusterSlot *slot) {
    return slot->field->type == FIELD_INTEGER ? (double)*(const int *)slot->place : *(const double *)slot->place;
}

void cluster_slot_store(const ClusterSlot *slot, double value) {
    if (slot->field->type == FIELD_INTEGER) {
        *(int *)slot->place = (int)value;
    } else {
        *(double *)slot->place = value;
    }
}
