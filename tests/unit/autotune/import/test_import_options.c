// What a script of one's own takes from elsewhere: its options, other calls, functions and the command that starts it.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/import/import.h"
#include "tests/unit/autotune/import/finds.h"

#define ARGUMENTS "args = TrainingArguments(\"out\", per_device_train_batch_size=2, bf16=True)\n"
#define ADAPTER(arguments) ARGUMENTS "model = get_peft_model(model, LoraConfig(" arguments "))\n"

#define OPTIONS(more) "parser.add_argument(\"--lora-r\", \"-r\", type=int, default=32, help=\"lora_r\")\n" more

// What a script takes unless it is given another is that, and said.
Test(import_options, options_of_a_script_are_their_defaults) {
    static const struct {
        const char *text;
        int rank;
    } cases[] = {
        {OPTIONS("args = parser.parse_args()\n") ADAPTER("r=args.lora_r"), 32},
        {OPTIONS("def train(lora_r):\n    model = get_peft_model(model, LoraConfig(r=lora_r))\n") ARGUMENTS, 32},
        {"@dataclass\nclass Options:\n    \"\"\"Its own.\"\"\"\n    name: Optional[str] = field(\n"
         "        default=\"x\", metadata={\"help\": \"lora_r: int = 2\"},\n    )\n    lora_r: Optional[int] = "
         "field(default=64)\n"
         "    bits: int = 4\n" ADAPTER("r=options.lora_r"),
         64},
        {"def train(model: str = \"a\", lora_r: int = 16, rest=(1, 2)):\n"
         "    model = get_peft_model(model, LoraConfig(r=lora_r))\n" ARGUMENTS,
         16},
        {OPTIONS("other.add_argument(\"--lora-r\", default=4)\n") ADAPTER("r=args.lora_r"), 8},
        {"parser.add_argument(\"--lora_r\", type=int)\n" ADAPTER("r=args.lora_r"), 8},
        {"# add_argument(\"--lora_r\", default=4)\n" ADAPTER("r=args.lora_r"), 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const Import import = read_file(cases[i].text, SYNTAX_PYTHON, 8, &arena);
        cr_expect_eq(import.said.choice[PLAN_LORA_RANK], cases[i].rank, "case %zu: %d", i,
                     import.said.choice[PLAN_LORA_RANK]);
        cr_expect(
            finds(&import, FINDING_ASSUMED,
                  cases[i].rank == 8 ? "args.lora_r is known when the script runs" : ", the script's default of "),
            "case %zu", i);
        arena_free(&arena);
    }
}

Test(import_options, the_default_of_an_option_is_said_once_and_only_where_it_is_read) {
    Arena arena = {0};
    const Import import =
        read_file("parser.add_argument(\"--lr\", default=1e-4)\nparser.add_argument(\"--bs\", default=4)\n"
                  "parser.add_argument(\"--name\", default=\"Qwen/Qwen3-4B\")\n"
                  "model = AutoModelForCausalLM.from_pretrained(args.name, dtype=torch.float32)\n"
                  "a = TrainingArguments(\"out\", per_device_train_batch_size=args.bs, learning_rate=args.lr)\n",
                  SYNTAX_PYTHON, 8, &arena);
    cr_expect_eq(import.said.micro_batch, 4);
    cr_expect_str_eq(import.model, "Qwen/Qwen3-4B");
    cr_expect(finds(&import, FINDING_ASSUMED, "4, the script's default of args.bs"));
    cr_expect(finds(&import, FINDING_ASSUMED, "Qwen/Qwen3-4B, the script's default of args.name"));
    cr_expect(!finds(&import, FINDING_ASSUMED, "args.lr"));
    arena_free(&arena);
}

Test(import_options, a_configuration_within_the_call_of_its_trainer_is_read) {
    Arena arena = {0};
    const Import import =
        read_file("class Mine(TrainingArguments):\n    pass\n"
                  "trainer = SFTTrainer(\n    model=\"Qwen/Qwen3-4B\",  # SFTConfig(\n"
                  "    args=SFTConfig(output_dir=\"out\", per_device_train_batch_size=BS, max_length=512))\n"
                  "BS = 16\n",
                  SYNTAX_PYTHON, 8, &arena);
    cr_expect_str_eq(import.format->name, "trl");
    cr_expect(import.said.micro_batch == 16 && import.said.seq == 512);
    cr_expect_str_eq(import.model, "Qwen/Qwen3-4B");
    arena_free(&arena);
}

Test(import_options, dicts_that_a_call_is_given_are_looked_up_or_named) {
    Arena arena = {0};
    const Import known = read_file("more = dict(attn_implementation=\"eager\", dtype=torch.float32)\n"
                                   "model = AutoModelForCausalLM.from_pretrained(\"a/b\", **more)\n" ARGUMENTS,
                                   SYNTAX_PYTHON, 8, &arena);
    const Import open = read_file("more = {}\nif track:\n    more[\"log_with\"] = \"all\"\n"
                                  "a = Accelerator(mixed_precision=\"bf16\", **more)\n",
                                  SYNTAX_PYTHON, 8, &arena);
    cr_expect_eq(known.said.choice[PLAN_ATTENTION], ATTENTION_EAGER);
    cr_expect_null(open.refusal, "%s", open.refusal);
    cr_expect(finds(&open, FINDING_ASSUMED, "**more is known when the script runs: what it holds is not read"));
    arena_free(&arena);
}

// They are not LoRA's, or another function makes them.
Test(import_options, adapters_that_are_not_seen_are_asked_for) {
    static const char *const cases[] = {ARGUMENTS "model = get_peft_model(model, LoHaConfig(r=4))\n",
                                        ARGUMENTS "SFTTrainer(model, args=args, peft_config=get_peft_config(m))\n"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const Import import = read_file(cases[i], SYNTAX_PYTHON, 8, &arena);
        cr_expect_eq(import.said.choice[PLAN_FINETUNE], PLAN_ANY);
        cr_expect(finds(&import, FINDING_ASSUMED, "all is taken as trained, unless --finetune"), "case %zu", i);
        arena_free(&arena);
    }
    Arena arena = {0};
    const Import none =
        read_file(ARGUMENTS "SFTTrainer(model, args=args, peft_config=None)\n", SYNTAX_PYTHON, 8, &arena);
    cr_expect(!finds(&none, FINDING_ASSUMED, "all is taken as trained"));
    arena_free(&arena);
}

static const char recipes[] = "def base():\n    return Trainer.Config(\n        model_spec=model_registry(\"8B\"),\n"
                              "        training=TrainingConfig(local_batch_size=1, seq_len=2048))\n\n\n"
                              "def other(\n    x=1,\n):\n    config = base()\n    config.training.seq_len = 512\n"
                              "    return config\n\n\n"
                              "def large():\n    config = base()\n    config.training.local_batch_size = 4\n"
                              "    return config\n";

// The one that it begins with is read before.
Test(import_options, one_recipe_of_several_is_read_by_its_name) {
    static const struct {
        const char *path, *error;
        int micro_batch, seq;
    } cases[] = {
        {"file.py:large", NULL, 4, 2048},
        {"file.py:other", NULL, 1, 512},
        {"file.py:base", NULL, 1, 2048},
        {"file.py", "both set a configuration: a file of one recipe is read, of several the one that is named", 0, 0},
        {"file.py:small", "file.py has no function small: there are base, other, large", 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Import import;
        Error error = {0};
        ConfigNode *root = NULL;
        const Status status = config_parse(recipes, cases[i].path, SYNTAX_PYTHON, &arena, &root, &error);
        cr_assert_eq(status != STATUS_OK, cases[i].error != NULL, "case %zu: %s", i, error.message);
        cr_expect(!cases[i].error || strstr(error.message, cases[i].error), "case %zu: %s", i, error.message);
        if (status == STATUS_OK) {
            cr_assert_eq(import_tree(root, "file", "auto", &arena, &import, &error), STATUS_OK, "%s", error.message);
            cr_expect(import.said.micro_batch == cases[i].micro_batch && import.said.seq == cases[i].seq,
                      "case %zu: %d %d", i, import.said.micro_batch, import.said.seq);
        }
        arena_free(&arena);
    }
}

// Megatron-LM's, of a launch script: what nobody sets there is read as if nothing was said, and that is said; a switch
// is on whatever stands behind it.
Test(import_options, variables_that_a_script_does_not_set_are_assumed_and_said) {
    Arena arena = {0};
    const Import import = read_file(
        "torchrun pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 "
        "--micro-batch-size 1 --global-batch-size 64 --tensor-model-parallel-size ${TP} "
        "--pipeline-model-parallel-size 2 --bf16 ${MORE}\n",
        SYNTAX_SHELL, 8, &arena);
    cr_expect_null(import.refusal, "%s", import.refusal);
    cr_expect(import.said.size[AXIS_PP] == 2 && import.said.size[AXIS_TP] == 1);
    cr_expect_eq(import.said.choice[PLAN_PRECISION], DTYPE_BF16);
    cr_expect(finds(&import, FINDING_ASSUMED, "${TP} is known when the script runs"));
    arena_free(&arena);
}

// Scripts that make DeepSpeed's configuration of arguments of their own.
Test(import_options, a_switch_for_deepspeed_asks_for_its_configuration) {
    Arena arena = {0};
    Error error = {0};
    ConfigNode *root = NULL;
    Import import;
    cr_assert_eq(config_parse("deepspeed main.py --per_device_train_batch_size 4 --deepspeed\n", "file", SYNTAX_SHELL,
                              &arena, &root, &error),
                 STATUS_OK);
    cr_expect_eq(import_tree(root, "file", "auto", &arena, &import, &error), STATUS_USAGE);
    cr_expect(strstr(error.message, "give its configuration, a JSON file, to --from"), "%s", error.message);
    arena_free(&arena);
}
