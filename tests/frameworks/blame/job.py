"""Real PyTorch jobs on processor ranks over gloo, with one fault planted, or none.

run(case, folder) forks a rank for each of case["world"], trains a small model under FSDP2, tensor parallelism or both,
and leaves the dumps of torch's own flight recorder in the folder: when a rank's collective times out or fails (as NCCL's
watchdog does), or at a moment of a sound job. The fault is planted below torch's Python: a dispatch mode sees every
collective on its way to c10d, whoever issued it."""

import ctypes
import json
import os
import random
import signal
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

os.environ["TORCH_FR_BUFFER_SIZE"] = "2000"
os.environ["TORCH_CPP_LOG_LEVEL"] = "FATAL"

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module  # noqa: E402
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

TIMEOUT_S = 10
PLANTED = ("missing", "skipped", "mismatch", "order", "size")
COLLECTIVES = ("allreduce", "allgather", "reduce_scatter", "all_reduce", "all_gather", "broadcast", "all_to_all")


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


class Model(nn.Module):
    def __init__(self, layers, width, vocab):
        super().__init__()
        self.embedding = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Linear(width, vocab)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def is_collective(func):
    name = func.name()
    return name.startswith(("c10d::", "_c10d_functional::")) and any(word in name for word in COLLECTIVES)


class Planter(TorchDispatchMode):
    """Counts collectives, and at the chosen one does something else."""

    def __init__(self, case, rank, folder, fake):
        super().__init__()
        self.case, self.rank, self.folder, self.fake = case, rank, folder, fake
        self.count, self.held, self.log, self.chosen = 0, None, [], case["at"]

    def choose(self):
        """After the first step: any collective of a later one that the fault can be planted into."""
        rng = random.Random(f"place {self.case['seed']}")
        places = []
        for i, (op, group, length) in enumerate(self.log):
            following = [entry for entry in self.log[i + 1:] if entry[1] == group]
            if self.case["kind"] != "order" or (following and (following[0][0], following[0][2]) != (op, length)):
                places.append(i)  # two that look alike are in no order
        self.chosen = rng.choice(places) + len(self.log) * rng.randint(1, self.case["steps"] - 2)

    def group_of(self, args):
        for value in args:
            if isinstance(value, str):
                try:
                    return dist.distributed_c10d._resolve_process_group(value)
                except (RuntimeError, ValueError):
                    continue
            if isinstance(value, torch.ScriptObject):
                try:
                    return dist.ProcessGroup.unbox(value)
                except Exception:  # a reduction, not a group
                    continue
        return None

    def elsewhere(self, func, args, kwargs, group):
        """The same call on a group that only pretends: the result is garbage, and nobody is told."""
        fake = self.fake[group.size()]
        swapped = [
            fake.group_name if isinstance(a, str) and a == group.group_name
            else fake.boxed() if isinstance(a, torch.ScriptObject) and self.group_of([a]) is not None
            else a
            for a in args
        ]
        return func(*swapped, **kwargs)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not is_collective(func):
            return func(*args, **kwargs)
        group = self.group_of(args)
        if group is None or group.size() == 1:
            return func(*args, **kwargs)
        at, self.count = self.count, self.count + 1
        self.log.append((func.name().split("::")[1].split(".")[0], group.group_name, sizes(args)))
        if self.held is not None and self.held[3].group_name == group.group_name:
            held, self.held = self.held, None
            result = func(*args, **kwargs)
            held[0](*held[1], **held[2])
            return result
        if self.case["victim"] != self.rank or self.chosen != at:
            return func(*args, **kwargs)
        self.note(group)
        return getattr(self, "plant_" + self.case["kind"])(func, args, kwargs, group)

    def note(self, group):
        trace = json.loads(torch._C._distributed_c10d._dump_fr_trace_json(True, False))
        last = [e["collective_seq_id"] for e in trace.get("entries", []) if e["process_group"][0] == group.group_name]
        (self.folder / "planted.json").write_text(
            json.dumps({"group": group.group_name, "number": max(last, default=0) + 1, "op": self.log[-1][0]}))

    def plant_missing(self, func, args, kwargs, group):
        how = self.case["how"]
        if how == "sleep":
            time.sleep(3600)
        os.kill(os.getpid(), signal.SIGKILL if how == "kill" else signal.SIGSTOP)
        return func(*args, **kwargs)

    def plant_skipped(self, func, args, kwargs, group):
        return self.elsewhere(func, args, kwargs, group)

    def plant_mismatch(self, func, args, kwargs, group):
        other = torch.zeros(16)
        if "gather" in func.name():
            dist.all_reduce(other, group=group)
        else:
            dist.broadcast(other, group=group, group_src=0)
        return self.elsewhere(func, args, kwargs, group)

    def plant_size(self, func, args, kwargs, group):
        n = group.size()
        length = (max(sizes(args)) // n + 24) * n
        if "gather" in func.name():
            dist.all_gather_into_tensor(torch.zeros(length), torch.zeros(length // n), group=group)
        elif "scatter" in func.name():
            dist.reduce_scatter_tensor(torch.zeros(length // n), torch.zeros(length), group=group)
        else:
            dist.all_reduce(torch.zeros(length), group=group)
        return self.elsewhere(func, args, kwargs, group)

    def plant_order(self, func, args, kwargs, group):
        self.held = (func, args, kwargs, group)
        return self.elsewhere(func, args, kwargs, group)


def sizes(args):
    flat = []
    for a in args:
        flat += [t.numel() for t in ([a] if isinstance(a, torch.Tensor) else a if isinstance(a, list) else [])
                 if isinstance(t, torch.Tensor)]
    return flat or [0]


def make_groups(case, rank):
    dist.init_process_group("gloo", rank=rank, world_size=case["world"], store=dist.FileStore(
        str(case["folder"] / "store"), case["world"]), timeout=timedelta(seconds=TIMEOUT_S))
    dims = {k: n for k, n in (("dp", case["dp"]), ("tp", case["tp"])) if n > 1}
    mesh = init_device_mesh("cpu", tuple(dims.values()), mesh_dim_names=tuple(dims))
    for name in dims:
        dist.set_timeout(timedelta(seconds=TIMEOUT_S), mesh[name].get_group())
    fake = {}
    for size in {case["dp"], case["tp"], case["world"]} - {1}:
        store = FakeStore()
        options = None
        fake[size] = make_fake(store, size, options)
    return mesh, fake


def make_fake(store, size, options):
    from torch._C._distributed_c10d import FakeProcessGroup
    backend = FakeProcessGroup._create_internal(0, size) if hasattr(FakeProcessGroup, "_create_internal") \
        else FakeProcessGroup(0, size)
    group = dist.ProcessGroup(store, 0, size)
    group._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.CUSTOM, backend)
    group._set_default_backend(dist.ProcessGroup.BackendType.CUSTOM)
    group._set_group_name(f"pretended_{size}")
    torch._C._distributed_c10d._register_process_group(group.group_name, group)
    return group


def build(case, mesh):
    torch.manual_seed(0)
    model = Model(case["layers"], case["width"], 4 * case["width"])
    if case["tp"] > 1:
        plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
        for layer in model.layers:
            parallelize_module(layer, mesh["tp"], plan)
    if case["dp"] > 1:
        for layer in model.layers:
            fully_shard(layer, mesh=mesh["dp"])
        fully_shard(model, mesh=mesh["dp"])
    return model


def drowse(case, rank, step, step_s, rng):
    """What a slow job does: of a sound one nobody is always last."""
    how, base = case.get("slow"), case.get("pause", 0) * step_s
    if how == "one" and rank == case["victim"]:
        time.sleep(base)
    elif how == "all":
        time.sleep(base)
    elif how == "jitter":
        time.sleep(2 * base * rng.random())
    elif how == "turns" and step % case["world"] == rank:
        time.sleep(base)
    elif how == "once" and step == case["steps"] // 2 and rank == case["victim"]:
        time.sleep(6 * base)


def train(case, rank, planter, model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rng = random.Random(case["seed"] * 1000 + rank)
    begun, step_s = 0, 0
    for step in range(case["steps"]):
        if step > 1:  # the first compiles
            step_s = min(max(0.1, time.monotonic() - begun), TIMEOUT_S / 5)
        tokens = torch.randint(0, case["width"], (2, 16))
        drowse(case, rank, step, step_s, rng)
        begun = time.monotonic()
        with planter:
            loss = model(tokens).float().square().mean()
            if rank == 0:
                print(case["name"], "step", step, flush=True)
            loss.backward()
            if case["clip"]:
                norm = torch.zeros(1)
                for parameter in model.parameters():
                    gradient = parameter.grad
                    norm += (gradient.to_local() if hasattr(gradient, "to_local") else gradient).square().sum()
                dist.all_reduce(norm)
            optimizer.step()
            optimizer.zero_grad()
            if case["log"]:
                dist.all_reduce(loss.detach().reshape(1))
        if step == 0 and case["at"] < 0 and case["kind"] in PLANTED and rank == case["victim"]:
            planter.choose()


def write_dump(folder, rank):
    part = folder / f".part{rank}"
    part.write_bytes(torch._C._distributed_c10d._dump_fr_trace(True, True, False))
    part.rename(folder / "dumps" / f"rank_{rank}")


def hang_where_gloo_aborts():
    """Sizes that do not fit make gloo's thread end the process; NCCL's would hang. The thread stands still instead."""
    libc = ctypes.CDLL(None)
    libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    libc.signal(signal.SIGABRT, ctypes.cast(libc.pause, ctypes.c_void_p))


def watch(folder, rank, written):
    """As the monitoring thread of ProcessGroupNCCL: who times out asks all others for their dumps."""
    while not (folder / "flag").exists():
        time.sleep(0.02)
    write_dump(folder, rank)
    written.set()


def rank_main(case, rank):
    folder = case["folder"]
    torch.set_num_threads(1)
    hang_where_gloo_aborts()
    written = threading.Event()
    mesh, fake = make_groups(case, rank)
    planter = Planter(case, rank, folder, fake)
    model = build(case, mesh)
    dist.barrier()
    threading.Thread(target=watch, args=(folder, rank, written), daemon=True).start()
    try:
        train(case, rank, planter, model)
        (folder / f"ended_{rank}").touch()
        if case["kind"] in ("sound", "slow"):
            while len(list(folder.glob("ended_*"))) < case["world"] and not (folder / "flag").exists():
                time.sleep(0.02)
            (folder / "flag").touch()
        written.wait(3 * TIMEOUT_S)
    except Exception as problem:  # a time-out, or a peer that is gone
        (folder / f"failed_{rank}").write_text(repr(problem)[:300])
        (folder / "flag").touch()
        written.wait(3 * TIMEOUT_S)
    (folder / f"done_{rank}").touch()
    time.sleep(3600)  # sockets stay open until all have written


def run(case, folder):
    """Forks the ranks, waits until every one that can has written, and ends them."""
    folder = Path(folder)
    (folder / "dumps").mkdir(parents=True)
    case = dict(case, folder=folder)
    children = []
    for rank in range(case["world"]):
        child = os.fork()
        if child == 0:
            try:
                sink = os.open(str(folder / f"out_{rank}"), os.O_WRONLY | os.O_CREAT, 0o644)
                os.dup2(sink, 1)
                os.dup2(sink, 2)
                rank_main(case, rank)
            except BaseException as problem:
                print(repr(problem), flush=True)
            os._exit(1)
        children.append(child)
    begun = time.monotonic()
    flagged = None
    while time.monotonic() - begun < 300:
        time.sleep(0.1)
        if case.get("snapshot") and f" step {case['snapshot']}\n" in (folder / "out_0").read_text():
            time.sleep(case["later_s"])
            (folder / "flag").touch()
        if flagged is None and (folder / "flag").exists():
            flagged = time.monotonic()
        written = len(list((folder / "dumps").iterdir()))
        if flagged and (written == case["world"] or time.monotonic() - flagged > 4):
            break
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)
    return flagged is not None


if __name__ == "__main__":
    example = {"name": "try", "kind": "sound", "victim": 0, "at": -1, "seed": 1, "world": 4, "dp": 2, "tp": 2, "layers": 3,
               "width": 32, "steps": 3, "clip": True, "log": True}
    example.update(json.loads(sys.argv[2]) if len(sys.argv) > 2 else {})
    print(run(example, sys.argv[1]))
