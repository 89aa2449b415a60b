"""A config of torchtitan 0.2 as its own code takes it: ConfigManager, ParallelDims."""

import os
import re
import sys
from unittest import mock

for name in ("torchdata", "datasets", "tensorboard", "einops", "PIL"):
    try:
        __import__(name)
    except ImportError:
        sys.modules[name] = mock.MagicMock(__spec__=mock.MagicMock())

from torchtitan.config import ConfigManager  # noqa: E402
from torchtitan.distributed.parallel_dims import ParallelDims  # noqa: E402

FORMAT = "torchtitan"
HELD = ("llama3", "llama3_ft", "qwen3", "deepseek_v3")
UNKNOWN_FLAVORS = (("deepseek_v3", "debugmodel"),)


class Refused(Exception):
    pass


def files(root):
    for folder, _, names in sorted(os.walk(root)):
        for name in sorted(names):
            if name.endswith(".toml") and name != "pyproject.toml" and "ruff" not in name:
                yield os.path.join(folder, name)


def converters():
    """As the modules of torchtitan register them; importing those takes torchao."""
    import torchtitan

    folder = os.path.join(list(torchtitan.__path__)[0], "components", "quantization")
    text = "".join(open(os.path.join(folder, name), encoding="utf-8").read() for name in ("float8.py", "mx.py"))
    return re.findall(r'register_model_converter\(\w+, "([^"]+)"\)', text)


def read(path, world, root):
    os.chdir(root)
    try:
        config = ConfigManager().parse_args(["--job.config_file", path])
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it does not start
        raise Refused(" ".join(str(error).split())[:300]) from error
    parallel, training = config.parallelism, config.training
    other = []
    known = converters()
    for name in config.model.converters:
        if name not in known:
            raise Refused(f"KeyError {name}")  # build_model_converters looks it up
    unknown = (config.model.name, config.model.flavor) in UNKNOWN_FLAVORS
    if config.model.name not in HELD or unknown or "moe" in config.model.flavor or "-A" in config.model.flavor:
        other.append(f"model {config.model.name} {config.model.flavor}")
    if parallel.pipeline_parallel_degree > 1:
        other.append("pipeline_parallel_degree")
    if other:
        return None, [], other
    try:
        dims = ParallelDims(
            dp_replicate=parallel.data_parallel_replicate_degree,
            dp_shard=parallel.data_parallel_shard_degree,
            cp=parallel.context_parallel_degree,
            tp=parallel.tensor_parallel_degree,
            pp=parallel.pipeline_parallel_degree,
            ep=parallel.expert_parallel_degree,
            etp=parallel.expert_tensor_parallel_degree,
            world_size=world,
        )
    except AssertionError as error:
        raise Refused(str(error)) from error
    batch = dims.dp_replicate * dims.dp_shard * training.local_batch_size
    accumulation = 1 if training.global_batch_size < 0 else training.global_batch_size // batch
    if training.global_batch_size > 0 and training.global_batch_size % batch != 0:
        raise Refused("the global batch size is no multiple")  # train.py asserts it
    mode = config.activation_checkpoint.mode
    values = {
        "dp_replicate": dims.dp_replicate,
        "dp_shard": dims.dp_shard,
        "cp": dims.cp,
        "tp": dims.tp,
        "ep": dims.ep,
        "seq": training.seq_len,
        "micro_batch": training.local_batch_size,
        "grad_accum": accumulation,
        "zero": 3 if dims.dp_shard * dims.cp > 1 else 0,
        "precision": {"bfloat16": "bf16", "float32": "fp32"}[training.mixed_precision_param],
        "recompute": {"none": "none", "full": "full", "selective": "selective", "memory_budget": "selective"}[mode],
        "recompute_every": 0,
        "fused": "compiled" if config.compile.enable else "eager",
        "reshard": "never" if parallel.fsdp_reshard_after_forward == "never" else "always",
        "finetune": "full",
    }
    if "quantize.linear.float8" in config.model.converters:
        values["precision"] = "fp8"
    named = []
    option = config.activation_checkpoint.selective_ac_option
    if mode == "selective" and option != "op":  # every n-th layer, whole
        values |= {"recompute": "full", "recompute_every": int(option) if int(option) > 1 else 0}
    if mode == "memory_budget":
        named.append(("activation_checkpoint.mode",))
    if training.enable_cpu_offload:
        named.append(("training.enable_cpu_offload",))
    if "flex" in config.model.flavor or "varlen" in config.model.flavor:
        named.append(("model.flavor",))
    return values, named, []


def version():
    from importlib.metadata import version as of

    return f"torchtitan {of('torchtitan')}"
