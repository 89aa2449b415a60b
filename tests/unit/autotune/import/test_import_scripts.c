// Scripts of one's own: their Accelerator, adapters and model, and what only the running script knows of them.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/import/config_load.h"
#include "autotune/import/import.h"
#include "tests/unit/autotune/import/finds.h"

Test(import_scripts, adapters_and_bits_of_a_module_are_those_of_the_plan) {
    Arena arena = {0};
    const Import import =
        read_file("def model_arguments():\n    arguments = {\"attn_implementation\": \"sdpa\"}\n"
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
Test(import_scripts, attention_by_name_is_a_kernel_and_by_sdpa_the_targets_own) {
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
        const Import import = read_file(text, SYNTAX_PYTHON, 8, &arena);
        cr_expect_eq(import.said.choice[PLAN_ATTENTION], cases[i].kernel, "%s", cases[i].word);
        arena_free(&arena);
    }
}

#define ARGUMENTS "args = TrainingArguments(\"out\", per_device_train_batch_size=2, bf16=True)\n"

// Wherever a script of one's own has them.
Test(import_scripts, adapters_of_a_script_are_found_where_they_stand) {
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
        const Import import = read_file(cases[i].text, SYNTAX_PYTHON, 8, &arena);
        const int *choice = import.said.choice;
        cr_expect(choice[PLAN_FINETUNE] == cases[i].finetune && choice[PLAN_LORA_RANK] == cases[i].rank &&
                      choice[PLAN_LORA_TARGETS] == cases[i].targets,
                  "case %zu: %d %d %d", i, choice[PLAN_FINETUNE], choice[PLAN_LORA_RANK], choice[PLAN_LORA_TARGETS]);
        arena_free(&arena);
    }
}

// Its file is another one, and the more usual place.
Test(import_scripts, arguments_without_fsdp_say_that_the_launcher_may_shard) {
    Arena arena = {0};
    const Import import = read_file(ARGUMENTS, SYNTAX_PYTHON, 8, &arena);
    cr_expect(finds(&import, FINDING_ASSUMED, "every rank is a replica, unless the launcher shards"));
    const Import sharded =
        read_file("a = TrainingArguments(per_device_train_batch_size=2, fsdp=True)\n", SYNTAX_PYTHON, 8, &arena);
    cr_expect_not(finds(&sharded, FINDING_ASSUMED, "unless the launcher shards"));
    arena_free(&arena);
}

Test(import_scripts, one_of_several_adapters_is_known_when_the_script_runs) {
    Arena arena = {0};
    const Import import = read_file(ARGUMENTS "if small:\n    c = LoraConfig(r=8)\nelse:\n    c = LoraConfig(r=64)\n",
                                    SYNTAX_PYTHON, 8, &arena);
    cr_expect_eq(import.said.choice[PLAN_FINETUNE], PLAN_ANY);
    cr_expect(finds(&import, FINDING_ASSUMED, "several LoraConfigs"));
    arena_free(&arena);
}

Test(import_scripts, the_model_is_the_one_that_the_script_loads) {
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
        const Import import = read_file(cases[i].text, SYNTAX_PYTHON, 8, &arena);
        const int *choice = import.said.choice;
        cr_expect(cases[i].model ? import.model && strcmp(import.model, cases[i].model) == 0 : !import.model,
                  "case %zu: %s", i, import.model ? import.model : "none");
        cr_expect(choice[PLAN_ATTENTION] == cases[i].attention && choice[PLAN_MASTER_WEIGHTS] == cases[i].bf16_master,
                  "case %zu: %d %d", i, choice[PLAN_ATTENTION], choice[PLAN_MASTER_WEIGHTS]);
        arena_free(&arena);
    }
}

Test(import_scripts, a_sequence_length_that_the_script_works_out_is_asked_for_by_its_option) {
    Arena arena = {0};
    const Import import = read_file("SEQUENCE_LENGTH = args.seq\n"
                                    "a = TrainingArguments(\"out\", per_device_train_batch_size=2)\n",
                                    SYNTAX_PYTHON, 8, &arena);
    cr_expect(finds(&import, FINDING_ASSUMED, "args.seq is known when the script runs: say it with --seq"));
    arena_free(&arena);
}

Test(import_scripts, a_batch_that_several_assignments_make_is_no_number) {
    Arena arena = {0};
    const Import import = read_file("BS = 8\nBS //= 4\nargs = TrainingArguments(per_device_train_batch_size=BS)\n",
                                    SYNTAX_PYTHON, 8, &arena);
    cr_expect_eq(import.said.micro_batch, 1);
    cr_expect(finds(&import, FINDING_ASSUMED, "BS is known when the script runs: say it with --micro-batch"));
    arena_free(&arena);
}

#define ADAPTER(arguments) ARGUMENTS "model = get_peft_model(model, LoraConfig(" arguments "))\n"
#define BITS(arguments)                                                                                                \
    "model = AutoModelForCausalLM.from_pretrained(\"a/b\", " arguments                                                 \
    ")\n" ADAPTER("r=4, target_modules=\"all-linear\"")
#define OPEN(arguments) "args = TrainingArguments(\"out\", per_device_train_batch_size=2, " arguments ")\n"

#define PLUGIN(argument)                                                                                               \
    "MICRO_BATCH = 1\nSEQUENCE_LENGTH = 512\n"                                                                         \
    "plugin = FullyShardedDataParallelPlugin(fsdp_version=2, auto_wrap_policy=\"transformer_based_wrap\", " argument   \
    ")\na = Accelerator(mixed_precision=\"bf16\", fsdp_plugin=plugin)\n"

// Each names the option that says it; nothing else is taken from it, and nothing refused.
Test(import_scripts, what_only_the_running_script_knows_is_assumed_and_asked_for) {
    static const char *const cases[][2] = {
        {ADAPTER("r=args.lora_r"), "args.lora_r is known when the script runs: say it with --lora-rank"},
        {ADAPTER("r=int(os.environ[\"R\"])"), "int(...) is known when the script runs: say it with --lora-rank"},
        {ADAPTER("r=f\"{rank}\""), "f\"{rank}\" is known when the script runs: say it with --lora-rank"},
        {ADAPTER("r=2 * rank"), "2 * rank is known when the script runs: say it with --lora-rank"},
        {ADAPTER("target_modules=args.targets"), "args.targets is known when the script runs: say it with --lora-targ"},
        {ADAPTER("target_modules=args.t.split(\",\")"), "args.t.split(...) is known when the script runs: say it with"},
        {ADAPTER("modules_to_save=args.more"), "args.more is known when the script runs: where that is on, modules_to"},
        {BITS("load_in_4bit=args.bits"), "args.bits is known when the script runs: say it with --finetune qlora"},
        {BITS("load_in_8bit=args.bits"), "args.bits is known when the script runs: say it with --finetune lora-int8"},
        {BITS("quantization_config=BitsAndBytesConfig(load_in_4bit=args.bits)"), "args.bits is known when the script"},
        {BITS("quantization_config=bits"), "bits is known when the script runs: say it with --finetune qlora"},
        {BITS("quantization_config=get_bits(args)"), "get_bits(...) is known when the script runs: say it with"},
        {BITS("attn_implementation=args.kernel"), "args.kernel is known when the script runs: say it with --attention"},
        {OPEN("optim=args.optim"), "args.optim is known when the script runs: say it with --optimizer"},
        {OPEN("gradient_checkpointing=args.gc"), "args.gc is known when the script runs: say it with --recompute"},
        {OPEN("bf16=torch.cuda.is_bf16_supported()"), "is_bf16_supported(...) is known when the script runs: on"},
        {OPEN("gradient_accumulation_steps=8 // world"),
         "8 // world is known when the script runs: say it with --grad"},
        {OPEN("torch_compile_mode=args.mode"), "args.mode is known when the script runs: where that is on, another"},
        {OPEN("use_liger_kernel=args.liger"), "args.liger is known when the script runs: say it with --loss"},
        {OPEN("fsdp=True, fsdp_config={\"cpu_offload\": args.cpu}"), "args.cpu is known when the script runs: say it "
                                                                     "with --offload"},
        {OPEN("fsdp=True, fsdp_config={\"reshard_after_forward\": args.z}"),
         "args.z is known when the script runs: say "
         "it with --reshard"},
        {OPEN("fsdp=True, fsdp_config={\"activation_checkpointing\": args.a}"), "args.a is known when the script runs: "
                                                                                "say it with --recompute"},
        {OPEN("fsdp=\"full_shard\", fsdp_config=args.f"),
         "args.f is known when the script runs: say what it holds with"},
        {OPEN("fsdp=args.fsdp"), "args.fsdp is known when the script runs: taken as on"},
        {OPEN("deepspeed=args.ds"), "args.ds is known when the script runs: where it is a file, this trains with"},
        {PLUGIN("reshard_after_forward=args.z"), "args.z is known when the script runs: say it with --reshard"},
        {PLUGIN("activation_checkpointing=args.a"), "args.a is known when the script runs: say it with --recompute"},
        {PLUGIN("cpu_offload=args.cpu"), "args.cpu is known when the script runs: say it with --offload"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const Import import = read_file(cases[i][0], SYNTAX_PYTHON, 8, &arena);
        cr_expect_null(import.refusal, "case %zu: %s", i, import.refusal);
        cr_expect(finds(&import, FINDING_ASSUMED, cases[i][1]), "case %zu: %s", i, cases[i][1]);
        cr_expect(!finds(&import, FINDING_UNMODELLED, "") && !finds(&import, FINDING_REFUSED, ""), "case %zu", i);
        arena_free(&arena);
    }
}

// The others are numbers and words as they stand.
Test(import_scripts, numbers_and_words_of_a_script_are_no_expressions) {
    static const char *const quiet[] = {ADAPTER("r=8, lora_alpha=2 * rank, lora_dropout=args.dropout"),
                                        ADAPTER("r=1_6, target_modules=(\"q_proj\", \"v_proj\")"),
                                        BITS("load_in_4bit=True, load_in_8bit=False, attn_implementation=\"sdpa\""),
                                        BITS("quantization_config=None, dtype=torch.float32"),
                                        OPEN("learning_rate=2e-4, bf16=True, gradient_checkpointing=False")};
    for (size_t i = 0; i < sizeof quiet / sizeof quiet[0]; i++) {
        Arena arena = {0};
        const Import import = read_file(quiet[i], SYNTAX_PYTHON, 8, &arena);
        cr_expect(!finds(&import, FINDING_ASSUMED, "is known when the script runs"), "case %zu", i);
        arena_free(&arena);
    }
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

Test(import_scripts, an_accelerator_of_a_script_is_read_with_its_plugins) {
    Arena arena = {0};
    const Import import = read_file(own_script, SYNTAX_PYTHON, 0, &arena);
    cr_expect_null(import.refusal, "%s", import.refusal);
    cr_expect_str_eq(import.format->name, "accelerate");
    cr_expect(import.said.world == 8 && import.said.size[AXIS_DP_SHARD] == 4 && import.said.size[AXIS_CP] == 2);
    cr_expect(import.said.micro_batch == 2 && import.said.choice[PLAN_RESHARD] == RESHARD_NEVER);
    cr_expect_eq(import.said.choice[PLAN_REDUCE_DTYPE], REDUCE_DTYPE_FP32);
    cr_expect(finds(&import, FINDING_ASSUMED, "args.steps is known when the script runs: say it with --grad-accum"));
    cr_expect(finds(&import, FINDING_REFUSED, "did you mean cpu_offload?"));
    arena_free(&arena);
}

Test(import_scripts, an_accelerator_without_plugins_trains_replicas_and_says_whose_word_counts) {
    Arena arena = {0};
    const Import import = read_file("accelerator = accelerate.Accelerator()\n", SYNTAX_PYTHON, 8, &arena);
    cr_expect(import.said.size[AXIS_DP_REPLICATE] == 8 && import.said.choice[PLAN_ZERO] == 0);
    cr_expect(finds(&import, FINDING_ASSUMED, "give the file of accelerate launch to --from"));
    arena_free(&arena);
}

Test(import_scripts, a_trainer_s_script_may_make_an_accelerator_too) {
    Arena arena = {0};
    const Import import = read_file("accelerator = Accelerator()\n"
                                    "arguments = TrainingArguments(output_dir=\"out\", bf16=True)\n",
                                    SYNTAX_PYTHON, 8, &arena);
    cr_expect_str_eq(import.format->name, "trainer");
    cr_expect(!finds(&import, FINDING_UNKNOWN, ""));
    arena_free(&arena);
}

Test(import_scripts, accelerators_beside_a_whole_configuration_do_not_hide_it) {
    static const char *const cases[] = {
        "device = Accelerator().local_process_index\nargs = SFTConfig(output_dir=\"out\", bf16=True)\n",
        "device = Accelerator().local_process_index\nacc = Accelerator(**more)\nother = Accelerator()\n"
        "args = SFTConfig(output_dir=\"out\", bf16=True)\n",
        "acc = Accelerator()\nconfig = SFTConfig(fsdp=\"full_shard\", per_device_train_batch_size=2)\n",
        "args: SFTConfig = SFTConfig(\n    output_dir=\"out\", per_device_train_batch_size=2)\n",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const Import import = read_file(cases[i], SYNTAX_PYTHON, 8, &arena);
        cr_expect_str_eq(import.format->name, "trl", "case %zu", i);
        cr_expect(!finds(&import, FINDING_UNKNOWN, ""), "case %zu", i);
        arena_free(&arena);
    }
}

Test(import_scripts, an_accelerator_is_read_whatever_holds_it) {
    static const char *const cases[] = {
        "class Trainer:\n    def __init__(self):\n        self.accelerator = Accelerator(mixed_precision=\"fp16\")\n",
        "accelerator: Accelerator = Accelerator(mixed_precision=\"fp16\")\n",
        "a = accelerator = Accelerator(mixed_precision=\"fp16\")\n",
        "rank = Accelerator().process_index\naccelerator = Accelerator(mixed_precision=\"fp16\")  # one\n",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const Import import = read_file(cases[i], SYNTAX_PYTHON, 8, &arena);
        cr_expect_eq(import.said.choice[PLAN_PRECISION], DTYPE_FP16, "case %zu", i);
        arena_free(&arena);
    }
}

Test(import_scripts, two_accelerators_that_only_log_otherwise_are_one) {
    Arena arena = {0};
    const Import import = read_file("if track:\n    a = Accelerator(mixed_precision=\"fp16\", log_with=\"all\")\n"
                                    "else:\n    a = Accelerator(mixed_precision=\"fp16\")\n",
                                    SYNTAX_PYTHON, 8, &arena);
    cr_expect_eq(import.said.choice[PLAN_PRECISION], DTYPE_FP16);
    arena_free(&arena);
}

Test(import_scripts, an_object_that_is_one_of_several_is_refused) {
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
Test(import_scripts, objects_of_an_accelerator_that_are_not_written_there_are_refused) {
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
        const Import import = read_file(cases[i][0], SYNTAX_PYTHON, 8, &arena);
        cr_assert(import.refusal, "case %zu", i);
        cr_expect(import.refusal_is_ours && strstr(import.refusal, cases[i][1]), "case %zu: %s", i, import.refusal);
        cr_expect(!finds(&import, FINDING_TRAP, "") && !finds(&import, FINDING_REFUSED, ""), "case %zu", i);
        arena_free(&arena);
    }
}

Test(import_scripts, plugins_of_other_backends_are_arguments_of_an_accelerator) {
    Arena arena = {0};
    const Import none =
        read_file("a = Accelerator(deepspeed_plugin=None, megatron_lm_plugin=None)\n", SYNTAX_PYTHON, 8, &arena);
    const Import deep =
        read_file("a = Accelerator(deepspeed_plugin=DeepSpeedPlugin(zero_stage=3))\n", SYNTAX_PYTHON, 8, &arena);
    cr_expect(!none.refusal && !finds(&none, FINDING_REFUSED, ""));
    cr_expect(deep.refusal_is_ours && !finds(&deep, FINDING_REFUSED, ""));
    arena_free(&arena);
}

Test(import_scripts, expressions_of_a_script_are_left_to_the_command_line) {
    Arena arena = {0};
    const Import import = read_file("SEQUENCE_LENGTH = args.seq\nMICRO_BATCH = 1_6\n"
                                    "a = Accelerator(gradient_accumulation_steps=int(os.environ[\"STEPS\"]),\n"
                                    "    mixed_precision=\"bf16\" if cuda else \"no\")\n",
                                    SYNTAX_PYTHON, 8, &arena);
    const Import call = read_file("a = Accelerator(mixed_precision=get_precision())\n", SYNTAX_PYTHON, 8, &arena);
    cr_expect(finds(&import, FINDING_ASSUMED, "args.seq is known when the script runs: say it with --seq"));
    cr_expect(finds(&import, FINDING_ASSUMED, "int(...) is known when the script runs: say it with --grad-accum"));
    cr_expect(finds(&import, FINDING_ASSUMED, "\"no\" is known when the script runs: bf16, unless --precision"));
    cr_expect(finds(&call, FINDING_ASSUMED, "get_precision(...) is known when the script runs: bf16"));
    cr_expect_eq(import.said.micro_batch, 16);
    arena_free(&arena);
}

#define LOADED(dtype) "model = AutoModelForCausalLM.from_pretrained(\"Qwen/Qwen3-4B\"" dtype ")\n"
#define ACCELERATED(arguments) "MICRO_BATCH = 1\na = Accelerator(" arguments ")\n"
#define FSDP(version) "fsdp_plugin=FullyShardedDataParallelPlugin(fsdp_version=" version ")"
#define TRAINED(arguments) "args = TrainingArguments(\"out\", per_device_train_batch_size=2" arguments ")\n"
#define TUNED(arguments) "args = SFTConfig(\"out\", max_length=512" arguments ")\n"

// What FSDP shards under mixed precision is made fp32; where nothing is mixed all is in the numbers of the weights.
Test(import_scripts, weights_are_trained_in_the_numbers_that_they_are_loaded_in_unless_fsdp_mixes) {
    static const struct {
        const char *text;
        Dtype precision;
        bool bf16_master;
    } cases[] = {
        {LOADED(", dtype=\"bfloat16\"") ACCELERATED("mixed_precision=\"bf16\""), DTYPE_BF16, true},
        {LOADED(", torch_dtype=torch.bfloat16") ACCELERATED(""), DTYPE_BF16, true},
        {LOADED(", dtype=torch.float32") ACCELERATED("mixed_precision=\"bf16\""), DTYPE_BF16, false},
        {LOADED(", dtype=torch.float32") ACCELERATED(""), DTYPE_FP32, false},
        {LOADED("") ACCELERATED("mixed_precision=\"bf16\""), DTYPE_BF16, true},
        {ACCELERATED("mixed_precision=\"bf16\""), DTYPE_BF16, false},
        {LOADED(", dtype=torch.bfloat16") ACCELERATED("mixed_precision=\"bf16\", " FSDP("2")), DTYPE_BF16, false},
        {LOADED(", dtype=torch.bfloat16") ACCELERATED("mixed_precision=\"no\", " FSDP("2")), DTYPE_BF16, true},
        {LOADED("") ACCELERATED("mixed_precision=\"no\", " FSDP("1")), DTYPE_FP32, false},
        {LOADED(", dtype=torch.bfloat16") TRAINED(", bf16=True"), DTYPE_BF16, true},
        {LOADED(", dtype=torch.bfloat16") TRAINED(""), DTYPE_BF16, true},
        {LOADED("") TRAINED(", bf16=True"), DTYPE_BF16, true},
        {LOADED(", dtype=\"auto\"") TRAINED(", bf16=True"), DTYPE_BF16, true},
        {LOADED(", dtype=\"float32\"") TRAINED(", bf16=True"), DTYPE_BF16, false},
        {LOADED(", dtype=torch.bfloat16") TRAINED(", bf16=True, fsdp=True"), DTYPE_BF16, false},
        {LOADED(", dtype=torch.bfloat16") TRAINED(", fsdp=True"), DTYPE_BF16, true},
        {TRAINED(", bf16=True"), DTYPE_BF16, false},
        {TUNED(""), DTYPE_BF16, false},
        {TUNED(", model_init_kwargs={\"dtype\": \"bfloat16\"}"), DTYPE_BF16, true},
        {TUNED(", model_init_kwargs=dict(torch_dtype=torch.bfloat16), fsdp=True"), DTYPE_BF16, false},
        {TUNED(", model_init_kwargs={\"dtype\": \"bfloat16\"}, bf16=False, fsdp=True"), DTYPE_BF16, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const Import import = read_file(cases[i].text, SYNTAX_PYTHON, 8, &arena);
        const int *choice = import.said.choice;
        cr_expect_eq(choice[PLAN_PRECISION], (int)cases[i].precision, "case %zu", i);
        cr_expect_eq(choice[PLAN_MASTER_WEIGHTS] == true, cases[i].bf16_master, "case %zu", i);
        arena_free(&arena);
    }
}

Test(import_scripts, a_dtype_that_nobody_says_is_said_to_be_the_checkpoint_s) {
    Arena arena = {0};
    const Import unsaid = read_file(LOADED("") TRAINED(", bf16=True"), SYNTAX_PYTHON, 8, &arena);
    const Import open = read_file(LOADED(", dtype=args.dtype") TRAINED(", bf16=True"), SYNTAX_PYTHON, 8, &arena);
    cr_expect(finds(&unsaid, FINDING_ASSUMED, "transformers before 5 load float32: --master-weights fp32"));
    cr_expect(finds(&open, FINDING_ASSUMED, "args.dtype is known when the script runs: say it with --master-weights"));
    arena_free(&arena);
}

// The arguments that a trainer loads a model with count as those of the script's own call.
Test(import_scripts, arguments_that_a_trainer_loads_a_model_with_are_read) {
    Arena arena = {0};
    const Import import = read_file(
        "model_init_kwargs = {\"attn_implementation\": \"eager\",\n"
        "    \"quantization_config\": BitsAndBytesConfig(load_in_4bit=True)}\n" TUNED(
            ", model_init_kwargs=model_init_kwargs") "SFTTrainer(\"a/b\", args=args, peft_config=LoraConfig(r=4))\n",
        SYNTAX_PYTHON, 8, &arena);
    cr_expect_eq(import.said.choice[PLAN_ATTENTION], ATTENTION_EAGER);
    cr_expect_eq(import.said.choice[PLAN_FINETUNE], FINETUNE_QLORA);
    cr_expect(!finds(&import, FINDING_UNKNOWN, ""));
    arena_free(&arena);
}

#define FACTORY(more)                                                                                                  \
    "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\ndo_train: true\ntemplate: qwen3\n"                                 \
    "per_device_train_batch_size: 1\nbf16: true\n" more

Test(import_scripts, arguments_of_llama_factory_are_its_own_and_those_of_a_trainer) {
    static const struct {
        const char *text;
        int finetune, rank, targets, recompute, bf16_master, seq;
    } cases[] = {
        {FACTORY("finetuning_type: lora\ncutoff_len: 4096\nlora_target: all\n"), FINETUNE_LORA, 8, LORA_ALL,
         RECOMPUTE_FULL, false, 4096},
        {FACTORY("lora_rank: 16\nlora_target: q_proj,v_proj\nquantization_bit: 4\n"), FINETUNE_QLORA, 16,
         LORA_QUERY_VALUE, RECOMPUTE_FULL, false, 2048},
        {FACTORY("finetuning_type: full\ndisable_gradient_checkpointing: true\n"), PLAN_ANY, PLAN_ANY, PLAN_ANY,
         RECOMPUTE_NONE, false, 2048},
        {FACTORY("finetuning_type: full\npure_bf16: true\nflash_attn: fa2\n"), PLAN_ANY, PLAN_ANY, PLAN_ANY,
         RECOMPUTE_FULL, true, 2048},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const Import import = read_file(cases[i].text, SYNTAX_YAML, 8, &arena);
        const int *choice = import.said.choice;
        cr_expect_null(import.refusal, "case %zu: %s", i, import.refusal);
        cr_expect(choice[PLAN_FINETUNE] == cases[i].finetune && choice[PLAN_LORA_RANK] == cases[i].rank &&
                      choice[PLAN_LORA_TARGETS] == cases[i].targets && choice[PLAN_RECOMPUTE] == cases[i].recompute &&
                      choice[PLAN_MASTER_WEIGHTS] == cases[i].bf16_master && import.said.seq == cases[i].seq,
                  "case %zu: %d %d %d %d %d %d", i, choice[PLAN_FINETUNE], choice[PLAN_LORA_RANK],
                  choice[PLAN_LORA_TARGETS], choice[PLAN_RECOMPUTE], choice[PLAN_MASTER_WEIGHTS], import.said.seq);
        cr_expect(!finds(&import, FINDING_UNKNOWN, ""), "case %zu", i);
        arena_free(&arena);
    }
}

Test(import_scripts, methods_of_llama_factory_that_no_plan_holds_are_refused) {
    static const char *const cases[][2] = {
        {"finetuning_type: freeze\n", "finetuning_type: freeze is not modelled"},
        {"stage: dpo\n", "training on preferences or rewards is not modelled yet"},
        {"dist_config: {name: fsdp2}\n", "configs of LLaMA-Factory's v1 are not read"},
        {"quantization_bit: 3\n", "a base in 3 bits by bnb is not modelled"},
        {"use_badam: true\nfinetuning_type: full\n", "some layers are trained at a time"},
        {"use_mca: true\n", "this trains by Megatron"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const char *text = arena_format(&arena, "model_name_or_path: a/b\ncutoff_len: 512\n%s", cases[i][0]);
        const Import import = read_file(text, SYNTAX_YAML, 8, &arena);
        cr_expect(import.refusal && strstr(import.refusal, cases[i][1]), "case %zu: %s", i, import.refusal);
        arena_free(&arena);
    }
}

// LLaMA-Factory stops at it (hparams/parser.py).
Test(import_scripts, bits_of_a_base_that_is_trained_itself_are_refused) {
    Arena arena = {0};
    const Import import = read_file(FACTORY("finetuning_type: full\nquantization_bit: 4\n"), SYNTAX_YAML, 8, &arena);
    cr_expect(finds(&import, FINDING_REFUSED, "a base in 4 bits is trained by adapters alone"));
    arena_free(&arena);
}

Test(import_scripts, trainers_of_preferences_are_refused_and_not_read_as_fine_tuning) {
    static const struct {
        const char *text;
        ConfigSyntax syntax;
    } cases[] = {
        {"args = DPOConfig(output_dir=\"out\", beta=0.1, max_prompt_length=512)\n", SYNTAX_PYTHON},
        {"args = GRPOConfig(\"out\", num_generations=8, bf16=True)\n", SYNTAX_PYTHON},
        {"model_name_or_path: a/b\ndataset_name: c\nmax_length: 512\nbeta: 0.1\n", SYNTAX_YAML},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const Import import = read_file(cases[i].text, cases[i].syntax, 8, &arena);
        cr_expect_str_eq(import.format->name, "trl", "case %zu", i);
        cr_expect(import.refusal && strstr(import.refusal, "training on preferences or rewards"), "case %zu", i);
        cr_expect(!finds(&import, FINDING_UNKNOWN, ""), "case %zu", i);
        arena_free(&arena);
    }
}

Test(import_scripts, a_script_that_parses_its_arguments_says_what_to_give_instead) {
    Arena arena = {0};
    Import import;
    Error error = {0};
    ConfigNode *root = NULL;
    const char *text = "parser = HfArgumentParser((ModelArguments, TrainingArguments))\n";
    cr_assert_eq(config_parse(text, "file", SYNTAX_PYTHON, &arena, &root, &error), STATUS_OK);
    cr_expect_eq(import_tree(root, "file", "auto", &arena, &import, &error), STATUS_USAGE);
    cr_expect(strstr(error.message, "give their YAML, or the shell script that starts it"), "%s", error.message);
    arena_free(&arena);
}

// Which is what such a script has as a file.
Test(import_scripts, options_of_a_trainer_s_script_are_its_arguments) {
    Arena arena = {0};
    const Import import = read_file("accelerate launch --config_file fsdp.yaml train.py \\\n"
                                    "  --model_name_or_path \"meta-llama/Llama-2-70b-hf\" --max_length 2048 \\\n"
                                    "  --bf16 True --packing True --output_dir out --per-device-train-batch-size 8 \\\n"
                                    "  --gradient_accumulation_steps 4 --gradient_checkpointing True\n",
                                    SYNTAX_SHELL, 8, &arena);
    cr_expect_null(import.refusal, "%s", import.refusal);
    cr_expect_str_eq(import.format->name, "trl");
    cr_expect_str_eq(import.model, "meta-llama/Llama-2-70b-hf");
    cr_expect(import.said.micro_batch == 8 && import.said.grad_accum == 4 && import.said.seq == 2048);
    cr_expect(!finds(&import, FINDING_UNKNOWN, ""));
    arena_free(&arena);
}

// What is set behind a condition is known when the script runs.
Test(import_scripts, attributes_that_a_script_changes_are_those_of_its_arguments) {
    Arena arena = {0};
    const Import import = read_file("config = AutoConfig.from_pretrained(name)\nconfig.use_cache = False\n"
                                    "args = TrainingArguments(\"out\", per_device_train_batch_size=2, bf16=True)\n"
                                    "args.per_device_train_batch_size = 4\n"
                                    "if deep:\n    args.gradient_accumulation_steps = 8\n",
                                    SYNTAX_PYTHON, 8, &arena);
    cr_expect_eq(import.said.micro_batch, 4);
    cr_expect(finds(&import, FINDING_ASSUMED, "8 is known when the script runs: say it with --grad-accum"));
    cr_expect(!finds(&import, FINDING_UNKNOWN, ""));
    arena_free(&arena);
}

Test(import_scripts, functions_of_a_script_may_each_have_a_config_of_their_own) {
    Arena arena = {0};
    const Import import = read_file("def a():\n    config = load()\n    return config\n"
                                    "def b():\n    config = dump()\n" ARGUMENTS,
                                    SYNTAX_PYTHON, 8, &arena);
    cr_expect_eq(import.said.micro_batch, 2);
    arena_free(&arena);
}
