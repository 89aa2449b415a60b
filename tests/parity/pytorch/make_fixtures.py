#!/usr/bin/env python3
"""Fixtures for test_pytorch.c: Hugging Face models in PyTorch, started from ndtune's own weights and data.

    python make_fixtures.py [FOLDER [NAME ...]]      (torch 2.11, transformers 4.57.6, peft 0.21; CPU, a few seconds)

Weights and tokens are made here once more from their definition (exec/device/initial.c, exec/data/chain.c), so the
fixtures also hold those to it. Every normal weight is times SCALE: with 0.02 at this width attention would be flat and
its gradients rounding noise. PyTorch computes in float64 (a few Hugging Face norms cast to float32 inside, and mpt is
float32 altogether), so the error that the test sees is ndtune's own. A file holds, in %.9g: logits and gradients of
step 1, and losses, gradient norms and weights of STEPS AdamW steps. Of adapters (peft) theirs alone; both matrices of
one begin as normal weights, so that both have gradients in step 1.
"""

import math
import sys
from pathlib import Path

import numpy
import peft
import torch
import transformers

SEED, SCALE, STEPS = 7, 8.0, 10
LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FFN, VOCAB, MAX_SEQ = 2, 32, 4, 2, 8, 128, 96, 32
SEQUENCES, SEQ, EPS = 2, 24, 1e-5
LR, BETA1, BETA2, ADAM_EPS, DECAY, CLIP = 1e-3, 0.9, 0.95, 1e-8, 0.1, 1.0
SAMPLES = 6

# ---- ndtune's random numbers, weights and tokens

U64 = numpy.uint64
LOW = U64(0xFFFFFFFF)


def philox(key, high, low):
    """Philox4x32-10 of one key over arrays of counters: four arrays of 32-bit words."""
    low = numpy.asarray(low, U64)
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    x = [low & LOW, low >> U64(32), numpy.full_like(low, high & 0xFFFFFFFF), numpy.full_like(low, high >> 32)]
    for _ in range(10):
        p0, p1 = U64(0xD2511F53) * x[0], U64(0xCD9E8D57) * x[2]
        x = [(p1 >> U64(32)) ^ x[1] ^ U64(k0), p1 & LOW, (p0 >> U64(32)) ^ x[3] ^ U64(k1), p0 & LOW]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return [word.astype(numpy.int64) for word in x]


def normal(stream, count):
    index = numpy.arange(count, dtype=numpy.uint64)
    a, b = philox(SEED, stream, U64(2) * index), philox(SEED, stream, U64(2) * index + U64(1))
    total = numpy.full(count, -393210, numpy.int64)
    for word in a + b[:2]:
        total += (word & 0xFFFF) + (word >> 16)
    return total.astype(numpy.float32)


def initial(unit, tensor, instance, shape):
    """A normal weight: the unit's and the tensor's number and the layer choose the stream."""
    stream = unit << 56 | tensor << 32 | instance
    value = normal(stream, math.prod(shape)) * numpy.float32(0.02 / 65536.0) * numpy.float32(SCALE)
    return torch.from_numpy(value.astype(numpy.float64)).reshape(shape)


def word(stream, low, which):
    return int(philox(SEED, stream, [low])[which][0])


def sequence(step, index):
    states, tokens, state = min(VOCAB, 64), [], 0
    for i in range(SEQ + 1):
        stream, low = 2 << 48 | step, index << 32 | i
        if i == 0:
            state = word(stream, low, 2) % states
        else:
            chance = word(stream, low, 0) % 16
            pick = (
                word(1 << 48, state, 0)
                if chance < 12
                else word(1 << 48, state, 1) if chance < 15 else word(stream, low, 1)
            )
            state = pick % states
        tokens.append(state * VOCAB // states)
    return tokens


def batch(step):
    rows = torch.tensor([sequence(step, index) for index in range(SEQUENCES)])
    return rows[:, :-1], rows[:, 1:]


# ---- models: a slice of ndtune's units -> the part of a Hugging Face parameter that it is


NORMAL = ("embed", "positions", "lm_head", "router", "router_correction", "shared_gate", "experts_up", "experts_down")


class Slice:
    def __init__(self, name, parameter, view=lambda p: p, offset=0.0):
        self.name, self.parameter, self.view, self.offset = name, parameter, view, offset
        self.parameters = [parameter]
        self.normal = name.startswith(("w", "dense_w")) or name in NORMAL

    def weight(self):  # gemma multiplies by 1 + weight
        return self.view(self.parameter.data) + self.offset

    def gradient(self):
        return self.view(self.parameter.grad)

    def store(self, value):
        """Views of neox are copies: there the value goes the way of a gradient, through a mask of the same shape."""
        before = self.parameter.data.clone()
        probe = torch.arange(before.numel(), dtype=torch.float64).reshape(before.shape)
        before.view(-1)[self.view(probe).reshape(-1).long()] = value.reshape(-1).to(before.dtype)
        self.parameter.data.copy_(before)


class Gap:
    """Takes a number in a layer that has no such parameter."""

    name = ""


class Stack(Slice):
    """Several parameters of one width, one below the other: those of all experts."""

    def __init__(self, name, parameters):
        super().__init__(name, parameters[0])
        self.parameters = parameters

    def weight(self):
        return torch.cat([p.data for p in self.parameters])

    def gradient(self):
        return torch.cat([p.grad for p in self.parameters])

    def store(self, value):
        for p, part in zip(self.parameters, value.split([p.shape[0] for p in self.parameters])):
            p.data.copy_(part)


def rows(first, count):
    return lambda p: p[first : first + count]


Q, KV = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM


def llama_like(model, offset=0.0, qk_norm=False, biases=False, post=False):
    units = [[Slice("embed", model.model.embed_tokens.weight)]]
    for layer in model.model.layers:
        a, f = layer.self_attn, layer.mlp
        s = [Slice("q_norm", a.q_norm.weight), Slice("k_norm", a.k_norm.weight)] if qk_norm else []
        s.append(
            Slice(
                "attention_norm",
                (layer.post_attention_layernorm if post else layer.input_layernorm).weight,
                offset=offset,
            )
        )
        s.append(
            Slice(
                "mlp_norm",
                (layer.post_feedforward_layernorm if post else layer.post_attention_layernorm).weight,
                offset=offset,
            )
        )
        if biases:
            s += [Slice("bq", a.q_proj.bias), Slice("bk", a.k_proj.bias), Slice("bv", a.v_proj.bias)]
        s += [
            Slice("wq", a.q_proj.weight),
            Slice("wk", a.k_proj.weight),
            Slice("wv", a.v_proj.weight),
            Slice("wo", a.o_proj.weight),
        ]
        s += [Slice("wgate", f.gate_proj.weight), Slice("wup", f.up_proj.weight), Slice("wdown", f.down_proj.weight)]
        units.append(s)
    return units + [head(model, model.model.norm, None, model.lm_head, offset)]


EXPERTS, ACTIVE, SHARED = 4, 2, 64
# Of widths 32 to 160 PyTorch's own float32 leaves float64 in ten AdamW steps by norms of 2e-7 to 3e-6 (32: 8e-7, 48:
# 3e-6) and single weights of 9e-5 to 2e-4, with the same choice of experts throughout and gradients of step 1 within
# 1e-5: AdamW divides a gradient near zero by its own size. With 64 neither norms nor the sampled weights meet that.
WINDOW = 7
ATTENTION_CAP, LOGIT_CAP = 1.5, 4.0  # of the size of scores and logits here, so that both bend
BALANCE = 0.1
# DeepSeek-V3: heads of STILL + ROPE elements, values of VALUE; experts in groups
Q_RANK, KV_RANK, STILL, ROPE, VALUE = 24, 16, 8, 8, 8
GROUPED_EXPERTS, GROUPS, ACTIVE_GROUPS, FACTOR, DEEPSEEK_FFN = 8, 4, 2, 2.5, 64
OF_DENSE = 48  # number of the first matrix of dense layers among those of experts (sim/step/lower_units.c)


def experts(model, block, parts, qk_norm=False, shared=False):
    """The router (and the gate of a shared expert, which lies in front of the others) in front of a layer's own slices, the experts' gates and ups, and their downs, behind them."""
    units = [[Slice("embed", model.model.embed_tokens.weight)]]
    for layer in model.model.layers:
        a, f = layer.self_attn, block(layer)
        s = [Slice("router", f.gate.weight)]
        s += [Slice("shared_gate", f.shared_expert_gate.weight)] if shared else []
        s += [Slice("q_norm", a.q_norm.weight), Slice("k_norm", a.k_norm.weight)] if qk_norm else []
        s += [
            Slice("attention_norm", layer.input_layernorm.weight),
            Slice("mlp_norm", layer.post_attention_layernorm.weight),
        ]
        s += [Slice("bq", a.q_proj.bias), Slice("bk", a.k_proj.bias), Slice("bv", a.v_proj.bias)] if shared else []
        s += [
            Slice("wq", a.q_proj.weight),
            Slice("wk", a.k_proj.weight),
            Slice("wv", a.v_proj.weight),
            Slice("wo", a.o_proj.weight),
        ]
        e = f.shared_expert if shared else None
        s += [Slice("w" + part[:-5], getattr(e, part).weight) for part in GATED] if shared else []
        s += [
            Stack("experts_up", [getattr(e, part).weight for e in f.experts for part in parts[:2]]),
            Stack("experts_down", [getattr(e, parts[2]).weight for e in f.experts]),
        ]
        units.append(s)
    return units + [head(model, model.model.norm, None, model.lm_head)]


def gpt_oss(model):
    """Its experts lie in one tensor each, [expert, in, out], gates and ups by turns."""
    units = [[Slice("embed", model.model.embed_tokens.weight)]]
    apart = lambda p: p.reshape(EXPERTS, -1, FFN, 2).permute(0, 3, 2, 1).reshape(EXPERTS * 2 * FFN, -1)
    turned = lambda p: p.permute(0, 2, 1).reshape(EXPERTS * HIDDEN, FFN)
    for layer in model.model.layers:
        a, router, e = layer.self_attn, layer.mlp.router, layer.mlp.experts
        units.append(
            [
                Slice("router", router.weight),
                Slice("router_bias", router.bias),
                Slice("attention_norm", layer.input_layernorm.weight),
                Slice("mlp_norm", layer.post_attention_layernorm.weight),
                Slice("bo", a.o_proj.bias),
                Slice("experts_down_bias", e.down_proj_bias),
                Slice("bq", a.q_proj.bias),
                Slice("bk", a.k_proj.bias),
                Slice("bv", a.v_proj.bias),
                Slice("wq", a.q_proj.weight),
                Slice("wk", a.k_proj.weight),
                Slice("wv", a.v_proj.weight),
                Slice("wo", a.o_proj.weight),
                Slice("experts_up_bias", e.gate_up_proj_bias, apart),
                Slice("sinks", a.sinks),
                Slice("experts_up", e.gate_up_proj, apart),
                Slice("experts_down", e.down_proj, turned),
            ]
        )
    return units + [head(model, model.model.norm, None, model.lm_head)]


def deepseek(model):
    """Elements that turn lie in pairs there, here in halves; the correction of the router's scores is a buffer."""
    halves = [*range(0, ROPE, 2), *range(1, ROPE, 2)]
    of_heads = [h * (STILL + ROPE) + i for h in range(HEADS) for i in [*range(STILL), *(STILL + r for r in halves)]]
    of_latent = [*range(KV_RANK), *(KV_RANK + r for r in halves)]
    units = [[Slice("embed", model.model.embed_tokens.weight)]]
    for layer in model.model.layers:
        a, f = layer.self_attn, layer.mlp
        routed = hasattr(f, "gate")
        units.append(
            [
                Slice("wq_latent", a.q_a_proj.weight),
                Slice("q_latent_norm", a.q_a_layernorm.weight),
                Slice("wkv_latent", a.kv_a_proj_with_mqa.weight, lambda p: p[of_latent]),
                Slice("kv_latent_norm", a.kv_a_layernorm.weight),
                Slice("router", f.gate.weight) if routed else Gap(),
                Slice("router_correction", f.gate.e_score_correction_bias) if routed else Gap(),
                Slice("attention_norm", layer.input_layernorm.weight),
                Slice("mlp_norm", layer.post_attention_layernorm.weight),
                Slice("wq", a.q_b_proj.weight, lambda p: p[of_heads]),
                Slice("wkv", a.kv_b_proj.weight),
                Slice("wo", a.o_proj.weight),
            ]
        )
        unit = units[-1]
        if routed:
            unit += [Slice("w" + part[:-5], getattr(f.shared_experts, part).weight) for part in GATED]
            unit.append(Stack("experts_up", [getattr(e, part).weight for e in f.experts for part in GATED[:2]]))
            unit.append(Stack("experts_down", [e.down_proj.weight for e in f.experts]))
        else:
            unit += [Gap() for _ in range(OF_DENSE - len(unit))]
            unit += [Slice("dense_w" + part[:-5], getattr(f, part).weight) for part in GATED]
    return units + [head(model, model.model.norm, None, model.lm_head)]


def deepseek_v3(dense):
    config = transformers.DeepseekV3Config(
        q_lora_rank=Q_RANK,
        kv_lora_rank=KV_RANK,
        qk_nope_head_dim=STILL,
        qk_rope_head_dim=ROPE,
        v_head_dim=VALUE,
        n_routed_experts=GROUPED_EXPERTS,
        num_experts_per_tok=ACTIVE,
        n_shared_experts=1,
        moe_intermediate_size=DEEPSEEK_FFN,
        n_group=GROUPS,
        topk_group=ACTIVE_GROUPS,
        routed_scaling_factor=FACTOR,
        norm_topk_prob=True,
        first_k_dense_replace=dense,
        **(sizes() | dict(num_key_value_heads=HEADS))
    )
    return transformers.DeepseekV3ForCausalLM(config), deepseek


def gemma3(model, qk_norm=True):
    units = llama_like(model, offset=1.0, qk_norm=qk_norm)
    for layer, unit in zip(model.model.layers, units[1:-1]):
        names = [s.name for s in unit]
        for name in ("q_norm", "k_norm") if qk_norm else ():
            unit[names.index(name)].offset = 1.0
        at = names.index("mlp_norm")
        unit[at] = Slice("mlp_norm", layer.pre_feedforward_layernorm.weight, offset=1.0)
        unit[at + 1 : at + 1] = [
            Slice("attention_post_norm", layer.post_attention_layernorm.weight, offset=1.0),
            Slice("mlp_post_norm", layer.post_feedforward_layernorm.weight, offset=1.0),
        ]
    return units


class Wide:
    """torch for a module whose casts to float32 are to stay in float64."""

    float32 = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


def wide(name):
    module = sys.modules["transformers.models.%s.modeling_%s" % (name, name)]
    module.torch = Wide()


GATED = ("gate_proj", "up_proj", "down_proj")
LORA_RANK = 4
COLUMN_PARALLEL = {"wq": "q_proj", "wk": "k_proj", "wv": "v_proj", "wgate": "gate_proj", "wup": "up_proj"}
LINEAR = ("wq", "wk", "wv", "wo", "wgate", "wup", "wdown")
MODULES = COLUMN_PARALLEL | {"wo": "o_proj", "wdown": "down_proj"}


def lora(model):
    """Behind a layer's own slices its adapters: first those that every tp rank would hold whole."""
    units = llama_like(model.base_model.model)
    for layer, unit in zip(model.base_model.model.model.layers, units[1:-1]):
        part = {name: getattr(layer.mlp if name in ("wgate", "wup", "wdown") else layer.self_attn, module)
                for name, module in MODULES.items()}
        a = {name: Slice(name + "_adapter_a", part[name].lora_A["default"].weight) for name in LINEAR}
        b = {name: Slice(name + "_adapter_b", part[name].lora_B["default"].weight) for name in LINEAR}
        unit += [(a if name in COLUMN_PARALLEL else b)[name] for name in LINEAR]
        unit += [(b if name in COLUMN_PARALLEL else a)[name] for name in LINEAR]
    return units


def head(model, norm, bias, lm_head, offset=0.0):
    s = [Slice("final_norm", norm.weight, offset=offset)]
    if bias is not None:
        s.append(Slice("final_norm_bias", bias))
    return s if model.config.tie_word_embeddings else s + [Slice("lm_head", lm_head.weight)]


def phi3(model):
    units = [[Slice("embed", model.model.embed_tokens.weight)]]
    for layer in model.model.layers:
        qkv, gate_up = layer.self_attn.qkv_proj.weight, layer.mlp.gate_up_proj.weight
        units.append(
            [
                Slice("attention_norm", layer.input_layernorm.weight),
                Slice("mlp_norm", layer.post_attention_layernorm.weight),
                Slice("wq", qkv, rows(0, Q)),
                Slice("wk", qkv, rows(Q, KV)),
                Slice("wv", qkv, rows(Q + KV, KV)),
                Slice("wo", layer.self_attn.o_proj.weight),
                Slice("wgate", gate_up, rows(0, FFN)),
                Slice("wup", gate_up, rows(FFN, FFN)),
                Slice("wdown", layer.mlp.down_proj.weight),
            ]
        )
    return units + [head(model, model.model.norm, None, model.lm_head)]


def gpt2(model):
    t = model.transformer
    units = [[Slice("positions", t.wpe.weight), Slice("embed", t.wte.weight)]]
    turned = lambda p: p.T  # Conv1D keeps [in, out]
    part = lambda i: lambda p: p.T[i * HIDDEN : (i + 1) * HIDDEN]
    for layer in t.h:
        qkv, b = layer.attn.c_attn.weight, layer.attn.c_attn.bias
        units.append(
            [
                Slice("attention_norm", layer.ln_1.weight),
                Slice("attention_norm_bias", layer.ln_1.bias),
                Slice("mlp_norm", layer.ln_2.weight),
                Slice("mlp_norm_bias", layer.ln_2.bias),
                Slice("bo", layer.attn.c_proj.bias),
                Slice("bdown", layer.mlp.c_proj.bias),
                Slice("bq", b, rows(0, HIDDEN)),
                Slice("bk", b, rows(HIDDEN, HIDDEN)),
                Slice("bv", b, rows(2 * HIDDEN, HIDDEN)),
                Slice("bup", layer.mlp.c_fc.bias),
                Slice("wq", qkv, part(0)),
                Slice("wk", qkv, part(1)),
                Slice("wv", qkv, part(2)),
                Slice("wo", layer.attn.c_proj.weight, turned),
                Slice("wup", layer.mlp.c_fc.weight, turned),
                Slice("wdown", layer.mlp.c_proj.weight, turned),
            ]
        )
    return units + [head(model, t.ln_f, t.ln_f.bias, model.lm_head)]


def gpt_neox(model):
    units = [[Slice("embed", model.gpt_neox.embed_in.weight)]]
    part = lambda i: lambda p: p.view(HEADS, 3, HEAD_DIM, *p.shape[1:])[:, i].reshape(HEADS * HEAD_DIM, *p.shape[1:])
    for layer in model.gpt_neox.layers:
        qkv, b = layer.attention.query_key_value.weight, layer.attention.query_key_value.bias
        units.append(
            [
                Slice("attention_norm", layer.input_layernorm.weight),
                Slice("attention_norm_bias", layer.input_layernorm.bias),
                Slice("mlp_norm", layer.post_attention_layernorm.weight),
                Slice("mlp_norm_bias", layer.post_attention_layernorm.bias),
                Slice("bo", layer.attention.dense.bias),
                Slice("bdown", layer.mlp.dense_4h_to_h.bias),
                Slice("bq", b, part(0)),
                Slice("bk", b, part(1)),
                Slice("bv", b, part(2)),
                Slice("bup", layer.mlp.dense_h_to_4h.bias),
                Slice("wq", qkv, part(0)),
                Slice("wk", qkv, part(1)),
                Slice("wv", qkv, part(2)),
                Slice("wo", layer.attention.dense.weight),
                Slice("wup", layer.mlp.dense_h_to_4h.weight),
                Slice("wdown", layer.mlp.dense_4h_to_h.weight),
            ]
        )
    norm = model.gpt_neox.final_layer_norm
    return units + [head(model, norm, norm.bias, model.embed_out)]


def mpt(model):
    t = model.transformer
    units = [[Slice("embed", t.wte.weight)]]
    for layer in t.blocks:
        qkv = layer.attn.Wqkv.weight
        units.append(
            [
                Slice("attention_norm", layer.norm_1.weight),
                Slice("mlp_norm", layer.norm_2.weight),
                Slice("wq", qkv, rows(0, HIDDEN)),
                Slice("wk", qkv, rows(HIDDEN, HIDDEN)),
                Slice("wv", qkv, rows(2 * HIDDEN, HIDDEN)),
                Slice("wo", layer.attn.out_proj.weight),
                Slice("wup", layer.ffn.up_proj.weight),
                Slice("wdown", layer.ffn.down_proj.weight),
            ]
        )
    return units + [head(model, t.norm_f, None, model.lm_head)]


def sizes(**more):
    return dict(
        hidden_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        intermediate_size=FFN,
        vocab_size=VOCAB,
        max_position_embeddings=MAX_SEQ,
        rms_norm_eps=EPS,
        rope_theta=10000.0,
        tie_word_embeddings=False,
        attn_implementation="eager",
        pad_token_id=None,
        **more
    )


T = transformers
FLOAT32 = ("mpt",)  # its mask overflows float64


def mixtral():
    config = T.MixtralConfig(num_local_experts=EXPERTS, num_experts_per_tok=ACTIVE, sliding_window=None, **sizes())
    return T.MixtralForCausalLM(config), lambda m: experts(m, lambda layer: layer.block_sparse_moe, ("w1", "w3", "w2"))


MODELS = {
    "llama": lambda: (T.LlamaForCausalLM(T.LlamaConfig(**sizes())), llama_like),
    "llama_linear": lambda: (
        T.LlamaForCausalLM(T.LlamaConfig(rope_scaling=dict(rope_type="linear", factor=4.0), **sizes())),
        llama_like,
    ),
    "llama_llama3": lambda: (
        T.LlamaForCausalLM(
            T.LlamaConfig(
                rope_scaling=dict(
                    rope_type="llama3",
                    factor=8.0,
                    low_freq_factor=1.0,
                    high_freq_factor=4.0,
                    original_max_position_embeddings=16,
                ),
                **sizes()
            )
        ),
        llama_like,
    ),
    "llama_lora": lambda: (
        peft.get_peft_model(
            T.LlamaForCausalLM(T.LlamaConfig(**sizes())),
            peft.LoraConfig(task_type="CAUSAL_LM", r=LORA_RANK, lora_alpha=2 * LORA_RANK, target_modules="all-linear"),
        ),
        lora,
    ),
    "mistral": lambda: (T.MistralForCausalLM(T.MistralConfig(sliding_window=None, **sizes())), llama_like),
    "mistral_window": lambda: (T.MistralForCausalLM(T.MistralConfig(sliding_window=WINDOW, **sizes())), llama_like),
    "gpt_oss": lambda: (
        T.GptOssForCausalLM(
            T.GptOssConfig(
                head_dim=HEAD_DIM,
                num_local_experts=EXPERTS,
                num_experts_per_tok=ACTIVE,
                sliding_window=WINDOW,
                rope_scaling=None,
                **sizes()
            )
        ),
        gpt_oss,
    ),
    "qwen2": lambda: (T.Qwen2ForCausalLM(T.Qwen2Config(**sizes())), lambda m: llama_like(m, biases=True)),
    "qwen3": lambda: (
        T.Qwen3ForCausalLM(T.Qwen3Config(head_dim=HEAD_DIM, **sizes())),
        lambda m: llama_like(m, qk_norm=True),
    ),
    "olmo2": lambda: (T.Olmo2ForCausalLM(T.Olmo2Config(**sizes())), lambda m: llama_like(m, qk_norm=True, post=True)),
    "gemma": lambda: (
        T.GemmaForCausalLM(T.GemmaConfig(head_dim=2 * HEAD_DIM, **(sizes() | dict(tie_word_embeddings=True)))),
        lambda m: llama_like(m, offset=1.0),
    ),
    "phi3": lambda: (T.Phi3ForCausalLM(T.Phi3Config(**sizes())), phi3),
    "mixtral": mixtral,
    "mixtral_balance": mixtral,
    "deepseek_v3": lambda: deepseek_v3(0),
    "deepseek_v3_dense": lambda: deepseek_v3(1),
    "qwen2_moe": lambda: (
        T.Qwen2MoeForCausalLM(
            T.Qwen2MoeConfig(
                num_experts=EXPERTS,
                num_experts_per_tok=ACTIVE,
                moe_intermediate_size=FFN,
                shared_expert_intermediate_size=SHARED,
                norm_topk_prob=False,
                **sizes()
            )
        ),
        lambda m: experts(m, lambda layer: layer.mlp, GATED, shared=True),
    ),
    "qwen3_moe": lambda: (
        T.Qwen3MoeForCausalLM(
            T.Qwen3MoeConfig(
                head_dim=HEAD_DIM,
                num_experts=EXPERTS,
                num_experts_per_tok=ACTIVE,
                moe_intermediate_size=FFN,
                norm_topk_prob=True,
                **sizes()
            )
        ),
        lambda m: experts(m, lambda layer: layer.mlp, GATED, qk_norm=True),
    ),
    "olmoe": lambda: (
        T.OlmoeForCausalLM(
            T.OlmoeConfig(num_experts=EXPERTS, num_experts_per_tok=ACTIVE, norm_topk_prob=False, **sizes())
        ),
        lambda m: experts(m, lambda layer: layer.mlp, GATED, qk_norm=True),
    ),
    "gpt2": lambda: (
        T.GPT2LMHeadModel(
            T.GPT2Config(
                n_embd=HIDDEN,
                n_layer=LAYERS,
                n_head=HEADS,
                n_inner=FFN,
                vocab_size=VOCAB,
                n_positions=MAX_SEQ,
                layer_norm_epsilon=EPS,
                attn_implementation="eager",
            )
        ),
        gpt2,
    ),
    "gemma2": lambda: (
        T.Gemma2ForCausalLM(
            T.Gemma2Config(
                head_dim=2 * HEAD_DIM,
                query_pre_attn_scalar=2 * HEAD_DIM,
                sliding_window=WINDOW,
                layer_types=["sliding_attention", "full_attention"],
                attn_logit_softcapping=ATTENTION_CAP,
                final_logit_softcapping=LOGIT_CAP,
                hidden_activation="gelu_pytorch_tanh",
                **(sizes() | dict(tie_word_embeddings=True))
            )
        ),
        lambda m: gemma3(m, qk_norm=False),
    ),
    "gemma3_text": lambda: (
        T.Gemma3ForCausalLM(
            T.Gemma3TextConfig(
                head_dim=2 * HEAD_DIM,
                query_pre_attn_scalar=2 * HEAD_DIM,
                sliding_window=WINDOW,
                layer_types=["sliding_attention", "full_attention"],
                rope_local_base_freq=1000.0,
                rope_scaling={"rope_type": "linear", "factor": 4.0},
                hidden_activation="gelu_pytorch_tanh",
                **(sizes() | dict(tie_word_embeddings=True))
            )
        ),
        gemma3,
    ),
    "gpt_neox": lambda: (
        T.GPTNeoXForCausalLM(
            T.GPTNeoXConfig(
                hidden_size=HIDDEN,
                num_hidden_layers=LAYERS,
                num_attention_heads=HEADS,
                intermediate_size=FFN,
                vocab_size=VOCAB,
                max_position_embeddings=MAX_SEQ,
                layer_norm_eps=EPS,
                rotary_pct=0.25,
                use_parallel_residual=True,
                hidden_act="gelu",
                tie_word_embeddings=False,
                attn_implementation="eager",
            )
        ),
        gpt_neox,
    ),
    "mpt": lambda: (
        T.MptForCausalLM(
            T.MptConfig(
                d_model=HIDDEN,
                n_layers=LAYERS,
                n_heads=HEADS,
                expansion_ratio=FFN / HIDDEN,
                vocab_size=VOCAB,
                max_seq_len=MAX_SEQ,
                layer_norm_epsilon=EPS,
                tie_word_embeddings=True,
                use_cache=False,
            )
        ),
        mpt,
    ),
}


# ---- training


def present(unit):
    return [s for s in unit if not isinstance(s, Gap)]


def start(units):
    """ndtune's weights: unit 0 the embedding, 1 a layer, 2 the head."""
    for u, unit in enumerate(units):
        number, instance = (0, 0) if u == 0 else (2, 0) if u == len(units) - 1 else (1, u - 1)
        numbered = [s for s in unit if not (s.name.startswith("experts_") and s.name.endswith("_bias"))]
        for s in present(unit):
            tensor = numbered.index(s) if s in numbered else 0
            target = s.weight()
            if s.normal:
                value = initial(number, tensor, instance, tuple(target.shape))
            else:
                one = "norm" in s.name and not s.name.endswith("bias")
                value = torch.full_like(target, (1.0 if one else 0.0) - s.offset)
            s.store(value)


def sampled(tensor):
    flat = tensor.reshape(-1)
    return [flat[(2 * i + 1) * flat.numel() // (2 * SAMPLES)].item() for i in range(SAMPLES)]


def line(*fields):
    return " ".join(f if isinstance(f, str) else "%.9g" % f for f in fields) + "\n"


def losses(model, step, balance):
    """Beside the loss of the tokens that which spreads them over experts: transformers' own function, of each sequence
    and each layer."""
    tokens, targets = batch(step)
    made = model(input_ids=tokens, use_cache=False, **({"output_router_logits": True} if balance else {}))
    loss = torch.nn.functional.cross_entropy(made.logits.reshape(-1, VOCAB), targets.reshape(-1))
    spread = transformers.models.mixtral.modeling_mixtral.load_balancing_loss_func
    more = [
        balance / SEQUENCES * spread((of_sequence,), EXPERTS, ACTIVE)
        for of_layer in (made.router_logits if balance else ())
        for of_sequence in of_layer.reshape(SEQUENCES, SEQ, EXPERTS)
    ]
    return made.logits, loss, sum(more)


def trained(unit):
    return [s for s in unit if s.parameter.requires_grad]


def describe(kind, units, of):
    text = ""
    for u, unit in enumerate(units):
        instance = 0 if u in (0, len(units) - 1) else u - 1
        for s in trained(unit):
            text += line(kind, s.name, str(instance), of(s).norm().item(), *sampled(of(s)))
    return text


def fixture(name):
    model, slices = MODELS[name]()
    if name.startswith("deepseek_v3"):
        wide("deepseek_v3")
    model = model.eval() if name in FLOAT32 else model.double().eval()
    units = slices(model)
    start(units)
    units = [present(unit) for unit in units]
    covered = sum(s.weight().numel() for unit in units for s in unit if isinstance(s.parameter, torch.nn.Parameter))
    assert covered == sum(p.numel() for p in model.parameters()), "%s has parameters that no slice is" % name
    normals = {id(p): s.normal for unit in units for s in unit for p in s.parameters}
    groups = [
        {
            "params": [p for p in model.parameters() if p.requires_grad and normals[id(p)] == decays],
            "weight_decay": DECAY if decays else 0.0,
        }
        for decays in (True, False)
    ]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=(BETA1, BETA2), eps=ADAM_EPS)
    head_text, curve, norms = "", [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        logits, loss, more = losses(model, step, BALANCE if "balance" in name else 0.0)
        (loss + more).backward()
        for p in model.parameters():  # of an expert that no token visits: it decays all the same
            p.grad = torch.zeros_like(p) if p.requires_grad and p.grad is None else p.grad
        norm = math.sqrt(sum(p.grad.square().sum().item() for p in model.parameters() if p.requires_grad))
        if step == 0:
            head_text = line("logits", logits.norm().item(), *sampled(logits)) + describe(
                "gradient", units, lambda s: s.gradient()
            )
        for p in model.parameters():
            if p.requires_grad:
                p.grad.mul_(min(1.0, CLIP / norm))
        optimizer.step()
        curve.append(loss.item())
        norms.append(norm)
    return head_text + line("loss", *curve) + line("grad_norm", *norms) + describe("weight", units, lambda s: s.weight())


def main():
    torch.set_num_threads(1)
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for name in sys.argv[2:] or MODELS:
        versions = (torch.__version__, transformers.__version__)
        origin = "# make_fixtures.py, torch %s, transformers %s" % versions
        origin += ", peft %s\n" % peft.__version__ if "lora" in name else "\n"
        (folder / (name + ".txt")).write_text(origin + fixture(name))
        print(name, file=sys.stderr)


if __name__ == "__main__":
    main()
