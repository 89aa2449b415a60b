"""A config of axolotl as its own code takes it: schema, resolve_dtype, setup_fsdp_envs, _get_parallel_config_kwargs.

What needs a GPU or the hub is answered for a node of H100 (capabilities) or not asked (the model's config)."""

import os
import sys
from unittest import mock

import yaml

# Only their presence is asked for.
STAND_INS = "ring_flash_attn flash_attn bitsandbytes peft trl fla numba torchao evaluate mistral_common"
for name in STAND_INS.split():
    try:
        __import__(name)
    except ImportError:
        sys.modules[name] = mock.MagicMock(__spec__=mock.MagicMock())


def with_stand_ins(call):
    """Calls again with a stand-in for each package that it misses."""
    for _ in range(20):
        try:
            return call()
        except ModuleNotFoundError as error:
            sys.modules[error.name] = mock.MagicMock(__spec__=mock.MagicMock())
    return call()


from axolotl.integrations.base import PluginManager  # noqa: E402
from axolotl.utils import config as axolotl_config  # noqa: E402
from axolotl.utils.dict import DictDefault  # noqa: E402
from axolotl.utils.distributed import _get_parallel_config_kwargs  # noqa: E402
from axolotl.utils.trainer import prepare_optim_env  # noqa: E402

FORMAT = "axolotl"
CAPABILITIES = {"bf16": True, "fp8": True, "tf32": True, "n_gpu": 8, "n_node": 1, "compute_capability": "sm_90"}
ENVIRONMENT = {"torch_version": "2.13.0"}
# What trains otherwise than all parameters on rows of text, and what a plan does not hold: to be refused in words.
OTHER = (
    "rl reward_model process_reward_model ebft unfrozen_parameters relora lisa_n_layers gptq "
    "quantize_moe_experts model_quantization_config spectrum_top_fraction llmcompressor use_onebitllms mora deepspeed "
    "expert_parallel_size nemo_gym_enabled"
).split()
# torch, transformers 5.16's trainer_optimizer.py and axolotl's schemas/enums.py: what each name runs. "adamw" is what
# the target runs by itself, which is fused. Others have to be named.
OPTIMIZERS = {
    "adamw_torch_fused": "adamw",
    "adamw_torch": "adamw-foreach",
    "adamw_hf": "adamw-foreach",
    "adamw_8bit": "adamw-8bit",
    "adamw_bnb_8bit": "adamw-8bit",
    "paged_adamw_8bit": "adamw-8bit-paged",
    "paged_adamw_32bit": "adamw-32bit-paged",
    "adamw_torch_8bit": "adamw-8bit-torchao",
    "ao_adamw_8bit": "adamw-8bit-torchao",
    "adamw_torch_4bit": "adamw-4bit-torchao",
    "ao_adamw_4bit": "adamw-4bit-torchao",
    "lion_8bit": "lion-8bit",
    "sgd": "sgd",
    "adafactor": "adafactor",
}
ATTENTION, MLP = ("q_proj", "k_proj", "v_proj", "o_proj"), ("gate_proj", "up_proj", "down_proj")
SETS = {frozenset(("q_proj", "v_proj")): "query-value", frozenset(ATTENTION): "attention"}
SETS[frozenset(ATTENTION + MLP)] = "all"


class Refused(Exception):
    pass


def files(root):
    for folder, _, names in sorted(os.walk(os.path.join(root, "examples"))):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.endswith((".yaml", ".yml")) and "base_model" in open(path, encoding="utf-8").read():
                yield path


def validated(path):
    with open(path, encoding="utf-8") as text:
        cfg = DictDefault(yaml.safe_load(text))
    PluginManager._instance = None
    for plugin in cfg.plugins or []:
        PluginManager.get_instance().register(plugin)
    with mock.patch("axolotl.utils.schemas.config.is_fp8_available", return_value=True):
        return axolotl_config.validate_config(cfg, capabilities=CAPABILITIES, env_capabilities=ENVIRONMENT)


def world_of(path, world):
    """As many ranks as its sizes make, where those are more."""
    with open(path, encoding="utf-8") as text:
        said = yaml.safe_load(text)
    product = 1
    for name in ("dp_replicate_size", "dp_shard_size", "context_parallel_size", "tensor_parallel_size"):
        product *= said.get(name) or 1
    return max(world, product)


def resolved(cfg):
    cfg.device = "cuda:0"
    with mock.patch.object(axolotl_config, "is_torch_bf16_gpu_available", return_value=True):
        axolotl_config.resolve_dtype(cfg)
    with mock.patch.dict(os.environ, clear=True), mock.patch(
        "axolotl.utils.trainer.check_cuda_p2p_ib_support", return_value=True
    ), mock.patch("axolotl.utils.trainer.is_torch_bf16_gpu_available", return_value=True):
        prepare_optim_env(cfg)
        return dict(os.environ)


def kernel(name):
    name = (name or "sdpa").split(":")[0].split("@")[0]
    if name == "eager":
        return "eager"
    return "flash3" if name in ("flash_attention_3", "flash_attention_4", "fp8") or "flash-attn3" in name else "flash"


def adapters(cfg):
    """LoRA as load_lora of axolotl's loaders/adapter.py makes its LoraConfig: modules, and those of the switch."""
    if not cfg.adapter:
        return {"finetune": "full"}
    modules = cfg.lora_target_modules or []
    modules = [modules] if isinstance(modules, str) else list(modules)
    linear = cfg.lora_target_linear or "all-linear" in modules
    named = frozenset(ATTENTION + MLP if linear else modules or ("q_proj", "v_proj"))
    base = "qlora" if cfg.load_in_4bit else "lora-int8" if cfg.load_in_8bit else "lora"
    return {"finetune": base, "lora_rank": cfg.lora_r or 8, "lora_targets": SETS.get(named, "another set")}


def read(path, world, root):
    """(values, what has to be named, what makes it none of ours): keys that switch something on which no plan holds.
    Raises Refused."""
    os.chdir(root)
    try:
        cfg = with_stand_ins(lambda: validated(path))
        with open(path, encoding="utf-8") as text:
            said = yaml.safe_load(text)  # a plugin that is not here keeps its keys out of cfg
        one = ("expert_parallel_size", 1)
        other = [key for key in OTHER if (cfg.get(key) or said.get(key)) and (key, said.get(key)) != one]
        if cfg.deepspeed:
            return None, [], other
        env = resolved(cfg)
        fsdp = bool(cfg.fsdp or cfg.fsdp_config)
        sizes = _get_parallel_config_kwargs(
            world,
            cfg.tensor_parallel_size,
            cfg.context_parallel_size,
            cfg.dp_shard_size,
            cfg.dp_replicate_size,
            fsdp,
            cfg.expert_parallel_size,
        )
    except ImportError as error:
        raise RuntimeError(f"{path} needs a package that is not here: {error}") from error
    except Exception as error:  # noqa: BLE001 - pydantic, ValueError, DeprecationWarning: it does not start
        raise Refused(" ".join(str(error).split())[:300]) from error
    values = {axis: sizes.get(f"{axis}_size", 1) for axis in ("dp_replicate", "dp_shard", "cp", "tp")}
    if not fsdp and values["cp"] == values["tp"] == 1:  # its mesh is of DDP
        values["dp_replicate"], values["dp_shard"] = world, 1
    precision = {"torch.bfloat16": "bf16", "torch.float16": "fp16", "torch.float32": "fp32"}[str(cfg.torch_dtype)]
    values |= {
        "seq": cfg.sequence_len,
        "micro_batch": cfg.micro_batch_size,
        "grad_accum": cfg.gradient_accumulation_steps or cfg.batch_size // cfg.micro_batch_size,
        "zero": 3 if fsdp and world > 1 else 0,
        "fsdp": 0 if not fsdp else 2 if env.get("FSDP_VERSION") == "2" else 1,
        "precision": precision,
        "recompute": "full"
        if cfg.gradient_checkpointing or env.get("FSDP_ACTIVATION_CHECKPOINTING") == "true"
        else "none",
        "attention": kernel(cfg.attn_implementation),
        "fused": "compiled" if env.get("ACCELERATE_DYNAMO_BACKEND", "no").lower() != "no" else "eager",
        "reshard": "always",
        "offload": "parameters,optimizer" if env.get("FSDP_OFFLOAD_PARAMS") == "true" else "none",
    }
    cuts = "CutCrossEntropyPlugin" in str(cfg.plugins) and cfg.get("cut_cross_entropy") is not False
    fused = cuts or cfg.get("liger_fused_linear_cross_entropy")
    values["loss_form"] = "fused" if fused and values["fsdp"] != 1 else "whole"
    values |= adapters(cfg)
    named = []
    if cfg.adapter and cfg.adapter not in ("lora", "qlora"):
        other.append("adapter")
    optimizer = str(getattr(cfg.optimizer, "value", cfg.optimizer) or "adamw_torch_fused")
    values["optimizer"] = OPTIMIZERS.get(optimizer, "another one")
    if values["fsdp"] == 1 and optimizer == "adamw_torch_fused":  # of that row it is another one than its own
        values["optimizer"] = "adamw-fused"
    if cfg.activation_offloading:
        named.append(("activation_offloading", "gradient_checkpointing"))
    switches = "selective_checkpointing layer_offloading chunked_cross_entropy fp8 liger_rope qat"
    if cfg.tiled_mlp and (cfg.adapter or values["tp"] > 1 or values["fsdp"] == 1):
        named.append(("tiled_mlp",))
    elif cfg.tiled_mlp:  # patch_tiled_mlp: of so many tokens each, unless a number is said
        local = cfg.sequence_len // values["cp"]
        values["mlp_tiles"] = cfg.tiled_mlp_num_shards or max(1, -(-local // 32768))
    for key in switches.split():
        if cfg.get(key):
            named.append((key,))
    if cuts:
        named.append(("cut_cross_entropy", "plugins"))
    if fused and values["fsdp"] == 1:  # its row has no such loss
        named.append(("liger_fused_linear_cross_entropy", "plugins"))
    return values, named, other


def version():
    from importlib.metadata import version as of

    return f"axolotl {of('axolotl')}"
