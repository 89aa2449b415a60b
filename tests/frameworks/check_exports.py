#!/usr/bin/env python3
"""Exports many plans with ndtune and lets the real packages read them.

Each reader returns the sizes that the package itself reports after loading the file: mesh, micro-batch, accumulation,
global batch. They have to be those that were asked for. Packages rarely live in one environment, so the script is run in
each of them (--only FORMAT), and exports.json keeps the answers of all. README.md says how.
"""

import argparse
import dataclasses
import importlib.machinery
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
import types
import typing
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

HERE = Path(__file__).resolve().parent
MODEL = "llama-3-8b"
BATCH = 128

# dp_replicate, dp_shard, cp, tp, further options; sp=N among them is an axis too
MESHES = [
    (1, 8, 1, 1, []),
    (1, 8, 1, 1, ["--recompute", "full", "--micro-batch", "2"]),
    (1, 8, 1, 1, ["--reduce-dtype", "fp32"]),
    (1, 8, 1, 1, ["--grad-sync", "each"]),
    (1, 8, 1, 1, ["--offload", "parameters,optimizer"]),
    (2, 8, 1, 2, ["--recompute", "full", "--recompute-every", "2"]),
    (2, 8, 1, 1, ["--recompute", "full"]),
    (1, 8, 2, 1, []),
    (1, 4, 2, 4, ["--recompute", "full"]),
    (1, 8, 1, 4, ["--reshard", "never"]),
    (2, 4, 1, 2, []),
    (2, 2, 2, 2, []),
    (1, 1, 4, 2, []),
    (8, 1, 1, 1, ["--micro-batch", "4", "--model", "tinyllama-1.1b"]),
    (1, 1, 1, 8, []),
    (1, 8, 2, 1, ["--cp-rotate", "ring"]),
    (1, 8, 1, 1, ["--zero", "1"]),
    (1, 8, 1, 2, ["--zero", "2"]),
    (4, 8, 1, 2, ["--zero", "1"]),
    (1, 1, 1, 1, ["--model", "tinyllama-1.1b"]),
    (1, 8, 1, 1, ["--finetune", "lora", "--recompute", "full"]),
    (1, 8, 1, 1, ["--finetune", "lora", "--recompute", "full", "--model", "llama-3-70b"]),
    (2, 1, 1, 1, ["--finetune", "qlora", "--recompute", "full", "--lora-rank", "8", "--lora-targets", "query-value"]),
    (1, 1, 1, 1, ["sp=8", "--recompute", "full"]),
    (1, 4, 1, 1, ["sp=2", "--offload", "parameters,optimizer"]),
]


def fp8(recipe, *more):
    return (1, 8, 1, 1, ["--precision", "fp8", "--fp8-recipe", recipe, "--cluster", "dgx-b200", *more])


OF_MEGATRON = [fp8("tensorwise"), fp8("delayed", "--fp8-parameters", "on"), fp8("blockwise"),
               fp8("mxfp8", "--fp8-parameters", "on"), fp8("nvfp4", "--fp8-parameters", "on")]

# Of one format, beside those of all.
MORE = {
    "megatron": [*OF_MEGATRON, (1, 8, 1, 1, ["--optimizer", "muon"]), (1, 2, 1, 1, ["sp=4", "--target", "megatron@0.19"]),
                 (1, 1, 2, 1, ["sp=4", "--cp-rotate", "ring", "--target", "megatron@0.19"])],
    "megatron-bridge": OF_MEGATRON,
    "deepspeed": [(1, 4, 1, 1, ["pp=2", "--zero", "1"]), (4, 1, 1, 1, ["pp=2", "--zero", "0"]),
                  (1, 2, 1, 1, ["pp=4", "--zero", "1", "--recompute", "full"]), (1, 2, 1, 2, ["pp=2", "--zero", "1"]),
                  (1, 4, 1, 1, ["pp=2", "--zero", "2"])],
    "torchtitan-python": [fp8("rowwise"), fp8("rowwise-bf16"), fp8("mxfp8"), fp8("nvfp4")],
    "torchtitan-toml": [fp8("tensorwise"), fp8("rowwise"), fp8("rowwise-bf16"),
                        (1, 8, 1, 1, ["--update-in-backward", "on", "--micro-batch", "16", "--recompute", "full"])],
    "axolotl": [(1, 8, 1, 1, ["--mlp-tiles", "4"])],
}


def experts(*mesh, **sizes):
    words = [f"{axis}={size}" for axis, size in sizes.items()]
    return (*mesh, [*words, "--model", "qwen3-30b-a3b", "--recompute", "full"])


# Ranks of experts are lent by those of the mesh: what a format cannot hold is refused in words.
for name in ("axolotl", "automodel", "trainer", "torchtitan-toml", "torchtitan-python", "megatron", "megatron-bridge"):
    MORE.setdefault(name, []).extend([
        experts(1, 16, 1, 1, ep=4), experts(1, 16, 1, 1, ep=16), experts(2, 8, 1, 1, ep=4), experts(1, 16, 1, 2, ep=4),
        experts(1, 8, 2, 1, ep=4)])


# How tokens get to experts, who cuts them, what they take; layers that predict further tokens.
OF_EXPERTS = [["--dispatcher", "allgather"], ["--dispatcher", "deepep"], ["--dispatcher", "hybridep"], ["--etp", "2"],
              ["--expert-capacity", "125", "--pad-experts", "on"], ["--mtp", "1"], ["pp=2", "--mtp", "2"]]
for name in ("megatron", "megatron-bridge"):
    MORE[name].extend((1, 16, 1, 1, ["ep=4", *more, "--model", "qwen3-30b-a3b", "--recompute", "full"])
                      for more in OF_EXPERTS)


def module_of(path):
    spec = importlib.util.spec_from_file_location("exported", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def mesh_of(config):
    return [config.dp_replicate_size, config.dp_shard_size, config.cp_size, config.tp_size]


def plugin_of():
    """What FSDP was switched on with, as Accelerator() builds it from the environment."""
    from accelerate.utils import FullyShardedDataParallelPlugin

    if os.environ.get("ACCELERATE_USE_FSDP") != "true":
        return None
    return plugin_words(FullyShardedDataParallelPlugin())


def plugin_words(plugin):
    return plugin and {
        "version": plugin.fsdp_version,
        "reshard": bool(plugin.reshard_after_forward),
        "recompute": bool(plugin.activation_checkpointing),
        "layers": list(plugin.transformer_cls_names_to_wrap),
    }


def read_accelerate_yaml(path, text):
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.parallelism_config import ParallelismConfig
    from accelerate.utils.launch import prepare_multi_gpu_env, prepare_simple_launcher_cmd_env

    args = launch_command_parser().parse_args(["--config_file", str(path), "train.py"])
    args, defaults, _ = _validate_launch_command(args)
    if args.num_processes > 1:
        environment = prepare_multi_gpu_env(args)
    else:
        environment = prepare_simple_launcher_cmd_env(args)[1]
    with mock.patch.dict(os.environ, {key: value for key, value in environment.items()}, clear=True):
        if os.environ.get("ACCELERATE_USE_PARALLELISM_CONFIG") == "true":
            mesh = mesh_of(ParallelismConfig())
        else:
            mesh = [args.num_processes, 1, 1, 1]  # MULTI_GPU: plain replicas
        told = {"mesh": mesh, "world": args.num_processes, "precision": os.environ["ACCELERATE_MIXED_PRECISION"]}
        told["fsdp"] = plugin_of()
        told["rotate"] = os.environ.get("PARALLELISM_CONFIG_CP_COMM_STRATEGY")
    return told


def read_accelerate_python(path, text):
    module = module_of(path)
    told = {"mesh": mesh_of(module.parallelism_config), "micro_batch": module.MICRO_BATCH}
    told["accumulation"], told["batch"] = module.ACCUMULATION, module.GLOBAL_BATCH
    told["fsdp"] = plugin_words(module.fsdp_plugin)
    policy = module.fsdp_plugin and module.fsdp_plugin.mixed_precision_policy
    told["reduce"] = policy and str(policy.reduce_dtype)
    handler = module.parallelism_config.cp_handler
    told["rotate"] = handler and handler.cp_comm_strategy
    return told


def read_accelerate_deepspeed(path, text):
    """The environment that the launcher makes for its processes, as DeepSpeedPlugin and ParallelismConfig read it there."""
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.parallelism_config import ParallelismConfig
    from accelerate.utils import DeepSpeedPlugin
    from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_extend_env_parallelism_config

    args = launch_command_parser().parse_args(["--config_file", str(path), "train.py"])
    args, defaults, _ = _validate_launch_command(args)
    assert args.use_deepspeed, args
    args.deepspeed_fields_from_accelerate_config = ",".join(defaults.deepspeed_config)  # as launch_command has it
    environment = prepare_deepspeed_cmd_env(args)[1]
    if args.use_parallelism_config:
        environment = prepare_extend_env_parallelism_config(args, environment)
    with mock.patch.dict(os.environ, environment, clear=True):
        plugin = DeepSpeedPlugin()
        sizes = ParallelismConfig() if args.use_parallelism_config else None
    zero = plugin.deepspeed_config["zero_optimization"]
    told = {"world": args.num_processes, "zero": zero["stage"], "precision": environment["ACCELERATE_MIXED_PRECISION"]}
    told["accumulation"] = plugin.deepspeed_config["gradient_accumulation_steps"]
    told["offload"] = zero["offload_param"]["device"] == zero["offload_optimizer"]["device"] == "cpu"
    told["sp"] = sizes.sp_size if sizes else 1
    if sizes:
        assert sizes.sp_backend == "deepspeed" and sizes.sp_handler.sp_attn_implementation == "sdpa", sizes
    told["mesh"] = [None, sizes.dp_shard_size * sizes.dp_replicate_size if sizes else args.num_processes, 1, 1]
    return told


def read_hf_trainer(path, text):
    with mock.patch.dict(os.environ):
        for name in [name for name in os.environ if name.startswith(("FSDP_", "ACCELERATE_"))]:
            del os.environ[name]
        module = module_of(path)
        with tempfile.TemporaryDirectory() as folder:
            arguments = module.training_arguments(output_dir=folder, report_to=[], use_cpu=True)
        mesh = mesh_of(arguments.parallelism_config)
        told = {"mesh": mesh, "micro_batch": arguments.per_device_train_batch_size}
        told["accumulation"] = arguments.gradient_accumulation_steps
        told["batch"] = told["micro_batch"] * told["accumulation"] * mesh[0] * mesh[1]
        told["fsdp"] = plugin_of()
    return told


def arguments_of(path):
    with tempfile.TemporaryDirectory() as folder:
        return module_of(path).training_arguments(output_dir=folder, report_to=[], use_cpu=True)


def adapter_of(module):
    """What peft and bitsandbytes are given, by their own classes."""
    if not hasattr(module, "peft_config"):
        return None
    config, quantised = module.peft_config(), module.model_arguments().get("quantization_config")
    targets = config.target_modules if isinstance(config.target_modules, str) else sorted(config.target_modules)
    return {"rank": config.r, "alpha": config.lora_alpha, "targets": targets, "bits": 4 if quantised else 16}


def read_trainer(path, text):
    """Tensor parallelism is in what from_pretrained is given, else the mesh and FSDP are in the arguments."""
    from accelerate.utils import FullyShardedDataParallelPlugin

    module, arguments = module_of(path), arguments_of(path)
    own = module.model_arguments().get("distributed_config")
    mesh = [own.dp_replicate_size, own.fsdp_size, 1, own.tp_size] if own else mesh_of(arguments.parallelism_config)
    told = {"mesh": mesh, "micro_batch": arguments.per_device_train_batch_size}
    told["accumulation"] = arguments.gradient_accumulation_steps
    told["batch"] = told["micro_batch"] * told["accumulation"] * mesh[0] * mesh[1]
    with mock.patch.dict(os.environ):
        plugin = FullyShardedDataParallelPlugin(**arguments.fsdp_plugin_args) if arguments.fsdp_plugin_args else None
    told["fsdp"] = plugin_words(plugin)
    if plugin is None:
        told["recompute"] = "full" if arguments.activation_checkpointing else None
        told["reshard"] = "always"
    told["ep"] = own.ep_size if own else 1
    told["offload"] = own.fsdp_cpu_offload if own else type(getattr(plugin, "cpu_offload", None)).__name__ == "CPUOffloadPolicy"
    told["every_n_layers"] = (arguments.activation_checkpointing_kwargs or {}).get("every_n_layers")
    told["sync_each"] = (arguments.accelerator_config.gradient_accumulation_kwargs or {}).get("sync_each_batch", False)
    told["adapter"] = adapter_of(module)
    return told


def read_trl(path, text):
    """As the Trainer's, with TRL's own: checkpointing by the model is on unless the file says otherwise."""
    told = read_trainer(path, text)
    arguments = arguments_of(path)
    assert arguments.max_length == 2048, arguments.max_length
    if told["fsdp"]:
        assert not arguments.gradient_checkpointing or told["every_n_layers"], arguments
    else:
        told["recompute"] = "full" if arguments.gradient_checkpointing else None
    return told


def without_kernels(*names):
    """Kernels that need a GPU to be built and that no config touches."""
    for name in names:
        if name not in sys.modules and importlib.util.find_spec(name.split(".")[0]) is None:
            sys.modules[name] = mock.MagicMock(__spec__=None, __version__="2.8.0")


def read_axolotl(path, text):
    import yaml
    without_kernels("ring_flash_attn")
    from accelerate.parallelism_config import ParallelismConfig
    from axolotl.utils.config import prepare_plugins, validate_config
    from axolotl.utils.dict import DictDefault
    from axolotl.utils.distributed import _get_parallel_config_kwargs

    world = int(re.search(r"(\d+) ranks on", text).group(1))
    cfg = DictDefault(yaml.safe_load(text))
    prepare_plugins(cfg)
    cfg = validate_config(
        cfg,
        capabilities={"bf16": True, "fp8": True, "tf32": True, "n_gpu": world, "n_node": 1, "compute_capability": "sm_90"},
        env_capabilities={"torch_version": version("torch").split("+")[0]},
    )
    sizes = _get_parallel_config_kwargs(world, cfg.tensor_parallel_size, cfg.context_parallel_size, cfg.dp_shard_size,
                                        cfg.dp_replicate_size, bool(cfg.fsdp_config), cfg.expert_parallel_size)
    mesh, experts = mesh_of(ParallelismConfig(**sizes)), cfg.expert_parallel_size or 1
    if experts > 1:    # a plugin's key, which is there with the plugin only
        from axolotl.integrations.expert_parallel.plugin import ExpertParallelPlugin

        with mock.patch.multiple("torch.distributed", is_available=lambda: True, is_initialized=lambda: True,
                                 get_world_size=lambda: world):
            ExpertParallelPlugin._validate_mesh_axes(cfg)
    mesh[1] *= experts    # slowest of all there; lent by the shards in a plan
    told = {"mesh": mesh, "micro_batch": cfg.micro_batch_size, "accumulation": cfg.gradient_accumulation_steps}
    told["batch"] = cfg.micro_batch_size * cfg.gradient_accumulation_steps * world // (mesh[2] * mesh[3])
    told["ep"] = experts
    told["rotate"] = str(cfg.ring_attn_func.value) if cfg.ring_attn_func and mesh[2] > 1 else None
    told["tiles"] = cfg.tiled_mlp_num_shards if cfg.tiled_mlp else None
    targets = "all-linear" if cfg.lora_target_linear else cfg.lora_target_modules
    told["adapter"] = cfg.adapter and {"rank": cfg.lora_r, "alpha": cfg.lora_alpha, "targets": targets,
                                       "bits": 4 if cfg.load_in_4bit else 16}
    return told


def read_torchtitan_toml(path, text):
    from torchtitan.config import ConfigManager
    from torchtitan.distributed import ParallelDims

    config = ConfigManager().parse_args(["--job.config_file", str(path)])
    p, training = config.parallelism, config.training
    world = int(re.search(r"(\d+) ranks on", text).group(1))
    dims = ParallelDims(dp_replicate=p.data_parallel_replicate_degree, dp_shard=p.data_parallel_shard_degree,
                        cp=p.context_parallel_degree, tp=p.tensor_parallel_degree, pp=p.pipeline_parallel_degree,
                        ep=p.expert_parallel_degree, etp=p.expert_tensor_parallel_degree, world_size=world)
    told = {"mesh": [dims.dp_replicate, dims.dp_shard, dims.cp, dims.tp], "micro_batch": training.local_batch_size}
    told["batch"], told["ep"] = training.global_batch_size, dims.ep
    told["accumulation"] = training.global_batch_size // (training.local_batch_size * dims.dp_replicate * dims.dp_shard)
    on = "quantize.linear.float8" in config.model.converters
    told["fp8"] = on and [config.quantize.linear.float8.recipe_name or "tensorwise", False] or None
    told["in_backward"] = config.optimizer.early_step_in_backward
    return told


def read_torchtitan_python(path, text):
    """The recipe as torchtitan itself loads it: its model is built, without memory. Converters to fp8 see a GPU."""
    import torch
    from torchtitan.components.quantization import float8, mx, nvfp4
    from torchtitan.components.lora import LoRAConverter  # noqa: F401
    from torchtitan.distributed.activation_checkpoint import FullAC
    from torchtitan.models.common.linear import Linear

    for module in (float8, mx, nvfp4):
        module.has_cuda_capability = lambda *_: True
    config = module_of(path).train()
    model = config.model_spec.model
    model.update_from_config(config=config)
    lora = [(name.rsplit(".", 1)[-1], one) for name, one, *_ in model.traverse(Linear.Config) if hasattr(one, "rank")]
    with torch.device("meta"):
        parameters = list(model.build().parameters())
    p, training, recompute = config.parallelism, config.training, config.activation_checkpoint
    mesh = [p.data_parallel_replicate_degree, p.data_parallel_shard_degree, p.context_parallel_degree,
            p.tensor_parallel_degree]
    micro, batch = training.local_batch_size, training.global_batch_size
    told = {"mesh": mesh, "micro_batch": micro, "batch": batch, "accumulation": batch // (micro * mesh[0] * mesh[1]),
            "ep": p.expert_parallel_degree, "reshard": p.fsdp_reshard_after_forward,
            "recompute": "full" if isinstance(recompute, FullAC.Config) else recompute and "selective",
            "trained": sum(one.numel() for one in parameters if one.requires_grad)}
    told["fp8"] = titan_fp8([one for _, one, *_ in model.traverse(Linear.Config)])
    layers = sorted({name for name, _ in lora})
    told["adapter"] = lora and {"rank": lora[0][1].rank, "alpha": lora[0][1].alpha, "bits": 16,
                                "targets": "all-linear" if len(layers) == 5 else layers}
    return told


def titan_fp8(linears):
    """Of what class the layers' linears are, one of them is: torchao's recipe, and that parameters are not kept in fp8."""
    kinds = {type(one).__qualname__.split(".")[0]: one for one in linears}
    if "Float8Linear" in kinds:
        recipe = kinds["Float8Linear"]._torchao_config
        half = recipe.cast_config_grad_output_for_grad_weight.scaling_type.name == "DISABLED"
        return ["rowwise_with_gw_hp" if half else "rowwise", False]
    found = [word for name, word in (("MXFP8Linear", "mxfp8"), ("NVFP4Linear", "nvfp4")) if name in kinds]
    return [found[0], False] if found else None


def megatron_flags(path, world):
    """The words that the script hands to pretrain_gpt.py."""
    shell = 'torchrun() { printf "%s\\0" "$@"; }; . "$1"'
    environment = dict(os.environ, DATA_PATH="data", TOKENIZER_MODEL="tokenizer", NODE_RANK="0", MASTER_ADDR="host")
    out = subprocess.run(["bash", "-c", shell, "bash", str(path)], env=environment, check=True, capture_output=True)
    words = out.stdout.decode().split("\0")[:-1]
    return words[words.index("pretrain_gpt.py") + 1:]


def read_megatron(path, text):
    if not hasattr(typing, "override"):  # Python 3.12's, which the training package imports
        import typing_extensions

        typing.override = typing_extensions.override
    from megatron.core.num_microbatches_calculator import ConstantNumMicroBatchesCalculator
    from megatron.training.arguments import add_megatron_arguments

    world = int(re.search(r"(\d+) ranks on", text).group(1))
    args = add_megatron_arguments(argparse.ArgumentParser(allow_abbrev=False)).parse_args(megatron_flags(path, world))
    tp, cp = args.tensor_model_parallel_size, args.context_parallel_size
    dp = world // (tp * cp * args.pipeline_model_parallel_size)
    instances = args.num_distributed_optimizer_instances
    steps = ConstantNumMicroBatchesCalculator(args.global_batch_size, args.micro_batch_size, dp, False, 0)
    # Without the sharded optimizer all data-parallel ranks are alike: the file cannot tell replicas from shards.
    # a2a is over all of the group, a2a+p2p over the first of its hierarchical sizes.
    how = args.cp_comm_type[0]
    sp = {"a2a": cp, "a2a+p2p": (args.hierarchical_context_parallel_sizes or [1])[0]}.get(how, 1)
    cp //= sp
    mesh = [instances, dp // instances, cp, tp] if args.use_distributed_optimizer else [None, dp, cp, tp]
    told = {"mesh": mesh, "micro_batch": args.micro_batch_size, "accumulation": steps.get(),
            "batch": args.global_batch_size, "zero": int(args.use_distributed_optimizer), "sp": sp,
            "fp8": fp8_words(args.fp8, args.fp8_recipe, args.fp4, args.fp8_param_gather, args.fp4_param_gather)}
    told["ep"] = args.expert_model_parallel_size
    told["pp"] = args.pipeline_model_parallel_size
    told["experts"] = experts_words(args.moe_token_dispatcher_type, args.moe_flex_dispatcher_backend, args)
    assert args.reuse_grad_buf_for_mxfp8_param_ag == (told["fp8"] == ["mxfp8", True]), told
    return told


def experts_words(dispatcher, backend, model):
    """How tokens travel, ranks that cut an expert, its rows of their mean and whether they are padded, further tokens."""
    return {"dispatcher": backend if dispatcher == "flex" else dispatcher, "etp": model.expert_tensor_parallel_size,
            "capacity": [model.moe_expert_capacity_factor, bool(model.moe_pad_expert_input_to_capacity)],
            "mtp": model.mtp_num_layers or 0}


def check_experts(told, options):
    def said(word, usual):
        return options[options.index(word) + 1] if word in options else usual

    capacity = said("--expert-capacity", None)
    asked = {"dispatcher": said("--dispatcher", "alltoall"), "etp": int(said("--etp", "1")), "mtp": int(said("--mtp", "0")),
             "capacity": [capacity and int(capacity) / 100, "--pad-experts" in options]}
    assert told == asked, f"experts are {told}, not {asked}"


def fp8_words(format, recipe, four_bits, gathers, gathers_four):
    """Megatron-core's recipe, and whether parameters are kept in it."""
    return ["nvfp4", bool(gathers_four)] if four_bits else format and [recipe, bool(gathers)]


class AnyClass(type):
    """What a kernel's module is asked for: a class of its own for every name, to derive from."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return AnyClass(name, (), {"__init__": lambda self, *args, **kwargs: None})


class KernelFinder:
    """Modules below `root` that need a GPU to be built: empty ones, of classes that nothing calls."""

    def __init__(self, root, found):
        self.root, self.version = root, found

    def find_spec(self, name, path=None, target=None):
        if name == self.root or name.startswith(self.root + "."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__version__ = self.version
        return module

    def exec_module(self, module):
        module.__getattr__ = lambda name: getattr(AnyClass(module.__name__, (), {}), name)


def read_megatron_bridge(path, text):
    """Its configuration classes; Transformer Engine, a quantiser and restarts stand aside, and the model is its provider's
    fields."""
    if not any(isinstance(finder, KernelFinder) for finder in sys.meta_path):
        aside = {"transformer_engine": "2.10.0", "modelopt": "0.40.0", "nvidia_resiliency_ext": "0.6.0"}
        sys.meta_path += [KernelFinder(name, version) for name, version in aside.items()]
    from megatron.bridge.models.gpt_provider import GPTModelProvider
    from megatron.core.num_microbatches_calculator import ConstantNumMicroBatchesCalculator

    module = module_of(path)
    provider = GPTModelProvider(num_layers=32, hidden_size=4096, num_attention_heads=32)
    for field in re.findall(r"cfg\.model\.(\w+) =", text):
        assert hasattr(provider, field), f"its model has no {field}"
    module.AutoBridge = mock.MagicMock()
    module.AutoBridge.from_hf_pretrained.return_value.to_megatron_provider.return_value = provider
    cfg = module.config()
    for field in re.findall(r"cfg\.ddp\.(\w+)", text):
        assert field in {one.name for one in dataclasses.fields(cfg.ddp)}, f"its ddp has no {field}"
    world = int(re.search(r"(\d+) ranks on", text).group(1))
    model, micro = cfg.model, cfg.train.micro_batch_size
    tp, cp = model.tensor_model_parallel_size, model.context_parallel_size
    dp = world // (tp * cp * model.pipeline_model_parallel_size)
    heads = {"a2a": [cp], "a2a+p2p": model.hierarchical_context_parallel_sizes}.get(model.cp_comm_type, [1])[0]
    cp //= heads
    steps = ConstantNumMicroBatchesCalculator(cfg.train.global_batch_size, micro, dp, False, 0)
    instances, sharded = cfg.ddp.num_distributed_optimizer_instances, cfg.ddp.use_distributed_optimizer
    told = {"mesh": [instances, dp // instances, cp, tp] if sharded else [None, dp, cp, tp], "micro_batch": micro,
            "accumulation": steps.get(), "batch": cfg.train.global_batch_size, "zero": int(sharded),
            "reduce": "torch.float32" if cfg.mixed_precision.grad_reduce_in_fp32 else "torch.bfloat16"}
    told["ep"], told["sp"] = model.expert_model_parallel_size, heads
    told["pp"] = model.pipeline_model_parallel_size
    told["experts"] = experts_words(model.moe_token_dispatcher_type, model.moe_flex_dispatcher_backend, model)
    mixed = cfg.mixed_precision
    mixed.finalize()
    told["fp8"] = fp8_words(mixed.fp8, mixed.fp8_recipe, mixed.fp4, mixed.fp8_param, mixed.fp4_param)
    told["averages"], told["turns"] = cfg.ddp.average_in_collective, model.apply_rope_fusion
    told["looks"] = cfg.rerun_state_machine.check_for_nan_in_loss or cfg.ddp.check_for_nan_in_grad
    peft = getattr(cfg, "peft", None)
    told["adapter"] = peft and {"rank": peft.dim, "alpha": peft.alpha, "bits": 16,
                                "targets": "all-linear" if len(peft.target_modules) == 4 else peft.target_modules}
    return told


def read_automodel(path, text):
    import yaml
    from nemo_automodel.recipes._dist_utils import parse_distributed_section

    config = yaml.safe_load(text)
    parsed = parse_distributed_section(config["distributed"])
    sizes = parsed["parallelism_sizes"]
    scheduler = config["step_scheduler"]
    mesh = [sizes.dp_replicate_size, sizes.dp_size // sizes.dp_replicate_size, sizes.cp_size, sizes.tp_size]
    told = {"mesh": mesh, "micro_batch": scheduler["local_batch_size"], "batch": scheduler["global_batch_size"]}
    told["accumulation"] = told["batch"] // (told["micro_batch"] * sizes.dp_size)
    told["ep"] = sizes.ep_size or 1
    if told["ep"] > 1:
        from nemo_automodel.components.models.common import BackendConfig

        backend = dict(config["model"]["backend"])
        assert backend.pop("_target_").endswith(".BackendConfig"), config["model"]
        told["dispatcher"] = BackendConfig(**backend).dispatcher
    strategy = parsed["strategy_config"]
    told["recompute"] = "full" if parsed["activation_checkpointing"] else None
    told["reshard"] = "always" if strategy.reshard_after_forward else "never"
    told["offload"], told["sync_each"] = strategy.offload_policy is not None, not strategy.defer_fsdp_grad_sync
    told["reduce"] = str(strategy.mp_policy.reduce_dtype)
    assert config["model"]["torch_dtype"] == "float32", config["model"]
    return told


def read_nanotron(path, text):
    without_kernels("flash_attn.flash_attn_interface", "flash_attn.layers.rotary", "flash_attn.layers",
                    "flash_attn.modules.mha", "flash_attn.modules", "flash_attn", "ring_flash_attn")
    from nanotron.config import get_config_from_file

    config = get_config_from_file(str(path))
    assert type(config.model.model_config).__name__ == "LlamaConfig", config.model.model_config
    dp = config.parallelism.dp
    tokens = config.tokens
    return {"mesh": [None, dp, config.parallelism.context_parallel_size, config.parallelism.tp],
            "micro_batch": tokens.micro_batch_size, "accumulation": tokens.batch_accumulation_per_replica,
            "batch": config.global_batch_size, "zero": config.optimizer.zero_stage}


def deepspeed_stages(text):
    """What the file's words on PipelineModule say, bound as its constructor would; None without stages."""
    said = re.search(r"PipelineModule\((layers=.*?)\), \.\.\.\)", "\n".join(json.loads(text)["_comment"]))
    if not said:
        return None
    from deepspeed.pipe import PipelineModule
    from deepspeed.runtime.pipe.engine import PipelineEngine

    words = eval(f"dict({said.group(1)})", {"layers": []})
    inspect.signature(PipelineModule.__init__).bind(None, **words)
    assert callable(PipelineEngine.train_batch)
    return words


def read_deepspeed(path, text):
    from deepspeed.runtime import config as settings
    from deepspeed.runtime.pipe.topology import PipeModelDataParallelTopology

    world = int(re.search(r"(\d+) ranks on", text).group(1))
    tp = json.loads(text).get("tensor_parallel", {}).get("autotp_size", 1)
    staged = deepspeed_stages(text)
    told = {}
    if staged:
        pp = staged["num_stages"]
        grid = PipeModelDataParallelTopology(num_pp=pp, num_mp=1, num_dp=world // pp)
        assert grid.get_rank(pipe=1, model=0, data=0) == grid.get_dim("data"), grid  # stages are the slowest axis
        world = grid.get_dim("data")
        told = {"pp": pp, "partition": staged["partition_method"],
                "checkpoint_interval": staged.get("activation_checkpoint_interval", 0)}
    ranks = mock.Mock()
    ranks.get_data_parallel_world_size.return_value = world // tp
    del ranks.get_sequence_parallel_world_size
    with mock.patch.object(settings.dist, "get_rank", return_value=0):
        config = settings.DeepSpeedConfig(str(path), mpu=ranks)
    told_tp = max(1, config.tensor_parallel_config.autotp_size)
    assert not staged or config.zero_config.stage < 2, "PipelineEngine asserts that"
    return told | {"mesh": [None, world // told_tp, 1, told_tp],
            "micro_batch": config.train_micro_batch_size_per_gpu, "accumulation": config.gradient_accumulation_steps,
            "batch": config.train_batch_size, "zero": config.zero_config.stage}


def read_sbatch(path, text):
    """The script under a shell whose Slurm is two functions: it has to write the file and start the launcher."""
    shell = 'scontrol() { echo host; }; srun() { printf "%s" "${*: -1}" > launched; }; . "$1"'
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["bash", "-c", shell, "bash", str(path)], cwd=folder, check=True,
                       env=dict(os.environ, SLURM_JOB_NODELIST="host"))
        launched = (Path(folder) / "launched").read_text()
        assert "accelerate launch" in launched, launched
        inner = Path(folder) / "accelerate.yaml"
        return read_accelerate_yaml(inner, inner.read_text())


READERS = {  # format: reader, packages
    "accelerate-yaml": (read_accelerate_yaml, ["accelerate", "torch"]),
    "accelerate-python": (read_accelerate_python, ["accelerate", "torch"]),
    "hf-trainer": (read_hf_trainer, ["transformers", "accelerate", "torch"]),
    "trainer": (read_trainer, ["transformers", "accelerate", "torch"]),
    "trl": (read_trl, ["trl", "transformers", "accelerate", "torch"]),
    "axolotl": (read_axolotl, ["axolotl", "accelerate", "transformers"]),
    "torchtitan-toml": (read_torchtitan_toml, ["torchtitan", "torch"]),
    "torchtitan-python": (read_torchtitan_python, ["torchtitan", "torch"]),
    "megatron": (read_megatron, ["megatron-core", "torch"]),
    "megatron-bridge": (read_megatron_bridge, ["megatron-bridge", "megatron-core", "torch"]),
    "automodel": (read_automodel, ["nemo-automodel", "torch"]),
    "nanotron": (read_nanotron, ["nanotron", "torch"]),
    "deepspeed": (read_deepspeed, ["deepspeed", "torch"]),
    "accelerate-deepspeed": (read_accelerate_deepspeed, ["accelerate", "deepspeed", "torch"]),
    "sbatch": (read_sbatch, ["accelerate", "torch"]),
}


def export(ndtune, name, mesh, options, path, data):
    axes = ",".join(f"{axis}={size}" for axis, size in zip(("dp_replicate", "dp_shard", "cp", "tp"), mesh))
    axes = ",".join([axes, *(word for word in options if word.startswith(("sp=", "pp=", "ep=")))])
    options = [word for word in options if not word.startswith(("sp=", "pp=", "ep="))]
    usual = {"--cluster": "dgx-h200", "--model": MODEL}
    words = [ndtune, "export", "--as", name, "--mesh", axes, "--global-batch", str(BATCH), "--out", str(path), "--seq", "2048",
             *options, *(word for key, value in usual.items() if key not in options for word in (key, value))]
    return subprocess.run(words, capture_output=True, text=True, env=dict(os.environ, XDG_DATA_HOME=data))


FP8_NAMES = {"rowwise_with_gw_hp": "rowwise-bf16"}


def check(told, mesh, options):
    micro = int(options[options.index("--micro-batch") + 1]) if "--micro-batch" in options else 1
    asked = {"batch": BATCH, "micro_batch": micro, "accumulation": BATCH // (micro * mesh[0] * mesh[1])}
    asked["sp"] = next((int(word[3:]) for word in options if word.startswith("sp=")), 1)
    asked["pp"] = next((int(word[3:]) for word in options if word.startswith("pp=")), 1)
    asked["ep"] = next((int(word[3:]) for word in options if word.startswith("ep=")), 1)
    asked["checkpoint_interval"] = int("full" in options)
    asked["world"] = mesh[0] * mesh[1] * mesh[2] * mesh[3] * asked["sp"] * asked["pp"]
    for key, value in asked.items():
        assert told.get(key, value) == value, f"{key} is {told[key]}, not {value}"
    seen = list(told["mesh"])
    if seen[0] is None:  # one data-parallel dimension: replicas and shards together
        seen, mesh = seen[1:], [mesh[0] * mesh[1], *mesh[2:]]
    assert asked["ep"] == 1 or "ep" in told, told
    assert seen == list(mesh), f"mesh is {seen}, not {list(mesh)}"
    if "--zero" in options and "zero" in told:
        assert told["zero"] == int(options[options.index("--zero") + 1]), told
    assert told.get("precision", "bf16") == "bf16", told
    if "recompute" in told:
        assert told["recompute"] == ("full" if "full" in options else None), told
        assert told["reshard"] == ("never" if "never" in options else "always"), told
    if "--reduce-dtype" in options and "reduce" in told:
        assert told["reduce"] == "torch.float32", told
    fsdp = told.get("fsdp")
    if fsdp:
        assert fsdp["version"] == 2 and fsdp["layers"] == ["LlamaDecoderLayer"], fsdp
        assert fsdp["reshard"] == ("never" not in options), fsdp
        assert fsdp["recompute"] == ("full" in options), fsdp
    for word, key, value in (("--offload", "offload", True), ("--grad-sync", "sync_each", True),
                             ("--recompute-every", "every_n_layers", 2)):
        assert bool(told.get(key)) == (word in options) or key not in told, (key, told)
        assert word not in options or told.get(key, value) == value, (key, told)
    adapter = told.get("adapter")
    assert bool(adapter) == ("--finetune" in options) or "adapter" not in told, told
    if adapter:
        rank = int(options[options.index("--lora-rank") + 1]) if "--lora-rank" in options else 16
        targets = ["q_proj", "v_proj"] if "query-value" in options else "all-linear"
        beside = {"rank": rank, "alpha": 2 * rank, "targets": targets, "bits": 4 if "qlora" in options else 16}
        assert adapter == beside, f"{adapter} is not {beside}"
    if "fp8" in told:
        recipe = options[options.index("--fp8-recipe") + 1] if "--fp8-recipe" in options else None
        seen = told["fp8"] and [FP8_NAMES.get(told["fp8"][0], told["fp8"][0]), told["fp8"][1]]
        assert seen == (recipe and [recipe, "--fp8-parameters" in options]), told
    if asked["ep"] > 1 and "experts" in told:
        check_experts(told["experts"], options)
    if "averages" in told:  # what the predicted time assumes
        assert told["averages"] == ("--finetune" not in options or mesh[2] == 1) and not told["looks"], told
    if "tiles" in told:
        assert told["tiles"] == (int(options[options.index("--mlp-tiles") + 1]) if "--mlp-tiles" in options else None), told
    if "in_backward" in told:
        assert told["in_backward"] == ("--update-in-backward" in options), told
    if told.get("rotate"):
        ring = "ring" in options
        assert told["rotate"] in (("alltoall", "batch_ring") if ring else ("allgather", "varlen_llama3")), told


def versions_of(packages, more):
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "source"
    found.update(pair.split("=", 1) for pair in more)
    return found


def check_format(name, ndtune, more):
    reader, packages = READERS[name]
    row = {"versions": versions_of(packages, more), "read": [], "refused": []}
    with tempfile.TemporaryDirectory() as folder:
        for *mesh, options in MESHES + MORE.get(name, []):
            if name == "torchtitan-python" and "--model" in options and "qwen3-30b-a3b" not in options:
                continue  # a model that its registry does not have
            path = Path(folder) / f"file{len(row['read'])}{'.py' if any(word in name for word in ('python', 'trainer', 'trl', 'bridge')) else ''}"
            path = path.with_suffix(path.suffix or {"deepspeed": ".json", "torchtitan-toml": ".toml"}.get(name, ".yaml"))
            run = export(ndtune, name, mesh, options, path, folder)
            label = "x".join(map(str, mesh)) + ("".join(" " + word for word in options))
            if run.returncode != 0:
                sentence = run.stderr.strip().splitlines()
                sentence = [line for line in sentence if "error: " in line and "~~" not in line][-1].split("error: ")[1]
                assert run.returncode in (1, 2), run.stderr
                row["refused"].append({"mesh": label, "why": sentence})
                continue
            told = reader(path, path.read_text())
            check(told, mesh, options)
            row["read"].append({"mesh": label, "told": told})
            print(f"{name}: {label}: {told}")
    assert row["read"], f"{name}: nothing was read"
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ndtune", default=str(HERE.parents[1] / "build/release/bin/ndtune"))
    parser.add_argument("--only", action="append", choices=READERS, help="a format; may be repeated; default: all")
    parser.add_argument("--version", action="append", default=[], metavar="PACKAGE=VERSION",
                        help="of a package that is read from its sources")
    parser.add_argument("--results", default=str(HERE / "exports.json"))
    args = parser.parse_args()
    results = json.loads(Path(args.results).read_text()) if Path(args.results).exists() else {}
    for name in args.only or READERS:
        results[name] = check_format(name, args.ndtune, args.version)
    results = {name: results[name] for name in READERS if name in results}
    Path(args.results).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
