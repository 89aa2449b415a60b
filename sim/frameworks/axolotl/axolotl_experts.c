// Expert parallelism (0.19, integrations/expert_parallel): a plugin over DeepEP whose ranks multiply the mesh, slowest
// of all (monkeypatch/accelerate/parallelism_config.py), where a plan's are lent by its shards: dp_shard_size is what
// ep leaves of dp_shard. Other weights are sharded over both, experts over dp_shard_size (expert_shard_axis). Ranks of
// experts are predicted as the nearest ones, as in other frameworks: on one node, and where all ranks are one group,
// that is the same.

#include "sim/frameworks/axolotl/axolotl_files.h"

#define SIZE "expert_parallel_size"
#define PLUGIN "axolotl.integrations.expert_parallel.ExpertParallelPlugin"

// plugin.py: _resolve_ep_group, _validate_mesh_axes.
const char *axolotl_refuse_experts(const TrainPlan *plan, Arena *arena) {
    const int *size = plan->mesh.size;
    const int ep = size[AXIS_EP], shard = size[AXIS_DP_SHARD], tp = size[AXIS_TP], cp = size[AXIS_CP];
    const int replicas = size[AXIS_DP_REPLICATE];
    if (ep == 1) {
        return NULL;
    }
    REFUSE_IF(arena, shard % ep != 0,
              SIZE " (%d) must divide world_size (%d) and leave whole shards: dp_shard=%d is ranks of "
                   "experts too; use dp_shard %d",
              ep, mesh_world(&plan->mesh), shard, (shard / ep + 1) * ep);
    REFUSE_IF(arena, tp > 1, "EP x TP composition not yet supported. Got ep=%d, dp_shard=%d, tp=%d, cp=%d: use tp=1",
              ep, shard / ep, tp, cp);
    if (replicas > 1) {
        const int product = shard * tp * cp;
        return arena_format(arena,
                            "expert_parallel: world_size (%d) must equal " SIZE " (%d) * dp_shard_size (%d) * "
                            "tensor_parallel_size (%d) * context_parallel_size (%d) = %d: use dp_replicate=1",
                            product * replicas, ep, shard / ep, tp, cp, product);
    }
    REFUSE_IF(arena, cp > 1,
              "ep=%d beside cp=%d takes attention that shares both groups, which axolotl has for one model and is not "
              "predicted: use cp=1",
              ep, cp);
    return NULL;
}

const char *axolotl_shards_beside(const ConfigJob *job) {
    return arena_format(job->arena, "%d", export_axis(job, AXIS_DP_SHARD) / export_axis(job, AXIS_EP));
}

// One list of all that are used.
void axolotl_write_plugins(const ConfigJob *job, FILE *out) {
    if (export_spreads_experts(job) || export_fuses_loss(job)) {
        fputs("plugins:\n", out);
        fputs(export_spreads_experts(job) ? "  - " PLUGIN "\n" : "", out);
        fputs(export_fuses_loss(job) ? "  - axolotl.integrations.liger.LigerPlugin\n" : "", out);
    }
    if (export_spreads_experts(job)) {
        const bool apart = job->nodes > 1 && export_axis(job, AXIS_EP) < mesh_world(&job->plan->mesh);
        fprintf(out, SIZE ": %d  # %s\n", export_axis(job, AXIS_EP),
                apart ? "slowest of all: on several nodes these ranks are far apart, predicted as the nearest"
                      : "by DeepEP's kernels, which take NVLink between all ranks of a node");
    }
    PRINT_IF(export_fuses_loss(job), out, "liger_fused_linear_cross_entropy: true\n");
}

// Said or not, the product of all sizes is the world (_validate_mesh_axes): nothing is filled up.
static Status read_mesh(Import *import, int ep, bool sharded) {
    int *size = import->said.size;
    FIND_IF(size[AXIS_TP] > 1, import, FINDING_REFUSED, SIZE, "EP x TP composition not yet supported");
    FIND_IF(size[AXIS_DP_REPLICATE] > 1, import, FINDING_REFUSED, "dp_replicate_size",
            "expert_parallel: world_size must equal " SIZE " * dp_shard_size * tensor_parallel_size * "
            "context_parallel_size");
    IMPORT_REFUSE_IF(!sharded, import, SIZE,
                     "no fsdp_config: what is no expert is whole on every rank, which is not predicted beside experts "
                     "on several");
    size[AXIS_EP] = ep;
    size[AXIS_DP_SHARD] = (size[AXIS_DP_SHARD] > 1 ? size[AXIS_DP_SHARD] : 1) * ep;
    size[AXIS_DP_REPLICATE] = 1;
    return STATUS_OK;
}

Status axolotl_read_experts(Import *import, bool sharded, bool *spread, Error *error) {
    int ep = 1, most = 0, over_network = 0;
    TRY(import_int(import, SIZE, 1, MESH_MAX_WORLD, &ep, error));
    TRY(import_int(import, "expert_parallel_token_capacity", 1, 1 << 30, &most, error));
    TRY(import_int(import, "expert_parallel_num_rdma_bytes", 0, INT32_MAX, &over_network, error));
    *spread = ep > 1 && axolotl_has_plugin(import, "ExpertParallelPlugin");
    FIND_IF(ep > 1 && !*spread, import, FINDING_TRAP, SIZE, SIZE " does nothing while plugins has no " PLUGIN);
    FIND_IF(*spread && most > 0, import, FINDING_UNMODELLED, "expert_parallel_token_capacity",
            "no expert takes more than %d tokens of a forward, others are dropped: the prediction drops none", most);
    return *spread ? read_mesh(import, ep, sharded) : STATUS_OK;
}
