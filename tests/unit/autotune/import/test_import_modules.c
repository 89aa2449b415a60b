// Configurations that are Python: torchtitan's recipes after 0.2, the Trainer's and TRL's arguments in a module.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/import/config_load.h"
#include "autotune/import/import.h"
#include "tests/unit/autotune/import/finds.h"

static Import read_in(const char *text, ConfigSyntax syntax, int world, Arena *arena) {
    Import import;
    Error error = {0};
    ConfigNode *root = NULL;
    ImportChoices given = import_nothing_said();
    given.world = world;
    cr_assert_eq(config_parse(text, "file", syntax, arena, &root, &error), STATUS_OK, "%s\n%s", error.message, text);
    cr_assert_eq(import_tree(root, "file", "auto", arena, &import, &error), STATUS_OK, "%s\n%s", error.message, text);
    import_settle(&import, &given);
    return import;
}

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
    const Import import = read_in(registry, SYNTAX_PYTHON, 8, &arena);
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
        const Import import = read_in(cases[i].text, cases[i].syntax, 8, &arena);
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
        const Import import = read_in(cases[i].text, SYNTAX_PYTHON, 8, &arena);
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
        const Import import = read_in(cases[i].text, SYNTAX_PYTHON, 8, &arena);
        cr_expect_null(import.refusal, "case %zu: %s", i, import.refusal);
        cr_expect_eq(import.said.choice[PLAN_RECOMPUTE], (int)cases[i].recompute, "case %zu", i);
        cr_expect_eq(finds(&import, FINDING_UNMODELLED, "predicted as SelectiveAC"), cases[i].said, "case %zu", i);
        arena_free(&arena);
    }
}

Test(import_modules, a_text_for_the_list_of_adapters_of_a_recipe_is_said) {
    Arena arena = {0};
    const Import import = read_in("def train():\n    config = llama3_debugmodel()\n"
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
        const Import import = read_in(cases[i].text, SYNTAX_PYTHON, 8, &arena);
        cr_expect_null(import.refusal, "case %zu: %s", i, import.refusal);
        cr_expect_str_eq(import.format->name, cases[i].format);
        cr_expect(import.said.size[AXIS_DP_SHARD] == cases[i].shard && import.said.size[AXIS_CP] == cases[i].cp &&
                      import.said.micro_batch == cases[i].micro_batch,
                  "case %zu", i);
        arena_free(&arena);
    }
}

Test(import_modules, adapters_and_bits_of_a_module_are_those_of_the_plan) {
    Arena arena = {0};
    const Import import = read_in("def model_arguments():\n    arguments = {\"attn_implementation\": \"sdpa\"}\n"
                                  "    arguments[\"quantization_config\"] = BitsAndBytesConfig(load_in_4bit=True)\n"
                                  "    return arguments\n\n\n"
                                  "def peft_config():\n    return LoraConfig(r=32, target_modules=\"all-linear\")\n\n\n"
                                  "def training_arguments(**more):\n"
                                  "    return SFTConfig(per_device_train_batch_size=1, max_length=512, **more)\n",
                                  SYNTAX_PYTHON, 8, &arena);
    const int *choice = import.said.choice;
    cr_expect_null(import.refusal, "%s", import.refusal);
    cr_expect(choice[PLAN_FINETUNE] == FINETUNE_QLORA && choice[PLAN_LORA_RANK] == 32 &&
              choice[PLAN_LORA_TARGETS] == LORA_ALL && choice[PLAN_ATTENTION] == IMPORT_UNSAID);
    arena_free(&arena);
}

// Which kernel sdpa is, PyTorch decides on the chip; the others name one.
Test(import_modules, attention_by_name_is_a_kernel_and_by_sdpa_the_targets_own) {
    static const struct {
        const char *word;
        int kernel;
    } cases[] = {{"sdpa", IMPORT_UNSAID},
                 {"flash_attention_2", ATTENTION_FLASH},
                 {"flash_attention_3", ATTENTION_FLASH3},
                 {"eager", ATTENTION_EAGER}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const char *text = arena_format(&arena,
                                        "def model_arguments():\n    arguments = {\"attn_implementation\": \"%s\"}\n"
                                        "    return arguments\n\n\n"
                                        "def training_arguments(**more):\n"
                                        "    return SFTConfig(per_device_train_batch_size=1, max_length=512, **more)\n",
                                        cases[i].word);
        const Import import = read_in(text, SYNTAX_PYTHON, 8, &arena);
        cr_expect_eq(import.said.choice[PLAN_ATTENTION], cases[i].kernel, "%s", cases[i].word);
        arena_free(&arena);
    }
}

#define ARGUMENTS "args = TrainingArguments(\"out\", per_device_train_batch_size=2, bf16=True)\n"

// Wherever a script of one's own has them.
Test(import_modules, adapters_of_a_script_are_found_where_they_stand) {
    static const struct {
        const char *text;
        int finetune, rank, targets;
    } cases[] = {
        {"lora = LoraConfig(r=32, target_modules=\"all-linear\")\nmodel = get_peft_model(model, lora)\n" ARGUMENTS,
         FINETUNE_LORA, 32, LORA_ALL},
        {ARGUMENTS "trainer = SFTTrainer(\n    model=model, args=args,\n    peft_config=peft.LoraConfig(\n"
                   "        r=4, target_modules=[\"q_proj\", \"v_proj\"]))\n",
         FINETUNE_LORA, 4, LORA_QUERY_VALUE},
        {"bits = BitsAndBytesConfig(load_in_4bit=True)\n"
         "model = AutoModelForCausalLM.from_pretrained(\"a/b\", quantization_config=bits)\n" ARGUMENTS
         "model = get_peft_model(model, LoraConfig(r=RANK))\nRANK = 64\n",
         FINETUNE_QLORA, 64, LORA_QUERY_VALUE},
        {"accelerator = Accelerator(mixed_precision=\"bf16\")\nMICRO_BATCH = 1\n"
         "model = get_peft_model(model, LoraConfig())\n",
         FINETUNE_LORA, 8, LORA_QUERY_VALUE},
        {ARGUMENTS "# LoraConfig(r=8)\nnote = \"LoraConfig(r=8)\"\nclass LoraConfig(Base):\n    pass\n", PLAN_ANY,
         PLAN_ANY, PLAN_ANY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const Import import = read_in(cases[i].text, SYNTAX_PYTHON, 8, &arena);
        const int *choice = import.said.choice;
        cr_expect(choice[PLAN_FINETUNE] == cases[i].finetune && choice[PLAN_LORA_RANK] == cases[i].rank &&
                      choice[PLAN_LORA_TARGETS] == cases[i].targets,
                  "case %zu: %d %d %d", i, choice[PLAN_FINETUNE], choice[PLAN_LORA_RANK], choice[PLAN_LORA_TARGETS]);
        arena_free(&arena);
    }
}

// Its file is another one, and the more usual place.
Test(import_modules, arguments_without_fsdp_say_that_the_launcher_may_shard) {
    Arena arena = {0};
    const Import import = read_in(ARGUMENTS, SYNTAX_PYTHON, 8, &arena);
    cr_expect(finds(&import, FINDING_ASSUMED, "every rank is a replica, unless the launcher shards"));
    const Import sharded =
        read_in("a = TrainingArguments(per_device_train_batch_size=2, fsdp=True)\n", SYNTAX_PYTHON, 8, &arena);
    cr_expect_not(finds(&sharded, FINDING_ASSUMED, "unless the launcher shards"));
    arena_free(&arena);
}

Test(import_modules, one_of_several_adapters_is_known_when_the_script_runs) {
    Arena arena = {0};
    const Import import = read_in(ARGUMENTS "if small:\n    c = LoraConfig(r=8)\nelse:\n    c = LoraConfig(r=64)\n",
                                  SYNTAX_PYTHON, 8, &arena);
    cr_expect_eq(import.said.choice[PLAN_FINETUNE], PLAN_ANY);
    cr_expect(finds(&import, FINDING_ASSUMED, "several LoraConfigs"));
    arena_free(&arena);
}

Test(import_modules, the_model_is_the_one_that_the_script_loads) {
    static const struct {
        const char *text, *model;
        int attention, bf16_master;
    } cases[] = {
        {"name = \"Qwen/Qwen3-8B\"\nmodel = AutoModelForCausalLM.from_pretrained(\n"
         "    name, torch_dtype=torch.float32, attn_implementation=\"flash_attention_3\")\n" ARGUMENTS,
         "Qwen/Qwen3-8B", ATTENTION_FLASH3, false},
        {"model = LlamaForCausalLM.from_pretrained(args.model, dtype=torch.bfloat16)\n" ARGUMENTS, NULL, PLAN_ANY,
         true},
        {ARGUMENTS "trainer = SFTTrainer(\"Qwen/Qwen3-8B\", args=args)\n", "Qwen/Qwen3-8B", PLAN_ANY, PLAN_ANY},
        {ARGUMENTS "trainer = SFTTrainer(model=model, args=args)\n", NULL, PLAN_ANY, PLAN_ANY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const Import import = read_in(cases[i].text, SYNTAX_PYTHON, 8, &arena);
        const int *choice = import.said.choice;
        cr_expect(cases[i].model ? import.model && strcmp(import.model, cases[i].model) == 0 : !import.model,
                  "case %zu: %s", i, import.model ? import.model : "none");
        cr_expect(choice[PLAN_ATTENTION] == cases[i].attention && choice[PLAN_MASTER_WEIGHTS] == cases[i].bf16_master,
                  "case %zu: %d %d", i, choice[PLAN_ATTENTION], choice[PLAN_MASTER_WEIGHTS]);
        arena_free(&arena);
    }
}

Test(import_modules, a_sequence_length_that_the_script_works_out_is_asked_for_by_its_option) {
    Arena arena = {0};
    const Import import = read_in("SEQUENCE_LENGTH = args.seq\n"
                                  "a = TrainingArguments(\"out\", per_device_train_batch_size=2)\n",
                                  SYNTAX_PYTHON, 8, &arena);
    cr_expect(finds(&import, FINDING_ASSUMED, "args.seq is known when the script runs: say it with --seq"));
    arena_free(&arena);
}

// Each would be a copy of what it stands for.
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
    cr_expect_str_eq(config_child(root, "batch")->text, "BS");
    arena_free(&arena);
}

Test(import_modules, a_batch_that_several_assignments_make_is_no_number) {
    Arena arena = {0};
    Error error = {0};
    ConfigNode *root = NULL;
    Import import;
    const char *text = "BS = 8\nBS //= 4\nargs = TrainingArguments(per_device_train_batch_size=BS)\n";
    cr_assert_eq(config_parse(text, "file", SYNTAX_PYTHON, &arena, &root, &error), STATUS_OK, "%s", error.message);
    cr_expect_eq(import_tree(root, "file", "auto", &arena, &import, &error), STATUS_USAGE);
    cr_expect(strstr(error.message, "file:3: per_device_train_batch_size takes a whole number") &&
                  strstr(error.message, "not \"BS\""),
              "%s", error.message);
    arena_free(&arena);
}

static void expect_refused(const char *const (*cases)[2], size_t count) {
    for (size_t i = 0; i < count; i++) {
        Arena arena = {0};
        Error error = {0};
        ConfigNode *root = NULL;
        cr_expect_eq(config_parse(cases[i][0], "file", SYNTAX_PYTHON, &arena, &root, &error), STATUS_USAGE, "%s",
                     cases[i][0]);
        cr_expect(strstr(error.message, cases[i][1]), "case %zu: %s", i, error.message);
        arena_free(&arena);
    }
}

Test(import_modules, two_whole_configurations_are_refused_wherever_they_stand) {
    static const char *const cases[][2] = {
        {"if big:\n    args = TrainingArguments(bf16=True)\nelse:\n    args = TrainingArguments(fp16=True)\n",
         "file:4: another configuration, beside that of line 2"},
        {"def a():\n    if big:\n        return Trainer.Config(x=1)\n    return Trainer.Config(y=1)\n",
         "file:4: another configuration, beside that of line 3"},
        {"args = SFTConfig(bf16=True)\ndef a():\n    return TrainingArguments(fp16=True)\n",
         "file:3: another configuration, beside that of line 1"},
        {"def a():\n    if big:\n        return LoraConfig(r=64)\n    return LoraConfig(r=8)\n",
         "file:4: another LoraConfig, beside that of line 3"},
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
        read_in("args = TrainingArguments(\"out\", per_device_train_batch_size=4)\n", SYNTAX_PYTHON, 8, &arena);
    cr_expect_eq(import.said.micro_batch, 4);  // "out" is output_dir
    arena_free(&arena);
    expect_refused(cases, sizeof cases / sizeof cases[0]);
}

// The plugin, the mesh and the constants of a script, through the names that it gives them; what its arguments say when
// it runs is the command line's to say.
static const char own_script[] = "MICRO_BATCH = 2\n"
                                 "mesh = ParallelismConfig(dp_shard_size=4, cp_size=2)\n"
                                 "plugin = FullyShardedDataParallelPlugin(\n"
                                 "    fsdp_version=2,\n"
                                 "    auto_wrap_policy=\"transformer_based_wrap\",\n"
                                 "    reshard_after_forward=False,\n"
                                 "    cpu_ofload=True,\n"
                                 "    mixed_precision_policy=MixedPrecisionPolicy(reduce_dtype=torch.float32),\n"
                                 ")\n"
                                 "def main():\n"
                                 "    accelerator = Accelerator(\n"
                                 "        gradient_accumulation_steps=args.steps,\n"
                                 "        mixed_precision=\"bf16\", fsdp_plugin=plugin, parallelism_config=mesh)\n";

Test(import_modules, an_accelerator_of_a_script_is_read_with_its_plugins) {
    Arena arena = {0};
    const Import import = read_in(own_script, SYNTAX_PYTHON, 0, &arena);
    cr_expect_null(import.refusal, "%s", import.refusal);
    cr_expect_str_eq(import.format->name, "accelerate");
    cr_expect(import.said.world == 8 && import.said.size[AXIS_DP_SHARD] == 4 && import.said.size[AXIS_CP] == 2);
    cr_expect(import.said.micro_batch == 2 && import.said.choice[PLAN_RESHARD] == RESHARD_NEVER);
    cr_expect_eq(import.said.choice[PLAN_REDUCE_DTYPE], REDUCE_DTYPE_FP32);
    cr_expect(finds(&import, FINDING_ASSUMED, "args.steps is known when the script runs: say it with --grad-accum"));
    cr_expect(finds(&import, FINDING_REFUSED, "did you mean cpu_offload?"));
    arena_free(&arena);
}

Test(import_modules, an_accelerator_without_plugins_trains_replicas_and_says_whose_word_counts) {
    Arena arena = {0};
    const Import import = read_in("accelerator = accelerate.Accelerator()\n", SYNTAX_PYTHON, 8, &arena);
    cr_expect(import.said.size[AXIS_DP_REPLICATE] == 8 && import.said.choice[PLAN_ZERO] == 0);
    cr_expect(finds(&import, FINDING_ASSUMED, "give the file of accelerate launch to --from"));
    arena_free(&arena);
}

Test(import_modules, a_trainer_s_script_may_make_an_accelerator_too) {
    Arena arena = {0};
    const Import import = read_in("accelerator = Accelerator()\n"
                                  "arguments = TrainingArguments(output_dir=\"out\", bf16=True)\n",
                                  SYNTAX_PYTHON, 8, &arena);
    cr_expect_str_eq(import.format->name, "trainer");
    cr_expect(!finds(&import, FINDING_UNKNOWN, ""));
    arena_free(&arena);
}

Test(import_modules, accelerators_beside_a_whole_configuration_do_not_hide_it) {
    static const char *const cases[] = {
        "device = Accelerator().local_process_index\nargs = SFTConfig(output_dir=\"out\", bf16=True)\n",
        "device = Accelerator().local_process_index\nacc = Accelerator(**more)\nother = Accelerator()\n"
        "args = SFTConfig(output_dir=\"out\", bf16=True)\n",
        "acc = Accelerator()\nconfig = SFTConfig(fsdp=\"full_shard\", per_device_train_batch_size=2)\n",
        "args: SFTConfig = SFTConfig(\n    output_dir=\"out\", per_device_train_batch_size=2)\n",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const Import import = read_in(cases[i], SYNTAX_PYTHON, 8, &arena);
        cr_expect_str_eq(import.format->name, "trl", "case %zu", i);
        cr_expect(!finds(&import, FINDING_UNKNOWN, ""), "case %zu", i);
        arena_free(&arena);
    }
}

Test(import_modules, an_accelerator_is_read_whatever_holds_it) {
    static const char *const cases[] = {
        "class Trainer:\n    def __init__(self):\n        self.accelerator = Accelerator(mixed_precision=\"fp16\")\n",
        "accelerator: Accelerator = Accelerator(mixed_precision=\"fp16\")\n",
        "a = accelerator = Accelerator(mixed_precision=\"fp16\")\n",
        "rank = Accelerator().process_index\naccelerator = Accelerator(mixed_precision=\"fp16\")  # one\n",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const Import import = read_in(cases[i], SYNTAX_PYTHON, 8, &arena);
        cr_expect_eq(import.said.choice[PLAN_PRECISION], DTYPE_FP16, "case %zu", i);
        arena_free(&arena);
    }
}

Test(import_modules, an_object_that_is_one_of_several_is_refused) {
    static const char *const cases[][2] = {
        {"a = Accelerator(mixed_precision=\"bf16\") if b else Accelerator()\n",
         "file:1: Accelerator() is one of several, which is known when the script runs"},
        {"args = TrainingArguments(bf16=True) if b else TrainingArguments()\n",
         "file:1: TrainingArguments() is one of several"},
        {"a = Accelerator()\nb = Accelerator(mixed_precision=\"bf16\")\n",
         "file:2: another Accelerator, beside that of line 1"},
    };
    expect_refused(cases, sizeof cases / sizeof cases[0]);
}

#define PLUGIN_CALL "FullyShardedDataParallelPlugin(fsdp_version=2)"

// Nothing else is said of a plugin that is not known.
Test(import_modules, objects_of_an_accelerator_that_are_not_written_there_are_refused) {
    static const char *const cases[][2] = {
        {"a = Accelerator(fsdp_plugin=make_plugin(args))\n", "make_plugin(...) is not read: put the "
                                                             "call of FullyShardedDataParallelPlugin, with its"},
        {"p = None\nif shards:\n    p = " PLUGIN_CALL "\na = Accelerator(fsdp_plugin=p)\n", "p is not read"},
        {"p = " PLUGIN_CALL "\np.reshard_after_forward = False\na = Accelerator(fsdp_plugin=p)\n", "p is not read"},
        {"p = " PLUGIN_CALL " if shards else None\na = Accelerator(fsdp_plugin=p)\n",
         "if shards else None is not read"},
        {"a = Accelerator(fsdp_plugin=" PLUGIN_CALL "\n    if shards else None)\n", "if shards else None is not read"},
        {"a = Accelerator(fsdp_plugin={\"fsdp_version\": 2})\n", "a dict is not read"},
        {"a = Accelerator(parallelism_config=make_mesh())\n", "make_mesh(...) is not read"},
        {"a = Accelerator(gradient_accumulation_plugin=GradientAccumulationPlugin(4))\n",
         "4 in GradientAccumulationPlugin(...) has no name: give it that of its argument"},
        {"a = Accelerator(dynamo_plugin=TorchDynamoPlugin(\"inductor\"))\n", "inductor in TorchDynamoPlugin(...) has"},
        {"a = Accelerator(fsdp_plugin=FullyShardedDataParallelPlugin(\"FULL_SHARD\"))\n", "FULL_SHARD in Fully"},
        {"a = Accelerator(parallelism_config=ParallelismConfig(2, 4))\n", "2 in ParallelismConfig(...) has no name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const Import import = read_in(cases[i][0], SYNTAX_PYTHON, 8, &arena);
        cr_assert(import.refusal, "case %zu", i);
        cr_expect(import.refusal_is_ours && strstr(import.refusal, cases[i][1]), "case %zu: %s", i, import.refusal);
        cr_expect(!finds(&import, FINDING_TRAP, "") && !finds(&import, FINDING_REFUSED, ""), "case %zu", i);
        arena_free(&arena);
    }
}

Test(import_modules, plugins_of_other_backends_are_arguments_of_an_accelerator) {
    Arena arena = {0};
    const Import none =
        read_in("a = Accelerator(deepspeed_plugin=None, megatron_lm_plugin=None)\n", SYNTAX_PYTHON, 8, &arena);
    const Import deep =
        read_in("a = Accelerator(deepspeed_plugin=DeepSpeedPlugin(zero_stage=3))\n", SYNTAX_PYTHON, 8, &arena);
    cr_expect(!none.refusal && !finds(&none, FINDING_REFUSED, ""));
    cr_expect(deep.refusal_is_ours && !finds(&deep, FINDING_REFUSED, ""));
    arena_free(&arena);
}

Test(import_modules, expressions_of_a_script_are_left_to_the_command_line) {
    Arena arena = {0};
    const Import import = read_in("SEQUENCE_LENGTH = args.seq\nMICRO_BATCH = 1_6\n"
                                  "a = Accelerator(gradient_accumulation_steps=int(os.environ[\"STEPS\"]),\n"
                                  "    mixed_precision=\"bf16\" if cuda else \"no\")\n",
                                  SYNTAX_PYTHON, 8, &arena);
    const Import call = read_in("a = Accelerator(mixed_precision=get_precision())\n", SYNTAX_PYTHON, 8, &arena);
    cr_expect(finds(&import, FINDING_ASSUMED, "args.seq is known when the script runs: say it with --seq"));
    cr_expect(finds(&import, FINDING_ASSUMED, "int(...) is known when the script runs: say it with --grad-accum"));
    cr_expect(finds(&import, FINDING_ASSUMED, "\"no\" is known when the script runs: bf16, unless --precision"));
    cr_expect(finds(&call, FINDING_ASSUMED, "get_precision(...) is known when the script runs: bf16"));
    cr_expect_eq(import.said.micro_batch, 16);
    arena_free(&arena);
}
