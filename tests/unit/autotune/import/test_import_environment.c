// What a Python script sets in the environment, as accelerate launch would.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/import/config_load.h"
#include "autotune/import/import.h"
#include "tests/unit/autotune/import/finds.h"

#define MESH(shard) "parallelism_config = ParallelismConfig(dp_shard_size=" shard ", cp_size=2)\n"

static Import read_in(const char *text, Arena *arena) {
    return read_file(text, SYNTAX_PYTHON, 8, arena);
}

Test(import_environment, sharding_that_the_environment_asks_for_is_refused_as_not_read) {
    Arena arena = {0};
    const Import import = read_in(MESH("4") "args = TrainingArguments(per_device_train_batch_size=4,\n"
                                            "    parallelism_config=parallelism_config)\n",
                                  &arena);
    cr_expect(import.refusal_is_ours && strstr(import.refusal, "ACCELERATE_USE_FSDP"), "%s", import.refusal);
    arena_free(&arena);
}

// transformers before 5, as accelerate launch would say it.
Test(import_environment, sharding_that_the_script_asks_for_by_the_environment_is_that_of_its_variables) {
    Arena arena = {0};
    const Import import = read_in("os.environ.update(ACCELERATE_USE_FSDP=\"true\", FSDP_VERSION=\"2\")\n"
                                  "os.environ[\"FSDP_RESHARD_AFTER_FORWARD\"] = \"false\"\n" MESH(
                                      "4") "args = TrainingArguments(per_device_train_batch_size=4,\n"
                                           "    parallelism_config=parallelism_config)\n",
                                  &arena);
    cr_expect_null(import.refusal, "%s", import.refusal);
    cr_expect_str_eq(import.target, "accelerate");
    cr_expect(import.said.size[AXIS_DP_SHARD] == 4 && import.said.choice[PLAN_RESHARD] == RESHARD_NEVER);
    arena_free(&arena);
}

Test(import_environment, variables_that_are_joined_to_the_environment_are_those_of_their_dict) {
    static const char *const cases[] = {"os.environ |= {\"ACCELERATE_USE_FSDP\": \"true\"}\n",
                                        "env = {\"ACCELERATE_USE_FSDP\": \"true\"}\nos.environ |= env\n",
                                        "\ndef f(x):\n    return {\"ACCELERATE_USE_FSDP\": \"true\"}\n\n"
                                        "os.environ |= f(1)\n",
                                        "env = dict(ACCELERATE_USE_FSDP=\"true\")\nos.environ.update(env)\n",
                                        "os.environ = {**os.environ, \"ACCELERATE_USE_FSDP\": \"true\"}\n",
                                        "e = {\"ACCELERATE_USE_FSDP\": \"true\"}\nos.environ |= {**e, \"A\": \"1\"}\n",
                                        "\ndef f():\n    return {\"ACCELERATE_USE_FSDP\": \"true\"}\n\n"
                                        "os.environ.update(dict(**f()))\n",
                                        "env = {\"ACCELERATE_USE_FSDP\": \"true\"}\nenviron.update(**env)\n"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const char *text = arena_format(&arena, "%sargs = TrainingArguments(\"out\")\n", cases[i]);
        const Import import = read_in(text, &arena);
        cr_expect_eq(import.said.size[AXIS_DP_SHARD], 8, "%s", text);
        arena_free(&arena);
    }
}

#define ON "{\"ACCELERATE_USE_FSDP\": \"true\"}"

static bool names_unread(const Import *import, const char *source) {
    Arena arena = {0};
    const bool found = finds(import, FINDING_UNMODELLED,
                             arena_format(&arena, "the environment is set from %s, which is known only when", source));
    arena_free(&arena);
    return found;
}

Test(import_environment, variables_that_only_the_running_script_knows_are_named) {
    static const struct {
        const char *script, *source;
    } cases[] = {{"os.environ |= f()", "f(...)"},
                 {"os.environ.update(args.environment)", "args.environment"},
                 {"def f():\n    if x:\n        return y\n    return {}\nos.environ.update(f())", "f(...)"},
                 {"def f():\n    return " ON " if a else {}\nos.environ |= f()", "f(...)"},
                 {"def f():\n    return " ON " | g\nos.environ |= f()", "f(...)"},
                 {"def f():\n    return {**g()}\nos.environ |= f()", "g()"},
                 {"os.environ.update(dict(g()))", "g(...)"},
                 {"os.environ.update(dict(**g()))", "g()"},
                 {"os.environ |= dict([(\"ACCELERATE_USE_FSDP\", \"true\")])", "a list"},
                 {"os.environ.update([(\"ACCELERATE_USE_FSDP\", \"true\")])", "a list"},
                 {"os.environ |= {**g(), \"A\": \"1\"}", "g()"},
                 {"os.environ |= {k: v for k, v in x.items()}", "k: v for k"},
                 {"os.environ |= {NAME: \"true\"}", "NAME: \"true\""},
                 {"os.environ |= " ON " | g", ON " | g"},
                 {"os.environ |= (g())", "g(...)"},
                 {"os.environ = g()", "g(...)"},
                 {"e = {**e}\nos.environ |= e", "a dict of itself"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const char *text = arena_format(&arena, "import os\n%s\nargs = TrainingArguments(\"out\")\n", cases[i].script);
        const Import import = read_in(text, &arena);
        cr_expect(names_unread(&import, cases[i].source), "%s", text);
        arena_free(&arena);
    }
}

Test(import_environment, each_of_several_joins_that_are_unread_is_named) {
    Arena arena = {0};
    const Import import = read_in("os.environ |= f()\nos.environ |= g()\nargs = TrainingArguments(\"out\")\n", &arena);
    cr_expect(names_unread(&import, "f(...)") && names_unread(&import, "g(...)"));
    cr_expect(finds(&import, FINDING_UNMODELLED, "write it as a literal dict so that FSDP is seen"));
    arena_free(&arena);
}

Test(import_environment, a_variable_that_is_made_a_word_is_that_word) {
    Arena arena = {0};
    const Import import = read_in("os.environ[\"ACCELERATE_USE_FSDP\"] = str(True)\n"
                                  "os.environ[\"FSDP_VERSION\"] = str(2)\nargs = TrainingArguments(\"out\")\n",
                                  &arena);
    cr_expect_null(import.refusal, "%s", import.refusal);
    cr_expect_eq(import.said.size[AXIS_DP_SHARD], 8);
    arena_free(&arena);
}

Test(import_environment, sharding_that_only_the_running_script_knows_is_refused) {
    static const char *const cases[] = {"str(x)", "os.getenv(\"F\")", "[\"a\"]"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const char *text = arena_format(
            &arena, "os.environ[\"ACCELERATE_USE_FSDP\"] = %s\nargs = TrainingArguments(\"out\")\n", cases[i]);
        const Import import = read_in(text, &arena);
        cr_expect(import.refusal && strstr(import.refusal, "is known when the script runs"), "%s", text);
        arena_free(&arena);
    }
}

Test(import_environment, an_accelerator_that_shards_by_the_environment_is_refused) {
    Arena arena = {0};
    const Import import = read_in("os.environ['ACCELERATE_USE_FSDP'] = 'true'\na = Accelerator(cpu=False)\n", &arena);
    cr_expect(import.refusal_is_ours && strstr(import.refusal, "without an fsdp_plugin"), "%s", import.refusal);
    arena_free(&arena);
}

Test(import_environment, an_accelerator_trains_in_the_numbers_of_the_environment) {
    Arena arena = {0};
    const Import import =
        read_in("os.environ['ACCELERATE_MIXED_PRECISION'] = 'bf16'\na = Accelerator(cpu=False)\n", &arena);
    cr_expect_null(import.refusal, "%s", import.refusal);
    cr_expect_eq(import.said.choice[PLAN_PRECISION], DTYPE_BF16);
    arena_free(&arena);
}

Test(import_environment, what_the_environment_asks_for_and_is_not_read_is_named) {
    Arena arena = {0};
    const Import import =
        read_in("os.environ['ACCELERATE_MIXED_PRECISION'] = 'bf16'\na = TrainingArguments('out')\n", &arena);
    cr_expect(finds(&import, FINDING_UNMODELLED, "ACCELERATE_MIXED_PRECISION of the environment is not read"));
    arena_free(&arena);
}

Test(import_environment, deepspeed_that_the_environment_asks_for_is_refused) {
    Arena arena = {0};
    const Import import =
        read_in("os.environ['ACCELERATE_USE_DEEPSPEED'] = 'true'\na = TrainingArguments('out')\n", &arena);
    cr_expect(import.refusal && strstr(import.refusal, "this trains with DeepSpeed"), "%s", import.refusal);
    arena_free(&arena);
}
