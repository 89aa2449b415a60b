"""Runs two optimizer steps of a small Llama through transformers' Trainer.train() and records every collective of the second.

Without tensor parallelism FSDP2 is accelerate's plugin, asked for by the Trainer's own `fsdp` and `fsdp_config`. With it the
model is sharded by transformers itself, at load time (`distributed_config`), and accelerate only steps it: what a mesh
decides, as in the files that ndtune exports.
"""

import functools
import importlib
import os

import torch
import torch.distributed as dist
from accelerate.parallelism_config import ParallelismConfig
from accelerate.state import PartialState
from accelerate.utils import DistributedType, TorchContextParallelConfig
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
from transformers.distributed import DistributedConfig

from recorder import (AXES, EXPERTS, MICRO_BATCH, MODEL, SEQUENCE, Recorder, case, gradient_bytes_of, run, storage_of, watch,
                      world_of)
from trace_accelerate import read_to_cpu, save_model

FRAMEWORK = "trainer"
PACKAGES = ("transformers", "accelerate", "torch")

CASES = [
    case("shard4", dict(dp_shard=4)),
    case("shard4_fp32", dict(dp_shard=4), precision="fp32", load="fp32"),
    case("shard4_recompute", dict(dp_shard=4), recompute="full"),
    case("shard4_recompute_by_model", dict(dp_shard=4), recompute="full", recompute_by="model"),
    case("shard4_accumulate", dict(dp_shard=4), grad_accum=2),
    case("shard4_accumulate_sync", dict(dp_shard=4), grad_accum=2, sync_each_batch=True),
    case("shard4_keep", dict(dp_shard=4), reshard=False),
    case("replicate2_shard2", dict(dp_replicate=2, dp_shard=2)),
    case("replicate2_shard2_accumulate", dict(dp_replicate=2, dp_shard=2), grad_accum=2),
    case("shard2_cp2", dict(dp_shard=2, cp=2)),
    case("shard2_cp2_ring", dict(dp_shard=2, cp=2), rotate="alltoall"),
    case("cp4_ring_recompute", dict(cp=4), rotate="alltoall", recompute="full"),
    case("tp2", dict(tp=2)),
    case("tp2_autocast", dict(tp=2), load="fp32"),
    case("tp4_fp32", dict(tp=4), precision="fp32", load="fp32"),
    case("shard2_tp2", dict(dp_shard=2, tp=2), load="fp32"),
    case("shard2_tp2_fp32", dict(dp_shard=2, tp=2), precision="fp32", load="fp32"),
    case("shard2_tp2_recompute", dict(dp_shard=2, tp=2), load="fp32", recompute="full", recompute_by="model"),
    case("shard2_tp2_accumulate", dict(dp_shard=2, tp=2), load="fp32", grad_accum=2),
    case("replicate2_shard2_tp2", dict(dp_replicate=2, dp_shard=2, tp=2), load="fp32"),
    case("replicate2_shard2_tp2_accumulate", dict(dp_replicate=2, dp_shard=2, tp=2), load="fp32", grad_accum=2),
    case("shard4_ep4", dict(dp_shard=4), load="fp32", model=EXPERTS, ep=4),
    case("shard4_ep2", dict(dp_shard=4), load="fp32", model=EXPERTS, ep=2),
    case("shard4_ep2_accumulate", dict(dp_shard=4), load="fp32", model=EXPERTS, ep=2, grad_accum=2),
]


# ---------------------------------------------------------------------------------------------- what the user writes

class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 1024

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        ids = torch.randint(0, MODEL["vocab_size"], (SEQUENCE,), generator=generator)
        return dict(input_ids=ids, labels=ids)


def sharded_by_transformers(one):
    return one["mesh"].get("tp", 1) > 1 or one["ep"] > 1


def load(one, folder):
    options = dict(dtype=torch.bfloat16 if one["load"] == "bf16" else torch.float32, attn_implementation="sdpa")
    if sharded_by_transformers(one):
        mesh = one["mesh"]
        options["distributed_config"] = DistributedConfig(
            tp_size=mesh.get("tp", 1), ep_size=one["ep"], fsdp_size=mesh.get("dp_shard", 1), dp_replicate_size=mesh.get("dp_replicate", 1),
            fsdp_mixed_precision=one["precision"] == "bf16" and mesh.get("dp_shard", 1) > 1)
    return AutoModelForCausalLM.from_pretrained(folder, **options)


def arguments(one, folder, kind, **more):
    """As TrainingArguments(**..) of a user; `kind` is that class or TRL's."""
    options = dict(
        output_dir=folder, max_steps=2, per_device_train_batch_size=MICRO_BATCH, report_to=[], save_strategy="no",
        gradient_accumulation_steps=one["grad_accum"], logging_strategy="no", disable_tqdm=True, use_cpu=True,
        bf16=one["precision"] == "bf16" and not (sharded_by_transformers(one) and one["load"] == "bf16"),
        accelerator_config=dict(gradient_accumulation_kwargs=dict(sync_each_batch=one["sync_each_batch"])))
    if not sharded_by_transformers(one):
        sizes = {f"{axis}_size": one["mesh"].get(axis, 1) for axis in AXES}
        if sizes["cp_size"] > 1:
            sizes["cp_handler"] = TorchContextParallelConfig(cp_comm_strategy=one["rotate"])
        options.update(
            parallelism_config=ParallelismConfig(**sizes), fsdp=True,
            fsdp_config=dict(reshard_after_forward=one["reshard"], transformer_layer_cls_to_wrap="LlamaDecoderLayer",
                             activation_checkpointing=one["recompute"] == "full" and one["recompute_by"] == "plugin"))
    by_model = one["recompute"] == "full" and one["recompute_by"] == "model"
    return kind(**{**options, "gradient_checkpointing": by_model, **more})


def trainer_of(one, folder):
    model = load(one, folder)
    asked = arguments(one, folder, TrainingArguments)
    like_several_gpus()
    return Trainer(model=model, args=asked, train_dataset=Tokens())


# ---------------------------------------------------------------------------------------------- the machine

def like_several_gpus():
    """accelerate turns FSDP2 on for MULTI_GPU and its kin only: its state, which TrainingArguments made, is told that it
    is that. The other edge is read_to_cpu: transformers would read a split model's weights to the GPU of the local rank."""
    PartialState._shared_state["distributed_type"] = DistributedType.MULTI_GPU


def experts_in_turn():
    """Every expert is visited as often, so that all ranks move the same bytes: the program's are those of the mean. Whom
    a token visits is no part of what is recorded."""
    from transformers.models.mixtral.modeling_mixtral import MixtralTopKRouter as Router

    def forward(self, hidden_states):
        logits = torch.nn.functional.linear(hidden_states.reshape(-1, self.hidden_dim), self.weight)
        visits = torch.arange(logits.shape[0] * self.top_k).view(-1, self.top_k) % self.num_experts
        scores = torch.softmax(logits.float(), -1).gather(1, visits)
        return logits, scores / scores.sum(-1, keepdim=True), visits

    Router.forward = forward


# ---------------------------------------------------------------------------------------------- recording

class Steps:
    """What happened in each of a trainer's steps; its methods wrap the trainer's."""

    def __init__(self, one, trainer, current):
        self.one, self.trainer, self.current = one, trainer, current
        self.recorder = None
        self.steps, self.kept, self.losses, self.norms = [], [], [], []
        self.micro = 0
        self.gradients = []
        for name in ("_prepare_for_training", "get_batch_samples", "training_step", "_clip_grad_norm", "_get_grad_norm"):
            setattr(trainer, name, functools.partial(getattr(self, name), getattr(trainer, name)))

    def _prepare_for_training(self, method, *args, **kwargs):
        prepared = method(*args, **kwargs)
        model = self.trainer.model
        self.recorder = Recorder(self.one["mesh"], {id(module): name for name, module in model.named_modules()}, self.one["ep"])
        self.current["recorder"] = self.recorder
        watch(self.recorder, model)
        backward = self.trainer.accelerator.backward
        self.trainer.accelerator.backward = functools.partial(self.backward, backward)
        self.recorder.__enter__()
        return prepared

    def get_batch_samples(self, method, *args, **kwargs):
        self.micro = self.recorder.micro = 0
        self.steps.append([])
        self.recorder.events = self.steps[-1]
        self.kept, self.loss = [], 0.0
        return method(*args, **kwargs)

    def training_step(self, method, *args, **kwargs):
        recorder = self.recorder
        recorder.micro, recorder.phase, recorder.place = self.micro, "forward", ""
        loss = method(*args, **kwargs)
        recorder.phase = "optimizer"
        self.micro += 1
        self.loss += loss.item()
        self.kept.append(gradient_bytes_of(self.trainer.model))
        return loss

    def backward(self, method, *args, **kwargs):
        self.recorder.phase, self.recorder.place = "backward", "head"
        return method(*args, **kwargs)

    def _clip_grad_norm(self, method, *args, **kwargs):
        self.gradients = sorted({str(p.grad.dtype) for p in self.trainer.model.parameters() if p.grad is not None})
        return method(*args, **kwargs)

    def _get_grad_norm(self, method, *args, **kwargs):
        norm = method(*args, **kwargs)
        self.norms.append(float(norm))
        self.losses.append(self.loss)
        self.recorder.events = []    # what ends the run is no part of the step
        return norm

    def outcome(self):
        self.recorder.__exit__(None, None, None)
        return dict(events=self.steps[1], first_events=self.steps[0], losses=self.losses, norms=self.norms,
                    gradient_dtypes=self.gradients, most_unsharded=self.recorder.most_unsharded,
                    storage=storage_of(self.trainer.model, self.trainer.optimizer),
                    kept_per_layer=self.recorder.kept_per_layer(), gradient_bytes=self.kept)


def record(make_trainer, one, folder, current):
    if dist.get_rank() == 0:
        save_model(folder, one["model"])
    dist.barrier()
    torch.manual_seed(1)
    if one["ep"] > 1:
        experts_in_turn()
    modeling = importlib.import_module("transformers.modeling_utils")
    modeling.safe_open = functools.partial(read_to_cpu, importlib.import_module("safetensors").safe_open)
    os.environ["ACCELERATE_BYPASS_DEVICE_MAP"] = "true"
    os.environ.pop("ACCELERATE_USE_FSDP", None)    # left behind by the case before
    trainer = make_trainer(one, folder)
    steps = Steps(one, trainer, current)
    trainer.train()
    return steps.outcome()


def traced(one, folder, current):
    return record(trainer_of, one, folder, current)


if __name__ == "__main__":
    run("trace_trainer", __doc__)
