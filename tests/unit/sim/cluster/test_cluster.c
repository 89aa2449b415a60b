// Built-in profiles: complete, sourced, plausible relative to each other, and unchanged by writing and reading.

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/axes/mesh.h"
#include "sim/cluster/cluster.h"
#include "tests/support/hash_of.h"

static Arena arena;

static void end(void) {
    arena_free(&arena);
}

TestSuite(cluster, .fini = end);

static ClusterProfile find(const char *name) {
    ClusterProfile profile;
    Error error = {0};
    cr_assert_eq(cluster_find(name, &arena, &profile, &error), STATUS_OK, "%s", error.message);
    return profile;
}

typedef void (*ProfileCheck)(const ClusterProfile *profile);

static void for_every_profile(ProfileCheck check) {
    int count = 0;
    const char *const *names = cluster_names(&count);
    cr_assert_geq(count, 3);
    for (int i = 0; i < count; i++) {
        const ClusterProfile profile = find(names[i]);
        check(&profile);
    }
}

static void check_round_trip(const ClusterProfile *profile) {
    char *text = NULL;
    char path[64];
    Error error = {0};
    cr_assert_eq(cluster_write(profile, &text, &error), STATUS_OK, "%s", error.message);
    snprintf(path, sizeof path, "/tmp/ndtune-cluster-%d.json", (int)getpid());
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
    const ClusterProfile again = find(path);
    remove(path);
    char *text_again = NULL;
    cr_assert_eq(cluster_write(&again, &text_again, &error), STATUS_OK, "%s", error.message);
    cr_assert_str_eq(text, text_again);
    cr_assert_eq(hash_of_cluster(profile), hash_of_cluster(&again));
    cr_assert_eq(profile->provenance_count, again.provenance_count);
    for (int i = 0; i < profile->provenance_count; i++) {
        cr_assert_eq(profile->provenance[i].value, again.provenance[i].value, "%s", profile->provenance[i].path);
        cr_assert_str_eq(profile->provenance[i].source, again.provenance[i].source);
    }
    free(text);
    free(text_again);
}

Test(cluster, what_is_written_reads_back_as_the_same_profile) {
    for_every_profile(check_round_trip);
}

Test(cluster, a_value_of_seventeen_digits_survives_writing) {
    ClusterProfile profile = find("dgx-h100");
    Error error = {0};
    cr_assert_eq(cluster_set(&profile, "accelerator.memory_efficiency=0.30000000000000004", &arena, &error), STATUS_OK);
    check_round_trip(&profile);
}

Test(cluster, readable_numbers_stay_readable) {
    const ClusterProfile profile = find("dgx-h100");
    char *text = NULL;
    Error error = {0};
    cr_assert_eq(cluster_write(&profile, &text, &error), STATUS_OK);
    cr_assert_not_null(strstr(text, "\"value\": 0.96,"));
    cr_assert_null(strstr(text, "0.95999"));
    free(text);
}

static void check_sources(const ClusterProfile *profile) {
    cr_assert_gt(profile->provenance_count, 50);
    for (int i = 0; i < profile->provenance_count; i++) {
        const Provenance *row = &profile->provenance[i];
        cr_assert_gt(strlen(row->source), 5, "%s: %s", profile->name, row->path);
        cr_assert_neq(row->grade, GRADE_USER, "%s: %s: a built-in number is nobody's setting", profile->name,
                      row->path);
    }
}

Test(cluster, every_built_in_number_has_a_source) {
    for_every_profile(check_sources);
}

static void check_plausible(const ClusterProfile *profile) {
    const Accelerator *accelerator = &profile->accelerator;
    const Node *node = &profile->node;
    cr_assert_gt(accelerator->gemm[DTYPE_FP32].peak_flop_per_s, 0.0, "%s: every machine computes in fp32",
                 profile->name);
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        const GemmRate *rate = &accelerator->gemm[dtype];
        cr_assert_leq(rate->sustained_flop_per_s, rate->burst_flop_per_s);
        cr_assert_leq(rate->burst_flop_per_s, 1.3 * rate->peak_flop_per_s);  // clocks above the specification
        // AMD's fp8 (0.37) and L40S's (0.43) are the lowest published shares. Of nvfp4 they are B300's (0.32, kernels
        // of 4 ms and more) and GB300's (0.34), whose peaks are three times their fp8's, not twice as B200's (0.42).
        const double least = dtype == DTYPE_NVFP4 ? 0.3 : 0.35;
        cr_assert(rate->peak_flop_per_s == 0.0 || rate->sustained_flop_per_s > least * rate->peak_flop_per_s, "%s %s",
                  profile->name, dtype_name((Dtype)dtype));
    }
    if (profile->fabric.nics > 0) {
        const double nics_bytes_per_s = profile->fabric.nics * profile->fabric.nic_bytes_per_s;
        if (node->group_count == 0) {  // a PCIe box may have cards that outrun its sockets
            cr_assert_gt(node->ring.bandwidth_bytes_per_s, nics_bytes_per_s / node->accelerators,
                         "%s: a GPU's links beat its NIC share", profile->name);
        }
        cr_assert_gt(accelerator->memory_bytes_per_s, node->ring.bandwidth_bytes_per_s, "%s: memory beats links",
                     profile->name);
    }
}

Test(cluster, numbers_are_plausible_against_each_other) {
    for_every_profile(check_plausible);
}

// Of operands in 4 bits and in 8, both with scales of blocks: faster, by less than the datasheets' peaks are.
static void check_four_bits(const ClusterProfile *profile) {
    const GemmRate *four = &profile->accelerator.gemm[DTYPE_NVFP4];
    const GemmRate *eight = &profile->accelerator.gemm[DTYPE_FP8_BLOCK];
    if (four->peak_flop_per_s > 0 && eight->peak_flop_per_s > 0) {
        const double faster = four->sustained_flop_per_s / eight->sustained_flop_per_s;
        cr_expect_gt(faster, 1.3, "%s: %.2f", profile->name, faster);
        cr_expect_lt(faster, four->peak_flop_per_s / eight->peak_flop_per_s, "%s: %.2f", profile->name, faster);
    }
}

Test(cluster, products_in_4_bits_outrun_those_in_8_by_less_than_their_peaks) {
    for_every_profile(check_four_bits);
}

Test(cluster, published_figures_of_the_dgx_h100) {
    const ClusterProfile profile = find("dgx-h100");
    cr_assert_eq(profile.accelerator.gemm[DTYPE_BF16].peak_flop_per_s, 989.4e12);
    cr_assert_eq(profile.accelerator.memory_bytes_per_s, 3.35e12);
    cr_assert_eq(profile.accelerator.sm_count, 132);
    cr_assert_eq(profile.node.accelerators, 8);
    cr_assert_eq(profile.fabric.nics * profile.fabric.nic_bytes_per_s * 8.0, 3200e9);
    cr_assert_eq(profile.accelerator.device_class, DEVICE_CLASS_GPU);
}

Test(cluster, published_figures_of_the_dgx_a100) {
    const ClusterProfile profile = find("dgx-a100-80g");
    cr_assert_eq(profile.accelerator.gemm[DTYPE_BF16].peak_flop_per_s, 312e12);
    cr_assert_eq(profile.accelerator.gemm[DTYPE_FP8].peak_flop_per_s, 0.0);
    cr_assert_eq(profile.accelerator.sm_count, 108);
    cr_assert_eq(profile.fabric.nics * profile.fabric.nic_bytes_per_s * 8.0, 1600e9);
    cr_assert_eq(profile.node.nvls_min_ranks, 0);
}

Test(cluster, the_local_profile_is_one_node_of_shared_cores) {
    const ClusterProfile profile = find("local-cpu");
    cr_assert_eq(profile.accelerator.device_class, DEVICE_CLASS_CPU);
    cr_assert_eq(profile.fabric.nics, 0);
    cr_assert_eq(profile.node.accelerators, 8);
    cr_assert_eq(profile.node.cores, 2.0);
    cr_assert_eq(profile.accelerator.gemm[DTYPE_BF16].peak_flop_per_s, 0.0);
}

static const char *const promised[] = {
    "dgx-a100-40g", "dgx-a100-80g",       "dgx-h100",         "dgx-h200",         "dgx-b200",
    "dgx-b300",     "gb200-nvl72",        "gb300-nvl72",      "aws-p4d",          "aws-p4de",
    "aws-p5",       "aws-p5en",           "azure-nd-a100-v4", "azure-nd-h100-v5", "gcp-a3-high",
    "gcp-a3-mega",  "meta-h100-96g",      "hgx-a800",         "hgx-h800",         "dgx-1v",
    "dgx-2",        "mi300x-8x",          "pcie-a100-8x",     "pcie-l40s-8x",     "pcie-4090-8x",
    "pcie-5090-8x", "pcie-rtxpro6000-8x", "local-cpu",        "hgx-h20",          "mi325x-8x"};

Test(cluster, a_chip_has_its_usual_node_by_any_spelling) {
    static const struct {
        const char *chip, *profile;
    } cases[] = {{"NVIDIA H20", "hgx-h20"},
                 {"H20-SXM5-96GB", "hgx-h20"},
                 {"AMD Instinct MI325X", "mi325x-8x"},
                 {"H200", "dgx-h200"},
                 {"NVIDIA GH200 96GB", "gh200"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *profile = cluster_usual_node(cases[i].chip);
        cr_expect(profile && strcmp(profile, cases[i].profile) == 0, "%s", cases[i].chip);
    }
}

// FlashAttention 2 on H100 does 0.35 of 989.4 TFLOP/s on 132 multiprocessors: 1/2.623 s for a TFLOP of one, 1/7.495 of
// it tensor work. With tensor work at 148/78 = 1.897 that is 1/1.291, 0.681 of H20's peak.
Test(cluster, attention_of_h20_is_h100s_with_slower_tensor_cores) {
    const ClusterProfile h20 = find("hgx-h20"), h100 = find("dgx-h100");
    const double slow = 148.0 / 78, fast = 989.4 / 132;
    cr_assert_eq(h20.accelerator.attention_count, h100.accelerator.attention_count);
    for (int i = 0; i < h20.accelerator.attention_count; i++) {
        const double here = h20.accelerator.attention[i].forward_efficiency * slow;
        const double there = h100.accelerator.attention[i].forward_efficiency * fast;
        cr_expect_float_eq(1 / here - 1 / slow, 1 / there - 1 / fast, 0.002);
    }
}

// Only its cap is a site's: the H100's rates at 700 W, and 0.858 of them at what 660 W leave beside Grace.
Test(cluster, a_gh200_of_alps_is_one_held_to_less_power) {
    const ClusterProfile full = find("gh200"), alps = find("alps-gh200"), h100 = find("dgx-h100");
    const GemmRate *of_full = &full.accelerator.gemm[DTYPE_BF16], *of_alps = &alps.accelerator.gemm[DTYPE_BF16];
    cr_expect_eq(of_full->sustained_flop_per_s, h100.accelerator.gemm[DTYPE_BF16].sustained_flop_per_s);
    cr_expect_float_eq(of_alps->sustained_flop_per_s / of_full->sustained_flop_per_s, 0.858, 0.002);
    cr_expect_eq(full.accelerator.power_w, 900);
    cr_expect_eq(alps.accelerator.power_w, 560);
    cr_expect_eq(alps.accelerator.memory_bytes, full.accelerator.memory_bytes);
    cr_expect_eq(alps.node.host_pace, full.node.host_pace);
    cr_expect_eq(memcmp(&alps.fabric, &full.fabric, sizeof alps.fabric), 0);
}

Test(cluster, every_name_of_the_contract_exists) {
    for (size_t i = 0; i < sizeof promised / sizeof promised[0]; i++) {
        find(promised[i]);
    }
}

Test(cluster, a_rack_of_72_is_one_domain_of_18_hosts) {
    const ClusterProfile profile = find("gb200-nvl72");
    cr_assert_eq(profile.node.accelerators, 72);
    cr_assert_eq(profile.node.hosts, 18);
    cr_assert_eq(profile.fabric.nics, 72);
}

static void check_price(const ClusterProfile *profile) {
    const Provenance *row = NULL;
    for (int i = 0; i < profile->provenance_count; i++) {
        row =
            strcmp(profile->provenance[i].path, "price_usd_per_accelerator_hour") == 0 ? &profile->provenance[i] : row;
    }
    cr_assert_not_null(row);
    const bool unknown = strncmp(row->source, "unknown", 7) == 0;
    cr_assert_eq(unknown, row->value == 0.0, "%s: %s", profile->name, row->source);
    cr_assert(unknown || strstr(row->source, "20") || row->grade == GRADE_ESTIMATED, "%s: a price has a date: %s",
              profile->name, row->source);
}

Test(cluster, a_price_is_dated_or_said_to_be_unknown) {
    for_every_profile(check_price);
}

// Every JSON file next to the schema is compiled in: an unlisted file would silently not exist.
Test(cluster, every_profile_file_is_built_in) {
    DIR *folder = opendir(NDTUNE_SOURCE_DIR "/cluster-profiles");
    cr_assert_not_null(folder);
    int files = 0;
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        char name[256];
        snprintf(name, sizeof name, "%s", entry->d_name);
        char *suffix = strstr(name, ".json");
        if (!suffix || strcmp(name, "schema.json") == 0) {
            continue;
        }
        *suffix = '\0';
        cr_assert_str_eq(find(name).name, name, "the file %s.json names another profile", name);
        files++;
    }
    closedir(folder);
    int count = 0;
    cluster_names(&count);
    cr_assert_eq(files, count);
}

Test(cluster, an_unknown_name_says_where_the_list_is_and_suggests) {
    ClusterProfile profile;
    Error error = {0};
    cr_assert_eq(cluster_find("dgx-h10O", &arena, &profile, &error), STATUS_USAGE);
    int count = 0;
    cluster_names(&count);
    char sentence[256];
    snprintf(
        sentence, sizeof sentence,
        "unknown cluster \"dgx-h10O\"; must be one of the %d that `ndtune clusters` lists, or the path of a profile "
        "file",
        count);
    cr_assert_str_eq(error.message, sentence);
    cr_assert_str_eq(error.hint, "did you mean dgx-h100?");
}

Test(cluster, a_count_of_chips_is_a_world_of_their_usual_node) {
    ClusterProfile profile;
    Error error = {0};
    cr_assert_eq(cluster_find("2x4090", &arena, &profile, &error), STATUS_USAGE);
    cr_assert_str_eq(error.hint,
                     "say which chip and how many apart: --cluster pcie-4090-8x with --world 2 (plan), or with a "
                     "--mesh of 2 (predict)");
}

Test(cluster, a_count_that_no_mesh_has_is_not_advised) {
    static const char *const names[] = {"0 x H100", "1048577xH100", "99999999 x H100", "999999999999999999999 x H100"};
    ClusterProfile profile;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        Error error = {0};
        cr_expect_eq(cluster_find(names[i], &arena, &profile, &error), STATUS_USAGE);
        cr_expect_null(strstr(error.hint, "apart"), "%s: %s", names[i], error.hint);
    }
    char most[32];
    snprintf(most, sizeof most, "%d x H100", MESH_MAX_WORLD);
    Error error = {0};
    cr_assert_eq(cluster_find(most, &arena, &profile, &error), STATUS_USAGE);
    cr_assert_not_null(strstr(error.hint, "--world 1048576 (plan)"), "%s", error.hint);
}

Test(cluster, a_missing_file_is_the_environments_fault) {
    ClusterProfile profile;
    Error error = {0};
    cr_assert_eq(cluster_find("./no/such.json", &arena, &profile, &error), STATUS_ENVIRONMENT);
}

Test(cluster, the_hash_sees_every_number_but_not_the_words) {
    ClusterProfile profile = find("dgx-h100");
    const uint64_t before = hash_of_cluster(&profile);
    profile.description = "other words";
    cr_assert_eq(hash_of_cluster(&profile), before);
    profile.fabric.tree.ceiling += 1e-9;
    cr_assert_neq(hash_of_cluster(&profile), before);
    cr_assert_neq(before, hash_of_cluster(&(ClusterProfile){0}));
    profile = find("dgx-h100");
    profile.node.symmetric_ctas = 4;  // a what-if
    cr_assert_neq(hash_of_cluster(&profile), before);
}

// 256 = 4 x 64 and 96 = 2 x 48 of machines of 4; 144 = 2 x 72; 148 = 4 x 37 is no number of machines for fewer than 37.
Test(cluster, racks_of_a_job_are_alike) {
    const int worlds[] = {64, 72, 96, 144, 148, 256, 5120}, ranks[] = {72, 72, 48, 72, 72, 64, 64};
    for (size_t i = 0; i < sizeof worlds / sizeof worlds[0]; i++) {
        ClusterProfile profile = find("gb200-nvl72");
        cr_expect_eq(cluster_make_racks_alike(&profile, worlds[i], &arena), ranks[i] < 72 ? 72 : 0);
        cr_expect_eq(profile.node.accelerators, ranks[i], "%d: %d", worlds[i], profile.node.accelerators);
        cr_expect_eq(profile.node.hosts, ranks[i] / 4);
        cr_expect_eq(profile.fabric.nics, ranks[i]);
        cr_expect_eq(cluster_provenance(&profile, "node.accelerators")->value, ranks[i]);
    }
}

Test(cluster, racks_are_cut_anew_for_another_world) {
    ClusterProfile profile = find("gb200-nvl72");
    const int worlds[] = {96, 256, 144}, ranks[] = {48, 64, 72};
    for (int i = 0; i < 3; i++) {
        cluster_make_racks_alike(&profile, worlds[i], &arena);
        cr_expect_eq(profile.node.accelerators, ranks[i]);
        cr_expect_eq(profile.node.hosts, ranks[i] / 4);
        cr_expect_eq(profile.fabric.nics, ranks[i]);
    }
}

Test(cluster, nodes_of_one_machine_are_filled) {
    ClusterProfile profile = find("dgx-h100");
    cr_assert_not(cluster_make_racks_alike(&profile, 12, &arena));
    cr_assert_eq(profile.node.accelerators, 8);
}
