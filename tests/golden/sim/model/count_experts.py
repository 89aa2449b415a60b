#!/usr/bin/env python3
"""Counts the parameters of the models with experts as transformers builds them, on the meta device.

Prints the table that test_expert_counts.c holds the presets to: name, all parameters, those that a token meets. Needs
torch and transformers (5.23); CI reads the committed table.
"""

import json
import pathlib

import torch
from transformers import AutoConfig, AutoModelForCausalLM

FOLDER = pathlib.Path(__file__).parent / "experts"
BUILT_AS = {"kimi_k2": "deepseek_v3"}  # transformers has no type of its own: the file names DeepSeek's classes


def counts(config):
    keys = dict(config.get("text_config", config))
    kind = keys.pop("model_type")
    built = AutoConfig.for_model(BUILT_AS.get(kind, kind), **keys)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(built)
    experts = next(keys[k] for k in ("num_local_experts", "num_experts", "n_routed_experts") if k in keys)
    total = sum(p.numel() for p in model.parameters())
    routed = sum(p.numel() for name, p in model.named_parameters() if ".experts." in name)
    assert routed % experts == 0
    return total, total - routed // experts * (experts - keys["num_experts_per_tok"])


for path in sorted(FOLDER.glob("*.json")):
    print(path.stem, *counts(json.loads(path.read_text())))
