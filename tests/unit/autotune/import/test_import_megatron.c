// Megatron-LM's flags, its functional tests' files and Megatron-Bridge's configurations as plans: values by hand from
// megatron/training/arguments.py at d98e8a64dd, refusals with its wording.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "autotune/import/config_load.h"
#include "autotune/import/import.h"
#include "tests/unit/autotune/import/finds.h"

static void read_in(const char *text, ConfigSyntax syntax, int world, Arena *arena, Import *import) {
    ConfigNode *root = NULL;
    Error error = {0};
    cr_assert_eq(config_parse(text, "file", syntax, arena, &root, &error), STATUS_OK, "%s\n%s", error.message, text);
    cr_assert_eq(import_tree(root, "file", "auto", arena, import, &error), STATUS_OK, "%s\n%s", error.message, text);
    cr_expect_str_eq(import->format->name, "megatron");
    ImportChoices given = import_nothing_said();
    given.world = world;
    import_settle(import, &given);
}

static const char launch[] =
    "#!/bin/bash\n"
    "GPUS_PER_NODE=8\n"
    "NNODES=${SLURM_NNODES:-\"16\"}\n"
    "TP=4 PP=4\n"
    "DISTRIBUTED_ARGS=(--nproc_per_node $GPUS_PER_NODE --nnodes $NNODES)\n"
    "MODEL_ARGS=(\n"
    "    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336\n"
    "    --num-attention-heads 32 --group-query-attention --num-query-groups 8\n"
    "    --seq-length 8192 --max-position-embeddings 8192\n"
    ")\n"
    "PARALLEL=(\n"
    "    --tensor-model-parallel-size $TP\n"
    "    --pipeline-model-parallel-size ${PP}\n"
    "    --num-layers-per-virtual-pipeline-stage 2 --sequence-parallel\n"
    "    --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather\n"
    ")\n"
    "if [[ \"$TP\" -gt 1 ]]; then PARALLEL+=(--tp-comm-overlap); fi\n"
    "TRAINING=\"--micro-batch-size 2 --global-batch-size 128 --bf16 --calculate-per-token-los \\\n"
    "    --recompute-granularity selective --recompute-modules core_attn mlp\"\n"
    "torchrun \"${DISTRIBUTED_ARGS[@]}\" pretrain_gpt.py \\\n"
    "    ${MODEL_ARGS[@]} ${PARALLEL[@]} $TRAINING --mock-data\n";

// 128 ranks / (4 x 4) = 8; 32 / 4 / 2 = 4 chunks; 128 / (2 x 8) = 8 micro-steps.
Test(import_megatron, a_launch_script_is_its_plan) {
    Arena arena = {0};
    Import import;
    read_in(launch, SYNTAX_SHELL, 0, &arena, &import);
    cr_expect_null(import.refusal, "%s", import.refusal);
    cr_expect_eq(import.said.world, 128);
    cr_expect_str_eq(import.preset, "llama-3-8b");
    const TrainPlan usual = {.attention = ATTENTION_CUDNN};
    TrainPlan plan;
    char text[PLAN_TEXT_BYTES];
    import_plan(&import, &usual, &plan);
    cr_expect_str_eq(plan_text(&plan, text),
                     "pp=4,dp_replicate=1,dp_shard=8,cp=1,tp=4 seq=8192 mb=2 ga=8 zero=1 reshard=always "
                     "recompute=selective cp_rotate=ring precision=bf16 attention=cudnn fused=fused tp_overlap=on "
                     "pp_schedule=interleaved virtual_stages=4 reduce_overlap=on loss=one-copy "
                     "sequence_parallel=on recompute_modules=core-attn+mlp pp_group=4");
    bool named = false;
    for (int i = 0; i < import.finding_count; i++) {
        const ImportFinding *finding = &import.findings[i];
        named |= finding->kind == FINDING_REFUSED && finding->line == 18 &&
                 strcmp(finding->key, "--calculate-per-token-los") == 0 && strstr(finding->sentence, "unrecognized") &&
                 strstr(finding->sentence, "did you mean --calculate-per-token-loss?");
    }
    cr_expect(named);
    arena_free(&arena);
}

typedef struct Reading {
    const char *text;
    ConfigSyntax syntax;
    int world;
    const char *holds;  // in the plan's text
} Reading;

#define FLAGS(more) "pretrain_gpt.py --micro-batch-size 1 --seq-length 512 --num-layers 16 --bf16 " more

static const Reading readings[] = {
    {"ENV_VARS:\n  X: 1\nMODEL_ARGS:\n  --tensor-model-parallel-size: 2\n  --micro-batch-size: 4\n"
     "  --global-batch-size: 32\n  --seq-length: 1024\n  --bf16: true\n  --data-path: ${D}/x\nTEST_TYPE: regular\n",
     SYNTAX_YAML, 8, "dp_replicate=4,dp_shard=1,cp=1,tp=2 seq=1024 mb=4 ga=2 zero=0"},
    {"run_recipe.py --recipe x model.tensor_model_parallel_size=4 model.seq_length=2048 train.global_batch_size=8 "
     "train.micro_batch_size=1",
     SYNTAX_SHELL, 8, "dp_replicate=1,dp_shard=2,cp=1,tp=4 seq=2048 mb=1 ga=4 zero=1"},
    {"model:\n  tensor_model_parallel_size: 2\n  context_parallel_size: 2\n  cp_comm_type: all_gather\n"
     "train: {global_batch_size: 8, micro_batch_size: 1}\nmixed_precision: bf16_with_mxfp8_mixed\n",
     SYNTAX_YAML, 8,
     "cp=2,tp=2 seq=1 mb=1 ga=4 zero=1 reshard=always recompute=none cp_rotate=allgather precision=fp8"},
    {FLAGS("--cpu-offloading-num-layers 6"), SYNTAX_SHELL, 1, "offload=activations"},
    {FLAGS("--cpu-offloading-num-layers 6 --use-distributed-optimizer"), SYNTAX_SHELL, 4,
     "offload=activations reduce_overlap=off loss=one-copy offload_layers=6"},
    {"model:\n  cpu_offloading: true\n  cpu_offloading_num_layers: 20\n  cpu_offloading_weights: false\n"
     "train: {global_batch_size: 8, micro_batch_size: 1}\n",
     SYNTAX_YAML, 8, "offload=activations reduce_overlap=on offload_layers=20"},
    {"model:\n  activation_func_fp8_input_store: true\ntrain: {global_batch_size: 8, micro_batch_size: 1}\n",
     SYNTAX_YAML, 8, "fp8_activation=on"},
    {"model:\n  use_transformer_engine_op_fuser: true\n  activation_func_fp8_input_store: true\n"
     "train: {global_batch_size: 8, micro_batch_size: 1}\n",
     SYNTAX_YAML, 8, "fp8_activation=on op_fuser=on"},
    {"model:\n  fused_single_qkv_rope: true\ntrain: {global_batch_size: 8, micro_batch_size: 1}\n", SYNTAX_YAML, 8,
     "qkv_rope=on"},
    {FLAGS("--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 1"), SYNTAX_SHELL, 4,
     "pp_split=ends pp_first=1 pp_last=5"},
    {"model:\n  pipeline_model_parallel_size: 3\n  num_layers: 6\n  pipeline_model_parallel_layout: [[embedding, "
     "decoder], "
     "[decoder, decoder, decoder], [decoder, decoder, loss]]\ntrain: {global_batch_size: 8, micro_batch_size: 1}\n",
     SYNTAX_YAML, 3, "pp_first=1 pp_last=2"},
    {"model:\n  pipeline_model_parallel_size: 2\n  pipeline_model_parallel_layout: [[embedding, mamba], [loss]]\n"
     "train: {global_batch_size: 8, micro_batch_size: 1}\n",
     SYNTAX_YAML, 2, NULL},
    {FLAGS("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et|tt|ttt|t*10L'"), SYNTAX_SHELL, 4,
     NULL},
    {FLAGS("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et|(t*2|)*6t*3L'"), SYNTAX_SHELL, 4,
     "pp_schedule=interleaved virtual_stages=2 loss=one-copy pp_split=chunks pp_first=1 pp_last=3"},
    {FLAGS("--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 "
           "--microbatch-group-size-per-virtual-pipeline-stage 3"),
     SYNTAX_SHELL, 4, "pp_group=3"},
    {FLAGS("--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2 --no-overlap-p2p-communication"),
     SYNTAX_SHELL, 4, "p2p_overlap=off"},
    {FLAGS("--context-parallel-size 8 --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 4"), SYNTAX_SHELL,
     8, "cp=4,sp=2,tp=1"},
    {FLAGS("--num-experts 8 --expert-model-parallel-size 4"), SYNTAX_SHELL, 4, "dispatcher=allgather"},
    {FLAGS("--num-experts 8 --expert-model-parallel-size 4 --moe-token-dispatcher-type flex "
           "--moe-flex-dispatcher-backend hybridep"),
     SYNTAX_SHELL, 4, "dispatcher=hybridep"},
    {FLAGS("--use-megatron-fsdp --use-distributed-optimizer --num-distributed-optimizer-instances 2"), SYNTAX_SHELL, 8,
     "dp_replicate=2,dp_shard=4,cp=1,tp=1 seq=512 mb=1 ga=1 zero=3"},
    {FLAGS("--fp8-format hybrid --use-distributed-optimizer"), SYNTAX_SHELL, 8, "fp8_recipe=delayed"},
    {FLAGS("--recompute-granularity full --recompute-method block --recompute-num-layers 3"), SYNTAX_SHELL, 8,
     "recompute=full cp_rotate=ring precision=bf16 attention=flash fused=fused recompute_layers=3"},
};

Test(import_megatron, every_kind_of_file_is_the_plan_that_it_starts) {
    for (size_t i = 0; i < sizeof readings / sizeof readings[0]; i++) {
        Arena arena = {0};
        Import import;
        const TrainPlan usual = {.seq = 1};
        TrainPlan plan;
        char text[PLAN_TEXT_BYTES];
        read_in(readings[i].text, readings[i].syntax, readings[i].world, &arena, &import);
        if (readings[i].holds) {
            cr_assert_null(import.refusal, "case %zu: %s", i, import.refusal);
            import_plan(&import, &usual, &plan);
            cr_expect(strstr(plan_text(&plan, text), readings[i].holds), "case %zu: %s", i, text);
        } else {
            cr_expect(import.refusal && import.refusal_is_ours, "case %zu", i);
        }
        arena_free(&arena);
    }
}

#define BRIDGE(more)                                                                                                   \
    "def config():\n    cfg = _pretrain_common()\n    cfg.model.seq_length = 512\n"                                    \
    "    cfg.train.micro_batch_size = 1\n    cfg.model.pipeline_model_parallel_size = 4\n" more
#define CHUNKS "    cfg.model.virtual_pipeline_model_parallel_size = 2\n"
#define SETS(words) "    cfg.comm_overlap = CommOverlapConfig(tp_comm_overlap=False" words ")\n"

// comm_overlap.py's setup; without one overlap_p2p_comm is False and batch_p2p_comm True (model_parallel_config.py).
Test(import_megatron, messages_between_chunks_overlap_where_a_bridge_configuration_sets_it) {
    static const struct {
        const char *text;
        int overlap_off;
    } cases[] = {
        {BRIDGE(CHUNKS), 1},
        {BRIDGE(CHUNKS "    cfg.comm_overlap = None\n"), 1},
        {BRIDGE(CHUNKS SETS("")), 0},
        {BRIDGE(CHUNKS "    cfg.comm_overlap = overlap\n"), 0},
        {BRIDGE(CHUNKS SETS(", overlap_p2p_comm=False, batch_p2p_comm=True")), 1},
        {BRIDGE(CHUNKS SETS("") "    cfg.model.overlap_p2p_comm = False\n"), 0},
        {BRIDGE(CHUNKS "    cfg.model.overlap_p2p_comm = True\n    cfg.model.batch_p2p_comm = False\n"), 0},
        {BRIDGE(CHUNKS "    cfg.model.overlap_p2p_comm = False\n    cfg.model.batch_p2p_comm = True\n"), 1},
        {BRIDGE(SETS("")), IMPORT_UNSAID},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Import import;
        read_in(cases[i].text, SYNTAX_PYTHON, 8, &arena, &import);
        cr_expect_null(import.refusal, "case %zu: %s", i, import.refusal);
        cr_expect(!finds(&import, FINDING_REFUSED, ""), "case %zu", i);
        cr_expect_eq(import.said.choice[PLAN_P2P_OVERLAP], cases[i].overlap_off, "case %zu: %d", i,
                     import.said.choice[PLAN_P2P_OVERLAP]);
        arena_free(&arena);
    }
}

Test(import_megatron, what_a_bridge_configuration_replaces_or_cannot_run_is_said) {
    static const struct {
        const char *text;
        FindingKind kind;
        const char *words;
    } cases[] = {
        {BRIDGE(CHUNKS), FINDING_ASSUMED, "stages wait for the messages between them"},
        {BRIDGE(CHUNKS SETS("") "    cfg.model.overlap_p2p_comm = False\n"), FINDING_TRAP, "comm_overlap sets it anew"},
        {BRIDGE(CHUNKS "    cfg.model.overlap_p2p_comm = True\n"), FINDING_REFUSED, "Can not use both"},
        {BRIDGE(CHUNKS SETS(", batch_p2p_comm=True")), FINDING_REFUSED, "Can not use both"},
        {BRIDGE("    cfg.model.overlap_p2p_comm = True\n"), FINDING_REFUSED, "Non-interleaved pipeline parallelism"},
        {BRIDGE(SETS("") "    cfg.ddp.overlap_grad_reduce = False\n"), FINDING_TRAP,
         "comm_overlap sets it to True before training: say it as comm_overlap.overlap_grad_reduce"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Import import;
        read_in(cases[i].text, SYNTAX_PYTHON, 8, &arena, &import);
        cr_expect(finds(&import, cases[i].kind, cases[i].words), "case %zu", i);
        arena_free(&arena);
    }
}

// As Megatron-Bridge's recipes write them (git grep '"embedding"\]' in it).
Test(import_megatron, a_layout_is_read_where_its_lists_are_sums_and_multiples) {
    static const struct {
        const char *text;
        bool read;
    } cases[] = {
        {"[[\"embedding\"] + [\"decoder\"] * 3, [\"decoder\"] * 5, [\"decoder\"] * 5, [\"decoder\"] * 3 + [\"loss\"]]",
         true},
        {"[[\"embedding\"] + [\"decoder\"] * 3] + [[\"decoder\"] * 5] * 2 + [[\"decoder\"] * 3 + [\"loss\"]]", true},
        {"[[\"embedding\"] + [\"decoder\"] * 3] + [\n        [\"decoder\"] * FIVE  # each\n    ] * 2 + [\n"
         "        [\"decoder\"] * 3\n        + LAST]",
         true},
        {"[[\"embedding\"] + [\"decoder\"] * (6 - 3)] + [[\"decoder\"] * 5] * 2 + [[\"decoder\"] * 3 + [\"loss\"]]",
         false},
        {"[[\"embedding\"] + [\"decoder\"] * 3] + middle() + [[\"decoder\"] * 3 + [\"loss\"]]", false},
        {"[[\"decoder\"] * 4 for _ in range(4)]", false},
        {"[\"embedding\", \"decoder\", \"decoder\", \"loss\"]", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Import import;
        char text[1024];
        snprintf(text, sizeof text,
                 "LAST = [\"loss\"]\nFIVE = 5\n" BRIDGE("    cfg.model.num_layers = 16\n"
                                                        "    cfg.model.pipeline_model_parallel_layout = %s\n"),
                 cases[i].text);
        read_in(text, SYNTAX_PYTHON, 8, &arena, &import);
        cr_expect(!finds(&import, FINDING_REFUSED, "divisible"), "case %zu", i);
        if (cases[i].read) {
            cr_expect_null(import.refusal, "case %zu: %s", i, import.refusal);
            cr_expect_eq(import.said.choice[PLAN_PP_FIRST], 3, "case %zu", i);
            cr_expect_eq(import.said.choice[PLAN_PP_LAST], 3, "case %zu", i);
        } else {
            cr_expect(import.refusal && import.refusal_is_ours, "case %zu", i);
        }
        arena_free(&arena);
    }
}

// _get_optimizer_overlap_cfgs: of a distributed optimizer only.
Test(import_megatron, gradients_are_reduced_as_the_overlap_of_a_bridge_configuration_says) {
    static const struct {
        const char *text;
        ReduceOverlap overlap;
    } cases[] = {
        {BRIDGE(SETS("") "    cfg.ddp.overlap_grad_reduce = cfg.ddp.overlap_param_gather = False\n"),
         REDUCE_OVERLAP_ON},
        {BRIDGE("    cfg.ddp.overlap_grad_reduce = cfg.ddp.overlap_param_gather = False\n"), REDUCE_OVERLAP_OFF},
        {BRIDGE(SETS(", overlap_grad_reduce=False, overlap_param_gather=False")), REDUCE_OVERLAP_OFF},
        {BRIDGE(SETS("") "    cfg.ddp.use_distributed_optimizer = False\n"
                         "    cfg.ddp.overlap_grad_reduce = cfg.ddp.overlap_param_gather = False\n"),
         REDUCE_OVERLAP_OFF},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Import import;
        read_in(cases[i].text, SYNTAX_PYTHON, 8, &arena, &import);
        cr_expect_eq(import.said.choice[PLAN_REDUCE_OVERLAP], (int)cases[i].overlap, "case %zu", i);
        arena_free(&arena);
    }
}

Test(import_megatron, what_it_asserts_is_refused_in_its_words) {
    static const struct {
        const char *text, *words;
    } cases[] = {
        {FLAGS("--overlap-param-gather --overlap-grad-reduce"), "--overlap-param-gather only supported with"},
        {FLAGS("--use-distributed-optimizer --overlap-param-gather"), "Must use --overlap-param-gather with"},
        {FLAGS("--fp8-format hybrid --fp4-format e2m1"), "cannot be used simultaneously"},
        {FLAGS("--fp8-format hybrid --fp8-param-gather"), "--fp8-param-gather only supported with distributed"},
        {FLAGS("--fp4-param-gather"), "must be used together with --fp4-format"},
        {FLAGS("--fp16"), "bf16 and fp16"},
        {FLAGS("--pipeline-model-parallel-size 3"), "Number of layers should be divisible by the pipeline"},
        {FLAGS("--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 3"),
         "must be divisible number of layers per virtual pipeline stage"},
        {FLAGS("--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2 "
               "--num-virtual-stages-per-pipeline-rank 2"),
         "No more than one of the following arguments"},
        {FLAGS("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et*8|t*4|t*4L'"),
         "(num_stages=3, pipeline_model_parallel_size=4)"},
        {FLAGS("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et|(t*2|)*6t*2L'"),
         "Number of decoder layers 15 must match num_layers 16"},
        {FLAGS("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 't*4|t*4|t*4|t*4L'"),
         "The first layer must be embedding"},
        {FLAGS("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et*4|t*4|t*4|t*4'"),
         "The last layer must be loss"},
        {FLAGS("--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 2"),
         "left over layers must be divisible by left over stages"},
        {FLAGS("--expert-model-parallel-size 2"), "num_experts must be non None"},
        {FLAGS("--num-experts 6 --expert-model-parallel-size 4"), "should be a multiple of expert model"},
        {FLAGS("--num-experts 6 --moe-pad-expert-input-to-capacity"), "moe_expert_capacity_factor must be set"},
        {FLAGS("--recompute-granularity selective --recompute-method block"), "not yet supported for selective"},
        {FLAGS("--recompute-granularity full"), "recompute_method must be one of"},
        {FLAGS("--tp-comm-overlap --tensor-model-parallel-size 2"), "only when sequence parallelism is enabled"},
        {FLAGS("--context-parallel-size 4 --cp-comm-type a2a+p2p"),
         "--hierarchical-context-parallel-sizes must be set"},
        {FLAGS("--global-batch-size 8 --step-batch-size-schedule 0:8"), "Cannot specify both"},
        {FLAGS("--deterministic-mode --tp-comm-overlap --sequence-parallel"), "requires: tp_comm_overlap=False"},
        {FLAGS("--cuda-graph-impl full_iteration"), "should be set with --cuda-graph-impl=full_iteration"},
        {FLAGS("--lazy-mpu-initialise"), "unrecognized arguments"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Import import;
        bool said = false;
        read_in(cases[i].text, SYNTAX_SHELL, 48, &arena, &import);
        for (int j = 0; j < import.finding_count; j++) {
            said |= import.findings[j].kind == FINDING_REFUSED && strstr(import.findings[j].sentence, cases[i].words);
        }
        cr_expect(said, "%s is not said of %s", cases[i].words, cases[i].text);
        arena_free(&arena);
    }
}

// validate_args: expert_tensor_parallel_size is tensor_model_parallel_size where it is not said.
Test(import_megatron, experts_are_cut_as_tp_is_unless_the_file_says_otherwise) {
    static const struct {
        const char *words;
        int etp;
    } cases[] = {{"", 2}, {"--expert-tensor-parallel-size 1", IMPORT_UNSAID}, {"--expert-tensor-parallel-size 4", 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Import import;
        char text[512];
        snprintf(text, sizeof text, "%s %s\n",
                 FLAGS("--num-experts 8 --expert-model-parallel-size 2 --tensor-model-parallel-size 2 "
                       "--sequence-parallel"),
                 cases[i].words);
        read_in(text, SYNTAX_SHELL, 8, &arena, &import);
        cr_expect_null(import.refusal, "%s", import.refusal);
        cr_expect_eq(import.said.choice[PLAN_ETP], cases[i].etp, "%s: %d", cases[i].words,
                     import.said.choice[PLAN_ETP]);
        arena_free(&arena);
    }
}

Test(import_megatron, a_capacity_of_experts_is_a_plan_in_per_cent) {
    Arena arena = {0};
    Import import;
    read_in(FLAGS("--num-experts 8 --moe-expert-capacity-factor 1.25 --moe-pad-expert-input-to-capacity"), SYNTAX_SHELL,
            4, &arena, &import);
    cr_expect_null(import.refusal, "%s", import.refusal);
    cr_expect_eq(import.said.choice[PLAN_EXPERT_CAPACITY], 125);
    cr_expect_eq(import.said.choice[PLAN_PAD_EXPERTS], 1);
    arena_free(&arena);
}

Test(import_megatron, a_script_whose_command_stands_in_a_loop_is_an_error_and_no_plan) {
    Arena arena = {0};
    Import import;
    ConfigNode *root = NULL;
    Error error = {0};
    const char *text = "for tp in 1 2; do torchrun pretrain_gpt.py --tensor-model-parallel-size $tp; done\n";
    cr_assert_eq(config_parse(text, "file", SYNTAX_SHELL, &arena, &root, &error), STATUS_OK);
    cr_expect_eq(import_tree(root, "file", "megatron", &arena, &import, &error), STATUS_USAGE);
    cr_expect(strstr(error.message, "gives no command outside of loops"), "%s", error.message);
    arena_free(&arena);
}

Test(import_megatron, a_layout_or_a_number_that_is_left_out_is_an_error_that_says_so) {
    static const struct {
        const char *text, *words;
    } cases[] = {
        {FLAGS("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout ''"), "is empty: it takes a layout"},
        {FLAGS("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout"),
         "stands without a value: it takes"},
        {FLAGS("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et*4|x'"), "a sign other than"},
        {FLAGS("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et*|t|t|tL'"),
         "a * without a number"},
        {FLAGS("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'E(t|)*3tL|(t)*'"),
         "a * without a number"},
        {FLAGS("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'E(t*|)*3tL'"),
         "a * without a number"},
        {FLAGS("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et*65536|t|t|tL'"),
         "more than 65536 signs"},
        {FLAGS("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et|t|t|t*999999999999L'"),
         "more than 65536 signs"},
        {FLAGS("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout "
               "'E(t*65536t*65536t*65536t*65536t*65536t*65536)*4096|t|t|tL'"),
         "more than 65536 signs"},
        {FLAGS("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'E(t*0 )*999999|t|t|tL'"),
         "more than 65536 signs"},
        {FLAGS("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et|(t|)*4097L'"), "too many stages"},
        {FLAGS("--pipeline-model-parallel-size"), "stands without a value: it takes a whole number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Import import;
        ConfigNode *root = NULL;
        Error error = {0};
        cr_assert_eq(config_parse(cases[i].text, "file", SYNTAX_SHELL, &arena, &root, &error), STATUS_OK);
        cr_expect_eq(import_tree(root, "file", "megatron", &arena, &import, &error), STATUS_USAGE);
        cr_expect(strstr(error.message, cases[i].words), "%s", error.message);
        arena_free(&arena);
    }
}

Test(import_megatron, an_optimizer_that_deals_out_whole_layers_is_named_as_not_held) {
    Arena arena = {0};
    Import import;
    read_in(FLAGS("--optimizer soap --use-distributed-optimizer"), SYNTAX_SHELL, 4, &arena, &import);
    cr_expect(import.refusal_is_ours && strstr(import.refusal, "soap keeps the states of whole layers"), "%s",
              import.refusal);
    arena_free(&arena);
}

Test(import_megatron, muon_is_that_of_whole_replicas_or_of_matrices_dealt_out) {
    static const char *const texts[] = {FLAGS("--optimizer muon"),
                                        FLAGS("--optimizer muon --use-distributed-optimizer"),
                                        FLAGS("--optimizer dist_muon")};
    for (int i = 0; i < 3; i++) {
        Arena arena = {0};
        Import import;
        read_in(texts[i], SYNTAX_SHELL, 4, &arena, &import);
        cr_expect_null(import.refusal, "%s", import.refusal);
        cr_expect_eq(import.said.choice[PLAN_OPTIMIZER], OPTIMIZER_MUON);
        cr_expect_eq(import.said.choice[PLAN_ZERO], i > 0);
        arena_free(&arena);
    }
}

Test(import_megatron, settings_of_muon_that_are_not_priced_are_named_with_what_is) {
    static const struct {
        const char *flags, *words;
        FindingKind kind;
    } cases[] = {
        {FLAGS("--optimizer muon --muon-num-ns-steps 10"), "10 steps of Newton and Schulz", FINDING_UNMODELLED},
        {FLAGS("--optimizer muon --muon-use-syrk"), "symmetric", FINDING_UNMODELLED},
        {FLAGS("--optimizer muon --muon-no-split-qkv"), "q, k and v are one matrix", FINDING_UNMODELLED},
        {FLAGS("--optimizer muon --muon-scalar-optimizer lion"), "lion has one state", FINDING_UNMODELLED},
        {FLAGS("--optimizer muon --muon-fp32-matmul-prec high"), "predicted with medium", FINDING_UNMODELLED},
        {FLAGS("--optimizer muon --muon-coefficient-type cubic5"), "two products a step", FINDING_UNMODELLED},
        {FLAGS("--optimizer muon --muon-coefficient-type cubic5 --muon-num-ns-steps 6"), "Use --muon-num-ns-steps 5",
         FINDING_REFUSED},
        {FLAGS("--optimizer muon --muon-coefficient-type mine"), "coefficients mine are not known", FINDING_UNMODELLED},
        {FLAGS("--optimizer dist_muon --no-use-layer-wise-param-layout"), "whole gradients", FINDING_UNMODELLED}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Import import;
        read_in(cases[i].flags, SYNTAX_SHELL, 4, &arena, &import);
        cr_expect(finds(&import, cases[i].kind, cases[i].words), "%s", cases[i].flags);
        arena_free(&arena);
    }
}

Test(import_megatron, settings_of_muon_that_are_its_defaults_or_idle_are_not_named) {
    static const char *const texts[] = {
        FLAGS("--optimizer muon --muon-num-ns-steps 5 --muon-coefficient-type polar_express --muon-scalar-optimizer "
              "adam --muon-fp32-matmul-prec medium --muon-momentum 0.95"),
        FLAGS("--optimizer muon --no-use-layer-wise-param-layout"), FLAGS("--muon-num-ns-steps 10")};
    for (int i = 0; i < 3; i++) {
        Arena arena = {0};
        Import import;
        read_in(texts[i], SYNTAX_SHELL, 4, &arena, &import);
        for (int at = 0; at < import.finding_count; at++) {
            const char *key = import.findings[at].key;
            cr_expect(!key || (!strstr(key, "muon") && !strstr(key, "layout")), "%s", texts[i]);
        }
        arena_free(&arena);
    }
}

Test(import_megatron, one_layer_for_all_further_tokens_is_named) {
    Arena arena = {0};
    Import import;
    read_in(FLAGS("--mtp-num-layers 2 --mtp-use-repeated-layer"), SYNTAX_SHELL, 4, &arena, &import);
    cr_expect(finds(&import, FINDING_UNMODELLED, "one layer predicts all further tokens"));
    arena_free(&arena);
}

Test(import_megatron, experts_one_by_one_and_operations_of_pytorch_are_named_as_slower) {
    Arena arena = {0};
    Import plain, fused;
    read_in(FLAGS("--num-experts 8"), SYNTAX_SHELL, 4, &arena, &plain);
    read_in(FLAGS("--num-experts 8 --moe-grouped-gemm --moe-permute-fusion --moe-router-fusion"), SYNTAX_SHELL, 4,
            &arena, &fused);
    cr_expect(finds(&plain, FINDING_UNMODELLED, "each expert is an MLP"));
    cr_expect(finds(&plain, FINDING_UNMODELLED, "by operations of PyTorch"));
    cr_expect(finds(&plain, FINDING_UNMODELLED, "the router is operations of PyTorch"));
    cr_expect(!finds(&fused, FINDING_UNMODELLED, "without --moe"));
    arena_free(&arena);
}

Test(import_megatron, a_mask_of_the_loader_is_named_where_it_takes_a_gibibyte) {
    static const struct {
        const char *text;
        bool named;
    } cases[] = {
        {FLAGS("--seq-length 32768 --micro-batch-size 1"), true},
        {FLAGS("--seq-length 16384 --micro-batch-size 4"), true},
        {FLAGS("--seq-length 16384 --micro-batch-size 2"), false},
        {FLAGS("--seq-length 32768 --micro-batch-size 1 --no-create-attention-mask-in-dataloader"), false},
        {FLAGS("--seq-length 32768 --micro-batch-size 1 --dataloader-inter-document-masking"), false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Import import;
        read_in(cases[i].text, SYNTAX_SHELL, 4, &arena, &import);
        cr_expect_eq(finds(&import, FINDING_UNMODELLED, "a mask of sequence x sequence"), cases[i].named, "%s",
                     cases[i].text);
        arena_free(&arena);
    }
}

Test(import_megatron, what_scripts_leave_on_that_no_plan_has_is_named) {
    static const struct {
        const char *text;
        bool scales, looks;
    } cases[] = {
        {FLAGS(""), true, true},
        {FLAGS("--ddp-average-in-collective --no-check-for-nan-in-loss-and-grad"), false, false},
        {FLAGS("--calculate-per-token-loss"), false, true},
        {FLAGS("--use-megatron-fsdp --use-distributed-optimizer"), false, true},
        {"torchrun --nproc_per_node 4 " FLAGS("--tensor-model-parallel-size 4"), false, true},
        {"torchrun --nproc_per_node 4 " FLAGS("--tensor-model-parallel-size 2"), true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Import import;
        read_in(cases[i].text, SYNTAX_SHELL, 4, &arena, &import);
        cr_expect_eq(finds(&import, FINDING_UNMODELLED, "before they are reduced"), cases[i].scales, "case %zu", i);
        cr_expect_eq(finds(&import, FINDING_UNMODELLED, "looked through for NaN"), cases[i].looks, "case %zu", i);
        arena_free(&arena);
    }
}
