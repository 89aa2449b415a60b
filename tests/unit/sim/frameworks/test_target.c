// Finding rows of the capability table, their defaults, and that every row is complete.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "sim/frameworks/target.h"
#include "tests/support/orders.h"
#include "tests/support/sizes.h"

static const Target *find(const char *name) {
    const Target *target = NULL;
    Error error = {0};
    cr_assert_eq(target_find(name, &target, &error), STATUS_OK, "%s", error.message);
    return target;
}

Test(target, a_name_alone_means_the_default_version) {
    cr_assert_str_eq(find("accelerate")->version, "1.15");
    cr_assert_str_eq(find("ndtune")->name, "ndtune");
}

Test(target, a_version_may_be_named) {
    cr_assert_eq(find("accelerate@1.15"), find("accelerate"));
    cr_assert_str_eq(find("accelerate@1.14")->version, "1.14");
}

// Every name of the table once: what is known.
static const char *all_names(void) {
    static char text[1024];
    int count = 0;
    const Target *table = target_table(&count);
    text[0] = '\0';
    for (int i = 0; i < count; i++) {
        const size_t used = strlen(text);
        int before = 0;
        while (strcmp(table[before].name, table[i].name) != 0) {
            before++;
        }
        if (before == i) {
            snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? ", " : "", table[i].name);
        }
    }
    return text;
}

static void check_refused(const char *name, const char *sentence, const char *hint) {
    const Target *target = NULL;
    Error error = {0};
    cr_assert_eq(target_find(name, &target, &error), STATUS_USAGE);
    cr_assert_null(target);
    cr_assert_str_eq(error.message, sentence);
    cr_assert_str_eq(error.hint, hint);
}

static void check_unknown(const char *name, const char *hint) {
    char sentence[1200];
    snprintf(sentence, sizeof sentence, "unknown target \"%s\"; known: %s (NAME@ lists its versions)",
             strcmp(name, "@1.14") == 0 ? "" : name, all_names());
    check_refused(name, sentence, hint);
}

Test(target, a_version_that_is_not_modelled_is_refused_with_those_that_are) {
    check_refused("accelerate@1.9",
                  "target accelerate: version \"1.9\" is not modelled; available: accelerate@1.15, accelerate@1.14, "
                  "accelerate@1.13, accelerate@1.0",
                  "");
    check_refused("accelerate@",
                  "target accelerate: version \"\" is not modelled; available: accelerate@1.15, accelerate@1.14, "
                  "accelerate@1.13, accelerate@1.0",
                  "");
}

Test(target, an_unknown_name_gets_the_list_and_a_suggestion) {
    check_unknown("acelerate", "did you mean accelerate?");
    check_unknown("jax", "");
    check_unknown("@1.14", "");
}

Test(target, what_a_tool_trains_by_is_told_by_every_framework_that_knows_it) {
    check_unknown("fsdp", "FSDP version 2: --target accelerate or torchtitan; FSDP version 1: --target fsdp1");
    check_unknown("NeMo",
                  "NeMo and Megatron-Bridge train by Megatron: --target megatron; Automodel is NeMo on PyTorch's own "
                  "sharding: --target automodel");
    check_unknown("LlamaFactory", "LLaMA-Factory trains by it: --target accelerate or deepspeed");
    check_unknown("verl", "verl trains by it: --target accelerate or megatron");
    check_unknown("megatron-lm", "did you mean megatron?");
    check_unknown("nemo-automodel", "did you mean automodel?");
    check_unknown("fsdp2", "FSDP version 2 (a fully_shard of your own reduces in fp32 since torch 2.15: --reduce-dtype "
                           "fp32): --target accelerate or torchtitan");
}

Test(target, the_rows_that_people_name_are_there) {
    static const char *const named[] = {"accelerate@1.15",
                                        "accelerate@1.14",
                                        "accelerate@1.13",
                                        "accelerate@1.0",
                                        "ndtune@1",
                                        "axolotl@0.19",
                                        "axolotl@0.18",
                                        "torchtitan@0.2",
                                        "torchtitan@0.0",
                                        "torchtitan@0.1",
                                        "torchtitan@0.2.1",
                                        "torchtitan@head",
                                        "torchtitan@0.3",
                                        "megatron@core",
                                        "megatron@0.19",
                                        "megatron@bridge-0.6",
                                        "automodel@0.7",
                                        "megatron@2022",
                                        "nanotron@0.4",
                                        "deepspeed@0.19",
                                        "deepspeed@0.19.8",
                                        "trainer@5.23",
                                        "trainer@5.16",
                                        "trl@1.16",
                                        "trl@1.6",
                                        "fsdp1@2.0",
                                        "nanotron@2024-12",
                                        "aleph_scaling@0.1",
                                        "prime-rl@2026-01",
                                        "prime-rl@2026-01-sft",
                                        "megatron@bigscience",
                                        "megatron@bigscience-bf16",
                                        "megatron@neox"};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        find(named[i]);
    }
}

// Two sleeps of 0.1 s at least are in each message of the branch that its sweep ran, none in what is released.
Test(target, only_the_code_of_its_sweep_sleeps_between_nanotron_s_stages) {
    const Target *released = NULL;
    Error error;
    cr_assert_eq(target_find("nanotron", &released, &error), STATUS_OK, "%s", error.message);
    cr_assert_str_eq(released->version, "0.4");
    cr_assert_eq(released->runtime.message_sleep_s, 0);
    cr_assert_eq(target_find("nanotron@2024-12", &released, &error), STATUS_OK, "%s", error.message);
    cr_assert_geq(released->runtime.message_sleep_s, 0.2);
}

Test(target, every_row_states_its_costs) {
    int count = 0;
    const Target *table = target_table(&count);
    cr_assert_geq(count, 2);
    for (int i = 0; i < count; i++) {
        const Target *row = &table[i];
        cr_assert_not_null(row->evidence, "%s", row->name);
        cr_assert_gt(row->runtime.host_s_per_op, 0.0);
        cr_assert_geq(row->runtime.memory_passes, 0.0);
        cr_assert_geq(row->runtime.loss_bytes_per_logit, 0.0);
        cr_assert_geq(row->runtime.optimizer_bytes_per_parameter, 28.0, "AdamW touches seven fp32 arrays");
        cr_assert_gt(row->runtime.relative_uncertainty, 0.0);
        cr_assert_eq((row->axes & AXIS_BIT(AXIS_CP)) != 0, row->cp_ring || row->cp_allgather, "%s", row->name);
        cr_assert(row->max_zero >= 0 && row->max_zero <= 3);
    }
}

Test(target, the_default_stage_shards_where_there_is_something_to_shard_over) {
    const Target *target = find("accelerate");
    cr_assert_eq(target_default_zero(target, &(Mesh){.size = SIZES(1, 8, 1, 1)}), 3);
    cr_assert_eq(target_default_zero(target, &(Mesh){.size = SIZES(1, 1, 2, 1)}), 3);
    cr_assert_eq(target_default_zero(target, &(Mesh){.size = SIZES(8, 1, 1, 4)}), 0);
}

Test(target, the_default_rotation_is_one_that_the_target_runs) {
    cr_assert_eq(target_default_rotate(find("accelerate")), CP_ROTATE_ALLGATHER);
    cr_assert_eq(target_default_rotate(find("ndtune")), CP_ROTATE_RING);
}

static uint64_t hash_of(const Target *target) {
    Hash hash = hash_begin();
    target_hash(target, &hash);
    return hash_end(&hash);
}

static uint64_t hash_of_all(const Target *target) {
    Hash hash = hash_begin();
    target_hash_all(target, &hash);
    return hash_end(&hash);
}

Test(target, memos_tell_hosts_apart_and_stores_ask_the_cluster) {
    Target slow = *find("megatron");
    const uint64_t before = hash_of(&slow), all_before = hash_of_all(&slow);
    slow.runtime.host_pace = 1.5;
    cr_expect_neq(hash_of_all(&slow), all_before);
    cr_expect_eq(hash_of(&slow), before);
}

Test(target, the_hash_tells_rows_and_changed_costs_apart) {
    Target row = *find("accelerate");
    const uint64_t before = hash_of(&row);
    cr_assert_neq(before, hash_of(find("ndtune")));
    row.runtime.host_s_per_op *= 2.0;
    const uint64_t slower = hash_of(&row);
    cr_assert_neq(before, slower);
    row.deferred_reduce = !row.deferred_reduce;
    const uint64_t reduced = hash_of(&row);
    cr_assert_neq(slower, reduced);
    row.replicas_each_step = !row.replicas_each_step;
    const uint64_t replicated = hash_of(&row);
    cr_assert_neq(reduced, replicated);
    row.recompute_whole = !row.recompute_whole;
    const uint64_t whole = hash_of(&row);
    cr_assert_neq(replicated, whole);
    row.gradient_buffer = !row.gradient_buffer;
    cr_assert_neq(whole, hash_of(&row));
}

static bool takes(const char *name, Mesh mesh, const char *order) {
    const Target *target = NULL;
    Error error = {0};
    cr_assert_eq(target_find(name, &target, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(axis_order_parse(order, &mesh.order, &error), STATUS_OK, "%s", error.message);
    return target_takes_order(target, &mesh);
}

Test(target, frameworks_with_one_order_take_what_arranges_the_ranks_so) {
    static const char *const fixed[] = {"accelerate", "torchtitan", "axolotl", "nanotron", "deepspeed", "fsdp1"};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        cr_assert(takes(fixed[i], (Mesh){.size = SIZES(2, 4, 1, 2)}, "default"), "%s", fixed[i]);
        cr_assert(takes(fixed[i], (Mesh){.size = SIZES(1, 4, 1, 2)}, "cp,dp_shard,dp_replicate,tp"), "%s", fixed[i]);
        cr_assert_not(takes(fixed[i], (Mesh){.size = SIZES(1, 4, 1, 2)}, "tp,dp_shard"), "%s", fixed[i]);
    }
}

// Megatron: order= is a permutation of tp, cp, dp; with instances, slices of a dp-cp group must be whole.
Test(target, megatron_takes_orders_in_which_data_parallelism_is_one_dimension) {
    const Mesh one = {.size = SIZES(1, 4, 2, 2)}, instances = {.size = SIZES(2, 2, 2, 2)};
    const Mesh no_cp = {.size = SIZES(2, 2, 1, 2)};
    cr_assert(takes("megatron", one, "cp,tp,dp_shard"));
    cr_assert(takes("megatron", one, "tp,dp_shard,cp"));
    cr_assert(takes("megatron", instances, "tp,dp_replicate,dp_shard,cp"));
    cr_assert(takes("megatron", instances, "dp_replicate,dp_shard,tp,cp"));
    cr_assert(takes("megatron", no_cp, "tp,dp_replicate,dp_shard"));
    cr_assert_not(takes("megatron", instances, "cp,dp_replicate,dp_shard,tp"), "slices would be of dp only");
    cr_assert_not(takes("megatron", instances, "dp_replicate,tp,dp_shard,cp"), "tp inside dp");
    cr_assert_not(takes("megatron", no_cp, "dp_shard,dp_replicate,tp"), "instances inside a shard group");
    cr_assert_not(takes("megatron@2022", no_cp, "tp,dp_replicate,dp_shard"));
}

Test(target, our_executor_takes_every_order) {
    AxisOrder orders[FIRST_ORDERS];
    first_orders(orders);
    const Target *target = NULL;
    Error error = {0};
    cr_assert_eq(target_find("ndtune", &target, &error), STATUS_OK, "%s", error.message);
    for (int i = 0; i < FIRST_ORDERS; i++) {
        cr_assert(target_takes_order(target, &(Mesh){.size = SIZES(2, 2, 2, 2), .order = orders[i]}));
    }
}

// Nanotron's row has a share of time that nothing explains and reduces in pieces; our executor has neither.
Test(target, the_program_of_one_runs_at_the_costs_of_the_other) {
    const Target *program = NULL, *runner = NULL;
    Error error = {0};
    cr_assert_eq(target_find("nanotron", &program, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(target_find("ndtune", &runner, &error), STATUS_OK, "%s", error.message);
    cr_assert_gt(program->runtime.other_share + program->runtime.bucket_parameters, 0);
    const Target mixed = target_run_by(program, runner);
    cr_assert_eq(mixed.runtime.other_share, runner->runtime.other_share);
    cr_assert_eq(mixed.runtime.bucket_parameters, runner->runtime.bucket_parameters);
    cr_assert_eq(mixed.runtime.host_s_per_op, runner->runtime.host_s_per_op);
    cr_assert_str_eq(mixed.evidence, runner->evidence);
    cr_assert_str_eq(mixed.name, "nanotron");
    cr_assert_eq(mixed.half_gradients, program->half_gradients);
}
