// What the code that a row ran did and its columns do not say: read in recipes and sources at the commits that rows are
// cited from, by date where code changed. Nothing here looks at an id.

#include "autotune/accuracy/run_labels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "autotune/accuracy/run_chips.h"
#include "autotune/accuracy/run_source.h"
#include "autotune/accuracy/run_tests.h"
#include "sim/base/text.h"
#include "sim/cost/compute.h"

static bool says_first(const RunRow *row, const char *words) {
    return row->compiled_or_fused && strncmp(row->compiled_or_fused, words, strlen(words)) == 0;
}

bool row_ran_before(const RunRow *row, const char *date) {
    return row->date[0] != '\0' && strcmp(row->date, date) < 0;
}

// A source that describes its kernels without mentioning a compiler was not compiled, whatever the target's recipes do.
bool row_says_uncompiled(const RunRow *row) {
    const char *said = row->compiled_or_fused;
    return row->plan_word[PLAN_FUSED][0] == '\0' && said && said[0] != '\0' && !strstr(said, "compile") &&
           !strstr(said, "inductor");
}

// Training with Megatron Core in fp8 gathers weights in fp8 and reduces gradients in bf16, which rows seldom state:
// recipes of NeMo and Megatron-Bridge (fp8_param_gather; grad_reduce_in_fp32 false in those with published figures),
// Megatron-LM examples/llama/train_llama3_8b_h100_fp8.sh, NVIDIA's MLPerf submissions (pretrain.py). Runs of NeMo
// before 25.04 do not show it. With a scale for every 32 elements weights travel in bf16, through the gradient buffer
// (reuse_grad_buf_for_mxfp8_param_ag).
static const char fp8_weights_since[] = "2025-05";

bool row_is_fp8_recipe(const RunRow *row, const Target *target) {
    return target->reduces_often_bf16 && strcmp(row->plan_word[PLAN_PRECISION], "fp8") == 0 &&
           !row_ran_before(row, fp8_weights_since);
}

// Among the kernels that a source names, Liger's stand for its fused loss too, unless a column says otherwise.
bool row_says_liger(const RunRow *row) {
    return row->plan_word[PLAN_LOSS][0] == '\0' && row->compiled_or_fused && strstr(row->compiled_or_fused, "liger");
}

// Whose own preparation of packed weights skips what peft's casts to fp32: framework_plugin_bnb.py at 876e2ed, and
// train.py of fsdp_qlora, which replaces linear layers itself (e877dda50).
bool row_skips_upcast(const RunRow *row) {
    return says_first(row, "accelerated-peft") || row_cites(row, "fsdp_qlora@");
}

// Of fms-acceleration's tables at 876e2ed one ran transformers 4.48.1, the others 4.45.2 (refs/requirements*.txt).
static bool ran_transformers_4_48(const RunRow *row) {
    return row_cites(row, "refs/a100_80gb.csv");
}

// The minor version of Transformer Engine that a run names; -1: none.
static int named_engine(const RunRow *row) {
    int minor = -1;
    const char *named = row->software ? strstr(row->software, "TE 2.") : NULL;
    return named && sscanf(named, "TE 2.%d", &minor) == 1 ? minor : -1;
}

// FusedAdam updates two states in bf16 as they are since Transformer Engine 2.14 (459e7cf49 of 2026-02-24).
bool row_casts_states(const RunRow *row) {
    enum { SINCE_MINOR = 14 };
    const int minor = named_engine(row);
    return minor >= 0 && minor < SINCE_MINOR;
}

// Liger's releases whose fused loss casts parts of the head's gradient to add them up (runtime.casts_loss_sums).
bool row_runs_casting_liger(const RunRow *row) {
    enum { FIRST = 602, LAST = 802 };
    int minor = 0, patch = 0;
    const char *named = row->software ? strstr(row->software, "Liger 0.") : NULL;
    const bool is = named && sscanf(named, "Liger 0.%d.%d", &minor, &patch) == 2;
    return is && 100 * minor + patch >= FIRST && 100 * minor + patch <= LAST;
}

// One table of SimuMax is two files here, of which one has a column for it.
bool row_runs_engine_2_11(const RunRow *row) {
    enum { MINOR = 11 };
    return named_engine(row) == MINOR || row_cites(row, "b200_release_v1.2_summary");
}

// NeMo 25.09 and PyTorch's container of that month have 2.7.0 (Megatron-Bridge, software versions by release).
bool row_runs_engine_2_7(const RunRow *row) {
    return row->software && strstr(row->software, "25.09") != NULL;
}

// MistralFlashAttention2 calls repeat_kv, which Llama's does not; 4.48 has one attention for both.
bool row_repeats_keys(const RunRow *row) {
    return row_cites(row, "fms-acceleration@") && strncmp(row->model, "Mistral", strlen("Mistral")) == 0 &&
           !ran_transformers_4_48(row);
}

// The loss is a function of the model's output since 4.46 (loss/loss_utils.py, ForCausalLMLoss); before, forward put
// the fp32 copy in the logits' place.
bool row_keeps_logits(const RunRow *row) {
    return ran_transformers_4_48(row);
}

static bool is_of_bridge(const RunRow *row) {
    return row_cites(row, "Megatron-Bridge@");
}

// Megatron-Bridge's summary prints shapes; that tp's collectives overlap products is in its recipes of 70B and 405B
// and none of its tables, so its rows say 0: tp_comm_overlap True in recipes/llama/llama3.py, which
// scripts/performance/configs/llama turns off for nvfp4 only, read at the commits that the rows are cited from
// (d8348845d to 693ad1b0c). Its recipes of experts have no tp.
bool row_has_recipe_overlap(const RunRow *row, const Target *target, const TrainPlan *plan) {
    return is_of_bridge(row) && row_cites(row, "performance-summary") && row->experts.count == 0 &&
           strstr(row->precision, "NVFP4") == NULL && target->tp_overlap_exposed > 0 && plan->mesh.size[AXIS_TP] > 1;
}

// It pretrains every model there with Transformer Engine's loss: cross_entropy_fusion_impl "te" in
// scripts/performance/configs/*/*_llm_pretrain.yaml (v0.1.0rc3), utils/helpers.py (v0.2.0) and utils/overrides.py
// (v0.3.0 to 693ad1b0c), with cross_entropy_loss_fusion of models/gpt_provider.py; recipes of adapters switch it off.
bool row_has_recipe_loss(const RunRow *row, const Target *target, const TrainPlan *plan) {
    return is_of_bridge(row) && row->plan_word[PLAN_LOSS][0] == '\0' && !plan_has_adapters(plan) &&
           (target->losses_by_call & LOSS_BIT(LOSS_IN_PLACE));
}

// Before its 2.2 (2025-04-03) Transformer Engine has no per-tensor scale but the delayed one: common/recipe/__init__.py
// gets Float8CurrentScaling there.
static const char current_scales_since[] = "2025-04-03";

bool row_has_delayed_scale(const RunRow *row, const Target *target, const TrainPlan *plan) {
    return target->fp8_flavour == FP8_TRANSFORMER_ENGINE && plan->fp8_recipe == FP8_TENSORWISE &&
           row_ran_before(row, current_scales_since);
}

// torch.compile(model) has the head in its graph, whose operands TorchInductor pads since PyTorch 2.1.0
// (sim/cost/compute_gemm.c). What targets compile is their layers, one by one.
static const char padding_since[] = "2023-10-04";

bool row_pads_rows(const RunRow *row) {
    const bool whole = row_cites(row, "karpathy/nanoGPT") || row_cites(row, "karpathy/build-nanogpt");
    return whole && strcmp(row->plan_word[PLAN_FUSED], "compiled") == 0 && strcmp(row->date, padding_since) >= 0;
}

// Blackwell's attention of 2025: NVIDIA's containers have cuDNN 9.13 and before until Megatron-Bridge's is built on
// PyTorch 25.11 (its b54b725d2 of 2026-01-07; v0.2.2 of two days later has 25.09 still; MLPerf's installs 9.13.1). In
// one benchmark 9.17 takes 0.81 to 0.91 of its time (profiles, cudnn-913).
static const char cudnn_9_17_since[] = "2026-01-07", old_cudnn[] = "-913";

// PyTorch's containers have CUDA 13 since 25.08, Megatron-Bridge's since it is built on 25.09 (2550d8a5a; v0.2.0, of
// its 25.11), which is taken for all. Of MLPerf 5.1 (2025-10) Cisco's on H100 is on 25.01.
static const char cuda_13_since[] = "2025-10-27";

// Rows of its archive are dated by the archive's commit and name their release: 25.09 and 25.11 are of that container.
static bool ran_old_cudnn(const RunRow *row) {
    return row_ran_before(row, cudnn_9_17_since) || (is_of_bridge(row) && row_cites(row, "[25."));
}

static bool ran_cuda_12(const RunRow *row) {
    return row_ran_before(row, cuda_13_since) || (is_of_bridge(row) && row_cites(row, "[25.09"));
}

// Before the containers of 2025-08, which have 9.12, Blackwell's was 9.10 at most: 9.10.2 beside 9.13.1 in that
// benchmark on B200, 4,096 to 65,536 keys, plateau and ramp (NVIDIA/cudnn-frontend@9793df5 and @0b1577c8, each fitted
// within 3 %).
static const char cudnn_9_12_since[] = "2025-09";

typedef struct KernelChange {
    const char *kernel;
    double forward_efficiency, forward_ramp, backward_efficiency, backward_ramp;  // over those of the rate
} KernelChange;

static const KernelChange cudnn_9_10[] = {{"cudnn", 0.957, 1.45, 0.991, 1.04}, {"cudnn-fp8", 0.937, 1.15, 0.997, 1.15}};

static void take_cudnn_9_10(int head_dim, Accelerator *accelerator) {
    for (int i = 0; i < accelerator->attention_count; i++) {
        AttentionRate *rate = &accelerator->attention[i];
        const KernelChange *change =
            TEXT_FIND(cudnn_9_10, sizeof cudnn_9_10 / sizeof *cudnn_9_10, kernel, rate->kernel);
        if (rate->head_dim == head_dim && change) {
            rate->forward_efficiency *= change->forward_efficiency;
            rate->forward_ramp *= change->forward_ramp;
            rate->backward_efficiency *= change->backward_efficiency;
            rate->backward_ramp *= change->backward_ramp;
        }
    }
}

static AttentionRate *named_row(Accelerator *accelerator, const char *kernel, int head_dim) {
    const AttentionRate *rate = attention_rate(accelerator, kernel, head_dim);
    const bool same = rate && rate->head_dim == head_dim && strcmp(rate->kernel, kernel) == 0;
    return same ? &accelerator->attention[rate - accelerator->attention] : NULL;
}

// Transformer Engine on MI300X and MI325X runs AMD's asm kernels where NVTE_CK_USES_FWD_V3 and _BWD_V3 ask for them.
// MLPerf's code, one container for both (ROCm's page on reproducing 5.0), asks in 5.0 for the second alone, so that
// forward is Composable Kernel's own, which is FlashAttention 2 there; in 5.1 for both, and adds gradients up in 16
// bits (NVTE_CK_IS_V3_ATOMIC_FP32=0): 1.11 times the rate, in the middle of 54 shapes of 4,096 and more keys
// (ROCm/aiter@e4048607a5, the README of op_tests/cpp/mha).
static const char asm_forward_since[] = "2025-10", code_of_5_0[] = "_v5.0/";
static const double sums_in_16_bits = 1.11;

static void take_ck(const RunRow *row, int head_dim, Accelerator *accelerator) {
    AttentionRate *asm_rate = named_row(accelerator, "ck", head_dim);
    const AttentionRate *own = named_row(accelerator, "flash", head_dim);
    if (!asm_rate || !own || !chip_is_of(accelerator, CHIPS_CDNA3)) {
        return;
    }
    if (row_ran_before(row, asm_forward_since) || row_cites(row, code_of_5_0)) {
        asm_rate->forward_efficiency = own->forward_efficiency;
        asm_rate->forward_ramp = own->forward_ramp;
    } else if (row_cites(row, "mlcommons/")) {
        asm_rate->backward_efficiency *= sums_in_16_bits;
        accelerator->attention_backward_flop_per_s *= sums_in_16_bits;
    }
}

// Primus' recipes that set use_turbo_rms_norm, whose norms are Primus-Turbo's.
static void take_norms(const RunRow *row, Accelerator *accelerator) {
    if (row_cites(row, "Primus@") && (row_cites(row, "mlperf/gpt_oss_20b/") || row_cites(row, "/minimax_m2.5-"))) {
        accelerator->norm_element_s = 0;
        accelerator->norm_backward_element_s = 0;  // and no sums with it
    }
}

// Rates of the head size that was measured: kernels of another have what they had.
void row_take_container(const RunRow *row, int head_dim, Accelerator *accelerator) {
    if (ran_cuda_12(row)) {
        accelerator->fp8_exact_share_cuda_13 = 0;
    }
    take_ck(row, head_dim, accelerator);
    take_norms(row, accelerator);
    bool taken = false;
    for (int i = 0; i < accelerator->attention_count && ran_old_cudnn(row); i++) {
        AttentionRate old = accelerator->attention[i];
        char *end = strstr(old.kernel, old_cudnn);
        if (end && old.head_dim == head_dim) {
            *end = '\0';
            AttentionRate *now = named_row(accelerator, old.kernel, head_dim);
            if (now) {
                *now = old;
                taken = true;
            }
        }
    }
    if (taken && row_ran_before(row, cudnn_9_12_since)) {
        take_cudnn_9_10(head_dim, accelerator);
    }
}

// Profiles are of the libraries of their date. Those of 2022 and 2023 (CUDA 11 and 12.1) reach 0.96 of the rate in
// products: runs on A100 of 2023 against those of 2024 (tests/accuracy), with the sustained rate that
// Azure measures today (254 to 257 TFLOP/s).
static const char new_libraries[] = "2024";
static const double old_library_share = 0.96;

void row_take_libraries(const RunRow *row, Accelerator *accelerator) {
    const bool of_its_time = !cost_supports(accelerator, DTYPE_BF16);  // V100: measured with its own libraries
    if (!row_ran_before(row, new_libraries) || of_its_time) {
        return;
    }
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        accelerator->gemm[dtype].burst_flop_per_s *= old_library_share;
        accelerator->gemm[dtype].sustained_flop_per_s *= old_library_share;
    }
}

// Since that month's container Megatron-Bridge's recipes of experts in mxfp8 on racks of GB200 and GB300 capture whole
// micro-steps (cuda_graph_impl full_iteration: scripts/performance/configs at 693ad1b0c, perf_recipes of v0.6.0), which
// its tables do not print; what they captured before is in the column.
static const char whole_graphs_since[] = "2026-06";

static bool is_whole_graph(const RunRow *row) {
    return is_of_bridge(row) && strstr(row->plan_word[PLAN_FP8_RECIPE], "mx") && strncmp(row->cluster, "gb", 2) == 0 &&
           strcmp(row->date, whole_graphs_since) >= 0;
}

static bool is_recipe_graph(const RunRow *row) {
    return row->experts.count > 0 && is_whole_graph(row);
}

// The same recipes fuse the products of experts with their activation (cutedsl_fused_grouped_mlp at 693ad1b0c, later
// use_transformer_engine_op_fuser, with NVTE_CUTEDSL_FUSED_GROUPED_MLP).
bool row_fuses_experts(const RunRow *row) {
    return row->plan_number[PLAN_OP_FUSER] == RUN_UNKNOWN && is_recipe_graph(row);
}

static bool is_deepseek(const RunRow *row) {
    return strcmp(row->model, "DeepSeek-V3") == 0;
}

// They multiply queries, keys and values in fp8 (fp8_dot_product_attention there), but for DeepSeek-V3 on GB200, and
// the head of DeepSeek-V3 and GPT-OSS (fp8_output_proj in the files of both models there).
bool row_attends_in_fp8(const RunRow *row) {
    const bool said = row->attention_precision && row->attention_precision[0] != '\0';
    return said ? strcmp(row->attention_precision, "fp8") == 0
                : is_recipe_graph(row) && !(is_deepseek(row) && strstr(row->cluster, "gb200"));
}

static bool has_submitted_fp8_head(const RunRow *row) {
    return row_cites(row, "training_results_v6.0") && row_cites(row, "deepseekv3_671b") &&
           strncmp(row->cluster, "gb300", 5) == 0;
}

// So do MLPerf 6.0's submissions of DeepSeek-V3 on GB300 (FP8_OUTPUT_PROJ of their configuration files).
bool row_has_fp8_head(const RunRow *row) {
    return has_submitted_fp8_head(row) ||
           (is_whole_graph(row) && (is_deepseek(row) || strncasecmp(row->model, "gpt-oss", strlen("gpt-oss")) == 0));
}

// CUDA graphs of whole micro-steps, of layers, or of their parts in Megatron-core's words or the plan's, joined by +.
GraphUse row_graphs(const RunRow *row) {
    static const char *const on[] = {"1", "on", "full", "full_iteration"}, *const off[] = {"0", "off", "none"};
    static const struct {
        const char *word;
        unsigned part;
    } parts[] = {{"attn", GRAPHED_ATTENTION}, {"mlp", GRAPHED_MLP}, {"router", GRAPHED_ROUTER}};
    const char *word = row->plan_word[PLAN_CUDA_GRAPHS];
    unsigned captured = 0;
    if (text_index(on, sizeof on / sizeof on[0], word) >= 0 || (word[0] == '\0' && is_recipe_graph(row))) {
        return CUDA_GRAPHS_ON;
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        captured |= strstr(word, parts[i].word) ? parts[i].part : 0;
    }
    return captured || strcmp(word, "layers") == 0                  ? (GraphUse)(CUDA_GRAPHS_LAYERS + captured)
           : text_index(off, sizeof off / sizeof off[0], word) >= 0 ? CUDA_GRAPHS_OFF
                                                                    : CUDA_GRAPHS_TARGET;
}

// Traced graphs (graph_trainer, and the compiler toolkit before it) shard each parameter by a collective of its own,
// copied in on the stream of the kernels, and wait for it where it stands (experiments/graph_trainer/simple_fsdp.py):
// passes that join and move them are asked for (compile.passes, empty; a764c9815, fca8ab7be) until d98fa54b2 runs some
// by default. Without Inductor nothing is compiled.
static const char passes_since[] = "2026-04-08";

bool row_is_traced(const RunRow *row) {
    return says_first(row, "graph");
}

bool row_is_plain_trace(const RunRow *row) {
    return row_ran_before(row, passes_since) && (row_is_traced(row) || says_first(row, "compiler toolkit"));
}

bool row_has_full_inductor(const RunRow *row) {
    return row->compiled_or_fused && strstr(row->compiled_or_fused, "full inductor");
}

// DGX Cloud's GPT-3 175B has hidden_dropout 0.1 (nemo_megatron/gpt3_175b_hydra.yaml, v24.11.1 and v25.02). So has what
// LiBai is held against: a script of 2022-07 that leaves Megatron-LM its defaults (Oneflow-Inc/OneAutoTest
// 83a7070, args_pretrain_gpt2.sh); LiBai's own drops nothing there.
bool row_drops(const RunRow *row) {
    return row->dropout > 0 || row_drops_in_test(row) ||
           (row_cites(row, "dgxc-benchmarking@") && row_cites(row, "nemo_megatron/")) ||
           (row_cites(row, "Oneflow-Inc/libai@") && says_first(row, "Megatron-LM"));
}

// Megatron-LM's scripts leave its defaults, which NeMo's recipes, Megatron-Bridge's and MLPerf's code do not: gradients
// are scaled before they are reduced (no --ddp-average-in-collective) and looked through for NaN
// (check_for_nan_in_loss_and_grad; distributed/param_and_grad_buffer.py of core_v0.14.0).
bool row_keeps_script_defaults(const RunRow *row) {
    return row_cites(row, "-tutorials@0b2c030a1:") || row_cites(row, "SimuMax@");
}

// Each bucket's norm is read, and the host waits for it twice: the caller's frame is looked up (60 us, Python's
// inspect.getframeinfo here; an operation is 13, sim/SOURCES.md H7), one and two operations are launched and a result
// is read back; then the scaling is launched (rerun_state_machine.py, validate_result).
static const double scale_bytes = 8, norm_bytes = 4;
static const double stop_operations = 2 * 60.0 / 13 + 6;

void take_script_defaults(const RunRow *row, TargetRuntime *runtime) {
    (void)row;
    runtime->whole_bytes_per_parameter += scale_bytes + norm_bytes;
    runtime->bucket_stop_operations = stop_operations;
}

bool row_is_nemotron(const RunRow *row) {
    return row->experts.count == 0 && strcmp(row->mlp, "gelu") == 0 &&
           strncmp(row->model, "Nemotron", strlen("Nemotron")) == 0;
}

// Cisco's pretrain.py of MLPerf 5.1 says align_param_gather, which leaves it to the pipeline's schedule to start the
// gathers of updated weights, and has no pipeline: each module gathers its own as it begins, and waits
// (Megatron-LM core_v0.13.1, distributed/distributed_data_parallel.py, _make_forward_pre_hook).
bool row_gathers_on_demand(const RunRow *row) {
    return row_cites(row, "training_results_v5.1@") && row_cites(row, ":Cisco/results/hpf_");
}

// NeMo up to v1.23, the launcher's of 2024-04, runs Nemotron's squared ReLU as two operations (NVIDIA/NeMo d9f20774fd
// compiles it, 2024-04-23). So does NeMo 2, which is left out (tests/accuracy/holdout, RESULTS).
bool row_squares_apart(const RunRow *row) {
    return row_is_nemotron(row) && row_cites(row, "NeMo-Framework-Launcher@81b75a7c:");
}

// Their READMEs say PaddlePaddle 2.5.1.
bool row_is_paddle(const RunRow *row) {
    return row_cites(row, "FlagPerf@") && row_cites(row, "-paddle/");
}

// Transformer Engine takes cuDNN's kernels on Hopper unless NVTE_FUSED_ATTN=0, which leaves FlashAttention 2: so in
// these recipes of NVIDIA/dgxc-benchmarking (launch.sh, configure.sh), whose tables do not say it. Others of the same
// releases set 1 (Llama 3.1, Nemotron 15B).
static const char *const without_cudnn[] = {"(tag v24.11.1):nemo_megatron/", "(tag v24.11.1):nemotron/README_340b",
                                            "(tag v25.02):nemotron/README_340b", NULL};

AttentionKernel row_attention(const RunRow *row, AttentionKernel labelled) {
    return labelled != ATTENTION_CUDNN         ? labelled
           : row_cites_any(row, without_cudnn) ? ATTENTION_FLASH
           : row_attends_apart(row)            ? ATTENTION_EAGER
                                               : ATTENTION_CUDNN;
}

// NeMo Automodel's benchmarks have a gate that gives token t the experts from t times k on, all on one rank or two
// (fake_balanced_gate of their configurations; FakeBalancedGate of components/moe/layers.py, 89e3a9fdd to 4f8b5760f).
// Torchtitan's debug.moe_force_load_balance does the same: tests/accuracy/holdout/RESULTS.md.
bool row_gates_in_turn(const RunRow *row) {
    return row_cites(row, "Automodel@") && row->balance && strcmp(row->balance, "forced") == 0;
}

// Benchmarks force balance, also where a row says nothing; Sinkhorn's iterations reach it.
bool row_router_learns(const RunRow *row) {
    static const char *const even[] = {"", "forced", "unknown", "sinkhorn"};
    return row->balance && text_index(even, sizeof even / sizeof even[0], row->balance) < 0;
}

// Its first steps, or no loss and no bias ever balances it.
bool row_router_begins(const RunRow *row) {
    static const char *const begun[] = {"untrained", "none"};
    return row->balance && text_index(begun, sizeof begun / sizeof begun[0], row->balance) >= 0;
}

// A benchmark's text is one word to half of a sequence, and padding behind it.
bool row_repeats_words(const RunRow *row) {
    return row->balance && strcmp(row->balance, "alike") == 0;
}

static bool is_of_aquila(const RunRow *row) {
    return row_cites(row, "aquila2_7b-flagscale/") || row_cites(row, "aquila2_7b_finetune-flagscale/");
}

// FlagScale ed55532 (2023-10) and 26cd664 (2024-01), by training/nvidia/docker_image of FlagPerf.
bool row_is_flagscale(const RunRow *row) {
    return row_cites(row, "FlagPerf@") && (is_of_aquila(row) || row_cites(row, "nvidia/llama2_70B-"));
}

// training/benchmarks/aquila2_7b*/flagscale/flagscale_main.sh has no --sequence-parallel; Llama 2 70B's has it.
bool row_lacks_sp(const RunRow *row) {
    return row->sp == 0 || (row_is_flagscale(row) && is_of_aquila(row));
}

// These commits of the memory policy print torch.cuda.max_memory_allocated.
bool row_prints_live(const RunRow *row) {
    return row_cites(row, "commit f4614f333") || row_cites(row, "commit 28ed62e43");
}

// A tensor of an asynchronous collective, before PyTorch 2.2 (pytorch/pytorch pull request 111431) of any, is recorded
// on NCCL's stream: once freed, nothing takes its memory until the device has passed the collective. Titan sets
// TORCH_NCCL_AVOID_RECORD_STREAMS since e62573d4c; FlagPerf's container of FlagScale is 23.09, PyTorch 2.1.
static const char streams_avoided_since[] = "2024-04-10";

bool row_records_streams(const RunRow *row) {
    const bool titan = row_cites(row, "titan commit") && row_ran_before(row, streams_avoided_since);
    return titan || row_is_flagscale(row);
}

// Fine-tuning cuts what is asked to the tokenizer's longest (fms-hf-tuning, tuning/sft_trainer.py: min of
// max_seq_length and tokenizer.model_max_length), and the column has what was asked. Figures are rounded to 1 %,
// lengths are multiples of 64.
static const double rounding = 0.03, length_unit = 64;

int64_t row_sequence(const RunRow *row, const TrainPlan *plan) {
    const double tokens = row->step_time_s * row->tokens_per_s_per_gpu * (double)mesh_world(&plan->mesh);
    const double measured = tokens / (double)plan_global_batch(plan);
    if (tokens == 0 || fabs(measured / (double)row->seq - 1) <= rounding) {
        return row->seq;
    }
    return (int64_t)(length_unit * fmax(1, round(measured / length_unit)));
}

// vTrain's 1,440 steps on one node are its simulator's: to the nanosecond they are linear in layers and micro-batches,
// and differ between sizes of dp by its table of all-reduces (tests/accuracy/runs/vtrain.py).
bool row_is_computed(const RunRow *row) {
    return row_cites(row, "vTrain@") && row_cites(row, "ground_truth_single.csv");
}
