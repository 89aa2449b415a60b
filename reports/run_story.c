// What happened in one step of a run, in plain words and with its own times: `ndtune run --explain`.

#include <string.h>

#include "reports/reports.h"
#include "reports/wrap.h"
#include "sim/base/text.h"

// Tasks of one lane, summed.
typedef struct LaneSum {
    int64_t count;
    double seconds;
    const RunTask *longest;
} LaneSum;

static LaneSum lane_of(const RunRecord *run, const char *name) {
    LaneSum lane = {0};
    for (int i = 0; i < run->task_count; i++) {
        const RunTask *task = &run->tasks[i];
        if (strcmp(task->lane, name) == 0) {
            lane.count += task->count;
            lane.seconds += task->measured_s;
            lane.longest = !lane.longest || task->measured_s > lane.longest->measured_s ? task : lane.longest;
        }
    }
    return lane;
}

// "8 calls, 3.26 ms of the step, most of it gather weights".
static const char *spent(const LaneSum *lane, char out[160]) {
    snprintf(out, 160, "%lld calls, %s, most of it in \"%s\"", (long long)lane->count,
             text_seconds(UNIT_BUFFER, lane->seconds), lane->longest->name);
    return out;
}

static void tell_compute(const RunRecord *run, FILE *out) {
    const LaneSum lane = lane_of(run, "compute");
    char text[160], step[TEXT_UNIT_BYTES];
    if (lane.count > 0) {
        wrap_line(out, 2, "Compute (the step took %s): matrix products, attention and small kernels of this rank: %s.",
                  text_seconds(step, run->measured_step_s), spent(&lane, text));
    }
}

static void tell_sharding(const RunRecord *run, FILE *out) {
    const TrainPlan *plan = &run->prediction.plan;
    const int ranks = mesh_group_size(&plan->mesh, AXES_SHARD_GROUP);
    const LaneSum gather = lane_of(run, "ag"), scatter = lane_of(run, "rs");
    char text[160];
    if (gather.count > 0) {
        wrap_line(out, 2,
                  "FSDP (dp_shard x cp = %d): a rank keeps 1/%d of every weight. Before a layer runs, its weights are "
                  "all-gathered from the %d ranks, and dropped after use%s: %s.",
                  ranks, ranks, ranks, plan->reshard == RESHARD_ALWAYS ? "; backward gathers them again" : "",
                  spent(&gather, text));
    }
    if (scatter.count > 0) {
        wrap_line(out, 2,
                  "Its gradients: each layer's are summed over the ranks and each keeps the sum of its own 1/%d "
                  "(reduce-scatter): %s.",
                  ranks, spent(&scatter, text));
    }
}

static void tell_others(const RunRecord *run, FILE *out) {
    const Mesh *mesh = &run->prediction.plan.mesh;
    const LaneSum replicate = lane_of(run, "rep"), tensor = lane_of(run, "tp"), context = lane_of(run, "cp");
    char text[160];
    if (replicate.count > 0) {
        wrap_line(out, 2,
                  "Replicas (dp_replicate %d): copies of the model see other sequences and add their gradients up "
                  "(all-reduce) before the update: %s.",
                  mesh->size[AXIS_DP_REPLICATE], spent(&replicate, text));
    }
    if (tensor.count > 0) {
        wrap_line(out, 2,
                  "Tensor parallelism (tp %d): every matrix is cut into %d, so each layer's partial results are put "
                  "together over the ranks, twice forward and twice backward, and the layer waits for that: %s.",
                  mesh->size[AXIS_TP], mesh->size[AXIS_TP], spent(&tensor, text));
    }
    if (context.count > 0) {
        wrap_line(
            out, 2,
            "Context parallelism (cp %d): a rank holds 1/%d of every sequence. Keys and values of the other parts "
            "come round the ranks %s, one part at a time, while attention works on the part that is there: %s.",
            mesh->size[AXIS_CP], mesh->size[AXIS_CP],
            run->prediction.plan.cp_rotate == CP_ROTATE_RING ? "in a ring" : "by an all-gather", spent(&context, text));
    }
}

void table_run_story(const RunRecord *run, FILE *out) {
    fprintf(out, "\nWhat this step did\n");
    tell_compute(run, out);
    tell_sharding(run, out);
    tell_others(run, out);
    if (mesh_world(&run->prediction.plan.mesh) > 1) {
        wrap_line(out, 2,
                  "Times are means over ranks; those of collectives include the wait for the slowest rank. "
                  "--trace FILE shows every span.");
    }
}
