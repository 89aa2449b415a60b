// Operations that the layers pass composes; private to sim/step.

#pragma once

#include "sim/step/lower.h"

// One linear layer y = x W^T + b, W [out, in] in slices first..last of a unit, b in first_bias..last_bias.
typedef struct Linear {
    const char *name, *first, *last;
    const char *backward_name, *weight_name;
    int unit;
    int64_t in, out;
    const char *first_bias, *last_bias;  // NULL: none, or not added by the GEMM (row-parallel)
    bool shares_input;                   // reads the same input as the linear before it
    bool in_half;                        // stays in the layer's own dtype under fp8
    bool of_loss;                        // the head, whose gradients a fused loss makes
} Linear;

typedef enum { GEMM_FORWARD, GEMM_INPUT_GRADIENT, GEMM_WEIGHT_GRADIENT, GEMM_ROLE_COUNT } GemmRole;

typedef struct Norm {
    int unit;
    const char *weight, *bias;  // slices; bias NULL where the model has none
    const char *statistics;     // tensor: rstd, plus the mean for a layer norm
} Norm;

typedef struct NormBackward {
    OpRef dy, x, residual, dx;
} NormBackward;

enum { MAX_PARTS = 3 };

typedef struct Projection {
    Linear linear[MAX_PARTS];
    int32_t y[MAX_PARTS], dy[MAX_PARTS];
    int count;
} Projection;

bool is_named(const char *const *names, const char *name);  // names end with NULL
Dtype activation_dtype(const Lowering *lowering, const char *name);
extern const char *const upcast_tensors[];
bool is_upcast(const Lowering *lowering, const char *tensor);  // in fp32 beside packed weights (lower_upcast.c)
void add_product_cast(const Lowering *lowering, Op *op, OpRef ref);
void cast_values(Lowering *lowering, Section section, const char *name, OpRef from, OpRef to);
void take_elements_apart(const Lowering *lowering, Op *op);
int32_t activation(Lowering *lowering, const char *name, int64_t elements);  // in that dtype
int32_t tokens_by(Lowering *lowering, const char *name, int64_t width);
int32_t between_by_hidden(Lowering *lowering, const char *name);
int32_t residual_stream(Lowering *lowering);
int32_t gradient_stream(Lowering *lowering);
// The gradient of the stream before a layer (0) and after it (1), or before the stage's layer of that number and after
// the last one: updated in place, unless weights need it later.
bool gradients_apart(const Lowering *lowering);  // each layer has its own slot of the gradient stream
OpRef gradient_at(Lowering *lowering, int index);
int32_t row_statistics(Lowering *lowering, const char *name, int64_t rows);
Phase layer_phase(Section section);  // forward, or that of all other sections of a layer: backward
void op_size(Op *op, int64_t rows, int64_t cols);
// from -> to, rows x cols without gaps.
Op *op_copy(Lowering *lowering, Section section, Phase phase, const char *name, int64_t rows, int64_t cols, OpRef from,
            OpRef to);
// On the compute lane, of no unit and no group; copies without gaps.
Op op_local(TaskKind kind, Phase phase, const char *name, Dtype dtype, int64_t rows, int64_t cols);
// Appended, reading `from` and writing or updating `to`.
Op *op_list_move(Lowering *lowering, OpList *list, Op op, OpRef from, OpRef to, Access access);

// A layer's attention, forward and backward, becomes what these append, which is in its part of the layer.
typedef void (*OpReplacement)(Lowering *lowering, OpList *out, const Op *op);
void lowering_replace_attention(Lowering *lowering, OpReplacement forward, OpReplacement backward);

// Several operands with the same access, in this order.
void op_operands(Op *op, Access access, const OpRef *refs, size_t count);
#define OP_OPERANDS(op, access, ...)                                                                                   \
    op_operands(op, access, (const OpRef[]){__VA_ARGS__}, sizeof((const OpRef[]){__VA_ARGS__}) / sizeof(OpRef))
// c = a b, or c += a b, of m x k and k x n.
typedef struct Product {
    OpRef a, b, c;
    int64_t m, n, k;
    bool trans_a, trans_b, adds;
} Product;
void op_product(Op *op, const Product *product);
OpRef column(const Lowering *lowering, int32_t tensor, int64_t first_column);
OpRef stream_at(const Lowering *lowering, int32_t x, int index);
Op *mark_tp(Lowering *lowering, Section section, Mark mark, OpRef in, OpRef out, const char *name);
void mark_unit(Lowering *lowering, Section section, Mark mark, int unit);
void add_forward(Lowering *lowering, Section section, const Linear *linear, int32_t x, int32_t y);
void add_input_gradient(Lowering *lowering, Section section, const Linear *linear, OpRef dy, int32_t dx);
void add_weight_gradient(Lowering *lowering, Section section, const Linear *linear, OpRef dy, int32_t x);

// The same for some of the rows; weight gradients accumulate unless these are the first rows.
typedef struct Rows {
    OpRef x, y;  // or their gradients
    int64_t count;
    bool first;
} Rows;
void add_forward_rows(Lowering *lowering, Section section, const Linear *linear, const Rows *rows);
void add_input_gradient_rows(Lowering *lowering, Section section, const Linear *linear, const Rows *rows);
void cast_loss_sum(Lowering *lowering, Op *op, int64_t elements, Dtype sum);
void add_weight_gradient_rows(Lowering *lowering, Section section, const Linear *linear, const Rows *rows);

// ---- what an adapter adds to its linear layer; no-ops for a layer without one (lower_adapters.c)

// Whether an adapter reads the tensor, in bf16 beside fp8 too: its frozen layer casts it for itself and, without a
// gradient of its weights, does not save it (Transformer Engine v2.8, pytorch/module/layernorm_linear.py:
// return_layernorm_output, backward_needs_input).
bool adapter_reads(const Lowering *lowering, const char *tensor);
bool adapters_fuse(const Lowering *lowering);  // their products scale, and add to what they are added to
OpRef adapter_frozen_out(Lowering *lowering, const Linear *linear, OpRef y);  // where the frozen layer's result goes
// What the GEMM reads: the weights, or their unpacked copy, made by an operation before it.
OpRef unpacked_weights(Lowering *lowering, Section section, const Linear *linear, OpRef weights);
void add_adapter_forward(Lowering *lowering, const Linear *linear, const Rows *rows);
void add_adapter_input_gradient(Lowering *lowering, Section section, const Linear *linear, const Rows *rows);
void add_adapter_weight_gradient(Lowering *lowering, Section section, const Linear *linear, const Rows *rows);

Norm norm_of(const Lowering *lowering, int unit, const char *weight, const char *bias, const char *statistics);
Op *add_norm(Lowering *lowering, Section section, const Norm *norm, OpRef x, int32_t y);
Op *add_norm_backward(Lowering *lowering, Section section, const Norm *norm, const NormBackward *operands);
Op *add_column_sum(Lowering *lowering, const char *name, OpRef x, const char *first, const char *last, int64_t rows);
void add_sum(Lowering *lowering, Section section, OpRef a, OpRef b, OpRef c, int64_t elements);
Op *add_residual(Lowering *lowering, OpRef x, OpRef y, OpRef sum, const char *bias);
void projection_forward(Lowering *lowering, const Projection *projection, OpRef x);

// Input of a projection and its gradient; first: nothing has been added to its weight gradients yet.
typedef struct ProjectionInput {
    OpRef x, dx;
    bool first;
} ProjectionInput;
void projection_backward(Lowering *lowering, const Projection *projection, const ProjectionInput *input,
                         const char *part_name);

// ---- a layer's halves (lower_half.c)

// One half of a layer, attention or feed-forward: the norm before or after it, the row-parallel layer that ends it, and
// the names of its tensors and collectives.
typedef struct Half {
    Norm norm, behind;  // the norm after it; equal to `norm` where there is only one
    Linear out;
    const char *out_bias;  // added with the residual; NULL where there is none
    const char *in, *in_full, *sum, *sum_between, *sum_normed;
    const char *din, *din_full, *din_part, *dsum, *dsum_full, *mask, *dkept;
    const char *enter, *leave, *enter_backward, *leave_backward;
    const char *in_scale;
} Half;

// The gradient of a half's output, before and after it is made whole on every tp rank.
typedef struct HalfGradient {
    OpRef between;
    int32_t full;
} HalfGradient;

Half attention_half(const Lowering *lowering);
Half mlp_half(const Lowering *lowering);
int32_t half_begin(Lowering *lowering, const Half *half, OpRef x);
void half_end(Lowering *lowering, const Half *half, int32_t inner, OpRef x, OpRef sum);
HalfGradient half_gradient(Lowering *lowering, const Half *half, OpRef g);
void half_out_backward(Lowering *lowering, const Half *half, const HalfGradient *gradient, int32_t inner,
                       int32_t dinner);
void half_bias_backward(Lowering *lowering, const Half *half,
                        const HalfGradient *gradient);  // of the half's row-parallel layer
void half_begin_backward(Lowering *lowering, const Half *half, const Projection *projection,
                         const NormBackward *stream);

// half_end without the layer that produces half->sum, half_begin_backward without the projections.
void half_leave(Lowering *lowering, const Half *half, OpRef x, OpRef sum);
void half_enter_backward(Lowering *lowering, const Half *half, const NormBackward *stream);

// Their parts: on the tp rank that has the tokens, and the transition between it and all of them.
int32_t half_norm(Lowering *lowering, const Half *half, OpRef x);
int32_t half_enter(Lowering *lowering, const Half *half, int32_t in);
void half_join(Lowering *lowering, const Half *half, int32_t y, OpRef x, OpRef sum);
void half_norm_backward(Lowering *lowering, const Half *half, OpRef din, const NormBackward *stream);

// ---- inside attention (lower_attention.c)

// Where q, k and v are: columns of one tensor, or separate tensors.
typedef struct AttentionRefs {
    OpRef q, k, v;
    int64_t stride, kv_stride;
} AttentionRefs;

void add_rope(Lowering *lowering, Section section, const AttentionRefs *refs, bool backward);
void turn_apart(const Lowering *lowering, Op *op, bool backward);  // lower_apart.c
void join_apart(const Lowering *lowering, Op *op, bool backward);  // lower_apart.c
void copy_along(const Lowering *lowering, Op *op);                 // lower_apart.c
void turn_a_copy(Lowering *lowering, Section section, AttentionRefs *refs);
AttentionRefs attention_halves(Lowering *lowering, const AttentionRefs *wide, const char *const names[MAX_PARTS]);
void add_attention_casts(Lowering *lowering, Section section, const AttentionRefs *from, const AttentionRefs *to);
void add_attention(Lowering *lowering, const AttentionRefs *refs, int32_t o, int32_t lse);
void add_attention_backward(Lowering *lowering, const AttentionRefs *refs, const AttentionRefs *gradients, int32_t o,
                            int32_t lse, int32_t d_o);
int32_t attention_inner(Lowering *lowering);
int32_t attention_statistics(Lowering *lowering);
int32_t lower_latent_attention(Lowering *lowering, int32_t x);
Projection lower_latent_attention_backward(Lowering *lowering);

// Where ranks of tp share a key-value head (lower_shared.c): what the product made -> all ranks', and its gradient.
bool lowering_shares_keys(const Lowering *lowering);
int32_t lower_shared_keys(Lowering *lowering, int32_t qkv);
int32_t shared_keys_whole(Lowering *lowering);
int32_t shared_keys_gradient(Lowering *lowering);
void lower_shared_keys_backward(Lowering *lowering, int32_t dqkv);

// ---- what the halves contain

// x -> input of the half's last layer. Backward: from that input's gradient to the gradients of the projections.
int32_t lower_attention(Lowering *lowering, int32_t x);
int32_t attention_inner_gradient(Lowering *lowering);
Projection lower_attention_backward(Lowering *lowering);
int32_t lower_mlp(Lowering *lowering, OpRef x);
int32_t mlp_inner(Lowering *lowering);
int32_t mlp_inner_gradient(Lowering *lowering);
Projection lower_mlp_backward(Lowering *lowering);

// What a gated activation reads in backward: its input, or that input from fp8 again (lower_stored.c).
typedef struct StoredInput {
    const char *kept, *again;  // tensors
    const char *to, *from;     // tasks
} StoredInput;
void lower_stored(Lowering *lowering, const StoredInput *stored, int32_t input, int64_t elements);
int32_t lower_stored_backward(Lowering *lowering, const StoredInput *stored, int32_t input, int64_t elements);

// The feed-forward half in tiles (lower_tiles.c): normed x -> half->sum, and backward from its gradient.
void lower_tiles(Lowering *lowering, const Half *half, int32_t x);
void lower_tiles_backward(Lowering *lowering, const Half *half, const HalfGradient *gradient,
                          const NormBackward *stream);

// The MoE half (lower_experts.c): x -> sum = x + experts(norm x), and from g, its gradient, to the gradient of x in
// place.
void lower_experts(Lowering *lowering, const Half *half, OpRef x, OpRef sum);
void lower_experts_backward(Lowering *lowering, const Half *half, const NormBackward *stream);

// Input of the half's last layer: attention's results, in fp8 where they are saved in it.
int32_t attention_projected(Lowering *lowering);

// ---- saved activations on the host (lower_offload.c)

bool lowering_offloads_saved(const Lowering *lowering);   // what its first layers save
int32_t lowering_saved_layers(const Lowering *lowering);  // of how many layers the accelerator holds it
void lower_offload_saved(Lowering *lowering);

// ---- fp8 (lower_fp8.c)

// Which tensors are in fp8, and who casts them, goes by their names.
typedef enum {
    FP8_INPUT = 1 << 0,              // of linear layers: where it is gathered or saved in fp8
    FP8_MLP_INPUT = 1 << 1,          // the same of dense layers; a router reads it unconverted
    FP8_SAVED = 1 << 2,              // where inputs are saved in fp8
    FP8_GATHERED_GRADIENT = 1 << 3,  // where gradients are gathered in fp8
    FP8_CAST_BY_READER = 1 << 4,     // saved in fp8 by the linear layer that reads it, not by what makes it
    FP8_OF_ACTIVATION = 1 << 5,      // the same, unless fused operations cast
    FP8_OF_GRADIENTS = 1 << 6,       // fused operations write it in fp8, though others have it in bf16
    FP8_OF_NORM = 1 << 7             // the same, beside the adapter of a fused layer
} Fp8Use;

typedef struct Fp8Tensor {
    const char *name;
    unsigned uses;  // bits of Fp8Use
} Fp8Tensor;

extern const Fp8Tensor fp8_tensors[];        // ends with a name of NULL
unsigned fp8_tensor_uses(const char *name);  // 0: a tensor that is not in fp8
bool fp8_gathers_inputs(const Lowering *lowering);
bool fp8_saves_inputs(const Lowering *lowering);
OpRef fp8_scale_of(Lowering *lowering, Section section, Op *maker, int32_t tensor, const char *scale_name);
Op *fp8_add_cast(Lowering *lowering, Section section, OpRef x, int32_t to);
OpRef fp8_weight_slice(const Lowering *lowering, const char *first, const char *last, bool transposed);
int64_t fp8_stored_bytes(const Lowering *lowering, int64_t elements);  // of an fp8 tensor, including its scales
int64_t fp8_gathered_bytes(const Lowering *lowering, int64_t elements, bool gradient);  // of what tp ranks gather
bool fp8_keeps_unit(const Lowering *lowering, int unit);  // fp8_keeps_parameters: a layer, or its experts
int64_t fp8_stored_elements(const Lowering *lowering, int64_t bytes);
Dtype fp8_product_dtype(const Lowering *lowering, GemmRole role);
// Bytes moved by casting a GEMM's operands; its three operands as in add_gemm (fp8_casts.c).
int64_t fp8_cast_bytes(const Lowering *lowering, const Linear *linear, GemmRole role, const OpRef *abc);
bool fp8_fuses_casts(const Lowering *lowering);               // an operation writes in fp8 what the next product reads
static inline bool has_fused_mlp(const Lowering *lowering) {  // TEFusedMLP is no layer of experts
    return lowering->plan->op_fuser && lowering->model->experts.count == 0;
}
double fp8_rows_cast_bytes(const Lowering *lowering, GemmRole role);  // per element of expert rows
double fp8_grouped_cast_bytes(const Lowering *lowering, GemmRole role, double a, double b);  // elements of operands
bool fp8_has_one_layout(const Lowering *lowering);  // of a tensor in fp8, which all products read
void lower_fp8_weights(Lowering *lowering);
void lower_fp8_backward_weights(Lowering *lowering);  // ahead of a layer's backward
void lower_fp8_begin(Lowering *lowering);
void lower_fp8_history(Lowering *lowering, Section section);

// ---- a head split over the vocabulary while the loss works on whole rows (lower_head.c)

int32_t head_part(Lowering *lowering);                            // this rank's part of the logits
void head_gather(Lowering *lowering, int32_t logits);             // part -> logits
void head_slice_gradient(Lowering *lowering, int32_t gradients);  // gradients of the logits -> of the part

// ---- edges (lower_edges.c)

void lower_begin(Lowering *lowering);
void lower_tail(Lowering *lowering);
void lower_end(Lowering *lowering);
