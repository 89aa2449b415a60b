"""What Megatron-LM is started with, as its own code takes it: the arguments of its functional tests and of its example
scripts, by its parser and by validate_args. A script runs in an empty folder where nothing but bash is found: launchers
are functions that write their words down.

What needs a GPU or Transformer Engine is answered for an H100 (capabilities) or stands aside."""

import argparse
import contextlib
import io
import os
import re
import subprocess
import tempfile
from unittest import mock

import typing_extensions
import yaml

FORMAT = "megatron"
SEVERAL = ("--recompute-modules", "--cp-comm-type", "--hierarchical-context-parallel-sizes", "--data-path",
           "--moe-router-load-balancing-type", "--moe-aux-loss-coeff", "--rampup-batch-size", "--cuda-graph-scope",
           "--cuda-graph-modules", "--mrope-section", "--offload-modules")
LAUNCHERS = "torchrun python python3 srun ft_launcher"


class Refused(Exception):
    pass


def of_package():
    import typing

    if not hasattr(typing, "override"):  # Python 3.11 has it elsewhere
        typing.override = typing_extensions.override
    from megatron.training import arguments

    return arguments


def of_test(path):
    with open(path, encoding="utf-8") as text:
        config = yaml.safe_load(text)
    given = config.get("MODEL_ARGS") or {}
    words = []
    for name, value in given.items() if config.get("MODE") != "inference" else ():
        value = " ".join(map(str, value)) if isinstance(value, list) else str(value)
        if value.lower() == "true":
            words.append(name)
        elif value.lower() != "false":
            words += [name, *(value.split() if name in SEVERAL else [value])]
    return words


def of_script(path):
    """The words behind the program of the last launcher that the script starts."""
    with open(path, encoding="utf-8") as text:
        takes_words = "case $1" not in text.read()  # paths and names, not options
    started = "; ".join(f'{name}() {{ printf "%s\\0" "$@" > started; }}' for name in LAUNCHERS.split())
    started += "; set -- a b c d e" if takes_words else ""
    with tempfile.TemporaryDirectory() as folder:
        try:
            subprocess.run(["/bin/bash", "-c", f'{started}; . "$0"', path], cwd=folder, env={"PATH": folder}, timeout=5,
                           capture_output=True, check=False)
        except subprocess.TimeoutExpired:
            return None
        if not os.path.exists(f"{folder}/started"):
            return None
        with open(f"{folder}/started", encoding="utf-8") as text:
            words = [word for word in text.read().split("\0")[:-1] if word]
    for at, word in enumerate(words):
        if word.endswith(".py"):
            return [part for one in words[at + 1:] for part in (one.split() if one.startswith("--") else [one])]
    return None


def words_of(path):
    return of_test(path) if path.endswith(".yaml") else of_script(path)


def trains(path):
    with open(path, encoding="utf-8") as text:
        has = text.read()
    return "--micro-batch-size" in has and "--train-" in has and bool(of_script(path))


def files(root):
    for folder, _, names in sorted(os.walk(root)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name == "model_config.yaml" and any(word.startswith("--train-") for word in of_test(path)):
                yield path
            elif name.endswith(".sh") and "/examples/" in path and trains(path):
                yield path


def number(words, name):
    found = [words[at + 1] for at, word in enumerate(words[:-1]) if word == name]
    return int(found[-1]) if found and found[-1].isdigit() else 1


def world_of(path, world):
    """So many that the model has room, and the experts."""
    words = words_of(path)
    sizes = [number(words, f"--{name}-parallel-size") for name in ("tensor-model", "pipeline-model", "context")]
    model = sizes[0] * sizes[1] * sizes[2]
    experts = number(words, "--expert-model-parallel-size") * number(words, "--expert-tensor-parallel-size") * sizes[1]
    least = max(model, experts)
    return -(-max(world, least) // least) * least


PARSER = []


def parsed(words, world):
    arguments = of_package()
    if not PARSER:
        PARSER.append(arguments.add_megatron_arguments(argparse.ArgumentParser(allow_abbrev=False)))
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            args = PARSER[0].parse_args(words)
    except SystemExit as why:
        raise Refused(said.getvalue().strip().splitlines()[-1]) from why
    args.is_encoder_decoder = args.encoder_num_layers is not None
    args.world_size, args.rank, args.iteration = world, 0, 0
    connections = "8" if args.use_megatron_fsdp or args.use_torch_fsdp2 else "1"
    variables = {"NVTE_CPU_OFFLOAD_V1": "1", "CUDA_DEVICE_MAX_CONNECTIONS": connections}
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere), mock.patch(
        "torch.cuda.get_device_capability", return_value=(9, 0)
    ), mock.patch.dict(os.environ, variables), mock.patch(
        "megatron.training.arguments.is_te_min_version", return_value=True
    ), mock.patch("megatron.training.arguments.get_device_arch_version", return_value=9):
        arguments.validate_args(args, {"tokenizer_type": "GPT2BPETokenizer"})
    return args


def other_of(args):
    """What no plan holds."""
    other = [name for name in ("hybrid_layer_pattern", "is_encoder_decoder", "perform_rl_step", "use_torch_fsdp2",
                               "experimental_attention_variant") if getattr(args, name, None)]
    if args.use_layer_wise_distributed_optimizer:
        other.append("whole layers' states on some ranks")
    if args.pipeline_model_parallel_layout:
        from megatron.core.transformer.pipeline_parallel_layer_layout import PipelineParallelLayerLayout as Layout

        stages = Layout.parse_str_to_list(args.pipeline_model_parallel_layout)
        if len({sum(kind.name == "decoder" for kind in stage) for stage in stages[1:-1]}) > 1:
            other.append("inner stages differ")
    return other


def read(path, world, root):
    try:
        args = parsed(words_of(path), world)
    except Refused:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it does not start
        raise Refused(" ".join(f"{type(error).__name__} {error}".split())[:200]) from error
    other = other_of(args)
    tp, pp, cp = args.tensor_model_parallel_size, args.pipeline_model_parallel_size, args.context_parallel_size
    dp = world // (tp * pp * cp)
    stages = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
    of_fsdp = stages[args.data_parallel_sharding_strategy]
    zero = of_fsdp if args.use_megatron_fsdp else int(args.use_distributed_optimizer)
    instances = args.num_distributed_optimizer_instances if zero else dp
    how = args.cp_comm_type[0]
    sp = {"a2a": cp, "a2a+p2p": (args.hierarchical_context_parallel_sizes or [1])[0]}.get(how, 1)
    values = {"tp": tp, "pp": pp, "cp": cp // sp, "sp": sp, "dp_replicate": instances, "dp_shard": dp // instances,
              "ep": args.expert_model_parallel_size, "seq": args.seq_length, "micro_batch": args.micro_batch_size,
              "recompute": args.recompute_granularity or "none"}
    if args.step_batch_size_schedule is None:
        values["grad_accum"] = args.global_batch_size // (dp * args.micro_batch_size)
    chunks = args.virtual_pipeline_model_parallel_size or 1
    if pp > 1:
        values["pp_schedule"] = "interleaved" if chunks > 1 else "1f1b"
    if pp > 1 and chunks > 1:
        values["virtual_stages"] = chunks
        values["pp_group"] = args.microbatch_group_size_per_vp_stage
    in_16 = "bf16" if args.bf16 else "fp16" if args.fp16 else "fp32"
    values["precision"] = "fp8" if args.fp8 or args.fp4 else in_16
    if args.fp8 or args.fp4:
        values["fp8_recipe"] = "nvfp4" if args.fp4 else args.fp8_recipe
    values["optimizer"] = {"adam": "adamw", "sgd": "sgd-momentum"}.get(args.optimizer, args.optimizer)
    if args.use_precision_aware_optimizer and "bfloat16" in f"{args.exp_avg_dtype} {args.exp_avg_sq_dtype}":
        values["optimizer"] = "adamw-bf16"
    values["offload"] = "optimizer" if args.optimizer_cpu_offload else "none"
    if dp * cp > 1 or args.optimizer_cpu_offload:
        values["zero"] = zero
    if args.attention_backend.name in ("flash", "unfused"):
        values["attention"] = {"flash": "flash", "unfused": "eager"}[args.attention_backend.name]
    values["mtp"] = getattr(args, "mtp_num_layers", None) or 0
    named = [(key,) for key in ("--delay-wgrad-compute", "--rampup-batch-size", "--distribute-saved-activations")
             if getattr(args, key[2:].replace("-", "_"), None)]
    if args.cuda_graph_impl in ("local", "transformer_engine"):
        captured = [getattr(module, "name", module) for module in args.cuda_graph_modules or []]
        parts = [part for part, module in (("attn", "attn"), ("mlp", "mlp"), ("router", "moe_router"))
                 if module in captured]
        values["cuda_graphs"] = "+".join(parts) or "layers"
        named += [("--cuda-graph-modules", "--cuda-graph-scope")] if "moe" in captured else []
    elif args.cuda_graph_impl == "full_iteration":
        values["cuda_graphs"] = "on"
    return values, named, other


def version():
    root = os.path.dirname(os.path.dirname(of_package().__file__))
    with open(os.path.join(root, "core", "package_info.py"), encoding="utf-8") as text:
        found = dict(re.findall(r"^(MAJOR|MINOR|PATCH) = (\d+)", text.read(), re.M))
    return "Megatron-LM " + ".".join(found.get(part, "?") for part in ("MAJOR", "MINOR", "PATCH"))
