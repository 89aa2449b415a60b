// Rules: the project's reference for rows of measured runs.

#include "autotune/accuracy/run_word_tables.h"

#include "sim/base/text.h"

#define LAST                                                                                                           \
    { NULL, NULL, false }

static const WordPart recompute[] = {
    {"selective", "selective", false},
    {"full", "full", false},
    {"none", "none", false},
    {"norecompute", "none", false},
    {"no", "none", true},
    {"off", "none", true},
    {"false", "none", true},
    LAST,
};

// fp32 only where it is all: sums, copies and gradients in it stand beside what multiplies. A cache is for inference.
static const WordPart dtype[] = {
    {"bf16(fp8", NULL, false},
    {"fp8kv", NULL, false},
    {"kvfp8", NULL, false},
    {"nvfp4", "fp8", false},
    {"fp4", "fp8", false},
    {"mxfp8", "fp8", false},
    {"fp8", "fp8", false},
    {"float8", "fp8", false},
    {"bf16", "bf16", false},
    {"bfloat16", "bf16", false},
    {"fp16", "fp16", false},
    {"float16", "fp16", false},
    {"half", "fp16", true},
    {"fp32", "fp32", true},
    {"float32", "fp32", true},
    {"float", "fp32", true},
    LAST,
};

static const WordPart fp8_recipe[] = {
    {"nvfp4", "nvfp4", false},
    {"fp4", "nvfp4", false},
    {"mxfp8", "mxfp8", false},
    {"fp8mx", "mxfp8", false},
    {"rowwise", "rowwise", false},
    {"blockwise", "blockwise", false},
    {"fp8sc", "blockwise", false},
    {"subchannel", "blockwise", false},
    {"delayed", "delayed", false},
    {"fp8ds", "delayed", false},
    {"tensorwise", "tensorwise", false},
    {"fp8cs", "tensorwise", false},
    {"current", "tensorwise", false},
    {"pertensor", "tensorwise", false},
    LAST,
};

static const WordPart attention[] = {
    {"cudnn", "cudnn", false},
    {"te", "cudnn", true},
    {"tefused", "cudnn", true},
    {"teflash", "cudnn", true},
    {"transformerengine", "cudnn", false},
    {"unfused", "eager", false},
    {"fusedsoftmax", "eager", false},
    {"local", "eager", true},
    {"denseattention", "eager", false},
    {"math", "eager", false},
    {"eager", "eager", false},
    {"triton", "triton", false},
    {"flash4", NULL, false},
    {"flashattn4", NULL, false},
    {"flashattnv4", NULL, false},
    {"flashattention4", NULL, false},
    {"flashattentionv4", NULL, false},
    {"fa4", NULL, false},
    {"flash3", "flash3", false},
    {"flashattn3", "flash3", false},
    {"flashattnv3", "flash3", false},
    {"flashattention3", "flash3", false},
    {"flashattentionv3", "flash3", false},
    {"fa3", "flash3", false},
    {"fa2", "flash", false},
    {"flash", "flash", false},
    {"sdpa", "flash", false},
    {"flex", "flash", false},
    LAST,
};

static const WordPart fused[] = {
    {"compile", "compiled", false},
    {"torchcompile", "compiled", false},
    {"inductor", "compiled", false},
    {"te", "fused", true},
    {"apex", "fused", true},
    {"transformerengine", "fused", false},
    {"none", "eager", true},
    {"no", "eager", true},
    LAST,
};

// Megatron's a2a+p2p is of both.
static const WordPart cp_algo[] = {
    {"+", NULL, false},
    {"a2a", "a2a", false},
    {"p2p", "ring", false},
    {"zigzag", "ring", false},
    {"ring", "ring", false},
    {"allgather", "allgather", false},
    LAST,
};

// squared ReLU takes GELU's place: sizes and traffic are the same
static const WordPart mlp[] = {
    {"gelunew", "gelu-new", true}, {"gelutanh", "gelu-tanh", true}, {"swiglu", "swiglu", false},
    {"geglu", "swiglu", false},    {"gated", "swiglu", false},      {"silu", "swiglu", true},
    {"glu", "swiglu", true},       {"gelunew", "gelu-new", false},  {"gelutanh", "gelu-tanh", false},
    {"gelu", "gelu", false},       {"relu", "gelu", false},         LAST,
};

static const WordPart zero[] = {
    {"offload", NULL, false},
    {"cpuoffload", NULL, false},
    {"zero3", "3", false},
    {"zerostage3", "3", false},
    {"stage3", "3", false},
    {"zero2", "2", false},
    {"zerostage2", "2", false},
    {"stage2", "2", false},
    {"zero1", "1", false},
    {"zerostage1", "1", false},
    {"stage1", "1", false},
    {"hybridshardzero2", "2", false},
    {"shardgradop", "2", false},
    {"noshard", "0", false},
    {"distributedoptimizer", "1", false},
    {"optimgradsparams", "3", false},
    {"optimgrads", "2", false},  // Megatron-FSDP's
    {"fsdp", "3", false},
    {"simplefsdp", "3", false},
    {"fullshard", "3", false},
    {"hybridshard", "3", false},
    {"hsdp", "3", false},
    {"none", "0", false},
    {"zero0", "0", false},
    {"zerostage0", "0", false},
    {"stage0", "0", false},
    {"ddp", "0", false},
    LAST,
};

// What speaks of the states; other texts are of other axes ("TP + SP").
static const WordPart sharded_states[] = {{"zero", "", false}, {"stage", "", false}, {"shard", "", false}, LAST};

static const WordPart sp[] = {
    {"withoutsequenceparallel", "0", false},
    {"nosequenceparallel", "0", false},
    {"sequenceparalleloff", "0", false},
    {"sequenceparallelfalse", "0", false},
    {"sequenceparallel", "1", false},
    {"true", "1", true},
    {"yes", "1", true},
    {"on", "1", true},
    {"false", "0", true},
    {"no", "0", true},
    {"off", "0", true},
    LAST,
};

static const WordColumn columns[] = {
    {"recompute", recompute, {"act_ckpt"}, true, NULL},
    {"dtype", dtype, {"precision"}, true, NULL},
    {"fp8_recipe", fp8_recipe, {"dtype", "precision"}, false, NULL},
    {"attention", attention, {"attention_impl"}, true, NULL},
    {"fused", fused, {NULL}, false, NULL},
    {"cp_algo", cp_algo, {NULL}, false, NULL},
    {"mlp", mlp, {NULL}, false, NULL},
    {"zero", zero, {"sharding"}, true, sharded_states},
    {"sp", sp, {"compiled_or_fused"}, false, NULL},
    {"target", NULL, {"source"}, false, NULL},
};

const WordColumn *run_word_column(const char *name) {
    return TEXT_FIND(columns, sizeof columns / sizeof columns[0], column, name);
}
