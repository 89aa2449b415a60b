// nanotron. context_parallel_size selects ring attention, no published run: left out. Ranks are one array of ep,
// pp, dp, cp, tp (P1).

#include "sim/frameworks/framework.h"
#include "sim/frameworks/nanotron/nanotron_files.h"
#include "sim/frameworks/pytorch.h"

static const TargetVersion nanotron_0_4 = {
    .version = "0.4",
    .extends = &pytorch,
    .evidence = "300 published runs of one sweep",
    // tp_mode is REDUCE_SCATTER; gradients are summed in fp32 (accumulate_grad_in_fp32). Gathered inputs of every layer
    // are kept: its memory grows by them.
    .settings = SETTINGS(
        SET(axes, AXES_DP | AXES_TP | AXES_PP), SET(pp_schedules, PP_BIT(PP_1F1B) | PP_BIT(PP_GPIPE)),
        SET(messages_in_turn, true),  // PipelineEngine waits for each message
        // _send_meta copies from pageable memory and reads it back, _recv_meta reads it (pipeline_parallel/p2p.py)
        SET(runtime.messages_stop_host, true), SET(runtime.messages_announced, true), SET(layer_rule, LAYERS_BY_COST),
        SET(ties_stages, true),  // sync_tied_weights_gradients (parallel/tied_parameters.py)
        SET(fused_projections, true), SET(deferred_reduce, true),
        SET_TEXT(grad_sync_note, "gradients are reduced with the last micro-batch"),
        SET(gradient_buffer, true),  // its fp32 gradient accumulator; 6+12/F bytes (sim/SOURCES.md A7)
        // autograd's bf16 gradients, added by FP32GradientAccumulator; without ZeRO and with replicas besides the
        // buckets of DDP (make_ddp of its trainer.py)
        SET(half_gradients, true),
        // trainer.py at 67c5ebb6: stage 1 is no DDP; sync_gradients_across_dp all-reduces the whole fp32 buffer in one
        // call after backward (reduce_scatter=False, "too memory hungry")
        SET(late_reduce, true), SET(runtime.scatters_by_all_reduce, true),
        SET(fused_norms, true),         // its TritonRMSNorm, launched from Python
        SET(tp_reduce_overlaps, true),  // tp_linear_async_communication
        SET(allocator, ALLOCATOR_SEGMENTS), SET(runtime.allocator_slack, 0.0),
        SET(runtime.stage_slack, 0.25),  // this source's: where its runs had no bias before what follows was counted
        // Replayed, its runs without tp hold what they should. With tp they hold two gathered inputs of a layer more,
        // of each micro-step in flight but two, and those that sleep between messages hold none: blocks of a stream
        // are free when the host finds its event done (c10/cuda/CUDACachingAllocator.cpp, process_events)
        SET(replays_stages, true), SET(runtime.ahead_bytes, 4),
        // CausalSelfAttention (models/llama.py): torch.cat and contiguous of keys and values; flash-attn's rotation
        // turns queries in place (layers/rotary.py)
        SET(packed_kept, true), SET(gate_kept, true),  // GLUActivation: act(gate_states) * up_states (models/llama.py)
        SET(max_zero, 1), SET(vocab_multiple, 1),      // padded to a multiple of tp (nanotron _vocab_size_with_padding)
        SET(runtime.host_s_per_op, PYTHON_2023_HOST_S), SET(runtime.follows_processor, false),
        SET(runtime.lost_lead, 0.40),  // this source's, fitted on measured runs alone
        // tp_recompute_allgather is true by default (config/parallelism_config.py). By their memory its sweep's runs
        // without stages kept what they had gathered, two thirds of those with stages gathered again.
        SET(stages_regather, true),
        SET(gather_buffers, true),  // MemoryBuffer: "allgather" and "allgather2" (parallel/utils.py, functional.py)
        // all_gather_coalesced (distributed.py) flattens; ProcessGroupNCCL's allgather of a list fills newLikeFlat
        SET(gathers_flat, true),
        // its update_output: copy_ of every rank's slice of every parameter, one by one; the queue of launches is
        // shorter than they are many, so that each takes what PyTorch's smallest operation takes (5 us,
        // pytorch/pytorch issue 41383)
        SET(runtime.part_copy_s, 5e-6),
        // every rank's: clip_grad_norm reads all and scales all in place (optim/clip_grads.py), zero_grad clears the
        // buffer (optim/gradient_accumulator.py), 4 + 8 + 4
        SET(runtime.whole_bytes_per_parameter, 16.0), SET(runtime.step_fixed_s, 30e-3),  // sim/SOURCES.md A6
        // x.float() and, less their maximum, what becomes exponentials in place (functional.py _ShardedCrossEntropy)
        SET(loss_fp32_copies[FUSED_FUSED], 2), SET(loss_fp32_copies[FUSED_EAGER], 2),
        SET(loss_fp32_copies[FUSED_COMPILED], 2), SET(runtime.loss_bytes_per_logit, SPLIT_LOSS_BYTES),  // the same
        SET(runtime.bucket_parameters, 80e6),  // this source's, of stage 0: its DDP has buckets of 25 MiB of bf16, 13e6
        SET(runtime.optimizer_bytes_per_parameter, 46.0),  // sim/SOURCES.md A6
        SET(runtime.relative_uncertainty, 0.11)),          // of one sweep; its long tail is beyond 256 ranks
};

// What its sweep ran (branch nouamane/bench2). p2p.py of its 67c5ebb6 (2024-12-27) looks for the two metadata of each
// message with time.sleep(0.1) between, on both sides: two sleeps and what is left of the other side's, 0.2 to 0.3 s.
// Neither earlier code nor a release does. Which code a run had is known of 19 that slept
// (autotune/accuracy/run_case.c); 50 of its 51 runs on 64 nodes slept and 41 of 43 with tp over four, 118 of 515 others
// (tests/accuracy/runs/RESULTS.md).
static const TargetVersion nanotron_2024_12 = {
    .version = "2024-12",
    .extends = &nanotron_0_4,
    .until = "2025-03",
    .evidence = "900 published runs of one sweep",
    .settings = SETTINGS(
        SET(runtime.message_sleep_s, 0.28),  // 0.25 below 64 nodes, 0.31 there
        SET(runtime.stalls_from_nodes, 64), SET(runtime.stalls_from_tp_nodes, 4),
        // A layer, forward and backward, takes no less than 10, 15, 24, 51 and 127 ms at tp 2 to 32 whatever model and
        // micro-batch, where pp > 1 and nodes > 1: its ten collectives are checked, by messages one after another
        // (sim/cost/checked.c), which these three are of. run_multinode.sh of the examples exports
        // TORCH_DISTRIBUTED_DEBUG=DETAIL (77f54c10, 2025-03-10); in the sweep's own script at 67c5ebb6 that does not
        // stand, and in slurm_launcher.py of a release it is commented out. Each half of the sweep picks them of 125.
        SET(runtime.check_s, 0.1e-3), SET(runtime.check_message_s, 55e-6), SET(runtime.check_message_between_s, 70e-6)),
};

// The stage of the head by build_model's rule (models/base.py, sim/step/splits/cost.c): the one that layers have not
// closed.
static int head_stage(const ModelSpec *model, int pp) {
    const double hidden = model->hidden, layer = 4 * hidden * hidden + 3 * hidden * (double)model->ffn;
    const double all = layer * model->layers + (double)model->vocab * hidden;
    int stage = 0;
    for (int i = 1; i <= model->layers; i++) {
        stage += stage < pp - 1 && layer * i >= all * (stage + 1) / pp;
    }
    return stage;
}

// Head, cast to fp32 and loss each close a stage. Labels come to the last stage, and its log reads the loss there
// (output_pp_rank): with the loss before it no run gets past its first step. Its 1F1B asserts that the first stage can
// run ahead of the last one (parallel/pipeline_parallel/engine.py).
static const char *refuse(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const int pp = plan->mesh.size[AXIS_PP];
    const int loss_stage = pp > 1 ? head_stage(model, pp) + 2 : 0;
    REFUSE_IF(arena, pp > 1 && loss_stage < pp - 1,
              "%s balances stages by cost, which puts the loss on stage %d of 0 to %d and nothing on the last, where "
              "its labels are: use pp %d",
              target->name, loss_stage, pp - 1, pp / 2);
    REFUSE_IF(arena, pp > 1 && plan->pp_schedule == PP_1F1B && plan->grad_accum < pp - 1,
              "%s asserts at least pp-1 = %d micro-steps for 1f1b, grad_accum is %d: use grad_accum %d", target->name,
              pp - 1, plan->grad_accum, pp - 1);
    return NULL;
}

// LoggerWriter, which shortens numbers: 3.05K.
static const LogPattern logs[] = {
    {.name = "nanotron",
     .pattern = "elapsed_time_per_iteration_ms(): *" LOG_NUMBER "([KM])?",
     .quantity = STEP_MILLISECONDS,
     .words = "elapsed_time_per_iteration_ms:"},
    {.name = NULL},
};

static const MeasuredChip measured[] = {
    {"H100-SXM5-80GB", 300, 512, 0.046, -0.007},
    {0},
};

// Beyond 256 ranks 11 of its 29 runs take 1.8 to 15 times what their twins do, which no column tells: this sweep's.
static const ChipWidth widths[] = {{"H100-SXM5-80GB", 0.8, 0.9}, {0}};  // 0.74

const Framework framework_nanotron = {
    .name = "nanotron",
    .measured = measured,
    .widths = widths,
    .versions = (const TargetVersion *const[]){&nanotron_0_4, &nanotron_2024_12, NULL},
    .formats = (const ExportFormat *const[]){&export_nanotron_yaml, NULL},
    .config = &import_nanotron,
    .logs = logs,
    .refuse = refuse,
    .log_name = "nanotron",
    .micro_batch = "micro_batch_size",
    .accumulation = "batch_accumulation_per_replica",
    .has_pipelines = true,
    // log_throughput writes rank 0's figures after the optimizer's step, and log_memory has reset the peak of what
    // lives before it (helpers.py, logging.py, trainer.py): only the reserved bytes still know of the activations.
    .logged_stage = LOGS_FIRST,
    .logs_reserved = true,
};
