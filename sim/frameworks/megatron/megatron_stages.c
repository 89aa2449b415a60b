// Which layers Megatron-LM's stages hold, in its terms (transformer/transformer_config.py of core 0.16): nothing where
// they divide; embedding or loss counted as a layer; layers of the first and last stage; else a layout string, chunk
// after chunk: E and L are embedding and loss, t is a layer, t*8 eight of them, ( |)*6 six chunks, m a layer that
// predicts a further token.

#include "sim/frameworks/megatron/megatron_files.h"
#include "sim/frameworks/pp_groups.h"

typedef struct Layout {
    int first, inner, last;  // layers of the chunks; `over` of the inner ones, and the first, have one more
    int chunks, over;
} Layout;

static bool is_even(const ConfigJob *job) {
    return job->model->layers % plan_all_chunks(job->plan) == 0;
}

MegatronSplit megatron_split(const ConfigJob *job) {
    const TrainPlan *plan = job->plan;
    const int layers = job->model->layers, chunks = plan_all_chunks(plan);
    switch (plan->pp_split) {
    case SPLIT_WEIGHTED:
        return (MegatronSplit){.embedding = plan->pp_first > 0, .loss = plan->pp_last > 0};
    case SPLIT_ENDS:
        return (MegatronSplit){.first = plan->pp_first, .last = plan->pp_last};
    case SPLIT_CHUNKS:
        return (MegatronSplit){.layout = true};
    case SPLIT_TARGET:
    case SPLIT_EVEN:
    case SPLIT_COUNT:
        break;
    }
    if (is_even(job)) {
        return (MegatronSplit){0};
    }
    const bool both = (layers + 2) % chunks == 0, loss = both || (layers + 1) % chunks == 0;
    return (MegatronSplit){.embedding = both, .loss = loss, .layout = !loss};
}

int megatron_group(const ConfigJob *job) {
    const int group = target_pp_group(job->target, job->plan);
    return plan_chunks(job->plan) > 1 && group != mesh_stages(&job->plan->mesh) ? group : 0;
}

bool megatron_waits(const ConfigJob *job) {
    return plan_chunks(job->plan) > 1 && job->plan->p2p_waits;
}

static Layout layout_of(const ConfigJob *job) {
    const TrainPlan *plan = job->plan;
    const int layers = job->model->layers, chunks = plan_all_chunks(plan);
    if (plan->pp_split == SPLIT_CHUNKS) {
        const int rest = layers - plan->pp_first - plan->pp_last;
        return (Layout){plan->pp_first, chunks > 2 ? rest / (chunks - 2) : 0, plan->pp_last, chunks, 0};
    }
    const int each = layers / chunks, over = layers % chunks;  // which goes to the first ones
    return (Layout){each + 1, each, each, chunks, over - 1};
}

static const char *layers_text(Arena *arena, int layers) {
    return layers == 0 ? "" : layers == 1 ? "t" : arena_format(arena, "t*%d", layers);
}

// Text of `count` chunks of a kind, each followed by its separator.
static const char *chunks_text(Arena *arena, int count, int layers) {
    const char *one = layers_text(arena, layers);
    return count == 0 ? "" : count == 1 ? arena_format(arena, "%s|", one) : arena_format(arena, "(%s|)*%d", one, count);
}

const char *megatron_layout(const ConfigJob *job) {
    Arena *arena = job->arena;
    const Layout layout = layout_of(job);
    static const char *const further[] = {"", "m", "mm", "mmm"};
    return arena_format(arena, "E%s|%s%s%s%sL", layers_text(arena, layout.first),
                        chunks_text(arena, layout.over, layout.inner + 1),
                        chunks_text(arena, layout.chunks - 2 - layout.over, layout.inner),
                        layers_text(arena, layout.last), further[job->plan->mtp]);
}

void megatron_write_split(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    const MegatronSplit split = megatron_split(job);
    PRINT_IF(megatron_group(job) > 0, out, "    --microbatch-group-size-per-virtual-pipeline-stage %d\n",
             megatron_group(job));
    PRINT_IF(megatron_waits(job), out, "    --no-overlap-p2p-communication\n");
    if (split.layout) {  // chunks of a stage follow from it
        fprintf(out, "    --pipeline-model-parallel-layout \"%s\"\n", megatron_layout(job));
        return;
    }
    const bool divides = !split.first && !split.embedding && !split.loss;
    if (plan_chunks(plan) > 1 && divides) {
        fprintf(out, "    --num-layers-per-virtual-pipeline-stage %d\n", job->model->layers / plan_all_chunks(plan));
    } else if (plan_chunks(plan) > 1) {
        fprintf(out, "    --num-virtual-stages-per-pipeline-rank %d\n", plan_chunks(plan));
    }
    PRINT_IF(split.first, out, "    --decoder-first-pipeline-num-layers %d --decoder-last-pipeline-num-layers %d\n",
             split.first, split.last);
    fputs(split.embedding ? "    --account-for-embedding-in-pipeline-split\n" : "", out);
    fputs(split.loss ? "    --account-for-loss-in-pipeline-split\n" : "", out);
}
