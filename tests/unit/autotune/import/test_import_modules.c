// Configurations that are Python: torchtitan's recipes after 0.2, the Trainer's and TRL's arguments in a module.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/import/config_load.h"
#include "autotune/import/import.h"
#include "tests/unit/autotune/import/finds.h"

// models/llama3/config_registry.py of the wheel of 0.3.0, in part.
static const char registry[] = "def llama3_8b() -> Trainer.Config:\n"
                               "    model_spec = model_registry(\"8B\")\n"
                               "    return Trainer.Config(\n"
                               "        loss=ChunkedLossWrapper.Config(\n"
                               "            loss_fn=CrossEntropyLoss.Config(\n"
                               "                global_vocab_size=decoder_vocab_size(model_spec),\n"
                               "            ),\n"
                               "        ),\n"
                               "        hf_assets_path=\"./assets/hf/Llama-3.1-8B\",\n"
                               "        model_spec=model_spec,\n"
                               "        optimizer=default_adamw(lr=3e-4),\n"
                               "        training=TrainingConfig(\n"
                               "            local_batch_size=1,\n"
                               "            seq_len=8192,\n"
                               "            steps=1000,\n"
                               "        ),\n"
                               "        dataloader=HuggingFaceTextDataLoader.Config(\n"
                               "            dataset=\"c4\",\n"
                               "        ),\n"
                               "        checkpoint=CheckpointManager.Config(interval=500),\n"
                               "        activation_checkpoint=SelectiveAC.Config(),\n"
                               "        validator=Validator.Config(\n"
                               "            freq=500,\n"
                               "        ),\n"
                               "    )\n";

Test(import_modules, a_recipe_of_torchtitan_is_of_0_3_and_its_configuration_is_made_whole) {
    Arena arena = {0};
    const Import import = read_file(registry, SYNTAX_PYTHON, 8, &arena);
    cr_expect_null(import.refusal, "%s", import.refusal);
    cr_expect_str_eq(import.format->name, "torchtitan");
    cr_expect_str_eq(import.target, "torchtitan@0.3");
    cr_expect_str_eq(import.preset, "llama-3.1-8b");
    cr_expect(import.said.micro_batch == 1 && import.said.seq == 8192 && import.said.size[AXIS_DP_SHARD] == 8);
    cr_expect_eq(import.said.choice[PLAN_RECOMPUTE], RECOMPUTE_SELECTIVE);
    cr_expect(!finds(&import, FINDING_REFUSED, "") && !finds(&import, FINDING_UNKNOWN, ""));
    arena_free(&arena);
}

#define RECIPE(more)                                                                                                   \
    "def train():\n    config = llama3_debugmodel()\n    config.model_spec = model_registry(\"8B\")\n" more

// What tells them apart: a TOML is of 0.2; sequences are of 0.3, tokens of the main branch.
Test(import_modules, versions_of_torchtitan_are_told_by_what_their_files_have) {
    static const struct {
        const char *text;
        ConfigSyntax syntax;
        const char *target;
        int micro_batch, seq, steps;
    } cases[] = {
        {"[training]\nlocal_batch_size = 2\nseq_len = 4096\n[parallelism]\ntensor_parallel_degree = 1\n", SYNTAX_TOML,
         "torchtitan@0.2", 2, 4096, 1},
        {RECIPE("    config.training = replace(config.training, local_batch_size=2, seq_len=4096)\n"), SYNTAX_PYTHON,
         "torchtitan@0.3", 2, 4096, 1},
        {RECIPE("    config.training = replace(config.training, num_tokens_per_microbatch_per_dp_rank=2 * 4096,\n"
                "        num_tokens_per_train_step=64 * 4096, max_context_length=4096)\n"),
         SYNTAX_PYTHON, "torchtitan@head", 2, 4096, 4},
        {RECIPE("    config.training = replace(config.training, num_tokens_per_microbatch_per_dp_rank=16_384,\n"
                "        max_context_length=4096)\n"
                "    config.parallelism = ParallelismConfig(pipeline_parallel_degree=2, num_pp_microbatches=8)\n"),
         SYNTAX_PYTHON, "torchtitan@head", 4, 4096, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const Import import = read_file(cases[i].text, cases[i].syntax, 8, &arena);
        cr_expect_null(import.refusal, "case %zu: %s", i, import.refusal);
        cr_expect_str_eq(import.target, cases[i].target, "case %zu", i);
        cr_expect(import.said.micro_batch == cases[i].micro_batch && import.said.seq == cases[i].seq &&
                      import.said.grad_accum == cases[i].steps,
                  "case %zu: %d of %d, %d times", i, import.said.micro_batch, import.said.seq, import.said.grad_accum);
        arena_free(&arena);
    }
}

Test(import_modules, what_a_recipe_cannot_hold_is_said_in_its_place) {
    static const struct {
        const char *text;
        FindingKind kind;
        const char *words;
    } cases[] = {
        {RECIPE("    config.training = replace(config.training, local_batchsize=2)\n"), FINDING_REFUSED,
         "no field of torchtitan 0.3's configurations"},
        {RECIPE("    config.training = replace(config.training, num_tokens_per_microbatch_per_dp_rank=5000,\n"
                "        max_context_length=4096)\n"),
         FINDING_UNMODELLED, "5000 tokens are no whole number of sequences of max_context_length 4096"},
        {RECIPE("    config.training = replace(config.training, seq_len=512)\n"), FINDING_ASSUMED,
         "and not as llama3_debugmodel has it"},
        {RECIPE(""), FINDING_ASSUMED, "and not as llama3_debugmodel has it"},
        {"def train():\n    config = deepseek_v3_debugmodel()\n"
         "    config.model_spec = model_registry(\"16B\", moe_comm_backend=\"minimal_async_ep\")\n",
         FINDING_UNMODELLED, "the dispatcher minimal_async_ep: predicted as standard"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const Import import = read_file(cases[i].text, SYNTAX_PYTHON, 8, &arena);
        cr_expect(finds(&import, cases[i].kind, cases[i].words), "case %zu", i);
        arena_free(&arena);
    }
}

Test(import_modules, checkpointing_of_a_recipe_is_of_its_class_and_what_is_not_understood_is_said) {
    static const struct {
        const char *text;
        Recompute recompute;
        bool said;
    } cases[] = {
        {RECIPE("    config.activation_checkpoint = None\n"), RECOMPUTE_NONE, false},
        {RECIPE("    config.activation_checkpoint = FullAC.Config()\n"), RECOMPUTE_FULL, false},
        {RECIPE("    config.activation_checkpoint = activation_checkpoint.FullAC.Config()\n"), RECOMPUTE_FULL, false},
        {RECIPE("    config.activation_checkpoint = SelectiveAC.Config()\n"), RECOMPUTE_SELECTIVE, false},
        {RECIPE("    config.activation_checkpoint = NotFullAC.Config()\n"), RECOMPUTE_SELECTIVE, true},
        {RECIPE("    config.activation_checkpoint = RematAC.Config()\n"), RECOMPUTE_SELECTIVE, true},
        {RECIPE("    config.activation_checkpoint = MY_AC\n"), RECOMPUTE_SELECTIVE, true},
        {RECIPE("    config.activation_checkpoint = FULL if True else None\n"), RECOMPUTE_SELECTIVE, true},
        {RECIPE("    config.activation_checkpoint = [3]\n"), RECOMPUTE_SELECTIVE, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const Import import = read_file(cases[i].text, SYNTAX_PYTHON, 8, &arena);
        cr_expect_null(import.refusal, "case %zu: %s", i, import.refusal);
        cr_expect_eq(import.said.choice[PLAN_RECOMPUTE], (int)cases[i].recompute, "case %zu", i);
        cr_expect_eq(finds(&import, FINDING_UNMODELLED, "predicted as SelectiveAC"), cases[i].said, "case %zu", i);
        arena_free(&arena);
    }
}

Test(import_modules, a_text_for_the_list_of_adapters_of_a_recipe_is_said) {
    Arena arena = {0};
    const Import import = read_file("def train():\n    config = llama3_debugmodel()\n"
                                    "    config.model_spec = model_registry(\"8B\",\n"
                                    "        converters=[LoRAConverter.Config(rank=8, target_modules=\"w1\")])\n",
                                    SYNTAX_PYTHON, 8, &arena);
    cr_expect(finds(&import, FINDING_UNMODELLED, "target_modules takes a list of names, not w1"));
    arena_free(&arena);
}

#define MESH(shard) "parallelism_config = ParallelismConfig(dp_shard_size=" shard ", cp_size=2)\n"

// Of a script of one's own as of ours.
Test(import_modules, arguments_in_a_module_are_those_of_their_class) {
    static const struct {
        const char *text, *format, *preset;
        int shard, cp, micro_batch;
    } cases[] = {
        {"def arguments(**more):\n    return TrainingArguments(\n    output_dir=\"x\",  # where\n"
         "    per_device_train_batch_size=4, bf16=True,\n    fsdp=\"full_shard auto_wrap\", **more)\n",
         "trainer", NULL, 8, 1, 4},
        {"from trl import SFTConfig\ndef arguments():\n    return SFTConfig(per_device_train_batch_size=2,\n"
         "        max_length=2048, fsdp=True, fsdp_config={\"reshard_after_forward\": True})\n",
         "trl", NULL, 8, 1, 2},
        {MESH("4") "args = transformers.TrainingArguments(per_device_train_batch_size=4, fsdp=True,\n"
                   "    parallelism_config=parallelism_config)\n",
         "trainer", NULL, 4, 2, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const Import import = read_file(cases[i].text, SYNTAX_PYTHON, 8, &arena);
        cr_expect_null(import.refusal, "case %zu: %s", i, import.refusal);
        cr_expect_str_eq(import.format->name, cases[i].format);
        cr_expect(import.said.size[AXIS_DP_SHARD] == cases[i].shard && import.said.size[AXIS_CP] == cases[i].cp &&
                      import.said.micro_batch == cases[i].micro_batch,
                  "case %zu", i);
        arena_free(&arena);
    }
}

// Each would be a copy of what it stands for.
// It takes what the others leave of the world; of several, the shards do.
Test(import_modules, a_size_that_only_the_running_script_knows_is_of_the_world) {
    static const struct {
        const char *sizes;
        int replicas, shard, tp;
    } cases[] = {
        {"dp_shard_size=world // 2, tp_size=2", 1, 4, 2},
        {"dp_shard_size=2, tp_size=args.tp", 1, 2, 4},
        {"dp_replicate_size=args.r, dp_shard_size=args.s", 1, 8, 1},
        {"dp_replicate_size=2, dp_shard_size=args.s, tp_size=2", 2, 2, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const char *text = arena_format(
            &arena,
            "mesh = ParallelismConfig(%s)\na = TrainingArguments(per_device_train_batch_size=4, fsdp=True, "
            "parallelism_config=mesh)\n",
            cases[i].sizes);
        const Import import = read_file(text, SYNTAX_PYTHON, 8, &arena);
        const int *size = import.said.size;
        cr_expect_null(import.refusal, "case %zu: %s", i, import.refusal);
        cr_expect(size[AXIS_DP_REPLICATE] == cases[i].replicas && size[AXIS_DP_SHARD] == cases[i].shard &&
                      size[AXIS_TP] == cases[i].tp,
                  "case %zu: %d x %d x %d", i, size[AXIS_DP_REPLICATE], size[AXIS_DP_SHARD], size[AXIS_TP]);
        cr_expect(finds(&import, FINDING_ASSUMED, "it takes the ranks of --world that the other sizes leave"));
        cr_expect_eq(finds(&import, FINDING_ASSUMED, "args.r is known when the script runs: taken as 1"), i == 2);
        arena_free(&arena);
    }
}

Test(import_modules, names_cannot_stand_for_any_number_of_values) {
    Arena arena = {0};
    ConfigNode *root = NULL;
    Error error = {0};
    const char *many = "";
    for (int i = 0; i < 200; i++) {
        many = arena_format(&arena, "%s1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ", many);
    }
    const char *text = arena_format(&arena, "a = [%s]\n", many);
    for (int i = 0; i < 200; i++) {
        text = arena_format(&arena, "%scfg.x%d = a\n", text, i);
    }
    cr_expect_eq(config_parse(text, "file", SYNTAX_PYTHON, &arena, &root, &error), STATUS_USAGE);
    cr_expect(strstr(error.message, "names that stand for more than"), "%s", error.message);
    arena_free(&arena);
}

// BS is a word that no number is read from where several assignments could have made it.
Test(import_modules, a_name_is_what_its_only_assignment_in_reach_says) {
    static const struct {
        const char *before, *inside, *value;
    } cases[] = {
        {"BS = 2\n", "", "2"},
        {"", "    BS = 2\n", "2"},
        {"BS = 4\n", "    BS = 2\n", "2"},
        {"BS = 2\ndef helper():\n    BS = 8\n    return BS\n", "", "2"},
        {"BS = 2\ndef helper(BS):\n    return BS\n", "", "2"},
        {"BS = 2\nhelp(\n    BS=8,\n)\n", "", "2"},
        {"BS = 2\nclass Sizes:\n    BS = 8\n", "", "2"},
        {"BS = 2\n# BS = 8\nassert BS == 2 and BS <= 8\n", "", "2"},
        {"def helper():\n    BS = 8\n", "", "BS"},
        {"BS = 8\nBS //= 4\n", "", "BS"},
        {"BS = 8\nif big:\n    BS = 4\n", "", "BS"},
        {"BS = 8\nif big: BS = 4\n", "", "BS"},
        {"BS = 8\nBS, more = 4, 2\n", "", "BS"},
        {"BS = 8\nBS: int = 4\n", "", "BS"},
        {"BS = 8\nBS[\"a\"] = 4\n", "", "BS"},
        {"BS = 8\ndef helper():\n    global BS\n    BS = 4\n", "", "BS"},
        {"BS = 8\n", "    for BS in (2, 4):\n        pass\n", "BS"},
        {"BS = 8\n", "    if big:\n        BS = 2\n    else:\n        BS = 4\n", "BS"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Error error = {0};
        ConfigNode *root = NULL;
        const char *text = arena_format(&arena, "%sdef recipe():\n%s    cfg.batch = BS\n    return cfg\n",
                                        cases[i].before, cases[i].inside);
        cr_assert_eq(config_parse(text, "file", SYNTAX_PYTHON, &arena, &root, &error), STATUS_OK, "%s", error.message);
        cr_expect_str_eq(config_child(root, "batch")->text, cases[i].value, "case %zu:\n%s", i, text);
        arena_free(&arena);
    }
}

Test(import_modules, a_parameter_hides_the_name_of_the_file) {
    Arena arena = {0};
    Error error = {0};
    ConfigNode *root = NULL;
    const char *text = "BS = 8\ndef recipe(a, *,\n           BS: int = 4):  # (\n    cfg.batch = BS\n";
    cr_assert_eq(config_parse(text, "file", SYNTAX_PYTHON, &arena, &root, &error), STATUS_OK, "%s", error.message);
    cr_expect_str_eq(config_child(root, "batch")->text, "4");  // and not 8
    arena_free(&arena);
}

Test(import_modules, two_whole_configurations_are_refused_wherever_they_stand) {
    static const char *const cases[][2] = {
        {"if big:\n    args = TrainingArguments(bf16=True)\nelse:\n    args = TrainingArguments(fp16=True)\n",
         "file:4: another configuration, beside that of line 2"},
        {"def a():\n    if big:\n        return Trainer.Config(x=1)\n    return Trainer.Config(y=1)\n",
         "file:4: another configuration, beside that of line 3"},
        {"args = SFTConfig(bf16=True)\ndef a():\n    return TrainingArguments(fp16=True)\n",
         "file:3: another configuration, beside that of line 1"},
    };
    expect_refused(cases, sizeof cases / sizeof cases[0]);
}

Test(import_modules, arguments_that_are_not_written_there_are_refused) {
    static const char *const cases[][2] = {
        {"def a():\n    return SFTConfig(**kw)\n", "file:2: **kw in SFTConfig() is not read"},
        {"def a(**kw):\n    return SFTConfig(**kw)\n", "file:2: **kw in SFTConfig() is not read"},
        {"args = TrainingArguments(bf16=True,\n    **kw)\n", "file:2: **kw in TrainingArguments() is not read"},
        {"args = TrainingArguments(**dict(bf16=True))\n", "**dict(bf16=True) in TrainingArguments() is not read"},
        {"args = TrainingArguments(\"out\", 4)\n", "file:1: 4 in TrainingArguments() is not read"},
        {"args = TrainingArguments(*all)\n", "file:1: *all in TrainingArguments() is not read"},
        {"def a():\n    return Trainer.Config(base)\n", "file:2: base in Trainer.Config() is not read"},
        {"args = TrainingArguments(fsdp_config={**shared, \"a\": 1})\n", "file:1: **shared is not read"},
        {"MESH = ParallelismConfig(**sizes)\nargs = TrainingArguments(parallelism_config=MESH)\n",
         "file:1: **sizes is not read"},
        {"arguments = {**shared, \"dtype\": \"float32\"}\n", "file:1: **shared in {} is not read"},
    };
    Arena arena = {0};
    const Import import =
        read_file("args = TrainingArguments(\"out\", per_device_train_batch_size=4)\n", SYNTAX_PYTHON, 8, &arena);
    cr_expect_eq(import.said.micro_batch, 4);  // "out" is output_dir
    arena_free(&arena);
    expect_refused(cases, sizeof cases / sizeof cases[0]);
}
