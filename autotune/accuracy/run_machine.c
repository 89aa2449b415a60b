// Golden values are downloaded from Gitlab's pipelines (CLUSTER_H100 of .gitlab-ci.yml: DGX H100 or CoreWeave's) or, by
// skills/update-golden-values, from GitHub's, whose runner of eight H100 is AWS's (nvidia-ci-aws-gpu-x8 of
// .github/workflows/cicd-main.yml). Both write golden_values_dev_dgx_h100.json; read at d98e8a64d of Megatron-LM.

#include "autotune/accuracy/run_machine.h"

#include <stddef.h>
#include <string.h>

#include "autotune/accuracy/run_source.h"
#include "autotune/accuracy/run_tests.h"

// Measured last by 5fe3f06658 (2026-05-07) or cd4afffa64 (2026-07-25), whose files take 1.48 and 1.42 times what the
// commit before has, in the median; other commits of 2026 change theirs by 0.97 to 1.06.
static const char *const from_github[] = {
    "_tp1_pp1_dist_optimizer_fim_dataset/",
    "_tp1_pp1_dist_optimizer_no_mmap_bin_files/",
    "_tp1_pp1_resume_torch_dist_uniform_full_recompute/",
    "_tp1_pp2_resume_torch_dist_rope_embeddings/",
    "_tp1_pp2_resume_torch_dist_rope_embeddings_interleaved_no_fusion/",
    "_tp1_pp4_resume_torch_dist_disable_bias_linear/",
    "_tp1_pp4_resume_torch_dist_persistent_disable_bias_linear/",
    "_tp1_pp4_resume_torch_dist_untie_embeddings_and_outputs/",
    "_tp1_pp4_vp1_dist_optimizer_overlap_grad_reduce_param_gather_overlap_optimizer/",
    "_tp1_pp4_vp1_resume_torch_decoupled_lr/",
    "_tp1_pp4_vp1_resume_torch_dist_calculate_per_token_loss/",
    "_tp1_pp4_vp1_resume_torch_dist_dist_optimizer_overlap_grad_reduce/",
    "_tp1_pp4_vp1_uneven_pipeline/",
    "_tp1_pp4_vp2_account_for_embedding_loss_in_pipeline_split/",
    "_tp2_pp1_resume_torch_dist_multi_dist_optimizer_instances/",
    "_te_tp2_pp2_mla/",
    "_te_tp2_pp2_resume_torch_dist/",
    "_te_tp2_pp2_resume_torch_dist_ddp_average_in_collective/",
    "_te_tp4_pp1_dist_optimizer_overlap_grad_reduce_param_gather/",
    "_te_tp4_pp1_resume_torch_dist_dist_optimizer_overlap_grad_reduce_param_gather/",
    "_tp4_pp1_resume_torch_dist_qk_layernorm_test_mode/",
    "_tp2_pp1_resume_torch_dist_te_8experts2parallel_dist_optimizer/",
    "_tp2_pp1_resume_torch_dist_te_8experts2parallel_multi_dist_optimizer_instances/",
    "_te_8experts2parallel_ddp_average_in_collective/",
    "_te_8experts2parallel_overlap_grad_reduce_param_gather_groupedGEMM/",
    "_te_a2a_ovlp_8experts_etp1_ep4/",
    "_moe_mcore_te_ep8_resume_torch_dist_dist_optimizer/",
    "_moe_mcore_te_ep8_resume_torch_dist_dist_muon/",
    "_moe_mcore_te_ep8_resume_torch_dist_muon/",
    "_te_tp4_ep2_etp2_pp2_resume_torch_dist_dist_optimizer/",
    "_te_tp4_ep2_etp2_pp2_scoped_cudagraph/",
    NULL,
};

// Hugging Face's two Playbooks and its SmolLM3 ran on p5 of its own cluster, whose network was slower than AWS's.
static bool is_of_hugging_face(const RunRow *row) {
    static const char *const playbooks[] = {"ultrascale-playbook", "Smol Training Playbook", "huggingface/smollm@",
                                            NULL};
    const bool named = row->source && (strstr(row->source, "Ultra-Scale Playbook") != NULL ||
                                       strstr(row->source, "Smol Training Playbook") != NULL);
    return (named || row_cites_any(row, playbooks)) && strcmp(row->cluster, "aws-p5") == 0;
}

const char *row_machine(const RunRow *row) {
    const bool is = row_is_of_core(row) && row_cites(row, "/golden_values_dev_dgx_h100.json");
    if (is && row_cites_any(row, from_github)) {
        return "aws-p5";
    }
    return is_of_hugging_face(row) ? "hf-p5" : row->cluster;
}

// Written since the runner of four is an AWS GB300 (ed59a0aa78, 2026-06-27): by 64bee49c96 or cd4afffa64.
static const char *const on_gb300[] = {
    "_tp1_pp4_resume_torch_dist_persistent_disable_bias_linear_1node/",
    "_moe_mcore_te_ep8_resume_torch_dist_muon_1node/",
    "_tp2_pp1_resume_torch_dist_te_8experts2parallel_dist_optimizer_1node/",
    "_te_8experts2parallel_ddp_average_in_collective_1node/",
    "_te_8experts2parallel_overlap_grad_reduce_param_gather_groupedGEMM_1node/",
    "_te_tp4_ep2_etp2_pp2_resume_torch_dist_dist_optimizer_1node/",
    NULL,
};

// How far what one sequence takes is from the mean: 16.3 % of 32 (median of 16 golden files of Megatron-LM's tests on
// one data-parallel rank, tests/accuracy/megatron_ci/RESULTS.md), as of arrivals without a memory.
#define DRIVE(read_s) "node.sequence_read_s=" read_s ";node.sequence_read_spread=0.92"

// Of the_pile (its model_config.yaml), where all others read common_pile: at what rate is known by this test alone.
static const char *const other_data[] = {"/deepseek_proxy_fsdp_ep2_fsdp2_1node/", NULL};

// GitHub's runner of four reads the data of tests from a mounted drive, whatever its chips do: on GCP's a4x 55 to 58 ms
// a sequence and rank, quartiles of the 16 tests of one data-parallel rank that no row has; on the GB300 107, 117 and
// 123 ms in the recordings of 64bee49c96 that were written over since, of which two ranks waited for each other in the
// last two: 107, 104 and 109 of one rank (sim/cost/step_edges.c). Those three tests are rows, too (mcoreci-0070, 0077
// and 0157): what the score is without them stands in tests/accuracy/megatron_ci/RESULTS.md.
const char *row_drive(const RunRow *row) {
    if (!row_is_of_core(row) || !row_cites(row, "_1node/") || row_cites_any(row, other_data)) {
        return "";
    }
    return row_cites_any(row, on_gb300) ? DRIVE("0.107") : DRIVE("0.056");
}
