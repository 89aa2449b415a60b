"""Real PyTorch jobs on processor ranks over gloo, with one fault planted, or none.

run(case, folder) forks a rank for each of case["world"], trains a small model under FSDP2, tensor parallelism, both, or
a pipeline whose stages may be sharded, and leaves the dumps of torch's own flight recorder in the folder: when a rank's
collective times out or fails (as NCCL's watchdog does), or at a moment of a sound job. The fault is planted below
torch's Python: a dispatch mode sees every collective and message on its way to c10d, whoever issued it. The messages,
which torch does not record over gloo, are put into the dumps from there, in the format of its recorder."""

import ctypes
import json
import mmap
import os
import pickle
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
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe  # noqa: E402
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module  # noqa: E402
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

TIMEOUT_S = 10
PLANTED = ("missing", "skipped", "mismatch", "order", "size")
MESSAGES = {"send": "send", "recv_": "recv"}  # c10d's operator, the recorder's word
TOKENS = 16
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


class StageModel(nn.Module):
    """As many of the layers as a stage of a pipeline has."""

    def __init__(self, stage, stages, layers, width, vocab):
        super().__init__()
        self.embedding = nn.Embedding(vocab, width) if stage == 0 else nn.Identity()
        self.layers = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Linear(width, vocab) if stage == stages - 1 else nn.Identity()

    forward = Model.forward


def op_of(func):
    return func.name().split("::")[1].split(".")[0]


def is_message(func):
    return func.name().startswith("c10d::") and op_of(func) in MESSAGES


def is_collective(func):
    name = func.name()
    return name.startswith(("c10d::", "_c10d_functional::")) and any(word in name for word in COLLECTIVES)


def is_over(work):
    return work is not None and work.is_completed() and work.is_success()


class Messages:
    """What torch's recorder would keep of sends and receives, had gloo's one."""

    def __init__(self, rank, world, received):
        self.rank, self.world, self.received = rank, world, received
        self.entries, self.works, self.ends = [], [], []

    def count(self, word, group, peer):
        return sum(entry["channel"] == (word, group.group_name, peer) for entry in self.entries)

    def see_what_came(self):
        """NCCL's recorder asks the device what is over; gloo tells only who waits, so receivers tell the senders."""
        came = memoryview(self.received).cast("i")
        for sender in range(self.world):
            over = [is_over(work) for work, ends in zip(self.works, self.ends) if ends == (sender, self.rank)]
            came[sender * self.world + self.rank] = over.index(False) if False in over else len(over)
        return came

    def record(self, func, args, group):
        self.see_what_came()
        word, tensor, peer = MESSAGES[op_of(func)], args[0][0], args[2]
        arrow = "->" if word == "send" else "<-"
        number, other = len(self.entries) + 1, dist.get_global_rank(group, peer)
        self.ends.append((self.rank, other) if word == "send" else (other, self.rank))
        self.entries.append({
            "channel": (word, group.group_name, peer), "frames": [], "pg_id": 0,
            "process_group": (group.group_name, group.group_desc), "collective_seq_id": 0, "p2p_seq_id": number,
            "op_id": number, "profiling_name": f"gloo:{word} {group.rank()}{arrow}{peer}",
            "time_created_ns": time.time_ns(), "input_sizes": [list(tensor.shape)], "input_dtypes": ["Float"],
            "output_sizes": [list(tensor.shape)], "output_dtypes": ["Float"], "state": "scheduled",
            "time_discovered_started_ns": None, "time_discovered_completed_ns": None, "retired": False,
            "timeout_ms": 1000 * TIMEOUT_S, "is_p2p": True})
        self.works.append(None)

    def issued(self, work):
        self.works[-1] = dist.Work.unbox(work) if isinstance(work, torch.ScriptObject) else work

    def put_into(self, trace):
        """Beside torch's own entries, in the order of time."""
        came, sent = self.see_what_came(), {}
        for entry, work, ends in zip(self.entries, self.works, self.ends):
            sent[ends] = sent.get(ends, 0) + 1
            sends = ends[0] == self.rank
            entry["retired"] = is_over(work) or (sends and sent[ends] <= came[ends[0] * self.world + ends[1]])
        trace["entries"] = sorted(trace.get("entries", []) + [
            {key: value for key, value in entry.items() if key != "channel"} for entry in self.entries],
            key=lambda entry: entry["time_created_ns"])
        for at, entry in enumerate(trace["entries"]):
            entry["record_id"] = at
        trace["pg_config"] = {group.group_name: {
            "name": group.group_name, "desc": group.group_desc,
            "ranks": str(dist.get_process_group_ranks(group))} for group in self.groups}


class Planter(TorchDispatchMode):
    """Counts collectives, and at the chosen one does something else."""

    def __init__(self, case, rank, folder, fake):
        super().__init__()
        self.case, self.rank, self.folder, self.fake = case, rank, folder, fake
        self.count, self.held, self.log, self.chosen = 0, None, [], case["at"]
        self.messages = Messages(rank, case["world"], case["received"]) if case["pp"] > 1 else None

    def choose(self):
        """After the first step: any collective of a later one that the fault can be planted into."""
        rng = random.Random(f"place {self.case['seed']}")
        places = []
        for i, (op, group, length) in enumerate(self.log):
            following = [entry for entry in self.log[i + 1:] if entry[1] == group]
            apart = following and (following[0][0], following[0][2]) != (op, length) and op not in MESSAGES
            if self.case["kind"] != "order" or apart:
                places.append(i)  # two that look alike are in no order, nor are messages that nobody waits for
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
        if not is_collective(func) and not (self.messages and is_message(func)):
            return func(*args, **kwargs)
        group = self.group_of(args)
        if group is None or group.size() == 1:
            return func(*args, **kwargs)
        at, self.count = self.count, self.count + 1
        self.log.append((op_of(func), group.group_name, sizes(args)))
        if self.held is not None and self.held[3].group_name == group.group_name:
            held, self.held = self.held, None
            result = func(*args, **kwargs)
            held[0](*held[1], **held[2])
            return result
        if self.case["victim"] != self.rank or self.chosen != at:
            return self.issue(func, args, kwargs, group)
        self.note(func, args, group)
        return getattr(self, "plant_" + self.case["kind"])(func, args, kwargs, group)

    def issue(self, func, args, kwargs, group):
        if not is_message(func):
            return func(*args, **kwargs)
        self.messages.record(func, args, group)
        work = func(*args, **kwargs)
        self.messages.issued(work)
        return work

    def note(self, func, args, group):
        if is_message(func):
            self.messages.see_what_came()
            word, peer = MESSAGES[op_of(func)], args[2]
            ends = [self.rank, dist.get_global_rank(group, peer)]
            (self.folder / "planted.json").write_text(json.dumps({
                "group": group.group_name, "number": self.messages.count(word, group, peer) + 1, "op": word,
                "from": ends[word != "send"], "to": ends[word == "send"]}))
            return
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
        if "gather" in func.name() or is_message(func):
            dist.all_reduce(other, group=group)
        else:
            dist.broadcast(other, group=group, group_src=0)
        return self.elsewhere(func, args, kwargs, group)

    def plant_size(self, func, args, kwargs, group):
        n = group.size()
        if is_message(func):  # gloo takes a message that is too small, none that is too large
            length = args[0][0].numel() + 24 if op_of(func) == "send" else args[0][0].numel() - 24
            self.issue(func, ([torch.zeros(length)], *args[1:]), kwargs, group)
            return self.elsewhere(func, args, kwargs, group)
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
    dist.distributed_c10d.default_pg_timeout = timedelta(seconds=TIMEOUT_S)  # of messages, which set_timeout leaves out
    dist.init_process_group("gloo", rank=rank, world_size=case["world"], store=dist.FileStore(
        str(case["folder"] / "store"), case["world"]), timeout=timedelta(seconds=TIMEOUT_S))
    dims = {k: n for k, n in (("pp", case["pp"]), ("dp", case["dp"]), ("tp", case["tp"])) if n > 1}
    mesh = init_device_mesh("cpu", tuple(dims.values()), mesh_dim_names=tuple(dims))
    for name in dims:
        dist.set_timeout(timedelta(seconds=TIMEOUT_S), mesh[name].get_group())
    fake = {}
    for size in {case["pp"], case["dp"], case["tp"], case["world"]} - {1}:
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
    if case["pp"] > 1:
        return build_stage(case, mesh)
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


def build_stage(case, mesh):
    """A schedule of the pipeline, around this rank's stage of the model."""
    stage, stages, width = mesh["pp"].get_local_rank(), case["pp"], case["width"]
    model = StageModel(stage, stages, case["layers"], width, 4 * width)
    if case["dp"] > 1:
        for layer in model.layers:
            fully_shard(layer, mesh=mesh["dp"])
        fully_shard(model, mesh=mesh["dp"])
    tokens = torch.zeros(1, TOKENS, dtype=torch.long)
    hidden, logits = (torch.zeros(1, TOKENS, n, requires_grad=True) for n in (width, 4 * width))
    part = PipelineStage(model, stage, stages, torch.device("cpu"), group=mesh["pp"].get_group(),
                         input_args=(tokens if stage == 0 else hidden,),
                         output_args=(logits if stage == stages - 1 else hidden,))
    schedule = Schedule1F1B if case["schedule"] == "1f1b" else ScheduleGPipe
    model.schedule = [schedule(part, case["micro_batches"], loss_fn=lambda out, _: out.float().square().mean())]
    return model


def loss_of_step(case, model):
    if case["pp"] == 1:
        loss = model(torch.randint(0, case["width"], (2, TOKENS))).float().square().mean()
        loss.backward()
        return loss
    schedule, losses = model.schedule[0], []
    tokens = torch.randint(0, case["width"], (case["micro_batches"], TOKENS))
    first, last = schedule._stage.is_first, schedule._stage.is_last
    schedule.step(*([tokens] if first else []), **({"target": tokens, "losses": losses} if last else {}))
    return torch.stack(losses).mean() if last else torch.zeros(())


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
        drowse(case, rank, step, step_s, rng)
        begun = time.monotonic()
        with planter:
            if rank == 0:
                print(case["name"], "step", step, flush=True)
            loss = loss_of_step(case, model)
            if case["clip"]:
                norm = torch.zeros(1)
                for parameter in model.parameters():
                    gradient = parameter.grad
                    if gradient is None:
                        continue
                    norm += (gradient.to_local() if hasattr(gradient, "to_local") else gradient).square().sum()
                dist.all_reduce(norm)
            optimizer.step()
            optimizer.zero_grad()
            if case["log"]:
                dist.all_reduce(loss.detach().reshape(1))
        if step == 0 and case["at"] < 0 and case["kind"] in PLANTED and rank == case["victim"]:
            planter.choose()


def write_dump(folder, rank, messages):
    part = folder / f".part{rank}"
    dump = torch._C._distributed_c10d._dump_fr_trace(True, True, False)
    if messages:
        trace = pickle.loads(dump)
        messages.put_into(trace)
        dump = pickle.dumps(trace, 2)
    part.write_bytes(dump)
    part.rename(folder / "dumps" / f"rank_{rank}")


def hang_where_gloo_aborts():
    """Sizes that do not fit make gloo's thread end the process; NCCL's would hang. The thread stands still instead."""
    libc = ctypes.CDLL(None)
    libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    libc.signal(signal.SIGABRT, ctypes.cast(libc.pause, ctypes.c_void_p))


def watch(folder, rank, written, messages):
    """As the monitoring thread of ProcessGroupNCCL: who times out asks all others for their dumps."""
    while not (folder / "flag").exists():
        time.sleep(0.02)
    write_dump(folder, rank, messages)
    written.set()


def rank_main(case, rank):
    folder = case["folder"]
    torch.set_num_threads(1)
    hang_where_gloo_aborts()
    written = threading.Event()
    mesh, fake = make_groups(case, rank)
    planter = Planter(case, rank, folder, fake)
    if planter.messages:
        planter.messages.groups = [dist.group.WORLD] + [mesh[name].get_group() for name in mesh.mesh_dim_names]
    model = build(case, mesh)
    dist.barrier()
    threading.Thread(target=watch, args=(folder, rank, written, planter.messages), daemon=True).start()
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
    case = dict(case, folder=folder, received=mmap.mmap(-1, 4 * case["world"] ** 2))
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
    example = {"name": "try", "kind": "sound", "victim": 0, "at": -1, "seed": 1, "world": 4, "pp": 1, "dp": 2, "tp": 2,
               "layers": 3, "width": 32, "steps": 3, "clip": True, "log": True}
    example.update(json.loads(sys.argv[2]) if len(sys.argv) > 2 else {})
    print(run(example, sys.argv[1]))
