"""A config of `accelerate launch` as its own code takes it: the launcher's arguments, the environment that it makes of
them, and the plugins that Accelerator() builds of that environment."""

import os
from unittest import mock

import yaml
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.parallelism_config import ParallelismConfig
from accelerate.utils import FullyShardedDataParallelPlugin
from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env, prepare_simple_launcher_cmd_env

FORMAT = "accelerate"


class Refused(Exception):
    pass


def files(root):
    for folder, _, names in sorted(os.walk(root)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not name.endswith((".yaml", ".yml")) or "/." in folder or "docs" in folder or "/." in path:
                continue
            if "distributed_type" in open(path, encoding="utf-8").read():
                yield path


def arguments(path, world):
    """As the launcher merges them; a file without a number of processes trains on all that there are."""
    if not hasattr(load_config_from_file(path), "distributed_type"):
        raise Refused("no config of a cluster")
    line = ["--config_file", path, "train.py"]
    if world_of(path, None) is None:  # the launcher wants it said
        line = ["--num_processes", str(world)] + line
    args = launch_command_parser().parse_args(line)
    with mock.patch("torch.cuda.device_count", return_value=world), mock.patch(
        "torch.cuda.is_available", return_value=True
    ), mock.patch("torch.cuda.is_bf16_supported", return_value=True):
        return _validate_launch_command(args)[0]


def world_of(path, world):
    with open(path, encoding="utf-8") as text:
        config = yaml.safe_load(text)
    said = config.get("num_processes")
    if config.get("distributed_type") in ("NO", False, "no"):
        return 1
    return said if isinstance(said, int) and said > 0 else world


def sizes_of(env):
    with mock.patch.dict(os.environ, env, clear=True):
        mesh = ParallelismConfig() if env.get("ACCELERATE_USE_PARALLELISM_CONFIG") == "true" else None
    names = ("dp_replicate", "dp_shard", "cp", "tp")
    return {name: getattr(mesh, f"{name}_size") for name in names} if mesh else None, mesh


def fsdp_values(env, world, machines):
    with mock.patch.dict(os.environ, env, clear=True), mock.patch(
        "torch.cuda.is_available", return_value=True
    ), mock.patch("torch.cuda.current_device", return_value=0):
        plugin = FullyShardedDataParallelPlugin()
    recompute = "full" if plugin.activation_checkpointing else "none"
    values = {"zero": 3, "fsdp": plugin.fsdp_version, "recompute": recompute}
    sizes, mesh = sizes_of(env)
    if mesh and mesh.sp_size > 1:
        return None, ["sp_size"]
    if plugin.fsdp_version == 2:
        values["reshard"] = "always" if plugin.reshard_after_forward else "never"
        values |= sizes or {"dp_replicate": 1, "dp_shard": world, "cp": 1, "tp": 1}
    else:
        strategy = plugin.sharding_strategy.name
        replicas = world if strategy == "NO_SHARD" else machines if "HYBRID" in strategy else 1
        values["reshard"] = "never" if strategy in ("SHARD_GRAD_OP", "_HYBRID_SHARD_ZERO2") else "always"
        values |= {"dp_replicate": replicas, "dp_shard": world // replicas, "cp": 1, "tp": 1}
        values["zero"] = 0 if strategy == "NO_SHARD" else 3
    if values["dp_shard"] * values["cp"] == 1:
        values["zero"] = 0  # nothing to shard over
    if values["dp_replicate"] * values["dp_shard"] * values["cp"] * values["tp"] != world:
        raise Refused("the mesh is not the world")
    offloads = env.get("FSDP_OFFLOAD_PARAMS", "false").lower() == "true"
    values["offload"] = "parameters,optimizer" if offloads else "none"
    return values, []


@mock.patch("accelerate.utils.launch.is_fp8_available", return_value=True)
def read(path, world, root, _fp8=None):
    os.chdir(os.path.dirname(path))
    try:
        args = arguments(path, world)
        if args.use_megatron_lm or args.tpu:
            return None, [], ["another trainer"]
        args.deepspeed_fields_from_accelerate_config = ""
        if args.use_deepspeed:
            env = prepare_deepspeed_cmd_env(args)[1]
        elif args.use_fsdp or args.multi_gpu:
            env = prepare_multi_gpu_env(args)
        else:  # one process, or those that MPI starts
            env = prepare_simple_launcher_cmd_env(args)[1]
            world = args.num_processes or 1
        named = []
        precision = env["ACCELERATE_MIXED_PRECISION"]
        values = {"precision": {"no": "fp32", "fp8": "bf16"}.get(precision, precision)}
        if precision == "fp8":
            named.append(("mixed_precision",))
        values["fused"] = "eager" if env.get("ACCELERATE_DYNAMO_BACKEND", "NO").upper() == "NO" else "compiled"
        if args.use_deepspeed:
            if env.get("ACCELERATE_DEEPSPEED_CONFIG_FILE"):
                return None, [], ["deepspeed_config_file"]
            values["zero"] = int(env["ACCELERATE_DEEPSPEED_ZERO_STAGE"])
            values["grad_accum"] = int(env.get("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", 1))
            values |= {"dp_replicate": 1, "dp_shard": world, "cp": 1, "tp": 1}
        elif args.use_fsdp:
            more, other = fsdp_values(env, world, args.num_machines or 1)
            if more is None:
                return None, [], other
            values |= more
        else:
            sizes = sizes_of(env)[0]
            values |= sizes or {"dp_replicate": world, "dp_shard": 1, "cp": 1, "tp": 1}
            values |= {"zero": 0, "fsdp": 0}
        return values, named, []
    except Refused:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it does not start
        raise Refused(" ".join(f"{type(error).__name__} {error}".split())[:300]) from error


def version():
    from importlib.metadata import version as of

    return f"accelerate {of('accelerate')}"
