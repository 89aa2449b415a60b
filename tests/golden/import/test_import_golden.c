// Imports whole files: the plan, and what is reported about it. The plans are derived by hand from the rules of each
// framework; what a framework does with a key was read in its source (accelerate 1.14, torchtitan 0.2.2) or its
// documentation.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/import/config_load.h"
#include "autotune/import/import.h"

typedef struct Said {
    FindingKind kind;
    const char *key;  // NULL: of no key
    int line;
} Said;

typedef struct Golden {
    const char *file, *format, *target;
    int world, micro_batch, grad_accum;  // of the command line; 0 = not given
    const char *plan;                    // how plan_text begins; NULL: none
    int said_count;
    Said said[8];  // all findings but those about what was assumed
} Golden;

static const Golden goldens[] = {
    // 2 x 8 x 2 = 32 processes; version 2 has no backward prefetch to choose; 2 ranks share sequences.
    {"accelerate_fsdp2.yaml",
     "accelerate",
     "accelerate",
     0,
     1,
     16,
     "dp_replicate=2,dp_shard=8,cp=1,tp=2 seq=4096 mb=1 ga=16 zero=3 reshard=always recompute=full",
     2,
     {{FINDING_TRAP, "fsdp_config.fsdp_backward_prefetch", 10}, {FINDING_TRAP, NULL, 0}}},
    // HYBRID_SHARD: a replica on each of 4 machines, 32 / 4 = 8 shards.
    {"accelerate_fsdp1.yaml",
     "accelerate",
     "accelerate@1.0",
     0,
     2,
     4,
     "dp_replicate=4,dp_shard=8,cp=1,tp=1 seq=4096 mb=2 ga=4 zero=3 reshard=always recompute=none",
     2,
     {{FINDING_TRAP, "fsdp_config", 5}, {FINDING_UNKNOWN, "fsdp_config.fsdp_backward_prefetch_policy", 7}}},
    // 8 x 8 = 64, not 16.
    {"accelerate_wrong_product.yaml", "accelerate", "accelerate", 0, 0, 0, NULL, 1, {{FINDING_REFUSED, NULL, 0}}},
    // varlen_llama3 gathers under packing; two kinds of checkpointing.
    {"axolotl_fsdp2.yaml",
     "axolotl",
     "axolotl",
     16,
     0,
     0,
     "dp_replicate=2,dp_shard=4,cp=2,tp=1 seq=8192 mb=1 ga=4 zero=3 reshard=always recompute=full cp_rotate=allgather",
     3,
     {{FINDING_TRAP, "gradient_checkpointing", 34},
      {FINDING_UNMODELLED, "liger_rms_norm", 5},
      {FINDING_TRAP, NULL, 0}}},
    // What it hands on to transformers' AcceleratorConfig.
    {"axolotl_each.yaml",
     "axolotl",
     "axolotl",
     64,
     0,
     0,
     "dp_replicate=1,dp_shard=64,cp=1,tp=1 seq=8192 mb=1 ga=8 zero=3 reshard=always recompute=full cp_rotate=ring "
     "precision=bf16 attention=flash fused=eager master=bf16 sync=each",
     0,
     {{0}}},
    // Head and loss by Liger's kernel.
    {"axolotl_liger.yaml",
     "axolotl",
     "axolotl",
     8,
     0,
     0,
     "dp_replicate=1,dp_shard=8,cp=1,tp=1 seq=8192 mb=1 ga=8 zero=3 reshard=always recompute=full cp_rotate=ring "
     "precision=bf16 attention=flash fused=eager master=bf16 loss=fused",
     0,
     {{0}}},
    {"axolotl_lora.yaml",
     "axolotl",
     "accelerate@1.0",
     16,
     0,
     0,
     "dp_replicate=1,dp_shard=16,cp=1,tp=1 seq=4096 mb=2 ga=4 zero=3 reshard=always recompute=full cp_rotate=ring "
     "precision=bf16 attention=flash fused=eager finetune=lora lora_rank=32 lora_targets=query-value",
     1,
     {{FINDING_TRAP, "fsdp_config", 21}}},
    // HfArgumentParser's file: FSDP version 2 unless said, Liger's loss, every second layer recomputed.
    {"trainer_fsdp2.json",
     "trainer",
     "trainer",
     16,
     0,
     0,
     "dp_replicate=1,dp_shard=16,cp=1,tp=1 seq=4096 mb=2 ga=8 zero=3 reshard=always recompute=full cp_rotate=ring "
     "precision=bf16 attention=flash fused=eager recompute_every=2 sync=each loss=fused",
     0,
     {{0}}},
    // TrlParser's: bf16 and checkpointing are on by themselves; shard_grad_op keeps what is gathered.
    {"trl_sft.yaml",
     "trl",
     "trl",
     8,
     0,
     0,
     "dp_replicate=1,dp_shard=8,cp=1,tp=1 seq=2048 mb=4 ga=2 zero=3 reshard=never recompute=full cp_rotate=ring "
     "precision=bf16 attention=flash fused=eager optimizer=adamw-8bit",
     1,
     {{FINDING_TRAP, "use_liger_kernel", 8}}},
    // shard -1 takes 64 / (2 x 2); a batch_size of before 0.2 is refused; the rotation is not looked at.
    {"torchtitan_llama3_8b.toml",
     "torchtitan",
     "torchtitan@0.2",
     64,
     0,
     0,
     "dp_replicate=1,dp_shard=16,cp=2,tp=2 seq=8192 mb=1 ga=1 zero=3 reshard=always recompute=selective "
     "cp_rotate=allgather",
     4,
     {{FINDING_TRAP, "quantize.linear.float8", 42},
      {FINDING_TRAP, "parallelism.context_parallel_rotate_method", 32},
      {FINDING_REFUSED, "training.batch_size", 22},
      {FINDING_TRAP, NULL, 0}}},
    // 128 / (2 x 8) = 8 ranks.
    {"deepspeed_zero3.json",
     "deepspeed",
     "deepspeed",
     0,
     0,
     0,
     "dp_replicate=1,dp_shard=8,cp=1,tp=1 seq=4096 mb=2 ga=8 zero=3 reshard=always recompute=none",
     6,
     {{FINDING_TRAP, "activation_checkpointing", 19},
      {FINDING_UNKNOWN, "zero_force_ds_cpu_optimiser", 22},
      {FINDING_UNMODELLED, "zero_optimization.stage3_prefetch_bucket_size", 13},
      {FINDING_UNMODELLED, "zero_optimization.stage3_param_persistence_threshold", 14},
      {FINDING_UNMODELLED, "zero_optimization.stage3_max_live_parameters", 15},
      {FINDING_UNMODELLED, "zero_optimization.stage3_max_reuse_distance", 16}}},
    {"deepspeed_trainer.json",
     "deepspeed",
     "deepspeed",
     8,
     2,
     4,
     "dp_replicate=1,dp_shard=8,cp=1,tp=1 seq=4096 mb=2 ga=4 zero=2 reshard=always recompute=none",
     1,
     {{FINDING_TRAP, "zero_optimization.overlap_comm", 0}}},
};

static bool same_finding(const Said *said, const ImportFinding *finding) {
    const bool same_key = said->key ? finding->key && strcmp(said->key, finding->key) == 0 : !finding->key;
    return said->kind == finding->kind && same_key && said->line == finding->line;
}

static void check_findings(const Golden *golden, const Import *import) {
    int expected = 0, found = 0;
    for (; expected < golden->said_count; expected++) {
        bool there = false;
        for (int i = 0; i < import->finding_count; i++) {
            there = there || same_finding(&golden->said[expected], &import->findings[i]);
        }
        cr_expect(there, "%s: %s %s is not said", golden->file, finding_names[golden->said[expected].kind],
                  golden->said[expected].key ? golden->said[expected].key : "");
    }
    for (int i = 0; i < import->finding_count; i++) {
        found += import->findings[i].kind != FINDING_ASSUMED;
    }
    cr_expect_eq(found, expected, "%s: %d findings, not %d", golden->file, found, expected);
    for (int i = 0; found != expected && i < import->finding_count; i++) {
        cr_log_error("%s: %s", finding_names[import->findings[i].kind], import->findings[i].sentence);
    }
}

static void check_file(const Golden *golden) {
    Arena arena = {0};
    Import import;
    Error error = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/import/files/%s", NDTUNE_SOURCE_DIR, golden->file);
    cr_assert_eq(import_load(path, "auto", &arena, &import, &error), STATUS_OK, "%s", error.message);
    cr_expect_str_eq(import.format->name, golden->format, "%s", golden->file);
    cr_expect_str_eq(import.target, golden->target, "%s", golden->file);
    ImportChoices given = import_nothing_said();
    given.world = golden->world;
    given.micro_batch = golden->micro_batch;
    given.grad_accum = golden->grad_accum;
    import_settle(&import, &given);
    check_findings(golden, &import);
    cr_assert_eq(import.refusal == NULL, golden->plan != NULL, "%s: %s", golden->file, import.refusal);
    if (golden->plan) {
        const TrainPlan usual = {.seq = 4096, .precision = DTYPE_BF16};
        TrainPlan plan;
        char text[PLAN_TEXT_BYTES];
        import_plan(&import, &usual, &plan);
        cr_expect_eq(strncmp(plan_text(&plan, text), golden->plan, strlen(golden->plan)), 0, "%s: %s", golden->file,
                     text);
    }
    arena_free(&arena);
}

Test(import_files, every_file_is_the_plan_that_its_framework_would_run) {
    for (size_t i = 0; i < sizeof goldens / sizeof goldens[0]; i++) {
        check_file(&goldens[i]);
    }
}

// Imports one text in one format.
static Status read_text(const char *text, ConfigSyntax syntax, const char *format, Arena *arena, Import *import,
                        Error *error) {
    ConfigNode *root = NULL;
    TRY(config_parse(text, "file", syntax, arena, &root, error));
    return import_tree(root, "file", format, arena, import, error);
}

Test(import_files, what_cannot_be_read_names_line_key_and_value) {
    static const struct {
        const char *text, *format, *words;
        ConfigSyntax syntax;
    } cases[] = {
        {"distributed_type: FSDP\nnum_processes: many\n", "accelerate",
         "file:2: num_processes takes a whole number from -1 to 1048576, not \"many\"", SYNTAX_YAML},
        {"distributed_type: FSDP\nfsdp_config: {fsdp_version: 3}\n", "accelerate",
         "file:2: fsdp_config.fsdp_version takes", SYNTAX_YAML},
        {"num_processes: 2\n", "accelerate", "distributed_type is missing", SYNTAX_YAML},
        {"distributed_type: MULTI_CLOUD\n", "accelerate", "file:1: distributed_type MULTI_CLOUD is none", SYNTAX_YAML},
        {"compute_environment: AMAZON_SAGEMAKER\ndistributed_type: NO\n", "accelerate",
         "file:1: compute_environment AMAZON_SAGEMAKER starts no ranks here", SYNTAX_YAML},
        {"distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: z.json\n", "accelerate",
         "file:3: the plan is in z.json", SYNTAX_YAML},
        {"base_model: x\ndeepspeed: zero3.json\n", "axolotl", "file:2: this trains with DeepSpeed: give zero3.json",
         SYNTAX_YAML},
        {"cutoff_len: 1\ndeepspeed: d\n", "trainer", "and --seq, and --finetune and --lora-rank of", SYNTAX_YAML},
        {"base_model: x\nsample_packing: maybe\n", "axolotl",
         "file:2: sample_packing takes true or false, not \"maybe\"", SYNTAX_YAML},
        {"[parallelism]\ndata_parallel_shard_degree = 0\n", "torchtitan",
         "file:2: parallelism.data_parallel_shard_degree "
         "takes -1 or a size, not 0",
         SYNTAX_TOML},
        {"[activation_checkpoint]\nmode = \"some\"\n", "torchtitan",
         "none, full, selective, memory_budget, not \"some\"", SYNTAX_TOML},
        {"[activation_checkpoint]\nselective_ac_option = \"ops\"\n", "torchtitan",
         "file:2: activation_checkpoint.selective_ac_option takes \"op\" or a number of layers", SYNTAX_TOML},
        {"{\"zero_optimization\": {\"stage\": 4}}", "deepspeed",
         "zero_optimization.stage takes a whole number from 0 to 3", SYNTAX_JSON},
        {"{\"zero_optimization\": {\"stage\": [3]}}", "deepspeed", "not a list", SYNTAX_JSON},
        {"a: 1\n", NULL,
         "no key of accelerate, trainer, trl, axolotl, torchtitan, megatron, automodel, nanotron or deepspeed",
         SYNTAX_YAML},
        {"num_processes: 1\nbase_model: x\n", NULL, "more than one framework", SYNTAX_YAML},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Import import;
        Error error = {0};
        const Status status = read_text(cases[i].text, cases[i].syntax, cases[i].format, &arena, &import, &error);
        cr_expect_eq(status, STATUS_USAGE, "case %zu", i);
        cr_expect(strstr(error.message, cases[i].words), "case %zu: %s", i, error.message);
        arena_free(&arena);
    }
}

#define YAML_REFUSED SYNTAX_YAML, FINDING_REFUSED

// A trap each: the kind, and words of its sentence.
typedef struct Trap {
    const char *text, *format, *words;
    ConfigSyntax syntax;
    FindingKind kind;
} Trap;

static const Trap traps[] = {
    {"distributed_type: FSDP\nfsdp_config: {fsdp_version: 2}\n", "accelerate", "the whole model is one unit",
     SYNTAX_YAML, FINDING_TRAP},
    {"distributed_type: MULTI_GPU\nfsdp_config: {fsdp_version: 2}\n", "accelerate", "trains whole replicas",
     SYNTAX_YAML, FINDING_TRAP},
    {"distributed_type: FSDP\nfsdp_config: {fsdp_version: 2}\nparallelism_config: {tp_size: 2}\n", "accelerate",
     "the key is parallelism_config_tp_size", SYNTAX_YAML, FINDING_TRAP},
    {"distributed_type: FSDP\nfsdp_config: {fsdp_version: 1}\nparallelism_config: {parallelism_config_tp_size: "
     "2}\n",
     "accelerate", "only compatible with FSDP version 2", YAML_REFUSED},
    {"distributed_type: FSDP\nfsdp_config: {fsdp_version: 2, fsdp_sharding_strategy: HYBRID_SHARD}\n", "accelerate",
     "version 2 does not look at fsdp_sharding_strategy", SYNTAX_YAML, FINDING_TRAP},
    {"{\"zero_optimization\": {\"stage\": 3, \"offload_param\": {\"device\": \"nvme\"}}}", "deepspeed",
     "offloading to nvme", SYNTAX_JSON, FINDING_UNMODELLED},
    {"distributed_type: MEGATRON_LM\n", "accelerate", "MEGATRON_LM is not modelled", SYNTAX_YAML, FINDING_UNMODELLED},
    {"distributed_type: MULTI_XPU\n", "accelerate", "what the devices are is --cluster's", SYNTAX_YAML,
     FINDING_UNMODELLED},
    {"distributed_type: FSDP\nfsdp_config: {fsdp_version: 2, activation_checkpointing: true, "
     "activation_checkpointing_offload: true, offload_params: true}\n",
     "accelerate", "wait on the host too", SYNTAX_YAML, FINDING_UNMODELLED},
    {"distributed_type: FSDP\nfsdp_config: {fsdp_version: 2, activation_checkpointing_offload: true}\n", "accelerate",
     "requires `activation_checkpointing=True`", YAML_REFUSED},
    {"distributed_type: FSDP\nnum_proceses: 2\n", "accelerate", "refuses a file with an unknown key", YAML_REFUSED},
    {"distributed_type: FSDP\nnum_processes: 2\nnum_processes: 4\n", "accelerate", "stands twice", SYNTAX_YAML,
     FINDING_TRAP},
    {"base_model: x\nfsdp_version: 2\nfsdp_config: {reshard_after_forward: false}\n", "axolotl", "may be lost",
     SYNTAX_YAML, FINDING_TRAP},
    {"base_model: x\nsample_packing: true\ncontext_parallel_size: 2\nmicro_batch_size: 2\n", "axolotl",
     "take micro_batch_size 1", YAML_REFUSED},
    {"base_model: x\nload_in_4bit: true\n", "axolotl", "without setting an adapter", YAML_REFUSED},
    {"base_model: x\nrl: dpo\n", "axolotl", "preferences", SYNTAX_YAML, FINDING_UNMODELLED},
    {"base_model: x\nexpert_parallel_size: 2\n", "axolotl", "does nothing while plugins has no", SYNTAX_YAML,
     FINDING_TRAP},
    {"base_model: x\ndp_shard_size: 2\n", "axolotl", "without a corresponding fsdp_config", YAML_REFUSED},
    {"base_model: x\ncontext_parallel_size: 2\n", "axolotl", "nothing is sharded over it", SYNTAX_YAML, FINDING_TRAP},
    {"base_model: x\ncontext_parallel_size: 2\nattn_implementation: sdpa\n", "axolotl",
     "requires attn_implementation: flash_attention_2", YAML_REFUSED},
    {"base_model: x\nattn_implementation: flex_attention\n", "axolotl", "predicted with flash", SYNTAX_YAML,
     FINDING_UNMODELLED},
    {"base_model: x\nattn_implementation: kernels-community/vllm-flash-attn3:k\nbf16: full\n", "axolotl",
     "bf16 takes auto, true or false", YAML_REFUSED},
    {"base_model: x\nattn_implementation: flash\n", "axolotl", "is not a recognized backend", YAML_REFUSED},
    {"base_model: x\nattn_implementation: sdpa\nflash_attention: true\n", "axolotl", "cannot be combined",
     YAML_REFUSED},
    {"base_model: x\noptimizer: adamw_8bit\nfsdp_config: {version: 2}\n", "axolotl", "use adamw_torch_8bit instead",
     YAML_REFUSED},
    {"base_model: x\nadapter: qlora\nload_in_4bit: true\n"
     "fsdp_config: {fsdp_version: 2, cpu_ram_efficient_loading: true}\n",
     "axolotl", "does not support cpu_ram_efficient_loading with load_in_4bit", YAML_REFUSED},
    {"base_model: x\nearly_stopping_patience: 3\nsave_steps: 10\n", "axolotl", "requires save_steps and eval_steps",
     YAML_REFUSED},
    {"base_model: x\noutput_dir:\n", "axolotl", "output_dir takes a path", YAML_REFUSED},
    {"base_model: x\noptimizer: muon\nfsdp_config: {fsdp_version: 1}\n", "axolotl", "only compatible with FSDP2",
     YAML_REFUSED},
    {"base_model: x\nactivation_offloading: true\n", "axolotl", "requires gradient_checkpointing", YAML_REFUSED},
    {"base_model: x\nliger_rope: true\n", "axolotl", "does nothing while plugins has no", SYNTAX_YAML, FINDING_TRAP},
    {"base_model: x\nplugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]\n", "axolotl",
     "makes the logits again in backward", SYNTAX_YAML, FINDING_UNMODELLED},
    {"base_model: x\ngradient_accumulation_steps: 2\nbatch_size: 4\n", "axolotl", "please set only one", YAML_REFUSED},
    {"[parallelism]\nenable_async_tensor_parallel = true\n", "torchtitan", "needs compile.enable", SYNTAX_TOML,
     FINDING_REFUSED},
    {"[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_microbatch_size = 3\n", "torchtitan",
     "Batch size 8 must be divisible by microbatch_size 3: use a local batch of 9", SYNTAX_TOML, FINDING_REFUSED},
    {"[model]\nconverters = [\"quantize.linear.float8\"]\n", "torchtitan",
     "off: predicted with weights gathered in fp8", SYNTAX_TOML, FINDING_UNMODELLED},
    {"[model]\nconverters = [\"float8\"]\n", "torchtitan", "KeyError: quantize.linear.float8", SYNTAX_TOML,
     FINDING_REFUSED},
    {"[model]\nname = \"flux\"\nflavor = \"flux-dev\"\n", "torchtitan", "flux flux-dev is a diffusion model",
     SYNTAX_TOML, FINDING_UNMODELLED},
    {"[model]\nname = \"qwen3\"\nflavor = \"debugmodel_moe\"\n", "torchtitan", "is a mixture of experts", SYNTAX_TOML,
     FINDING_UNMODELLED},
    {"[optimizer]\nimplementation = \"for-loop\"\n", "torchtitan", "predicted as foreach", SYNTAX_TOML,
     FINDING_UNMODELLED},
    {"[training]\nseq_len = 1\n", "torchtitan", "every second layer recomputed", SYNTAX_TOML, FINDING_ASSUMED},
    {"distributed_type: FSDP\nnum_proceses: 2\n", "accelerate", "did you mean num_processes?", YAML_REFUSED},
    {"[training]\nlocal_batchsize = 2\n", "torchtitan", "did you mean local_batch_size?", SYNTAX_TOML, FINDING_REFUSED},
    {"base_model: x\nmicro_batchsize: 2\n", "axolotl", "did you mean micro_batch_size?", SYNTAX_YAML, FINDING_UNKNOWN},
    {"{\"bf16\": {\"enabled\": true}, \"fp16\": {\"enabled\": true}}", "deepspeed", "both on", SYNTAX_JSON,
     FINDING_REFUSED},
    {"{\"zero_optimization\": {\"stage\": 3, \"stge3_x\": 1}}", "deepspeed", "refuses a section", SYNTAX_JSON,
     FINDING_REFUSED},
    {"{\"zero_optimization\": {\"stage\": 2}}", "deepspeed", "the default but for stage 3", SYNTAX_JSON, FINDING_TRAP},
};

Test(import_files, every_trap_has_its_sentence) {
    for (size_t i = 0; i < sizeof traps / sizeof traps[0]; i++) {
        Arena arena = {0};
        Import import;
        Error error = {0};
        cr_assert_eq(read_text(traps[i].text, traps[i].syntax, traps[i].format, &arena, &import, &error), STATUS_OK,
                     "%s", error.message);
        bool said = false;
        for (int k = 0; k < import.finding_count; k++) {
            said = said ||
                   (import.findings[k].kind == traps[i].kind && strstr(import.findings[k].sentence, traps[i].words));
        }
        cr_expect(said, "case %zu: %s", i, traps[i].words);
        arena_free(&arena);
    }
}

static void check_offload(const char *text, ConfigSyntax syntax, const char *format, Offload offload) {
    Arena arena = {0};
    Import import;
    Error error = {0};
    cr_assert_eq(read_text(text, syntax, format, &arena, &import, &error), STATUS_OK, "%s", error.message);
    cr_expect_eq(import.said.choice[PLAN_OFFLOAD], offload, "%s", text);
    arena_free(&arena);
}

Test(import_files, what_a_file_keeps_on_the_host_is_a_choice_of_the_plan) {
    check_offload("distributed_type: FSDP\nfsdp_config: {fsdp_version: 2, fsdp_offload_params: true}\n", SYNTAX_YAML,
                  "accelerate", OFFLOAD_PARAMETERS);
    check_offload("distributed_type: FSDP\nfsdp_config: {fsdp_version: 2, fsdp_activation_checkpointing: true, "
                  "fsdp_activation_checkpointing_offload: true}\n",
                  SYNTAX_YAML, "accelerate", OFFLOAD_ACTIVATIONS);
    check_offload("fsdp: true\nactivation_checkpointing: true\nactivation_checkpointing_kwargs: {offload: true}\n",
                  SYNTAX_YAML, "trainer", OFFLOAD_ACTIVATIONS);
    check_offload("fsdp: true\nfsdp_config: {cpu_offload: true}\nactivation_checkpointing: true\n"
                  "activation_checkpointing_kwargs: {offload: true}\n",
                  SYNTAX_YAML, "trainer", OFFLOAD_PARAMETERS);
    check_offload("fsdp: true\ngradient_checkpointing_kwargs: {offload: true}\n", SYNTAX_YAML, "trl",
                  OFFLOAD_ACTIVATIONS);
    check_offload("[training]\nenable_cpu_offload = true\n", SYNTAX_TOML, "torchtitan", OFFLOAD_PARAMETERS);
    check_offload("{\"zero_optimization\": {\"stage\": 2, \"offload_optimizer\": {\"device\": \"cpu\"}}}", SYNTAX_JSON,
                  "deepspeed", OFFLOAD_OPTIMIZER);
}

Test(import_files, what_deepspeed_reduces_during_backward_is_a_choice_of_the_plan) {
    static const struct {
        const char *text;
        int choice;
    } cases[] = {
        {"{\"zero_optimization\": {\"stage\": 2}}", REDUCE_OVERLAP_OFF},
        {"{\"zero_optimization\": {\"stage\": 1, \"overlap_comm\": true}}", REDUCE_OVERLAP_ON},
        {"{\"zero_optimization\": {\"stage\": 3}}", REDUCE_OVERLAP_ON},
        {"{\"zero_optimization\": {\"stage\": 0}}", PLAN_ANY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Import import;
        Error error = {0};
        cr_assert_eq(read_text(cases[i].text, SYNTAX_JSON, "deepspeed", &arena, &import, &error), STATUS_OK, "%s",
                     error.message);
        cr_expect_eq(import.said.choice[PLAN_REDUCE_OVERLAP], cases[i].choice, "%s", cases[i].text);
        arena_free(&arena);
    }
}

// The plan's share of a choice that one key holds in two ways.
static void check_selective(const char *option, Recompute recompute, int every) {
    Arena arena = {0};
    Import import;
    Error error = {0};
    const char *text =
        arena_format(&arena, "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"%s\"\n", option);
    cr_assert_eq(read_text(text, SYNTAX_TOML, "torchtitan", &arena, &import, &error), STATUS_OK, "%s", error.message);
    cr_expect_eq(import.said.choice[PLAN_RECOMPUTE], recompute, "%s", option);
    cr_expect_eq(import.said.choice[PLAN_RECOMPUTE_EVERY], every, "%s", option);
    arena_free(&arena);
}

Test(import_files, a_number_of_torchtitans_selective_option_is_every_nth_layer) {
    check_selective("op", RECOMPUTE_SELECTIVE, PLAN_ANY);
    check_selective("3", RECOMPUTE_FULL, 3);
    check_selective("1", RECOMPUTE_FULL, 0);
}

static int said_of_model(const char *text, ConfigSyntax syntax, const char *format, double parameters) {
    Arena arena = {0};
    Import import;
    Error error = {0};
    cr_assert_eq(read_text(text, syntax, format, &arena, &import, &error), STATUS_OK, "%s", error.message);
    const int before = import.finding_count;
    import_compare_model(&import, "asked", parameters);
    const int said = import.finding_count - before;
    cr_expect(said == 0 || strstr(import.findings[before].sentence, "--model asked"), "%s",
              import.findings[before].sentence);
    arena_free(&arena);
    return said;
}

Test(import_files, a_model_of_another_size_than_asked_is_said) {
    static const struct {
        const char *name;
        double parameters;
        int said;
    } cases[] = {{"meta-llama/Llama-3.1-70B", 8.03e9, 1}, {"meta-llama/Llama-3.1-8B", 8.03e9, 0},
                 {"meta-llama/Llama-3.2-1B", 1.24e9, 0},  {"google/gemma-7b", 8.5e9, 0},
                 {"HuggingFaceTB/SmolLM-135M", 1.7e9, 1}, {"mistralai/Mixtral-8x7B-v0.1", 1e9, 0},
                 {"Qwen/Qwen2.5-0.5B-Instruct", 7e9, 1},  {"./my-model", 7e9, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "base_model: %s\n", cases[i].name);
        cr_expect_eq(said_of_model(text, SYNTAX_YAML, "axolotl", cases[i].parameters), cases[i].said, "%s",
                     cases[i].name);
    }
    cr_expect_eq(said_of_model("[model]\nname = \"llama3\"\nflavor = \"70B\"\n", SYNTAX_TOML, "torchtitan", 8e9), 1);
    cr_expect_eq(said_of_model("[training]\nseq_len = 8\n", SYNTAX_TOML, "torchtitan", 8e9), 0);
}

Test(import_files, name_and_flavor_of_torchtitan_are_a_model_of_the_list) {
    static const struct {
        const char *text, *preset;
    } cases[] = {{"[model]\nname = \"llama3\"\nflavor = \"8B\"\n", "llama-3.1-8b"},
                 {"[model]\nname = \"llama3\"\nflavor = \"8B_flex\"\n", "llama-3.1-8b"},
                 {"[model]\nname = \"qwen3\"\nflavor = \"0.6B\"\n", "qwen3-0.6b"},
                 {"[model]\nname = \"llama3\"\n", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Import import;
        Error error = {0};
        cr_assert_eq(read_text(cases[i].text, SYNTAX_TOML, "torchtitan", &arena, &import, &error), STATUS_OK);
        cr_expect(cases[i].preset ? import.preset && strcmp(import.preset, cases[i].preset) == 0 : !import.preset,
                  "case %zu", i);
        arena_free(&arena);
    }
}

static Import settled(const char *text, ConfigSyntax syntax, const char *format, const ImportChoices *given,
                      Arena *arena) {
    Import import;
    Error error = {0};
    cr_assert_eq(read_text(text, syntax, format, arena, &import, &error), STATUS_OK, "%s", error.message);
    import_settle(&import, given);
    return import;
}

static void expect_plan(const Import *import, const char *plan, size_t place) {
    const TrainPlan usual = {.seq = 4096, .precision = DTYPE_BF16};
    TrainPlan read;
    char text[PLAN_TEXT_BYTES];
    import_plan(import, &usual, &read);
    cr_expect_eq(strncmp(plan_text(&read, text), plan, strlen(plan)), 0, "case %zu: %s", place, text);
}

// Mesh, stage, kernels and batch of small files, as axolotl's own code takes them (0.19: _get_parallel_config_kwargs,
// check_fsdp_version_in_fsdp_config, resolve_dtype, normalize_config), on 8 ranks.
Test(import_files, axolotl_is_read_as_its_code_reads_it) {
    static const struct {
        const char *text, *target, *plan;
    } cases[] = {
        {"fsdp_config: {version: 2, auto_wrap_policy: TRANSFORMER_BASED_WRAP}\ntensor_parallel_size: 2\n", "axolotl",
         "dp_replicate=1,dp_shard=4,cp=1,tp=2 seq=512 mb=1 ga=1 zero=3"},
        {"fsdp_config: {fsdp_version: 2}\n", "axolotl", "dp_replicate=1,dp_shard=8,cp=1,tp=1"},
        {"fsdp_version: 1\nfsdp_config: {fsdp_version: 2}\n", "accelerate@1.0", "dp_replicate=1,dp_shard=8,cp=1,tp=1"},
        {"fsdp_version: 2\nfsdp_config: {offload_params: false}\ndp_shard_size: 1\ndp_replicate_size: 1\n", "axolotl",
         "dp_replicate=1,dp_shard=8,cp=1,tp=1"},
        {"fsdp_version: 2\nfsdp_config: {offload_params: false}\ndp_shard_size: 4\n", "axolotl",
         "dp_replicate=2,dp_shard=4,cp=1,tp=1"},
        {"fsdp_version: 2\nfsdp_config: {offload_params: false}\ndp_replicate_size: 2\n", "axolotl",
         "dp_replicate=2,dp_shard=4,cp=1,tp=1"},
        {"context_parallel_size: 2\nflash_attention: true\n", "axolotl",
         "dp_replicate=1,dp_shard=4,cp=2,tp=1 seq=512 mb=1 ga=1 zero=0"},
        {"fsdp:\nfsdp_config:\nsequence_len: 500_000\nmicro_batch_size: 2\nbatch_size: 8\n", "axolotl",
         "dp_replicate=8,dp_shard=1,cp=1,tp=1 seq=500000 mb=2 ga=1 zero=0"},
        {"fsdp_version: 2\nfsdp_config: {fsdp_activation_checkpointing: true}\n", "axolotl",
         "dp_replicate=1,dp_shard=8,cp=1,tp=1 seq=512 mb=1 ga=1 zero=3 reshard=always recompute=full"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        ImportChoices given = import_nothing_said();
        given.world = 8;
        const char *text = arena_format(&arena, "base_model: x\n%s", cases[i].text);
        const Import import = settled(text, SYNTAX_YAML, "axolotl", &given, &arena);
        cr_expect_str_eq(import.target, cases[i].target, "case %zu", i);
        cr_expect_null(import.refusal, "case %zu: %s", i, import.refusal);
        expect_plan(&import, cases[i].plan, i);
        arena_free(&arena);
    }
}

Test(import_files, axolotl_takes_bf16_by_itself_and_over_fp16) {
    static const struct {
        const char *text;
        Dtype precision;
    } cases[] = {{"", DTYPE_BF16},
                 {"bf16: auto\nfp16: true\n", DTYPE_FP16},
                 {"bf16: true\nfp16: true\n", DTYPE_BF16},
                 {"bf16: null\n", DTYPE_FP32},
                 {"bf16: false\n", DTYPE_FP32},
                 {"bf16:\nfp16: true\n", DTYPE_FP16}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const ImportChoices given = import_nothing_said();
        const char *text = arena_format(&arena, "base_model: x\n%s", cases[i].text);
        const Import import = settled(text, SYNTAX_YAML, "axolotl", &given, &arena);
        cr_expect_eq(import.said.choice[PLAN_PRECISION], cases[i].precision, "case %zu", i);
        arena_free(&arena);
    }
}

Test(import_files, arithmetic_that_does_not_come_out_is_refused_with_its_numbers) {
    Arena arena = {0};
    ImportChoices given = import_nothing_said();
    given.world = 8;
    Import import = settled("[parallelism]\ntensor_parallel_degree = 3\n", SYNTAX_TOML, "torchtitan", &given, &arena);
    cr_expect_str_eq(import.refusal, "the axes with a size make 3, which does not divide 8 ranks");
    given.world = 4;
    import = settled("[training]\nlocal_batch_size = 2\nglobal_batch_size = 12\n", SYNTAX_TOML, "torchtitan", &given,
                     &arena);
    cr_expect_str_eq(import.refusal,
                     "micro-batch 2 x dp_replicate 1 x dp_shard 4 x accumulation 1 = 8 sequences, and the "
                     "global batch is 12: use a global batch of 8 or 16");
    given.world = 0;
    import = settled("[training]\nlocal_batch_size = 2\n", SYNTAX_TOML, "torchtitan", &given, &arena);
    cr_expect(strstr(import.refusal, "--world"), "%s", import.refusal);
    arena_free(&arena);
}

Test(import_files, the_command_line_replaces_what_the_file_says_and_says_so) {
    Arena arena = {0};
    ImportChoices given = import_nothing_said();
    given.world = 8;
    given.seq = 1024;
    const Import import =
        settled("[training]\nseq_len = 4096\nlocal_batch_size = 1\n[activation_checkpoint]\nmode = \"full\"\n",
                SYNTAX_TOML, "torchtitan", &given, &arena);
    cr_expect_eq(import.said.seq, 1024);
    bool said = false;
    for (int i = 0; i < import.finding_count; i++) {
        said = said || strstr(import.findings[i].sentence, "--seq replaces");
    }
    cr_expect(said);
    arena_free(&arena);
}
