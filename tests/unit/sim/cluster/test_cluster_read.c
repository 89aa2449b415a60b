// The strict reader: a good file with one thing wrong, and the message it gives.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "sim/cluster/cluster_fields.h"

static Arena arena;
static Error error;
static json_t *root;

static void begin(void) {
    for (int i = 0; i < embedded_profile_count; i++) {
        if (strcmp(embedded_profiles[i].name, "dgx-h100") == 0) {
            cr_assert_eq(json_text_load(embedded_profiles[i].text, "x.json", &root, &error), STATUS_OK);
        }
    }
    cr_assert_not_null(root);
}

static void end(void) {
    json_decref(root);
    arena_free(&arena);
}

TestSuite(cluster_read, .init = begin, .fini = end);

static json_t *at(const char *section, const char *key) {
    json_t *object = section ? json_object_get(root, section) : root;
    return json_object_get(object, key);
}

static void check_refused(const char *sentence) {
    ClusterProfile profile = {.name = "untouched"};
    cr_assert_eq(cluster_read(root, "x.json", &arena, &profile, &error), STATUS_USAGE, "taken, although: %s", sentence);
    cr_assert_str_eq(error.message, sentence);
    cr_assert_str_eq(profile.name, "untouched");
}

static void set_value(json_t *leaf, json_t *value) {
    json_object_set_new(leaf, "value", value);
}

Test(cluster_read, the_file_as_it_is_reads) {
    ClusterProfile profile;
    cr_assert_eq(cluster_read(root, "x.json", &arena, &profile, &error), STATUS_OK, "%s", error.message);
}

Test(cluster_read, a_missing_number_is_named) {
    json_object_del(json_object_get(root, "node"), "ring_copy");
    check_refused("x.json: node.ring_copy: missing, must be an object with value, source and grade");
}

Test(cluster_read, a_missing_section_names_its_first_number) {
    json_object_del(root, "fabric");
    check_refused("x.json: fabric.nics: missing, must be an object with value, source and grade");
}

Test(cluster_read, a_bare_number_has_no_source) {
    json_object_set_new(json_object_get(root, "node"), "ring_copy", json_real(0.5));
    check_refused("x.json: node.ring_copy: must be an object with value, source and grade");
}

Test(cluster_read, a_number_without_a_source_is_refused) {
    json_object_del(at("node", "ring_copy"), "source");
    check_refused("x.json: node.ring_copy.source: missing, must be text");
}

Test(cluster_read, an_empty_source_is_refused) {
    json_object_set_new(at("node", "ring_copy"), "source", json_string(""));
    check_refused("x.json: node.ring_copy.source: must not be empty: say where the number comes from");
}

Test(cluster_read, an_unknown_grade_is_refused) {
    json_object_set_new(at("node", "ring_copy"), "grade", json_string("guessed"));
    check_refused(
        "x.json: node.ring_copy.grade: must be measured, fitted, datasheet, estimated or user, got \"guessed\"");
}

Test(cluster_read, a_value_of_the_wrong_type_is_refused) {
    set_value(at("node", "accelerators"), json_real(8.5));
    check_refused("x.json: node.accelerators.value: must be an integer, got 8.5");
    set_value(at("node", "accelerators"), json_string("8"));
    check_refused("x.json: node.accelerators.value: must be an integer, got \"8\"");
}

Test(cluster_read, ranges_hold_at_both_ends) {
    ClusterProfile profile;
    set_value(at("fabric", "efficiency"), json_real(1.0));
    cr_assert_eq(cluster_read(root, "x.json", &arena, &profile, &error), STATUS_OK, "%s", error.message);
    set_value(at("fabric", "efficiency"), json_real(1.0001));
    check_refused("x.json: fabric.efficiency.value: must be between 0 and 1, got 1.0001");
    set_value(at("fabric", "efficiency"), json_real(-0.1));
    check_refused("x.json: fabric.efficiency.value: must be between 0 and 1, got -0.1");
}

Test(cluster_read, an_unknown_number_is_refused_with_a_suggestion) {
    json_object_set_new(json_object_get(root, "node"), "ring_coppy", json_object());
    check_refused("x.json: node.ring_coppy: unknown field");
    cr_assert_str_eq(error.hint, "did you mean node.ring_copy?");
}

Test(cluster_read, an_unknown_key_of_a_number_is_refused) {
    json_object_set_new(at("node", "ring_copy"), "unit", json_string("1"));
    check_refused("x.json: node.ring_copy.unit: unknown field");
}

Test(cluster_read, an_unknown_section_is_refused) {
    json_object_set_new(root, "nodes", json_object());
    check_refused("x.json: nodes: unknown field");
}

Test(cluster_read, a_section_must_be_an_object) {
    json_object_set_new(json_object_get(root, "node"), "ring", json_integer(3));
    check_refused("x.json: node.ring: must be an object");
}

Test(cluster_read, the_schema_word_is_checked_first) {
    json_object_set_new(root, "schema", json_string("ndtune.cluster/9"));
    check_refused("x.json: schema: must be \"ndtune.cluster/1\", got ndtune.cluster/9");
    json_object_del(root, "schema");
    check_refused("x.json: schema: missing");
}

Test(cluster_read, texts_must_be_there_and_not_empty) {
    json_object_set_new(root, "stack", json_string(""));
    check_refused("x.json: stack: must be text that is not empty");
    json_object_del(root, "stack");
    check_refused("x.json: stack: missing");
}

Test(cluster_read, a_name_that_does_not_fit_is_refused) {
    json_object_set_new(root, "name", json_string("a-name-of-forty-eight-letters-is-one-letter-long"));
    check_refused("x.json: name: longer than 47 bytes, got a-name-of-forty-eight-letters-is-one-letter-long");
}

Test(cluster_read, the_device_class_is_one_of_two) {
    json_object_set_new(json_object_get(root, "accelerator"), "class", json_string("tpu"));
    check_refused("x.json: accelerator.class: must be \"gpu\" or \"cpu\", got tpu");
}

Test(cluster_read, a_cpu_profile_needs_cores) {
    json_object_set_new(json_object_get(root, "accelerator"), "class", json_string("cpu"));
    check_refused("x.json: node.cores must be above 0 for accelerator.class \"cpu\", got 0");
}

Test(cluster_read, dtypes_and_kernels_have_their_names) {
    json_object_set_new(at("accelerator", "gemm"), "bf17", json_object());
    check_refused("x.json: accelerator.gemm: dtypes are fp32, bf16, fp16, fp8, fp8_block and nvfp4, got bf17");
    json_object_del(at("accelerator", "gemm"), "bf17");
    json_object_set_new(at("accelerator", "attention"), "flash", json_object());
    check_refused("x.json: accelerator.attention: kernels are named kernel-headdim, such as flash-128, got flash");
}

Test(cluster_read, a_dtype_must_be_complete) {
    json_object_del(json_object_get(at("accelerator", "gemm"), "bf16"), "launch_s");
    check_refused("x.json: accelerator.gemm.bf16.launch_s: missing, must be an object with value, source and grade");
}

Test(cluster_read, there_are_at_most_ten_attention_kernels) {
    json_t *kernels = at("accelerator", "attention");
    json_t *first = json_object_iter_value(json_object_iter(kernels));
    for (int i = 0; i < CLUSTER_MAX_ATTENTION; i++) {
        char key[32];
        snprintf(key, sizeof key, "more-%d", i + 1);
        json_object_set(kernels, key, first);
    }
    check_refused("x.json: accelerator.attention: more than 10 kernels");
}

Test(cluster_read, some_dtype_and_some_kernel_must_be_there) {
    json_object_clear(at("accelerator", "attention"));
    check_refused("x.json: accelerator.attention: needs at least one kernel, such as flash-128");
    json_object_del(json_object_get(root, "accelerator"), "gemm");
    check_refused("x.json: accelerator.gemm: needs rates of at least one dtype");
}

Test(cluster_read, group_sizes_are_counts_that_ascend) {
    static const char *const bad[] = {"1", "0", "-2", "two", "02", "2.0", "1025", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_t *groups = json_object();
        json_object_set_new(groups, bad[i], json_object());
        json_object_set_new(json_object_get(root, "node"), "groups", groups);
        char sentence[160];
        snprintf(sentence, sizeof sentence,
                 "x.json: node.groups: keys are numbers of ranks from 2 on, ascending, got %s", bad[i]);
        check_refused(sentence);
    }
}

Test(cluster_read, there_are_at_most_four_group_sizes) {
    json_t *groups = json_object();
    for (int i = 2; i < 8; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        json_object_set_new(groups, key, json_object());
    }
    json_object_set_new(json_object_get(root, "node"), "groups", groups);
    check_refused("x.json: node.groups: more than 4 sizes");
}

Test(cluster_read, sustained_cannot_beat_burst) {
    set_value(json_object_get(json_object_get(at("accelerator", "gemm"), "bf16"), "sustained_flop_per_s"),
              json_real(9e14));
    check_refused(
        "x.json: accelerator.gemm.bf16: sustained_flop_per_s 9e+14 must not be above burst_flop_per_s 8.235e+14");
}

Test(cluster_read, burst_cannot_beat_the_clock_by_much) {
    set_value(json_object_get(json_object_get(at("accelerator", "gemm"), "bf16"), "burst_flop_per_s"), json_real(2e15));
    check_refused(
        "x.json: accelerator.gemm.bf16: burst_flop_per_s 2e+15 must not be above 1.3 x peak_flop_per_s 9.894e+14");
}

Test(cluster_read, a_fabric_is_whole_or_absent) {
    set_value(at("fabric", "nic_bytes_per_s"), json_integer(0));
    check_refused(
        "x.json: fabric.nics is 8, so fabric.nic_bytes_per_s, fabric.efficiency and fabric.p2p_efficiency must be "
        "above 0, got 0, 0.96 and 0.4");
}

Test(cluster_read, a_document_that_is_not_an_object_is_refused) {
    json_decref(root);
    root = json_array();
    check_refused("x.json: must be a JSON object");
}

static uint64_t hash_of(json_t *whole) {
    ClusterProfile profile;
    cr_assert_eq(cluster_read(whole, "x.json", &arena, &profile, &error), STATUS_OK, "%s", error.message);
    Hash hash = hash_begin();
    cluster_hash(&profile, &hash);
    return hash_end(&hash);
}

// The same keys, the last first; sizes of groups have to ascend.
static json_t *reversed(const char *name, json_t *object) {
    if (!json_is_object(object) || strcmp(name, "groups") == 0) {
        return json_incref(object);
    }
    const char *key, *keys[64];
    json_t *value, *turned = json_object();
    size_t count = 0;
    json_object_foreach(object, key, value) {
        keys[count++] = key;
    }
    while (count-- > 0) {
        json_object_set_new(turned, keys[count], reversed(keys[count], json_object_get(object, keys[count])));
    }
    return turned;
}

Test(cluster_read, the_order_of_keys_changes_nothing) {
    for (int i = 0; i < embedded_profile_count; i++) {
        json_t *whole = NULL;
        cr_assert_eq(json_text_load(embedded_profiles[i].text, "x.json", &whole, &error), STATUS_OK);
        json_t *turned = reversed("", whole);
        cr_expect_eq(hash_of(whole), hash_of(turned), "%s", embedded_profiles[i].name);
        json_decref(turned);
        json_decref(whole);
    }
}
