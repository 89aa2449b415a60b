#!/usr/bin/env python3
"""How tokens choose experts before training: forwards of Qwen3-30B-A3B, drawn as Megatron-LM draws weights.

    python router_start.py [--layers N] [--tokens N] [--sequences N] [--text mock|zipf|uniform]

`mock` is Megatron-LM's mock data (documents that count from 1; megatron/core/datasets/gpt_dataset.py), `zipf` draws
tokens by their rank, `uniform` all alike. Prints by layer what tokens have in common at the router (of its input's
variance), the fullest of 4, 8, 16 and 32 ranks and of all experts over the mean, and how many experts were met. A layer
takes some seconds. ROUTER_START.md has what it printed. Wants numpy.
"""

import argparse

import numpy as np

arguments = argparse.ArgumentParser()
arguments.add_argument("--layers", type=int, default=8)
arguments.add_argument("--tokens", type=int, default=1024)
arguments.add_argument("--sequences", type=int, default=2)
arguments.add_argument("--text", choices=["mock", "zipf", "uniform"], default="mock")
given = arguments.parse_args()

HIDDEN, HEADS, GROUPS, HEAD, EXPERTS, ACTIVE, WIDTH, VOCABULARY, ALL_LAYERS = 2048, 32, 4, 128, 128, 8, 768, 151936, 48
SINGLE = np.float32
tokens = given.tokens
random = np.random.default_rng(1)


def drawn(rows, columns, width=0.02):
    return random.standard_normal((rows, columns), dtype=SINGLE) * SINGLE(width)


def drawn_out(rows, columns):
    return drawn(rows, columns, 0.02 / np.sqrt(2 * ALL_LAYERS))


def normed(values):
    return values / np.sqrt((values * values).mean(-1, keepdims=True) + 1e-6)


def text(sequence):
    if given.text == "uniform":
        return np.random.default_rng(5 + sequence).integers(0, VOCABULARY, size=tokens)
    if given.text == "zipf":
        odds = 1 / np.arange(1, VOCABULARY + 1)
        return np.random.default_rng(5 + sequence).choice(VOCABULARY, size=tokens, p=odds / odds.sum())
    lengths = np.random.default_rng(0).integers(1, 4096, size=100000)
    said = np.concatenate([np.append(np.arange(1, length), VOCABULARY - 1) for length in lengths[3 * sequence:][:tokens]])
    return said[:tokens]


angles = (np.arange(tokens)[:, None] * 1e6 ** (-np.arange(HEAD // 2) / (HEAD / 2))).astype(SINGLE)
turn_cos, turn_sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
later = np.triu(np.full((tokens, tokens), -1e9, SINGLE), 1)


def turned(heads):
    first, second = heads[..., :HEAD // 2], heads[..., HEAD // 2:]
    return np.concatenate([first * turn_cos - second * turn_sin, second * turn_cos + first * turn_sin], -1)


def attended(values, queries, keys, of_values):
    heads = turned(normed((values @ queries).reshape(tokens, HEADS, HEAD)))
    seen = turned(normed((values @ keys).reshape(tokens, GROUPS, HEAD)))
    told = (values @ of_values).reshape(tokens, GROUPS, HEAD)
    out = np.empty((tokens, HEADS, HEAD), SINGLE)
    for head in range(HEADS):
        group = head * GROUPS // HEADS
        scores = heads[:, head] @ seen[:, group].T * SINGLE(HEAD ** -0.5) + later
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        out[:, head] = scores / scores.sum(-1, keepdims=True) @ told[:, group]
    return out.reshape(tokens, -1)


def routed(values, chosen, weights):
    out = np.zeros_like(values)
    for expert in range(EXPERTS):
        rows, places = np.nonzero(chosen == expert)
        gate, up, down = drawn(HIDDEN, WIDTH), drawn(HIDDEN, WIDTH), drawn_out(WIDTH, HIDDEN)
        if len(rows) > 0:
            gated = values[rows] @ gate
            halves = gated / (1 + np.exp(-gated)) * (values[rows] @ up) @ down
            out[rows] += halves * weights[rows, places][:, None]
    return out


embedding = drawn(VOCABULARY, HIDDEN)
streams = [embedding[text(sequence)] for sequence in range(given.sequences)]
print("layer  in common  4 ranks  8 ranks  16 ranks  32 ranks  expert  met")
for layer in range(given.layers):
    of_attention = drawn(HIDDEN, HEADS * HEAD), drawn(HIDDEN, GROUPS * HEAD), drawn(HIDDEN, GROUPS * HEAD)
    out_of_it, router = drawn_out(HEADS * HEAD, HIDDEN), drawn(HIDDEN, EXPERTS)
    streams = [stream + attended(normed(stream), *of_attention) @ out_of_it for stream in streams]
    seen_by_router = normed(np.concatenate(streams))
    scores = seen_by_router @ router
    chosen = np.argpartition(-scores, ACTIVE, 1)[:, :ACTIVE]
    best = np.take_along_axis(scores, chosen, 1)
    weights = np.exp(best - best.max(1, keepdims=True))
    added = routed(seen_by_router, chosen, weights / weights.sum(1, keepdims=True))
    streams = [stream + part for stream, part in zip(streams, np.split(added, given.sequences))]
    taken = np.bincount(chosen.ravel(), minlength=EXPERTS)
    over = [taken.reshape(parts, -1).sum(1).max() * parts / taken.sum() for parts in (4, 8, 16, 32, EXPERTS)]
    common = (seen_by_router.mean(0) ** 2).mean()
    print(f"{layer:5d}  {common:9.3f}  {over[0]:7.2f}  {over[1]:7.2f}  {over[2]:8.2f}  {over[3]:8.2f}  {over[4]:6.1f}"
          f"  {(taken > 0).sum():3d}", flush=True)
