"""The steps of `measure`, a row each at the end of this file: what, budget, what it needs, how."""

import dataclasses
import functools
import glob
import json
import math
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

import machine
import shapes

BIN = os.path.join(machine.ROOT, "build", "release", "bin")
HERE = os.path.dirname(os.path.abspath(__file__))


class Skip(Exception):
    pass


class Failed(Exception):
    def __init__(self, words, rows=(), output=""):
        super().__init__(words)
        self.rows = list(rows)
        self.output = output


class Unfinished(Failed):
    """Right as far as it went; a later call goes on."""


class Context:
    def __init__(self, state, kept):
        self.state = state
        self.kept = kept  # what a step that did not end has of this commit, by the step's name
        self.deadline = 0
        self.notes = ""  # warnings of the latest command

    def left_s(self):
        return self.deadline - time.monotonic()


def error_words(text):
    """The last line that names an error, else the last with words."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" \n-=*~")]
    named = [line for line in lines if "rror" in line]
    return (named or lines or ["no words"])[-1][:300]


@functools.cache
def library_path():
    """For our programs alone: what the pack brought, and NVIDIA's libraries that came with PyTorch."""
    packages = machine.words_of(["python3", "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"])
    brought = sorted(glob.glob(os.path.join(packages, "nvidia", "*", "lib")))
    found = [os.path.join(machine.ROOT, ".gpu", "lib"), *brought, "/usr/local/cuda/lib64"]
    return ":".join([*found, os.environ.get("LD_LIBRARY_PATH", "")])


def ours(context, words, settings=None, most_s=None):
    """A command that is, or starts, one of our programs."""
    return command(context, words, {"LD_LIBRARY_PATH": library_path()} | (settings or {}), most_s)


def command(context, words, settings=None, most_s=None):
    """Runs it within the step's time; what it printed. Failed with its last words otherwise."""
    limit_s = min(context.left_s(), most_s or context.left_s())
    if limit_s < 1:
        raise Skip("the step's time is used up")
    environment = dict(os.environ, **(settings or {}))
    environment.pop("OPENBLAS_CORETYPE", None)
    with text_file() as out_file, text_file() as err_file:
        running = subprocess.Popen(
            words, stdout=out_file, stderr=err_file, env=environment, cwd=machine.ROOT, start_new_session=True
        )
        try:
            running.wait(limit_s)
            late = False
        except subprocess.TimeoutExpired:
            late = True
        finally:
            end_all(running)
        out, err = words_in(out_file), words_in(err_file)
    reason = f"exit {running.returncode}: {error_words(err or out)}" if running.returncode else None
    if late:
        reason = f"{os.path.basename(words[0])} did not end within {limit_s:.0f} s"
    context.notes = "; ".join(line.split("warning: ", 1)[1] for line in err.splitlines() if "ndtune: warning: " in line)
    if reason:
        keep_words(context, words, settings, reason, out, err)
        raise Failed(reason, output=out)
    return out


def text_file():
    return tempfile.TemporaryFile("w+", errors="replace")


def words_in(file):
    file.seek(0)
    return file.read()


def end_all(running):
    """Also what it has started: the GPU must be free for the next command."""
    try:
        os.killpg(running.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all have ended
    running.wait()


def keep_words(context, words, settings, reason, out, err):
    """All that a failed command said, for whoever has no machine left to try it again on."""
    os.makedirs(context.state, exist_ok=True)
    given = " ".join(f"{name}={value}" for name, value in (settings or {}).items())
    with open(os.path.join(context.state, "failures.log"), "a") as file:
        file.write(f"$ {given} {' '.join(words)}\n{reason}\n--- stdout\n{out[-4000:]}\n--- stderr\n{err[-12000:]}\n\n")


def train(context, words, settings=None, most_s=None):
    """ndtune run as JSON."""
    program = os.path.join(BIN, "ndtune")
    store = os.path.join(context.state, "gpu.db")
    base = [program, "run", "--format", "json", "--db", store]
    return json.loads(ours(context, base + words, settings, most_s))


def difference(run, reference):
    """Largest relative difference of losses at the first step and anywhere; infinite where one is no number (null)."""
    if any(loss is None for loss in run["loss"] + reference["loss"]):
        return math.inf, math.inf
    pairs = [abs(a - b) / abs(b) for a, b in zip(run["loss"], reference["loss"])]
    return pairs[0], max(pairs)


def median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


# ---------------------------------------------------------------------------------------------- build, parity


def unpacked(context):
    """A pack of the programs and their libraries, made by tests/gpu/pack where the libraries are."""
    pack = os.path.join(machine.ROOT, ".gpu", "pack.tar.gz")
    if not os.path.exists(pack):
        return None
    with tarfile.open(pack) as tar:
        tar.extractall(machine.ROOT, filter="data")
    return [{"how": "unpacked .gpu/pack.tar.gz", "version": version(context)}]


def version(context):
    return ours(context, [os.path.join(BIN, "ndtune"), "--version"]).splitlines()[0]


def build(context):
    rows = unpacked(context)
    if rows:
        return rows
    command(context, ["cmake", "--preset", "release"])
    programs = ["ndtune", "ndtune-worker", "bench_kernels_cuda", "bench_attention_gpu"]
    command(context, ["ninja", "-C", "build/release", *programs])
    return [{"how": "cmake --preset release; ninja", "version": version(context)}]


def not_built(context):
    del context
    return None if os.path.exists(os.path.join(BIN, "ndtune")) else "nothing is built: step build comes first"


BATCH, SEQ = 24, 48
PARITY_BOUND = {"fp32": (2e-6, 1e-4), "bf16": (5e-3, 5e-2)}  # of every mesh; bf16 against fp32: sim/SOURCES.md X3


def parity_row(context, size, reference, row):
    try:
        run = train(context, size + ["--device", "cuda", *given(row, "precision", "attention")])
    except Skip as reason:
        return row | {"verdict": "NOT RUN", "words": str(reason)}
    except Failed as reason:
        return row | {"verdict": "FAILED", "words": str(reason)}
    first, worst = difference(run, reference)
    bound = PARITY_BOUND[row["precision"]]
    return row | {
        "notes": context.notes,
        "loss at step 1, relative": f"{first:.1e}",
        "at any of 10": f"{worst:.1e}",
        "bound": f"{bound[0]:.0e}, {bound[1]:.0e}",
        "verdict": "same" if first <= bound[0] and worst <= bound[1] else "DIFFERS",
    }


MODELS = os.path.join(HERE, "models")
# Small models of each kind of layer beside Llama's: heads of 64 where attention may go to our own kernel, windows that
# cut a sequence, experts of 8 groups, latents, clamped gates and sinks.
FAMILIES = ("mixtral", "qwen2_moe", "gpt_oss", "deepseek_v3", "mistral")
# One rank, then experts spread over two that share the GPU.
FAMILY_CASES = [("dp_shard=1", "shm", "fp32", "flash"), ("dp_shard=1", "shm", "bf16", "flash"),
                ("dp_shard=1", "shm", "bf16", "cudnn"), ("dp_shard=2,ep=2", "shm", "bf16", "flash"),
                ("dp_shard=2,ep=2", "nccl", "bf16", "flash")]


def family_row(context, family, case, reference):
    mesh, transport, precision, attention = case
    if family == "mistral":
        mesh = mesh.replace(",ep=2", "")
    words = ["--model", os.path.join(MODELS, family + ".json"), "--seq", "256", "--steps", "5", "--precision", precision]
    words += ["--micro-batch", "2" if mesh == "dp_shard=1" else "1", "--device", "cuda", "--attention", attention]
    words += ["--transport", transport, "--timeout", "60", *([] if "ep=" not in mesh else ["--capacity", "200"])]
    shared = {"NDTUNE_NCCL_SHARE_GPU": "1"} if transport == "nccl" else None
    row = mesh_row(context, mesh, reference, words, shared, PARITY_BOUND[precision])
    return row | {"model": family, "transport": transport, "precision": precision, "attention": attention}


def families(context):
    """Layers of experts, windows, sinks and latent attention, against the same model on the processor in fp32."""
    rows = []
    for family in FAMILIES:
        model = ["--model", os.path.join(MODELS, family + ".json"), "--seq", "256", "--steps", "5"]
        reference = train(context, [*model, "--micro-batch", "2", "--mesh", "dp_shard=1", "--device", "cpu"])
        for case in FAMILY_CASES:
            try:
                rows.append(family_row(context, family, case, reference))
            except Skip as reason:
                rows.append({"model": family, "mesh": case[0], "verdict": "NOT RUN", "words": str(reason)})
    return checked(rows)


def given(row, *names):
    """Options of these names, with the row's values."""
    return [word for name in names for word in ("--" + name, row[name])]


def parity(context):
    rows = []
    for model in ("tiny", "125m"):
        size = ["--model", model, "--mesh", "dp_shard=1", "--seq", "256", "--steps", "10"]
        reference = train(context, size + ["--device", "cpu"])
        for precision, attention in (("fp32", "flash"), ("bf16", "flash"), ("bf16", "cudnn")):
            row = {"model": model, "precision": precision, "attention": attention}
            rows.append(parity_row(context, size, reference, row))
    return checked(rows)


def checked(rows):
    wrong = [row for row in rows if row["verdict"] not in ("same", "refused", "NOT RUN")]
    left = [row for row in rows if row["verdict"] == "NOT RUN"]
    if wrong:
        raise Failed(f"{len(wrong)} of {len(rows)} differ or failed", rows)
    if left:
        raise Unfinished(f"{len(left)} of {len(rows)} were not reached, the others are right", rows)
    return rows


def mesh_row(context, mesh, reference, words, settings=None, bound=PARITY_BOUND["fp32"]):
    if context.left_s() < 15:
        raise Skip("the step's time is used up")
    row = {"mesh": mesh}
    try:
        run = train(context, words + ["--mesh", mesh], settings, most_s=60)
    except Failed as reason:
        refused = "exit 2" in str(reason)  # a shape that the model has no room for, in words
        return row | {"verdict": "refused" if refused else "FAILED", "words": str(reason)}
    first, worst = difference(run, reference)
    same = first <= bound[0] and worst <= bound[1]
    words = f"{first:.1e} at step 1, {worst:.1e} at any" if worst < math.inf else "a loss is no number"
    words += context.notes and "; " + context.notes
    return row | {"verdict": "same" if same else "DIFFERS", "words": words}


TINY = ["--model", "tiny", "--seq", str(SEQ), "--steps", "5", "--device", "cuda", "--precision", "fp32"]
# Heads of 64 in groups: rings and grouped queries go through our own attention on tensor cores.
HEADS64 = ["--model", "tinyllama-1.1b", "--layers", "1", "--seq", str(SEQ), "--steps", "5", "--device", "cuda"]
MESHES_BF16 = [("tp=2", 1, "flash"), ("cp=2", 1, "flash"), ("dp_shard=2", 2, "flash"), ("dp_replicate=2", 2, "flash")]
MESHES_BF16 += [("dp_shard=2,cp=2,tp=2", 2, "flash"), ("cp=2", 1, "cudnn"), ("dp_shard=2,cp=2,tp=2", 2, "cudnn")]


@functools.cache
def alone(context, *words):
    """One rank with the whole batch."""
    return train(context, [*words, "--mesh", "dp_shard=1", "--micro-batch", str(BATCH)])


def mesh_fp32(context, mesh, data):
    if BATCH % data:
        return {"mesh": mesh, "verdict": "refused", "words": f"{BATCH} sequences do not go on {data} data ranks"}
    words = TINY + ["--micro-batch", str(BATCH // data), "--transport", "shm"]
    return mesh_row(context, mesh, alone(context, *TINY), words)


def mesh_bf16(context, mesh, data, attention):
    """Twice the error that one rank has in bf16 against fp32 (sim/SOURCES.md X3); the first step has least of it."""
    own = alone(context, *HEADS64, "--precision", "bf16")
    most = 2 * difference(own, alone(context, *HEADS64, "--precision", "fp32"))[1]
    words = HEADS64 + ["--precision", "bf16", "--attention", attention]
    words += ["--micro-batch", str(BATCH // data), "--transport", "shm"]
    row = mesh_row(context, mesh, own, words, bound=(most, most))
    return row | {"precision": f"bf16, bound {most:.1e}", "attention": attention}


def meshes(context):
    """The batch is the same on every mesh: it and the sequence have room for most sizes of an axis. A call goes on
    where the one before it ended."""
    kept = context.kept.setdefault("meshes", {})
    for name in [name for name, row in kept.items() if row["verdict"] not in ("same", "refused")]:
        del kept[name]
    work = [(f"{case[0]}, bf16, {case[2]}", functools.partial(mesh_bf16, context, *case)) for case in MESHES_BF16]
    for world in (2, 4, 8, 3, 5, 6, 7):
        for mesh, data in shapes.factorizations(world):
            work.append((mesh, functools.partial(mesh_fp32, context, mesh, data)))
    for name, run in work:
        try:
            if name not in kept:
                kept[name] = run()
        except Skip:
            break
        except Failed as reason:  # of the rank alone that it is held against
            kept[name] = {"mesh": name, "verdict": "FAILED", "words": str(reason)}
    unreached = {"verdict": "NOT RUN", "words": "the step's time was used up"}
    return checked([kept.get(name) or {"mesh": name} | unreached for name, run in work])


def nccl(context):
    reference = alone(context, *TINY)
    rows = [
        mesh_row(context, "dp_shard=1", reference, TINY + ["--micro-batch", str(BATCH), "--transport", "nccl"])
        | {"how": "one rank"}
    ]
    shared = {"NDTUNE_NCCL_SHARE_GPU": "1"}
    for mesh, data in (("dp_shard=2", 2), ("tp=2", 1), ("cp=2", 1), ("dp_replicate=2", 2)):
        words = TINY + ["--micro-batch", str(BATCH // data), "--transport", "nccl", "--timeout", "60"]
        rows.append(mesh_row(context, mesh, reference, words, shared) | {"how": "two ranks share the GPU (host id)"})
    return checked(rows)


# Scalar attention, and the one on tensor cores.
SANITIZED = {"fp32": ["--model", "tiny"], "bf16": ["--model", "tinyllama-1.1b"]}


def sanitizer(context):
    """A run by itself goes first, so that none of the others tries algorithms of products: the store has them then."""
    rows = []
    for tool in ("", "memcheck", "racecheck", "initcheck", "synccheck"):
        for precision, model in SANITIZED.items():
            row = {"tool": tool or "none", "precision": precision}
            try:
                words = sanitized(context, tool, ["--precision", precision, *model])
                rows.append(row | {"verdict": "same", "words": words})
            except Skip:
                rows.append(row | {"verdict": "NOT RUN", "words": "the step's time was used up"})
            except Failed as reason:
                rows.append(row | {"verdict": "FAILED", "words": str(reason)})
    return checked(rows)


SANITIZER_S = 60  # of one run: a tool that hangs does not take the others' time
# Kernels of cuBLASLt and cuDNN by parts of their names. What they write by bulk copies initcheck does not see, and says
# so of every element that they read back, for minutes: it leaves them out. The arena is filled before it begins.
LIBRARIES = ("cublas", "nvjet", "cutlass", "xmma", "gemm", "cudnn")


def kernels_named(said):
    """In what a tool said of accesses: the functions, in the order in which they were named first."""
    found = re.findall(r" at (?:void )?((?:[\w:]|\(anonymous namespace\)|<unnamed>)+)[<(+]", said)
    return list(dict.fromkeys(name.split("::")[-1] if not of_library(name) else name for name in found))


def of_library(name):
    return any(part in name.lower() for part in LIBRARIES)


def sanitized(context, tool, words):
    """What the tool says of each process; its exit status alone might be that of one of them."""
    run = [os.path.join(BIN, "ndtune"), "run", "--layers", "1", "--seq", "64", "--steps", "2", "--mesh", "dp_shard=1"]
    run += ["--device", "cuda", "--timeout", "600", "--db", os.path.join(context.state, "sanitizer.db")]
    if not tool:
        ours(context, run + words, most_s=SANITIZER_S)
        return "runs"
    before = ["compute-sanitizer", "--tool", tool, "--target-processes", "all", "--error-exitcode", "9"]
    before += ["--show-backtrace", "no", "--print-limit", "1000"]
    if tool == "initcheck":
        before += [word for part in LIBRARIES for word in ("--kernel-name-exclude", "kns=" + part)]
    try:
        said = ours(context, before + run + words, most_s=SANITIZER_S)
    except Failed as reason:
        return tool_words(tool, reason.output, str(reason))
    return tool_words(tool, said, "")


def tool_words(tool, said, reason):
    """Failed unless every process was looked at and whatever was found is of the libraries' kernels alone."""
    counts = [line.strip("= ") for line in said.splitlines() if "SUMMARY:" in line]
    clean = counts and all(line.split("SUMMARY:")[1].strip().startswith("0 ") for line in counts)
    names = kernels_named(said)
    if clean and not reason:
        return f"{len(counts)} processes, no error"
    if counts and names and all(map(of_library, names)):
        return f"ours: no error; {'; '.join(counts)}: {', '.join(names)}"
    raise Failed("; ".join([*counts, *names]) or reason or f"{tool} says nothing of a process")


# ---------------------------------------------------------------------------------------------- speed


def table_read(text):
    """Rows of the Markdown tables in what a bench printed, and its other lines."""
    rows, names = [], []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.strip() or set(line) <= set("|-: "):
            continue
        if not line.startswith("|"):
            rows.append({"line": line.strip()})
        elif len(cells) != len(names):
            names = cells  # a table begins
        else:
            rows.append(dict(zip(names, cells)))
    return rows


def bench(pattern):
    def run(context):
        programs = sorted(glob.glob(os.path.join(machine.ROOT, "build", "release", "bench", pattern)))
        if not programs:
            raise Skip(f"no program build/release/bench/{pattern}: ninja -C build/release bench makes it")
        rows = []
        for program in programs:
            try:
                rows += table_read(ours(context, [program]))
            except Failed as reason:
                name = os.path.basename(program)
                raise Failed(f"{name}: {reason}", rows + table_read(reason.output))
        return rows

    return run


def steady(run):
    """Seconds of a step of ndtune: behind two to warm up, before the last ones, which it times task by task."""
    return median(run["step_time_s"][2:-3])


def batch(shape):
    return {"seq": shape.seq, "micro-batch": shape.micro_batch, "layers": shape.layers}


def speed_row(shape, step_time_s, words):
    tokens = shape.seq * shape.micro_batch
    mfu = shape.flops_per_token() * tokens / step_time_s / shapes.PEAK_BF16
    return {
        "who": words,
        **batch(shape),
        "step": f"{step_time_s * 1e3:.1f} ms",
        "tokens/s": f"{tokens / step_time_s:.0f}",
        "MFU": f"{100 * mfu:.1f} %",
    }


def layers(measured, modes):
    """Ours with either attention, then PyTorch on the same shape: ratios of one call on one chip."""

    def run(context):
        rows, first = [], None
        for shape in measured:
            ours_s = None
            for attention in ("cudnn", "flash"):
                try:
                    row, step_s = layers_row(context, shape, attention)
                    ours_s = min(ours_s or step_s, step_s)
                    rows.append(row)
                except (Failed, Skip) as reason:
                    first = first or str(reason)
                    rows.append({"who": f"ndtune, attention {attention}"} | batch(shape) | {"step": str(reason)})
            for mode in modes:
                rows.append(torch_row(context, shape, mode, ours_s))
        if first:
            raise Failed(first, rows)
        return rows

    return run


def layers_row(context, shape, attention):
    words = ["--model", "llama-3-8b", "--layers", str(shape.layers), "--seq", str(shape.seq), "--precision", "bf16"]
    words += ["--micro-batch", str(shape.micro_batch)]
    words += ["--mesh", "dp_shard=1", "--device", "cuda", "--attention", attention, "--steps", "10"]
    run = train(context, words)
    step_s = steady(run)
    peak = {"peak GiB": f"{run['peak_bytes'] / 2**30:.1f}", "notes": context.notes}
    return speed_row(shape, step_s, f"ndtune, attention {attention}") | peak, step_s


# What torchrun tells the only rank of a run; torchrun itself would leave that running when it is ended.
ONE_RANK = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29511"}
TORCH_S = 120  # of one run


def torch_run(context, shape, mode):
    """Once for each commit and shape, whoever asks."""
    kept, name = context.kept.setdefault("torch", {}), f"{mode} {shape.micro_batch} x {shape.seq}, {shape.layers} layers"
    if name not in kept:
        words = [sys.executable, os.path.join(HERE, "train_torch.py"), "--mode", mode, *shape.arguments()]
        said = command(context, words, ONE_RANK if mode == "accelerate" else None, most_s=TORCH_S)
        kept[name] = json.loads(said.splitlines()[-1])
    return kept[name]


def torch_row(context, shape, mode, ours):
    lacks = machine.no_package("torch")(context) or machine.no_package("transformers")(context)
    row = {"who": f"PyTorch, {mode}"} | batch(shape)
    if lacks:
        return row | {"step": f"NOT RUN: {lacks}"}
    try:
        run = torch_run(context, shape, mode)
    except (Failed, Skip) as reason:
        return row | {"step": f"NOT RUN: {reason}"}
    step_s = median(run["step_time_s"][2:])
    row = speed_row(shape, step_s, row["who"]) | {"peak GiB": f"{run['allocated_bytes'] / 2**30:.1f}"}
    return row | ({"theirs / ours": f"{step_s / ours:.2f}"} if ours else {})


# ---------------------------------------------------------------------------------------------- predictions


def probe(context):
    path = os.path.join(context.state, "probed.json")
    ours(context, [os.path.join(BIN, "ndtune"), "probe", "--device", "cuda", "--out", path, "--cluster", "dgx-h200"])
    with open(path) as file:
        profile = json.load(file)
    return list(numbers(profile["accelerator"], ""))


def numbers(part, name):
    """Of a profile: each with its value and where it comes from."""
    if isinstance(part, dict) and "value" in part:
        value = part["value"]
        yield {
            "number": name,
            "value": f"{value:.4g}" if isinstance(value, (int, float)) else value,
            "source": part.get("source", "").split(";")[0],
        }
    elif isinstance(part, dict):
        for key, inner in part.items():
            yield from numbers(inner, f"{name}.{key}" if name else key)


def no_file(profile):
    def lacks(context):
        path = os.path.join(context.state, profile + ".json")
        step = {"probed": "probe", "calibrated": "calibrate"}[profile]
        return None if os.path.exists(path) else f"no {profile} profile: step {step} comes first"

    return lacks


def calibrate(context):
    """What the runs of step spans teach, as a new profile."""
    words = ["calibrate", "--cluster", os.path.join(context.state, "probed.json")]
    words += ["--db", os.path.join(context.state, "gpu.db"), "--out", os.path.join(context.state, "calibrated.json")]
    return [{"answer": line} for line in ours(context, [os.path.join(BIN, "ndtune"), *words]).splitlines() if line.strip()]


def spans_row(row, run):
    measured, predicted = steady(run), run["predicted_step_time_s"]
    pairs = [(t["measured_s"], t["predicted_s"]) for t in run["tasks"] if t["measured_s"] > 0.005 * measured]
    errors = [abs(p - m) / m for m, p in pairs]
    return row | {
        "measured": f"{measured * 1e3:.1f} ms",
        "predicted": f"{predicted * 1e3:.1f} ms",
        "error": f"{100 * (predicted / measured - 1):+.1f} %",
        "spans, median error": f"{100 * median(errors):.0f} % of {len(errors)}" if errors else "none",
    }


def spans(profile):
    """Predicted beside measured, of the step and of the tasks that take more than 0.5 % of it."""

    def run(context):
        rows = []
        for model, layers, seq, recompute in shapes.PREDICTED:
            words = ["--model", model, "--layers", str(layers), "--seq", str(seq), "--recompute", recompute]
            words += ["--mesh", "dp_shard=1", "--device", "cuda", "--precision", "bf16", "--steps", "10"]
            row = {"model": model, "layers": layers, "seq": seq, "recompute": recompute}
            try:
                result = train(context, words + ["--cluster", os.path.join(context.state, profile + ".json")])
                rows.append(spans_row(row, result) | {"notes": context.notes})
            except (Failed, Skip) as reason:
                rows.append(row | {"measured": f"NOT RUN: {reason}"})
        if all("NOT RUN" in row["measured"] for row in rows):
            raise Failed(rows[0]["measured"], rows)
        return rows

    return run


# ---------------------------------------------------------------------------------------------- frameworks


def framework(mode, target):
    def run(context):
        rows, found = [], []
        for shape in shapes.MEASURED:
            try:
                result = torch_run(context, shape, mode)
            except (Failed, Skip) as reason:
                rows.append(batch(shape) | {"step": f"NOT RUN: {reason}"})
                continue
            step_s = median(result["step_time_s"][2:])
            row = speed_row(shape, step_s, f"{mode} {machine.package('accelerate')}")
            row |= {
                "allocated GiB": f"{result['allocated_bytes'] / 2**30:.2f}",
                "reserved GiB": f"{result['reserved_bytes'] / 2**30:.2f}",
            }
            rows.append(row)
            found.append(shapes.runs_row(shape, mode, target, step_s, result, machine))
        if not found:
            raise Failed(rows[0]["step"], rows)
        shapes.runs_write(os.path.join(HERE, "runs.csv"), found)
        return rows

    return run


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    what: str
    budget_s: float
    least_s: float
    needs: tuple
    run: object
    always: bool = False  # also where it was done before: its product is not kept between machines


GPU = machine.no_gpu
FRAMEWORK = (GPU, machine.no_package("torch"), machine.no_package("transformers"))
# In the order in which they tell most. Budgets are twice what an H200 took, or nearly.
STEPS = [
    Step("build", "the programs, with CUDA", 600, 10, (GPU,), build, always=True),
    Step("parity", "CUDA against CPU, one rank", 50, 20, (GPU, not_built), parity),
    Step("families", "experts, windows, sinks and latents: CUDA against CPU, one rank and two", 80, 20,
         (GPU, not_built), families),
    Step("layer8b", "one 8B-shaped layer, bf16, beside compiled PyTorch", 110, 20, (GPU, not_built),
         layers([shapes.ONE_LAYER], ["compiled"])),
    Step("attention", "attention kernels against their targets", 50, 20, (GPU, not_built), bench("bench_*attention*")),
    Step("kernels", "kernels against their targets", 60, 20, (GPU, not_built), bench("bench_*cuda*")),
    Step("probe", "ndtune probe --device cuda", 50, 30, (GPU, not_built), probe),
    Step("layers8b", "8B-shaped layers, bf16, beside PyTorch", 280, 60, (GPU, not_built),
         layers(shapes.MEASURED, ["compiled", "eager"])),
    Step("spans", "predicted against measured, span by span", 50, 30, (GPU, not_built, no_file("probed")), spans("probed")),
    Step("calibrate", "ndtune calibrate on these runs", 20, 10, (GPU, not_built, no_file("probed")), calibrate),
    Step("after", "predicted against measured after calibration", 50, 30, (GPU, not_built, no_file("calibrated")),
         spans("calibrated")),
    Step("accelerate", "FSDP2 of accelerate on one GPU", 80, 40, (*FRAMEWORK, machine.no_package("accelerate")),
         framework("accelerate", "accelerate")),
    Step("nccl", "transport nccl: one rank, then two on one GPU", 50, 20, (GPU, not_built), nccl),
    Step("eager", "Hugging Face eager, no sharding", 20, 5, FRAMEWORK, framework("eager", "accelerate")),
    Step("meshes", "every mesh of 2 to 8 ranks on one GPU over shm, against one rank", 220, 30, (GPU, not_built), meshes),
    Step("sanitizer", "compute-sanitizer over two steps", 120, 60,
         (GPU, not_built, machine.no_tool("compute-sanitizer")), sanitizer),
]
