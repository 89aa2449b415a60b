// The kinds of tasks: what each one reads and writes. Operands are in the order given here; (u) = read and written,
// [..] = may be absent (buffer -1). Row-major everywhere; a token row is contiguous unless a stride is given.

#pragma once

typedef enum {
    // -> tokens i32[rows], targets i32[rows]
    TASK_LOAD_TOKENS,
    // tokens, table[inner,cols] -> x[rows,cols]; vocab_split: rows outside this rank's range give 0; scaled: times
    // sqrt(cols)
    TASK_EMBED,
    // tokens, dx[rows,cols], dtable[inner,cols](u); accumulate 0: overwrite
    TASK_EMBED_BACKWARD,
    // x[rows,cols](u), table[inner,cols]: x += the table row at the token's position
    TASK_POSITION,
    // dx[rows,cols], dtable[inner,cols](u, accumulate); rows without a local token become 0
    TASK_POSITION_BACKWARD,
    // x[rows,cols], w[cols] -> y, rstd f32[rows]; more[rows,cols] -> sum (operands only for a fused add): normalizes x
    // + more; stride > 0: of a latent, the leading columns of rows of x (and of dx) that are that wide
    TASK_RMSNORM,
    // dy, x, w, rstd, [residual gradient g] -> dx = g + .., dw[cols](u, accumulate), [what is only kept alive until
    // here]
    TASK_RMSNORM_BACKWARD,
    // x[rows,cols], w[cols], [bias[cols]] -> y, mean and rstd f32[2][rows]; more -> sum as in TASK_RMSNORM
    TASK_LAYERNORM,
    // dy, x, w, mean and rstd, [g] -> dx = g + .., dw[cols](u, accumulate), [dbias[cols](u, accumulate)]
    TASK_LAYERNORM_BACKWARD,
    // q(u), k(u), wq, wk -> before [rows][q heads | k heads], rstd f32: rms norm over each run of inner elements of a q
    // row, and over each head (inner = head_dim) or the whole of a k row; strides as in TASK_ROPE
    TASK_QK_NORM,
    // dq(u), dk(u), before, wq, wk, rstd, dwq(u, accumulate), dwk(u, accumulate)
    TASK_QK_NORM_BACKWARD,
    // x[rows,cols] -> sums[cols](u, accumulate): gradient of a bias
    TASK_COLUMN_SUM,
    // a, b, c, bias[n] (operand only if there is one): c[m,n] (+)= op(a)[m,k] op(b)[k,n] + bias; trans_a: a is [k,m];
    // trans_b: b is [n,k]
    TASK_GEMM,
    // q(u), k(u): rows tokens, stride elements per row; rotates the first inner elements of a head; backward: the other
    // way
    TASK_ROPE,
    // q, k, v, o(u), lse(u), [probabilities of eager attention], fp8 copy of o (operand only if it is saved): causal
    // block; ring_step 0 initializes, later ones merge
    TASK_ATTENTION,
    // q, k, v, o, lse, do, dq(u), dk, dv, workspace, [probabilities]: ring_step 0 writes dq, later ones add; dk, dv
    // written
    TASK_ATTENTION_BACKWARD,
    // gate, up -> s[rows,cols] = act(gate) * up, [values an eager activation keeps]; stride elements per row of gate,
    // up
    TASK_SWIGLU,
    // ds, gate, up, [values] -> dgate, dup (same stride); for expert rows: [received row counts], in both
    TASK_SWIGLU_BACKWARD,
    // x -> y[rows,cols] = act(x), [values an eager activation keeps]
    TASK_ACTIVATION,
    // dy, x, [values] -> dx
    TASK_ACTIVATION_BACKWARD,
    // a, b -> c, bias[cols] (operand only if there is one); c may alias a
    TASK_ADD,
    // logits[rows,cols] -> row_max f32[rows]
    TASK_LOSS_MAX,
    // logits, targets, row_max -> sums f32[2][rows]: sum of exp(x - max); target logit - max, 0 if not here;
    // [fp32 tensors that an eager loss keeps until its gradient]
    TASK_LOSS_SUM,
    // logits(u -> gradient), targets, row_max, sums, loss f32[1](u, accumulate), [the same]
    TASK_LOSS_GRADIENT,
    // logits(u -> gradient), targets -> row_max, sums, loss(u, accumulate): the three in one, over a whole vocabulary
    TASK_LOSS,
    // gradient shard -> norm_square f32[1](u, accumulate); the leading replicated elements weigh 1/ranks;
    // inner > 0: of that many leading elements of the unit only
    TASK_SQUARE_SUM,
    // norm_square -> scale f32[2]: {min(1, clip/norm), norm}
    TASK_CLIP,
    // master(u), m(u), v(u), gradient, scale, [working copy out], [temporary of a foreach optimizer]; no weight decay
    // for the first inner elements of the unit
    TASK_ADAMW,
    // src -> dst, rows x cols, src row stride `stride`, dst rows packed; dtypes may differ (cast); inner > 1: that many
    // such blocks, each starting `cols` further right, written one after another; scales (operand only for fp8 casts:
    // read if known beforehand, else computed and written). Keys of latent attention: what the latent gives, keys, its
    // shared part; backward: dkeys, gradient of what it gave, dvalues, that of the shared part
    TASK_COPY,
    // src -> dst, rows x cols, src packed, dst row stride `stride`; inner > 1: that many such blocks, one after
    // another, each going `cols` further right
    TASK_UNPACK,
    // src, dst(u): dst += src; dtypes may differ
    TASK_ACCUMULATE,
    // -> dst
    TASK_ZERO,
    // part -> whole, scale (operand only where the ranks agreed on one)
    TASK_ALL_GATHER,
    // whole -> part (sum)
    TASK_REDUCE_SCATTER,
    // data(u), sum or max
    TASK_ALL_REDUCE,
    // out, in: to the next rank of the group, from the previous
    TASK_SEND_RECV,
    // data: to the task's peer, a stage of the pipeline (sim/step/stages.h)
    TASK_SEND,
    // -> data, from the peer
    TASK_RECEIVE,
    // as TASK_GEMM without a bias, for `groups` experts that split the rows of a and c (trans_a: of a and b, with a c
    // each) evenly on average; received row counts (operand only where it is executed) give the actual split
    TASK_GROUPED_GEMM,
    // logits[rows,cols] -> routing: weight f32 and position i32 in expert order, for each of a row's inner choices;
    // [rows of each expert i32[cols]]; score correction[cols], visits f32[sequences,cols] (operands only where one of
    // them exists)
    TASK_ROUTE,
    // logits, routing, dweights f32[rows,inner] -> dlogits; [rows of each expert]; dcorrection, visits likewise
    TASK_ROUTE_BACKWARD,
    // x[rows,cols], routing -> y[rows * inner,cols] in expert order; with groups: rows of that many experts as ranks
    // sent them, received row counts i32[ranks,groups] -> in expert order (backward: the other way)
    TASK_PERMUTE,
    // y[rows * inner,cols], routing -> x[rows,cols]: sum over a row's choices, weighted unless backward; adds
    // more[rows,cols] with its gate[rows] (operands only if there are any)
    TASK_UNPERMUTE,
    // dx[rows,cols], y[rows * inner,cols], routing -> dy[rows * inner,cols], dweights; more -> dgate[rows] (only with a
    // gate)
    TASK_UNPERMUTE_BACKWARD,
    // as TASK_ADAMW, by the unit's optimizer: [m(u)], [v(u)] if it has them
    TASK_UPDATE,
    // parts, one for each rank of the group -> parts, one from each; [rows of each expert sent, rows received]: the
    // parts are those rows of cols, with room for `rows` (backward: the other way)
    TASK_ALL_TO_ALL,
    TASK_KIND_COUNT
} TaskKind;

// Operand positions, in the order given above; AT_<kind>_<operand>. Kinds with the same order share the names.
enum { AT_LOAD_TOKENS, AT_LOAD_TARGETS };
enum { AT_EMBED_TOKENS, AT_EMBED_TABLE, AT_EMBED_X };
enum { AT_EMBED_BACKWARD_TOKENS, AT_EMBED_BACKWARD_DX, AT_EMBED_BACKWARD_DTABLE };
enum { AT_POSITION_X, AT_POSITION_TABLE };  // backward: their gradients
enum { AT_NORM_X, AT_NORM_W };              // for both norms; then each its own
enum { AT_RMSNORM_Y = AT_NORM_W + 1, AT_RMSNORM_RSTD, AT_RMSNORM_MORE, AT_RMSNORM_SUM };
enum {
    AT_LAYERNORM_BIAS = AT_NORM_W + 1,
    AT_LAYERNORM_Y,
    AT_LAYERNORM_STATISTICS,
    AT_LAYERNORM_MORE,
    AT_LAYERNORM_SUM
};
enum {
    AT_NORM_BACKWARD_DY,
    AT_NORM_BACKWARD_X,
    AT_NORM_BACKWARD_W,
    AT_NORM_BACKWARD_STATISTICS,
    AT_NORM_BACKWARD_RESIDUAL,
    AT_NORM_BACKWARD_DX,
    AT_NORM_BACKWARD_DW,
    AT_NORM_BACKWARD_DBIAS  // layer norm only
};
enum { AT_QK_NORM_Q, AT_QK_NORM_K, AT_QK_NORM_WQ, AT_QK_NORM_WK, AT_QK_NORM_BEFORE, AT_QK_NORM_RSTD };
enum {
    AT_QK_NORM_BACKWARD_DQ,
    AT_QK_NORM_BACKWARD_DK,
    AT_QK_NORM_BACKWARD_BEFORE,
    AT_QK_NORM_BACKWARD_WQ,
    AT_QK_NORM_BACKWARD_WK,
    AT_QK_NORM_BACKWARD_RSTD,
    AT_QK_NORM_BACKWARD_DWQ,
    AT_QK_NORM_BACKWARD_DWK
};
enum { AT_NEED_BEHIND };  // for a mark where a unit is needed: what must be there before
enum { AT_COLUMN_SUM_X, AT_COLUMN_SUM_SUMS, AT_COLUMN_SUM_CAME };
enum { AT_GEMM_A, AT_GEMM_B, AT_GEMM_C, AT_GEMM_BIAS };
enum { AT_ROPE_Q, AT_ROPE_K };
enum { AT_ATTENTION_Q, AT_ATTENTION_K, AT_ATTENTION_V, AT_ATTENTION_O, AT_ATTENTION_LSE };  // backward starts with them
enum { AT_ATTENTION_SINKS = AT_ATTENTION_LSE + 2 };
enum {
    AT_ATTENTION_BACKWARD_DO = AT_ATTENTION_LSE + 1,
    AT_ATTENTION_BACKWARD_DQ,
    AT_ATTENTION_BACKWARD_DK,
    AT_ATTENTION_BACKWARD_DV,
    AT_ATTENTION_BACKWARD_WORKSPACE,
    AT_ATTENTION_BACKWARD_PROBABILITIES,
    AT_ATTENTION_BACKWARD_DSINKS,
    AT_ATTENTION_BACKWARD_SINKS
};
enum { AT_SWIGLU_GATE, AT_SWIGLU_UP, AT_SWIGLU_S, AT_SWIGLU_VALUES, AT_SWIGLU_CAME };
enum {
    AT_SWIGLU_BACKWARD_DS,
    AT_SWIGLU_BACKWARD_GATE,
    AT_SWIGLU_BACKWARD_UP,
    AT_SWIGLU_BACKWARD_VALUES,
    AT_SWIGLU_BACKWARD_DGATE,
    AT_SWIGLU_BACKWARD_DUP,
    AT_SWIGLU_BACKWARD_CAME
};
enum { AT_ACTIVATION_X, AT_ACTIVATION_Y };
enum { AT_ACTIVATION_BACKWARD_DY, AT_ACTIVATION_BACKWARD_X, AT_ACTIVATION_BACKWARD_VALUES, AT_ACTIVATION_BACKWARD_DX };
enum { AT_ADD_A, AT_ADD_B, AT_ADD_C, AT_ADD_BIAS };
enum { AT_LOSS_MAX_LOGITS, AT_LOSS_MAX_ROW_MAX };
enum { AT_LOSS_LOGITS, AT_LOSS_TARGETS, AT_LOSS_ROW_MAX, AT_LOSS_SUMS, AT_LOSS_LOSS };  // sum, gradient, and fused
enum { AT_SQUARE_SUM_GRADIENT, AT_SQUARE_SUM_SUM };
enum { AT_CLIP_NORM_SQUARE, AT_CLIP_SCALE };
enum { AT_ADAMW_MASTER, AT_ADAMW_M, AT_ADAMW_V, AT_ADAMW_GRADIENT, AT_ADAMW_SCALE, AT_ADAMW_WORKING };
enum { AT_GROUPED_CAME = AT_GEMM_C + 1, AT_GROUPED_BIAS };
enum { AT_ROUTE_LOGITS, AT_ROUTE_ROUTING, AT_ROUTE_ROWS, AT_ROUTE_CORRECTION, AT_ROUTE_VISITS };
enum {
    AT_ROUTE_BACKWARD_DWEIGHTS = AT_ROUTE_ROUTING + 1,
    AT_ROUTE_BACKWARD_DLOGITS,
    AT_ROUTE_BACKWARD_ROWS,
    AT_ROUTE_BACKWARD_DCORRECTION,
    AT_ROUTE_BACKWARD_VISITS
};
enum { AT_PERMUTE_X, AT_PERMUTE_ROUTING, AT_PERMUTE_Y, AT_PERMUTE_CAME = AT_PERMUTE_ROUTING };
enum { AT_EXCHANGE_LEAVES = 2, AT_EXCHANGE_CAME };
enum {
    AT_UNPERMUTE_BACKWARD_DX,
    AT_UNPERMUTE_BACKWARD_Y,
    AT_UNPERMUTE_BACKWARD_ROUTING,
    AT_UNPERMUTE_BACKWARD_DY,
    AT_UNPERMUTE_BACKWARD_DWEIGHTS
};
enum { AT_UNPERMUTE_Y, AT_UNPERMUTE_ROUTING, AT_UNPERMUTE_X, AT_UNPERMUTE_MORE };
enum { AT_COPY_SRC, AT_COPY_DST };  // copy, unpack, accumulate
enum { AT_KEYS_SHARED = AT_COPY_DST + 1, AT_KEYS_DV = AT_KEYS_SHARED, AT_KEYS_DSHARED };
enum { AT_ZERO_DST };
enum { AT_COLLECTIVE_FROM, AT_COLLECTIVE_TO };
enum { AT_MESSAGE };  // of a send and a receive

// The operand that receives a collective's result: an all-reduce has one for both.
static inline int collective_to(TaskKind kind) {
    return kind == TASK_ALL_REDUCE ? AT_COLLECTIVE_FROM : AT_COLLECTIVE_TO;
}

typedef enum {
    PHASE_FORWARD,
    PHASE_RECOMPUTE,
    PHASE_LOSS,
    PHASE_BACKWARD,
    PHASE_REDUCE,
    PHASE_OPTIMIZER,
    PHASE_COUNT
} Phase;

const char *task_kind_name(TaskKind kind);
const char *phase_name(Phase phase);  // "forward"
