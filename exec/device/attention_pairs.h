// The parts of an attention task: visible pairs of a query chunk and a key chunk in one sequence. A task covers this
// rank's queries against the keys of one ring owner; both consist of sequence chunks (zigzag: two each).

#pragma once

#include "exec/device/task_call.h"

// Of one rank; for latent attention the task's figures are means, used for prices.
typedef struct Heads {
    int dim, kv;
    KernelValues values;
} Heads;

typedef struct Blocks {
    const TaskCall *call;
    SequenceChunks query, key;
    int64_t local;  // rows of one sequence
    int64_t o_stride;
    int window;  // tokens the layer looks back; 0 = all
    Heads heads;
} Blocks;

typedef struct Pair {
    KernelAttention shape;
    int64_t q_row, k_row;  // first rows, counted over all sequences
    int64_t lse_at;        // lse is [sequence][head][local row]
    bool first;            // the first key chunk this query chunk sees
} Pair;

int attention_window(const TaskCall *call);  // tokens its layer looks back; 0 = all
Blocks attention_blocks(const TaskCall *call);
bool attention_visible(const Blocks *blocks, int query, int key);
Pair attention_pair(const Blocks *blocks, int sequence, int query, int key);

typedef void PairBody(const TaskCall *call, const Pair *pair);
// For every sequence: each query chunk with each key chunk it sees; each query chunk with the same chunk of the current
// keys.
void attention_each_visible(const Blocks *blocks, PairBody *body);
void attention_each_query(const Blocks *blocks, PairBody *body);
