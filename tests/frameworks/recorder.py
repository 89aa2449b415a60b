"""What the scripts beside this file share: the recorder of collectives, what a CPU lacks, and the trace file."""

import argparse
import datetime
import functools
import importlib.metadata
import json
import os
import shutil
import sys
import tempfile
import warnings
import weakref

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

AXES = ("dp_replicate", "dp_shard", "cp", "tp")
# The preset "tiny" of ndtune.
MODEL = dict(num_hidden_layers=4, hidden_size=256, num_attention_heads=16, num_key_value_heads=8, head_dim=16,
             intermediate_size=768, vocab_size=1024, max_position_embeddings=2048, rms_norm_eps=1e-5,
             rope_theta=10000.0, tie_word_embeddings=False)
# And what its "tiny-moe" changes of it.
EXPERTS = dict(intermediate_size=384, num_local_experts=8, num_experts_per_tok=2)
SEQUENCE = 64
MICRO_BATCH = 2


def world_of(mesh):
    world = 1
    for size in mesh.values():
        world *= size
    return world


# ---------------------------------------------------------------------------------------------- recording

# c10d and functional operators -> kind and which tensor is the whole one: the largest of inputs and outputs, save for
# an all-reduce and a transfer, where all are equal.
KINDS = {
    "_allgather_base_": "all_gather", "allgather_": "all_gather_list", "all_gather_into_tensor": "all_gather",
    "allgather_into_tensor_coalesced_": "all_gather", "all_gather_into_tensor_coalesced": "all_gather",
    "_reduce_scatter_base_": "reduce_scatter", "reduce_scatter_": "reduce_scatter_list",
    "reduce_scatter_tensor": "reduce_scatter", "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "allreduce_": "all_reduce", "all_reduce": "all_reduce", "all_reduce_": "all_reduce",
    "allreduce_coalesced_": "all_reduce", "all_reduce_coalesced": "all_reduce",
    "alltoall_base_": "all_to_all", "alltoall_": "all_to_all_list", "all_to_all_single": "all_to_all",
    "broadcast_": "broadcast", "broadcast": "broadcast", "barrier": "barrier", "send": "send", "recv_": "receive",
    "gather_": "gather", "scatter_": "scatter", "reduce_": "reduce",
}
NOT_COLLECTIVE = {"wait_tensor", "_wrap_tensor_autograd", "monitored_barrier_"}
NAMESPACES = {"c10d", "_c10d_functional", "c10d_functional", "_c10d_functional_autograd"}

# Innermost frame of the framework that asked for the collective.
ORIGINS = [
    ("synchronize_rng_states", "random state"),
    ("foreach_all_gather", "fsdp gather"),
    ("foreach_reduce", "fsdp reduce"),
    ("_all_gather_flat_param", "fsdp gather"),    # FSDP version 1, as the next two
    ("_reduce_grad", "fsdp reduce"),
    ("_reduce_grad_no_shard", "fsdp reduce"),
    ("_templated_ring_attention_backward", "ring backward"),
    ("_templated_ring_attention", "ring"),
    ("clip_grad_norm_", "clip"),
    ("scale_grads_and_clip_grad_norm", "clip"),   # of Automodel, as the next one
    ("_dp_allreduce", "token count"),
    ("_mixed_mesh_grad_norm", "clip"),            # of transformers' Trainer, as the next one
    ("average_gradient", "whole parameter"),
    ("average_loss", "user loss"),
    ("_dist_reduce", "token count"),
    ("dist_sum_tensor", "token count"),           # of torchtitan 0.3
    ("average_tensor", "zero reduce"),            # of DeepSpeed, as the next ones
    ("__avg_scatter_contiguous_grads", "zero reduce"),
    ("__avg_scatter_grads", "zero reduce"),
    ("reduce_scatter_coalesced", "zero reduce"),
    ("allreduce_bucket", "zero reduce"),
    ("all_gather_dp_groups", "zero gather"),
    ("all_gather_coalesced", "zero gather"),
    ("_all_gather_dtype", "zero gather"),
    ("get_grad_norm_direct", "clip"),
    ("scaled_global_norm", "clip"),
    ("has_overflow", "overflow"),
    ("_get_num_items_in_batch", "token count"),
    ("gather_for_metrics", "metrics"),
]


def tensors_of(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_of(item)]
    return []


class Recorder(TorchDispatchMode):
    """Sees every c10d operator of this rank once, below autograd and DTensor."""

    def __init__(self, mesh, model_names, ep=1):
        super().__init__()
        self.mesh = {axis: mesh.get(axis, 1) for axis in AXES}
        self.ep = ep
        self.names = model_names
        self.events = []
        self.phase = "setup"
        self.micro = 0
        self.place = ""
        self.unsharded = 0
        self.most_unsharded = 0
        self.storages = {}
        self.live_at_layer = []    # live bytes as the forward of each decoder layer begins, in the newest micro-step

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(issubclass(kind, DTensor) for kind in types):
            return NotImplemented    # lets the distributed tensor issue its collectives first, as CommDebugMode does
        name = func._schema.name.split("::")
        result = func(*args, **(kwargs or {}))
        for tensor in tensors_of(result):
            if tensor.device.type != "meta":
                storage = tensor.untyped_storage()
                known = self.storages.get(storage._cdata)
                if known is None or known() is None:    # an address comes again
                    self.storages[storage._cdata] = weakref.ref(storage)
        if name[0] in NAMESPACES and name[1] not in NOT_COLLECTIVE:
            self.note(name[1], args, kwargs or {}, result)
        return result

    def live_bytes(self):
        """Of what operators made since recording began, at the sizes that storages have now."""
        alive = {key: ref() for key, ref in self.storages.items()}
        self.storages = {key: self.storages[key] for key, storage in alive.items() if storage is not None}
        return sum(storage.nbytes() for storage in alive.values() if storage is not None)

    def enter_layer(self, layer):
        if self.phase == "forward":
            del self.live_at_layer[layer:]
            self.live_at_layer.append(self.live_bytes())

    def kept_per_layer(self):
        """What a decoder layer leaves behind for backward: the same for each but the first and last."""
        grown = {b - a for a, b in zip(self.live_at_layer[1:], self.live_at_layer[2:])}
        return grown.pop() if len(grown) == 1 else None

    def note(self, operator, args, kwargs, result):
        tensors = tensors_of(args) + tensors_of(result)
        largest = max(tensors, key=lambda t: t.numel() * t.element_size(), default=None)
        size = largest.numel() * largest.element_size() if largest is not None else 0
        if KINDS[operator].endswith("_list"):    # one list entry per rank: the whole tensor is all of them
            size *= len(self.ranks_of(args, kwargs))
        phase, place, origin = self.circumstances()
        self.events.append(dict(
            micro=self.micro, phase=phase, place=place, kind=KINDS[operator].removesuffix("_list"),
            axes=self.axes_of(self.ranks_of(args, kwargs), KINDS[operator]), bytes=size,
            dtype=str(largest.dtype).removeprefix("torch.") if largest is not None else "", origin=origin))

    @staticmethod
    def ranks_of(args, kwargs):
        for value in list(args) + list(kwargs.values()):
            if isinstance(value, torch.ScriptObject) and "ProcessGroup" in value._type().qualified_name():
                return dist.get_process_group_ranks(dist.ProcessGroup.unbox(value))
            if isinstance(value, dist.ProcessGroup):
                return dist.get_process_group_ranks(value)
        groups = [v for v in list(args) + list(kwargs.values()) if isinstance(v, str)]
        for name in groups:
            try:
                return dist.get_process_group_ranks(dist.distributed_c10d._resolve_process_group(name))
            except (RuntimeError, ValueError, KeyError):
                continue    # the other string of a reduction is its operation
        raise RuntimeError("a collective without a group")

    def axes_of(self, ranks, kind):
        """Ranks of experts are neighbours within shards x cp x tp; only they exchange tokens."""
        if self.ep > 1 and kind.startswith("all_to_all"):
            if ranks != list(range(ranks[0], ranks[0] + self.ep)):
                raise RuntimeError(f"group {ranks} is not the nearest {self.ep} ranks")
            return "ep"
        if self.ep > 1 and len(ranks) > 1 and self.mesh["dp_replicate"] == 1:
            if {rank % self.ep for rank in ranks} == {ranks[0] % self.ep}:
                return "efsdp"
        coordinates = []
        for rank in ranks:
            at = {}
            for axis in reversed(AXES):
                at[axis] = rank % self.mesh[axis]
                rank //= self.mesh[axis]
            coordinates.append(at)
        spanned = [axis for axis in AXES if len({at[axis] for at in coordinates}) > 1]
        expected = world_of({axis: self.mesh[axis] for axis in spanned})
        if expected != len(ranks) and ranks == list(range(ranks[0], ranks[0] + self.ep)):
            return "ep"    # of a norm that is summed over efsdp and ep in turn
        if expected != len(ranks):
            raise RuntimeError(f"group {ranks} is not a product of axes")
        return "+".join(spanned)

    def circumstances(self):
        phase, place, origin = self.phase, self.place, "tensor parallel"
        found = False
        frame = sys._getframe(3)
        module = None
        while frame is not None:
            code = frame.f_code
            for function, label in ORIGINS:
                if not found and code.co_name == function:
                    origin, found = label, True
            if code.co_name == "recompute_fn" and self.phase == "backward":
                phase = "recompute"
            owner = frame.f_locals.get("self")
            if module is None and owner is not None:
                if type(owner).__name__ == "FSDPParamGroup":
                    module = owner._module_fqn or ""
                elif type(owner).__name__ == "FlatParamHandle":
                    module = self.names[id(owner._fully_sharded_module)]
                elif isinstance(owner, torch.nn.Module) and id(owner) in self.names:
                    module = self.names[id(owner)]
            handle = frame.f_locals.get("handle")    # of FSDP version 1, whose hooks are functions
            if module is None and type(handle).__name__ == "FlatParamHandle":
                module = self.names[id(handle._fully_sharded_module)]
            frame = frame.f_back
        if phase != "backward" or origin.startswith("fsdp"):
            place = place_of(module) if module is not None else place
        if self.phase == "optimizer" or origin in ("clip", "user loss", "token count", "metrics"):
            phase, place = "optimizer", ""
        return phase, place, origin

    def unshard(self, change):
        self.unsharded += change
        self.most_unsharded = max(self.most_unsharded, self.unsharded)


def place_of(name):
    name = name.replace("_checkpoint_wrapped_module.", "").replace("._checkpoint_wrapped_module", "")
    parts = name.replace(",", " ").split()    # a unit of several modules is named by all of them
    first = parts[0] if parts else ""
    if ".layers." in "." + first:
        return "layer " + first.split("layers.")[1].split(".")[0]
    if ("embed_tokens" in name or "tok_embeddings" in name) and "norm" not in name:
        return "embedding"
    if "norm" in name or "lm_head" in name or "output" in name:
        return "head"
    return "root"


# ---------------------------------------------------------------------------------------------- the machine

def on_cpu_like_on_gpu():
    """What a CPU lacks; nothing here decides what is communicated. (trace_accelerate.py has two edges of its own.)

    1. gloo has no average and no product before the sum: sum, then divide or multiply.
    2. SDPA takes a CPU kernel that context parallelism does not know: the flash operator gets a plain CPU kernel, and
       the function returned here calls it.
    """
    def summing(function):
        @functools.wraps(function)
        def summed(*args, **kwargs):
            op = kwargs.get("op")
            if op is None or op == dist.ReduceOp.SUM or op == dist.ReduceOp.MAX:
                return function(*args, **kwargs)
            output = args[0] if args else kwargs["tensor" if "tensor" in kwargs else "output"]
            kwargs["op"] = dist.ReduceOp.SUM
            work = function(*args, **kwargs)
            if work is not None:
                work.wait()
            if op == dist.ReduceOp.AVG:
                output.div_(dist.get_world_size(kwargs.get("group")))
            return work    # torchtitan's factor is 1
        return summed

    dist.all_reduce = summing(dist.all_reduce)
    dist.reduce_scatter_tensor = summing(dist.reduce_scatter_tensor)
    if hasattr(dist, "reduce_scatter_single"):    # its name since PyTorch 2.14
        dist.reduce_scatter_single = summing(dist.reduce_scatter_single)
    library = torch.library.Library("aten", "IMPL")
    library.impl("_scaled_dot_product_flash_attention", flash_forward, "CPU")
    library.impl("_scaled_dot_product_flash_attention_backward", flash_backward, "CPU")

    def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if attn_mask is not None or (key.shape[1] != query.shape[1] and not enable_gqa):
            raise RuntimeError("the flash operator takes no mask, and grouped heads only when asked")
        return torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, False,
                                                                  scale=scale)[0]

    attention.__name__ = "scaled_dot_product_attention"
    return library, attention


def scores_of(query, key, is_causal, scale):
    scores = torch.matmul(query.float(), key.float().transpose(-1, -2)) * scale
    if is_causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, float("-inf"))
    return scores


def flash_forward(query, key, value, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    groups = query.shape[1] // key.shape[1]
    scores = scores_of(query, key.repeat_interleave(groups, 1), is_causal, scale)
    lse = torch.logsumexp(scores, -1)
    out = torch.matmul(torch.exp(scores - lse.unsqueeze(-1)), value.repeat_interleave(groups, 1).float())
    none = torch.zeros((), dtype=torch.int64)
    return out.to(query.dtype), lse, none, none, query.shape[2], key.shape[2], none, none, torch.zeros(())


def flash_backward(grad_out, query, key, value, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p,
                   is_causal, philox_seed, philox_offset, *, scale=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    groups = query.shape[1] // key.shape[1]
    keys, values = key.repeat_interleave(groups, 1).float(), value.repeat_interleave(groups, 1).float()
    p = torch.exp(scores_of(query, keys, is_causal, scale) - logsumexp.unsqueeze(-1))
    dout = grad_out.float()
    dv = torch.matmul(p.transpose(-1, -2), dout)
    ds = p * (torch.matmul(dout, values.transpose(-1, -2)) - (dout * out.float()).sum(-1, keepdim=True)) * scale
    dq = torch.matmul(ds, keys)
    dk = torch.matmul(ds.transpose(-1, -2), query.float())

    def grouped(gradient):
        return gradient.unflatten(1, (key.shape[1], groups)).sum(2).to(key.dtype)

    return dq.to(query.dtype), grouped(dk), grouped(dv)


def count_unsharded(current):
    """Lets the recorder in `current` count decoder layers that hold whole parameters."""
    from torch.distributed.fsdp._fully_shard._fsdp_param_group import FSDPParamGroup

    def counted(method, change):
        @functools.wraps(method)
        def wrapper(self, *args, **kwargs):
            before = self.is_unsharded
            result = method(self, *args, **kwargs)
            if "layers." in (self._module_fqn or "") and before != self.is_unsharded:
                current["recorder"].unshard(change)
            return result
        return wrapper

    FSDPParamGroup.wait_for_unshard = counted(FSDPParamGroup.wait_for_unshard, 1)
    FSDPParamGroup._to_sharded = counted(FSDPParamGroup._to_sharded, -1)


def watch(recorder, model):
    """Marks where backward is, by gradients that arrive."""
    def mark(place):
        def forward_hook(_module, _args, output):
            tensor = output[0] if isinstance(output, tuple) else output
            if tensor.requires_grad and recorder.phase == "forward":
                tensor.register_hook(lambda _gradient: setattr(recorder, "place", place))
        return forward_hook

    for name, module in model.named_modules():
        is_layer = type(module).__name__.endswith(("DecoderLayer", "TransformerBlock"))
        if is_layer or name.endswith(("embed_tokens", "tok_embeddings")):
            module.register_forward_hook(mark(place_of(name)))
        if is_layer:
            layer = int(place_of(name).split()[1])
            module.register_forward_pre_hook(functools.partial(lambda at, *_: recorder.enter_layer(at), layer))


def gradient_bytes_of(model):
    """Gradients that are there now: shards (or all there is, where nothing is sharded), and whole ones beside them."""
    def local(tensor):
        return tensor.to_local() if hasattr(tensor, "to_local") else tensor

    def bytes_of(tensors):
        storages = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in map(local, tensors)}
        return sum(storages.values())

    whole = []
    for module in model.modules():
        state = getattr(module, "_get_fsdp_state", lambda: None)()
        groups = getattr(state, "_fsdp_param_groups", None) or [getattr(state, "_fsdp_param_group", None)]
        for group in groups if state is not None else ():
            for one in group.fsdp_params if group is not None else ():
                kept = one.unsharded_accumulated_grad
                fresh = getattr(getattr(one, "_unsharded_param", None), "grad", None)
                whole += [gradient for gradient in (kept, fresh) if gradient is not None]
    return dict(shards=bytes_of(p.grad for p in model.parameters() if p.grad is not None), whole=bytes_of(whole))


def storage_of(model, optimizer):
    def local(tensor):
        return tensor.to_local() if hasattr(tensor, "to_local") else tensor

    parameters = [local(p) for p in model.parameters()]
    states = [local(t) for state in optimizer.state.values() for t in state.values() if t.numel() > 1]
    return dict(parameter_bytes=sum(p.numel() * p.element_size() for p in parameters),
                parameter_dtypes=sorted({str(p.dtype) for p in parameters}),
                moment_bytes=sum(t.numel() * t.element_size() for t in states),
                moment_dtypes=sorted({str(t.dtype) for t in states}))


# ---------------------------------------------------------------------------------------------- the file

def event_line(event):
    return [event["micro"], event["phase"], event["place"], event["kind"], event["axes"], event["bytes"],
            event["dtype"], event["origin"]]


def write_trace(script, case, everyone, path):
    lines = [[event_line(event) for event in outcome["events"]] for outcome in everyone]
    if any(other != lines[0] for other in lines):
        raise RuntimeError(f"{case['name']}: ranks disagree on what they issue")
    if [event_line(event) for event in everyone[0]["first_events"]] != lines[0]:
        print(f"{case['name']}: note: the first step differs from the second", file=sys.stderr)
    first = everyone[0]
    head = dict(
        schema="ndtune.trace/1", framework=script.FRAMEWORK, case=case["name"], date=datetime.date.today().isoformat(),
        command=f"{os.path.basename(script.__file__)} --case {case['name']}",
        versions={package: importlib.metadata.version(package) for package in script.PACKAGES},
        backend=f"gloo, {len(everyone)} CPU processes",
        mesh={axis: case["mesh"].get(axis, 1) for axis in AXES} | ({"ep": case["ep"]} if case["ep"] > 1 else {}),
        model={**MODEL, **case["model"]}, seq=SEQUENCE,
        micro_batch=MICRO_BATCH, grad_accum=case["grad_accum"], precision=case["precision"],
        load=case["load"], recompute=case["recompute"], rotate=case["rotate"], reshard=case["reshard"], no_sync=case["no_sync"],
        sync_each_batch=case["sync_each_batch"], recompute_by=case["recompute_by"],
        **{key: case[key] for key in ("zero", "overlap_comm", "bucket", "loss", "finetune") if key in case},
        step=getattr(script, "STEP", "second of two"), losses=first["losses"], norms=first["norms"], gradient_dtypes=first["gradient_dtypes"],
        storage=first["storage"], most_unsharded_layers=first["most_unsharded"],
        kept_bytes_per_layer=first.get("kept_per_layer"), gradient_bytes=first.get("gradient_bytes"),
        columns=["micro_batch", "phase", "place", "kind", "axes", "bytes", "dtype", "origin"])
    with open(path, "w") as file:
        file.write("{\n" + "".join(f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in head.items()))
        file.write(' "events": [\n' + ",\n".join("  " + json.dumps(line) for line in lines[0]) + "\n ]\n}\n")


# ---------------------------------------------------------------------------------------------- running cases

def case(name, mesh, **choices):
    """load: dtype in which from_pretrained makes the weights; nd_parallel.py asks for bf16."""
    defaults = dict(precision="bf16", load="bf16", recompute="none", grad_accum=1, rotate="allgather", reshard=True,
                    model={}, ep=1, ram_efficient=False, no_sync=False, sync_each_batch=False,
                    recompute_by="plugin")
    return dict(name=name, mesh=mesh, **{**defaults, **choices})


def tokens_of(one):
    """Ids of this rank's data replica, a row per micro-batch, one longer than the sequence."""
    replica = dist.get_rank() // (one["mesh"].get("tp", 1) * one["mesh"].get("cp", 1))
    generator = torch.Generator().manual_seed(1000 + replica)
    return torch.randint(0, MODEL["vocab_size"], (one["grad_accum"], MICRO_BATCH, SEQUENCE + 1), generator=generator)


def worker(rank, script_name, cases, scratch, out):
    """All cases of one world size, one after another."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    world = world_of(cases[0]["mesh"])
    os.environ.update(RANK=str(rank), LOCAL_RANK="0", WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(world),
                      MASTER_ADDR="127.0.0.1", OMP_NUM_THREADS="1", TRANSFORMERS_VERBOSITY="error",
                      TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")
    dist.init_process_group("gloo", init_method=f"file://{scratch}/rendezvous", rank=rank, world_size=world)
    library, flash = on_cpu_like_on_gpu()
    sdpa = F.scaled_dot_product_attention
    script = importlib.import_module(script_name)
    current = {}
    count_unsharded(current)
    for one in cases:
        F.scaled_dot_product_attention = flash if one["mesh"].get("cp", 1) > 1 else sdpa
        outcome = script.traced(one, os.path.join(scratch, one["name"]), current)
        everyone = [None] * world
        dist.all_gather_object(everyone, outcome)
        if rank == 0:
            write_trace(script, one, everyone, os.path.join(out, one["name"] + ".json"))
            print(f"{one['name']}: {len(outcome['events'])} collectives, losses {outcome['losses']}", flush=True)
    dist.destroy_process_group()
    del library


def run(script_name, description):
    script = importlib.import_module(script_name)
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--case", action="append", help="name of a case; default all")
    parser.add_argument("--out", default=os.path.join(here, "traces", script.FRAMEWORK), help="folder of the recordings")
    arguments = parser.parse_args()
    os.makedirs(arguments.out, exist_ok=True)
    cases = [one for one in script.CASES if arguments.case is None or one["name"] in arguments.case]
    together = {}
    for one in cases:    # a framework that keeps its first mesh for good has processes of its own for each case
        together.setdefault(one["name"] if getattr(script, "ALONE", False) else world_of(one["mesh"]), []).append(one)
    for chosen in together.values():
        scratch = tempfile.mkdtemp(prefix="ndtune-trace-")
        try:
            # Forked: what the script imports is imported once.
            mp.start_processes(worker, args=(script_name, chosen, scratch, arguments.out),
                               nprocs=world_of(chosen[0]["mesh"]), start_method="fork")
        finally:
            shutil.rmtree(scratch)
