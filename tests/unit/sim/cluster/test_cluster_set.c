// --set: paths, short names, units, and a profile that stays unchanged when the arguments are wrong.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/cluster/cluster.h"

static Arena arena;
static Error error;
static ClusterProfile profile;

static void begin(void) {
    cr_assert_eq(cluster_find("dgx-h100", &arena, &profile, &error), STATUS_OK, "%s", error.message);
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(cluster_set, .init = begin, .fini = end);

static void set(const char *assignment) {
    cr_assert_eq(cluster_set(&profile, assignment, &arena, &error), STATUS_OK, "%s: %s", assignment, error.message);
}

static void check_refused(const char *assignment, const char *sentence, const char *hint) {
    Hash before = hash_begin();
    Hash after = hash_begin();
    cluster_hash(&profile, &before);
    cr_assert_eq(cluster_set(&profile, assignment, &arena, &error), STATUS_USAGE, "%s was taken", assignment);
    cluster_hash(&profile, &after);
    cr_assert_str_eq(error.message, sentence);
    cr_assert_str_eq(error.hint, hint);
    cr_assert_eq(hash_end(&before), hash_end(&after), "%s left a trace", assignment);
}

static const Provenance *row_of(const char *path) {
    for (int i = 0; i < profile.provenance_count; i++) {
        if (strcmp(profile.provenance[i].path, path) == 0) {
            return &profile.provenance[i];
        }
    }
    return NULL;
}

Test(cluster_set, any_path_of_the_table_can_be_set) {
    set("accelerator.gemm.bf16.sustained_flop_per_s=6.5e14");
    cr_assert_eq(profile.accelerator.gemm[DTYPE_BF16].sustained_flop_per_s, 6.5e14);
    set("accelerator.attention.flash-128.forward_efficiency=0.5");
    cr_assert_eq(profile.accelerator.attention[0].forward_efficiency, 0.5);
    set("fabric.nics=4");
    cr_assert_eq(profile.fabric.nics, 4);
}

Test(cluster_set, gigabits_of_a_node_are_shared_by_its_cards) {
    set("fabric.node_gbps=800");
    cr_assert_eq(profile.fabric.nic_bytes_per_s, 800e9 / 8.0 / 8.0);
    set("fabric.nics=4");
    set("fabric.node_gbps=800");
    cr_assert_eq(profile.fabric.nic_bytes_per_s, 800e9 / 8.0 / 4.0);
}

Test(cluster_set, trees_keep_their_share_of_slower_cards) {
    const double before = profile.fabric.tree.bandwidth_bytes_per_s, card = profile.fabric.nic_bytes_per_s;
    set("fabric.node_gbps=800");
    cr_assert_float_eq(profile.fabric.tree.bandwidth_bytes_per_s, before * profile.fabric.nic_bytes_per_s / card, 1);
    cr_assert_eq(row_of("fabric.tree.bandwidth_bytes_per_s")->value, profile.fabric.tree.bandwidth_bytes_per_s);
}

Test(cluster_set, gigabits_of_a_card_are_its_own) {
    set("fabric.nic_gbps=100");
    cr_assert_eq(profile.fabric.nic_bytes_per_s, 12.5e9);
}

Test(cluster_set, short_names_reach_their_fields) {
    set("node.gpus=4");
    set("price=2.5");
    set("uncertainty=0.1");
    cr_assert_eq(profile.node.accelerators, 4);
    cr_assert_eq(profile.price_usd_per_accelerator_hour, 2.5);
    cr_assert_eq(profile.relative_uncertainty, 0.1);
}

Test(cluster_set, bytes_take_units) {
    set("accelerator.memory_bytes=64GiB");
    cr_assert_eq(profile.accelerator.memory_bytes, 64.0 * (1 << 30));
    set("accelerator.memory_bytes=80e9");
    cr_assert_eq(profile.accelerator.memory_bytes, 80e9);
}

Test(cluster_set, the_number_is_marked_as_the_users) {
    set("node.gpus=4");
    const Provenance *row = row_of("node.accelerators");
    cr_assert_not_null(row);
    cr_assert_eq(row->grade, GRADE_USER);
    cr_assert_eq(row->value, 4.0);
    cr_assert_str_eq(row->source, "set by the user: node.gpus=4");
    cr_assert_neq(row_of("node.cores")->grade, GRADE_USER);
}

Test(cluster_set, two_profiles_of_one_file_do_not_share_their_marks) {
    const ClusterProfile other = profile;
    set("node.gpus=4");
    for (int i = 0; i < other.provenance_count; i++) {
        cr_assert_neq(other.provenance[i].grade, GRADE_USER);
    }
}

Test(cluster_set, refusals_name_the_words_and_change_nothing) {
    check_refused("node.gpu=4", "profile dgx-h100 has no field \"node.gpu\"", "did you mean node.gpus?");
    check_refused("node.gpus", "\"node.gpus\" must be KEY=VALUE, such as fabric.node_gbps=800", "");
    check_refused("=4", "\"=4\" must be KEY=VALUE, such as fabric.node_gbps=800", "");
    check_refused("node.gpus=", "node.gpus must be a number, got \"\"", "");
    check_refused("node.gpus=four", "node.gpus must be a number, got \"four\"", "");
    check_refused("node.gpus=4.5", "node.accelerators must be an integer, got 4.5", "");
    check_refused("node.gpus=nan", "node.gpus must be a number, got \"nan\"", "");
    check_refused("node.gpus=inf", "node.gpus must be a number, got \"inf\"", "");
    check_refused("node.gpus=1e30", "node.accelerators must be between 1 and 1024, got 1e+30", "");
    check_refused("node.gpus=0", "node.accelerators must be between 1 and 1024, got 0", "");
    check_refused("fabric.efficiency=1.5", "fabric.efficiency must be between 0 and 1, got 1.5", "");
    check_refused("accelerator.memory_bytes=80 bananas",
                  "accelerator.memory_bytes must be a number, got \"80 bananas\"", "");
}

Test(cluster_set, a_rack_is_changed_by_whole_hosts) {
    cr_assert_eq(cluster_find("gb200-nvl72", &arena, &profile, &error), STATUS_OK);
    set("node.gpus=36");
    cr_assert_eq(profile.node.accelerators, 36);
    check_refused("node.gpus=4", "node.gpus=4: node.accelerators 4 must be a multiple of node.hosts 18", "");
    set("node.hosts=1");
    set("node.gpus=4");
}

Test(cluster_set, levels_of_the_network_can_be_added) {
    set("fabric.tier1.nodes=16");
    set("fabric.tier1.oversubscription=4");
    cr_assert_eq(profile.fabric.tier[0].nodes, 16);
    cr_assert_eq(profile.fabric.tier[0].oversubscription, 4.0);
    check_refused("fabric.tier2.nodes=8",
                  "fabric.tier2.nodes=8: fabric.tier2.nodes 8 must be above fabric.tier1.nodes, which is 16", "");
    check_refused("fabric.tier1.nodes=-1", "fabric.tier1.nodes must be between 0 and 1000000, got -1", "");
    check_refused("fabric.tier1.oversubscription=0.5",
                  "fabric.tier1.oversubscription must be between 1 and 1000, got 0.5", "");
}

Test(cluster_set, an_outer_level_needs_an_inner_one) {
    check_refused(
        "fabric.tier2.nodes=8",
        "fabric.tier2.nodes=8: fabric.tier2.nodes 8 must be above fabric.tier1.nodes, which is 0 (no such level)", "");
}

Test(cluster_set, group_sizes_of_a_box_without_a_switch_can_be_set) {
    cr_assert_eq(cluster_find("pcie-l40s-8x", &arena, &profile, &error), STATUS_OK);
    set("node.groups.4.ring.bandwidth_bytes_per_s=1e10");
    cr_assert_eq(profile.node.groups[1].ring.bandwidth_bytes_per_s, 1e10);
    check_refused("node.groups.3.ring_latency_s=1e-6",
                  "profile pcie-l40s-8x has no field \"node.groups.3.ring_latency_s\"",
                  "did you mean node.groups.2.ring_latency_s?");
}

Test(cluster_set, what_contradicts_another_number_is_refused) {
    check_refused("fabric.efficiency=0",
                  "fabric.efficiency=0: fabric.nics is 8, so fabric.nic_bytes_per_s, fabric.efficiency and "
                  "fabric.p2p_efficiency must be above 0, got 5e+10, 0 and 0.4",
                  "");
    check_refused("fabric.nic_bytes_per_s=0",
                  "fabric.nic_bytes_per_s=0: fabric.nics is 8, so fabric.nic_bytes_per_s, fabric.efficiency and "
                  "fabric.p2p_efficiency must be above 0, got 0, 0.96 and 0.4",
                  "");
    check_refused("fabric.p2p_efficiency=0",
                  "fabric.p2p_efficiency=0: fabric.nics is 8, so fabric.nic_bytes_per_s, fabric.efficiency and "
                  "fabric.p2p_efficiency must be above 0, got 5e+10, 0.96 and 0",
                  "");
}

Test(cluster_set, a_dtype_that_the_machine_lacks_cannot_be_set) {
    cr_assert_eq(cluster_find("dgx-a100-80g", &arena, &profile, &error), STATUS_OK);
    cr_assert_eq(cluster_set(&profile, "accelerator.gemm.fp8.peak_flop_per_s=1e15", &arena, &error), STATUS_USAGE);
}

Test(cluster_set, a_share_of_exact_sums_is_of_both_libraries) {
    cr_assert_eq(cluster_set(&profile, "accelerator.fp8_exact_share=0.5", &arena, &error), STATUS_OK);
    cr_assert_float_eq(profile.accelerator.fp8_exact_share_cuda_13, 0.5, 1e-12);
}

Test(cluster_set, a_machine_without_cards_has_no_gigabits_to_share) {
    cr_assert_eq(cluster_find("local-cpu", &arena, &profile, &error), STATUS_OK);
    check_refused("fabric.node_gbps=100",
                  "fabric.node_gbps: profile local-cpu has no network cards; set fabric.nics first", "");
}
