// Ways in which frameworks differ: what a target's fields can be.

#pragma once

// Tensor parallelism. SP: activations between blocks are split over tokens, all-gather in and reduce-scatter out. AR:
// unsplit, one all-reduce out (and one back). HF: as AR, but each projection reduces its own input gradient, and
// norms are whole on every rank, and so are embedding and head unless the row says otherwise (transformers).
typedef enum { TP_SP, TP_AR, TP_HF } TpFlavour;

// What recompute=full keeps of a layer. BLOCK: its input. CHILD: the input of each of norm, attention, norm, MLP.
typedef enum { RECOMPUTE_BLOCK, RECOMPUTE_CHILD } RecomputeFlavour;

// Which layers recompute=full can cover. FIRST: of the first n. EVERY: of every n-th, of each n layers the first
// one or the last one.
typedef enum { RECOMPUTE_ALL_ALIKE, RECOMPUTE_FIRST_N, RECOMPUTE_EVERY_FIRST, RECOMPUTE_EVERY_LAST } RecomputeCounts;

// What recompute=selective recomputes. CORE: the attention kernel's own values (Korthikanti et al. 2022, section 5).
// OPS: everything but every second GEMM's output and attention's (per-op checkpointing).
typedef enum { SELECTIVE_NONE, SELECTIVE_CORE, SELECTIVE_OPS } SelectiveFlavour;

// UNSAID: separate operations keep what dropout needs, and kernels have none. NONE: those keep probabilities once.
typedef enum { DROPOUT_UNSAID, DROPOUT_SOME, DROPOUT_NONE } DropoutUse;

// When dp_replicate > 1 is refused while dp_shard = 1.
typedef enum { REPLICATE_ANY, REPLICATE_NOT_BESIDE_TP, REPLICATE_NOT_BESIDE_TP_OR_CP } ReplicateRule;

// Which library runs the layers' GEMMs in fp8; head and attention are unchanged. TORCHAO: Float8Linear; inputs are
// saved in bf16, weights gathered in fp8 where the scale is per tensor. TRANSFORMER_ENGINE: inputs are saved in fp8,
// fp8 copies of the weights, one of them transposed, live along with the bf16 ones.
typedef enum { FP8_NONE, FP8_TORCHAO, FP8_TRANSFORMER_ENGINE } Fp8Flavour;

// How tokens get to experts and back, and what runs with the products. INDEXED: picked by index, weighted and summed,
// one operation each (transformers). WEIGHTED_FP32: gathered, weighted in fp32, added back; rows are padded in a copy.
// PERMUTE_KERNELS: a kernel for each order; clamps, and biases expert by expert in fp32, are operations.
typedef enum { EXPERTS_INDEXED, EXPERTS_WEIGHTED_FP32, EXPERTS_PERMUTE_KERNELS } ExpertFlavour;

// PyTorch's caching allocator under the target, replayed for what it reserves: a segment per cudaMalloc, or segments
// that grow (expandable_segments). NONE: reserved is live bytes and the runtime's slack.
typedef enum { ALLOCATOR_NONE, ALLOCATOR_SEGMENTS, ALLOCATOR_EXPANDABLE } AllocatorFlavour;

// Of which plans scaled_dot_product_attention takes cuDNN's kernel before flash, on chips that run it well: the
// framework's code asks for it, of models without experts (those have FlexAttention); PyTorch does, from 2.11 on.
typedef enum { CUDNN_NEVER_FIRST, CUDNN_FIRST_BY_CODE, CUDNN_FIRST_BY_PYTORCH } CudnnFirst;

// Support for packed documents that attend only to themselves. ONE_ROW: with micro-batches of one sequence. BY_MASK: by
// FlexAttention too, whose kernel is Triton's; BY_MASK_ALWAYS: no other attention is had.
typedef enum { PACKS_NOT, PACKS_ROWS, PACKS_ONE_ROW, PACKS_BY_MASK, PACKS_BY_MASK_ALWAYS } PackFlavour;

// The orders in which axes may be mapped to ranks. DP_AS_ONE: dp_replicate and dp_shard are one dimension, which is
// cut into instances after cp has been joined to it.
typedef enum { RANK_ORDER_FIXED, RANK_ORDER_DP_AS_ONE, RANK_ORDER_ANY } RankOrderRule;

// Which layers the stages of a pipeline hold (sim/step/splits).
typedef enum {
    LAYERS_EVEN,
    LAYERS_EDGES_IF_UNEVEN,
    LAYERS_BY_COST,
    LAYERS_BY_PARAMETERS,
    LAYERS_AS_MODULES,
    LAYERS_WEIGHTED,  // from here on by pp_first and pp_last
    LAYERS_BY_ENDS,
    LAYERS_BY_CHUNKS,
    LAYER_RULE_COUNT
} LayerRule;
