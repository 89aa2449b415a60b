// Pairs of chunks, as divided by mesh and program.

#include "exec/device/attention_pairs.h"

int attention_window(const TaskCall *call) {
    const StepProgram *program = call->program;
    const int layer = stage_model_layer(&program->held, call->instance->layer);
    return model_layer_slides(&program->model, layer) ? program->model.window : 0;
}

static Heads heads_of(const TaskCall *call) {
    const Task *task = call->task;
    const LatentAttention *latent = &call->program->model.latent;
    if (latent->kv_rank == 0) {
        return (Heads){
            task->head_dim, task->kv_heads, {task->head_dim, task->kv_stride, task->head_dim, task->kv_stride}};
    }
    const int dim = call->program->model.head_dim;
    const int64_t heads = task->heads, value = latent->value;
    const int *size = call->program->plan.mesh.size;
    if (size[AXIS_CP] > 1) {  // in one row after the keys
        return (Heads){dim, task->heads, {latent->value, task->kv_stride, value, task->kv_stride}};
    }
    if (size[AXIS_SP] > 1) {  // stored separately
        return (Heads){dim, task->heads, {latent->value, heads * value, value, heads * value}};
    }
    const int64_t apart = dim - latent->rope + value;  // what wkv produces per head
    return (Heads){dim, task->heads, {latent->value, heads * apart, apart, heads * value}};
}

Blocks attention_blocks(const TaskCall *call) {
    const Task *task = call->task;
    const int owner = step_ring_owner(call->program, task->ring_step, call->at);
    const Heads heads = heads_of(call);
    return (Blocks){.call = call,
                    .query = step_chunks(call->program, call->at->at[AXIS_CP]),
                    .key = step_chunks(call->program, owner),
                    .local = task->rows / task->sequences,
                    .window = attention_window(call),
                    .o_stride = (int64_t)task->heads * heads.values.dim,
                    .heads = heads};
}

bool attention_visible(const Blocks *blocks, int query, int key) {
    const int64_t first = blocks->query.start[query], key_first = blocks->key.start[key];
    const bool past = blocks->window > 0 && first - (key_first + blocks->key.length - 1) >= blocks->window;
    return key_first <= first + blocks->query.length - 1 && !past;
}

// tp splits the heads, and sp those of a tp rank.
static int first_head(const TaskCall *call) {
    const int sp = call->program->plan.mesh.size[AXIS_SP];
    return (call->at->at[AXIS_TP] * sp + call->at->at[AXIS_SP]) * call->task->heads;
}

Pair attention_pair(const Blocks *blocks, int sequence, int query, int key) {
    const Task *task = blocks->call->task;
    const int64_t in_sequence = (int64_t)query * blocks->query.length;
    return (Pair){.shape = {.queries = blocks->query.length,
                            .keys = blocks->key.length,
                            .q_first = blocks->query.start[query],
                            .k_first = blocks->key.start[key],
                            .heads = task->heads,
                            .kv_heads = blocks->heads.kv,
                            .head_dim = blocks->heads.dim,
                            .q_stride = task->stride,
                            .kv_stride = task->kv_stride,
                            .o_stride = blocks->o_stride,
                            .lse_stride = blocks->local,
                            .alibi_heads = task->alibi ? blocks->call->program->model.heads : 0,
                            .alibi_first = first_head(blocks->call),
                            .window = blocks->window,
                            .values = blocks->heads.values,
                            .cap = (float)blocks->call->program->model.attention_cap},
                  .q_row = sequence * blocks->local + in_sequence,
                  .k_row = sequence * blocks->local + (int64_t)key * blocks->key.length,
                  .lse_at = (int64_t)sequence * task->heads * blocks->local + in_sequence};
}

void attention_each_visible(const Blocks *blocks, PairBody *body) {
    for (int s = 0; s < blocks->call->task->sequences; s++) {
        for (int i = 0; i < blocks->query.count; i++) {
            bool first = true;
            for (int j = 0; j < blocks->key.count; j++) {
                if (attention_visible(blocks, i, j)) {
                    Pair at = attention_pair(blocks, s, i, j);
                    at.first = first;
                    body(blocks->call, &at);
                    first = false;
                }
            }
        }
    }
}

void attention_each_query(const Blocks *blocks, PairBody *body) {
    for (int s = 0; s < blocks->call->task->sequences; s++) {
        for (int i = 0; i < blocks->query.count; i++) {
            const Pair at = attention_pair(blocks, s, i, i);
            body(blocks->call, &at);
        }
    }
}
