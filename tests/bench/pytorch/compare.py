#!/usr/bin/env python3
"""ndtune run beside PyTorch on processors: the same model, mesh, batch and clipping, in turn on this machine.

    python compare.py [--ndtune PROGRAM] [--rounds 3] [--only NAME;...] [--bf16 PROFILE] > RESULTS.md     (venv: torch)

CPU seconds are of all ranks and threads, per step: PyTorch's are taken inside of its ranks after the warm-up, ndtune's
are the difference between a long run and a short one. Wall is the median step. Memory is the largest resident set of a
rank. Of every program and case the median over the rounds counts, and a ratio is the median of the rounds' ratios: what
else the machine does meets both alike.
"""

import argparse
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODEL = {"hidden": 512, "ffn": 1408, "layers": 8, "heads": 8, "vocab": 4096, "seq": 512}
AXES = ("pp", "dp_shard", "cp", "tp")
CASES = [  # name, axes above 1, threads of a rank, micro-steps
    ("one rank, one thread", {}, 1, 1),
    ("one rank, two threads", {}, 2, 1),
    ("dp_shard=2", {"dp_shard": 2}, 1, 1),
    ("dp_shard=4 on two cores", {"dp_shard": 4}, 1, 1),
    ("tp=2", {"tp": 2}, 1, 1),
    ("cp=2", {"cp": 2}, 1, 1),
    ("cp=2, PyTorch's by hand", {"cp": 2}, 1, 1),
    ("pp=2, four micro-steps", {"pp": 2}, 1, 4),
]
WARM_UP = 2  # steps
LIMIT_S = 600  # of one run
BF16 = None  # a profile by ndtune probe on this machine: both in bf16, PyTorch by autocast
# A program's largest resident set counts this one's at its start: nothing large is imported here.


def run(words, environment, cores):
    """Output, and of the program with all that it started: CPU seconds, largest resident set in MiB."""
    words = ["taskset", "-c", ",".join(map(str, cores))] + [str(word) for word in words]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(["timeout", str(LIMIT_S)] + words, env=os.environ | environment, stdout=out, stderr=err)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        output, errors = out.read().decode(), err.read().decode(errors="replace")
    if child.returncode != 0:
        lines = [line for line in errors.splitlines() if "Error" in line or "ERROR" in line or "error:" in line]
        said = [line for line in lines if "ChildFailed" not in line and "failed (exitcode" not in line]
        raise RuntimeError((said or lines or errors.splitlines() or ["no words"])[-1].split("]: ")[-1].strip()[:160])
    return output, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def by_pytorch(steps, axes, threads, micro_steps, by_hand, cores):
    case = MODEL | {axis: axes.get(axis, 1) for axis in AXES} | {
        "threads": threads, "grad_accum": micro_steps, "micro_batch": 1, "steps": steps, "warm_up": WARM_UP,
        "by_hand": by_hand, "bf16": BF16 is not None}
    world = 1
    for size in axes.values():
        world *= size
    environment = {"CASE": json.dumps(case), "OMP_NUM_THREADS": str(threads)}
    output, _, resident = run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", world,
                               HERE / "train.py"], environment, cores)
    said = json.loads(output.splitlines()[-1])
    return {"cpu_s": statistics.mean(said["cpu_s"]), "wall_s": statistics.median(said["wall_s"]), "mib": resident}


def by_ndtune(program, folder, total, axes, micro_steps, cores):
    (folder / "config.json").write_text(json.dumps({
        "model_type": "llama", "hidden_size": MODEL["hidden"], "intermediate_size": MODEL["ffn"],
        "num_hidden_layers": MODEL["layers"], "num_attention_heads": MODEL["heads"],
        "num_key_value_heads": MODEL["heads"], "vocab_size": MODEL["vocab"], "rms_norm_eps": 1e-5,
        "max_position_embeddings": 4096, "hidden_act": "silu", "tie_word_embeddings": False}))
    mesh = ",".join(f"{axis}={size}" for axis, size in axes.items()) or "dp_shard=1"
    cpu, said = [], None
    for steps in (WARM_UP, total):
        output, seconds, resident = run(
            [program, "run", "--mesh", mesh, "--model", folder / "config.json", "--seq", MODEL["seq"], "--grad-accum",
             micro_steps, "--steps", steps, "--format", "json", "--db", folder / "runs.db"]
            + (["--precision", "bf16", "--cluster", BF16] if BF16 else []), {}, cores)
        cpu.append(seconds)
        said = json.loads(output)
    return {"cpu_s": (cpu[1] - cpu[0]) / (total - WARM_UP), "mib": resident,
            "wall_s": statistics.median(said["step_time_s"][WARM_UP:]), "core": said.get("core_type")}


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(": ", 1)[1]
    return "unknown processor"


def attempt(make, *words):
    try:
        return make(*words), None
    except RuntimeError as error:
        return None, str(error)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--ndtune", default=HERE.parents[2] / "build/release/bin/ndtune", type=Path)
    options.add_argument("--rounds", default=3, type=int)
    options.add_argument("--steps", default=8, type=int, help=f"of which {WARM_UP} to warm up")
    options.add_argument("--only", help="parts of the names of cases, separated by semicolons")
    options.add_argument("--bf16", metavar="PROFILE", help="in bf16; a profile that has its rate, by ndtune probe")
    options = options.parse_args()
    global BF16
    BF16 = options.bf16 and Path(options.bf16).resolve()
    os.environ.pop("OPENBLAS_CORETYPE", None)
    cores = sorted(os.sched_getaffinity(0))[:2]
    rows, reasons, core = {}, {}, None
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(options.rounds):
            for name, axes, threads, micro_steps in CASES:
                wanted = not options.only or any(word in name for word in options.only.split(";"))
                if not wanted or (name in reasons and name not in rows):
                    continue
                used = cores[:1] if not axes and threads == 1 else cores
                theirs, their_reason = attempt(by_pytorch, options.steps, axes, threads, micro_steps, "by hand" in name,
                                               used)
                ours, our_reason = attempt(by_ndtune, options.ndtune.resolve(), Path(folder), options.steps, axes,
                                           micro_steps, used)
                print(turn + 1, name, theirs or their_reason, ours or our_reason, file=sys.stderr)
                if theirs and ours:
                    core = ours["core"] or core
                    rows.setdefault(name, []).append((theirs, ours))
                else:
                    reasons[name] = "; ".join(filter(None, (their_reason and f"PyTorch: {their_reason}",
                                                            our_reason and f"ndtune: {our_reason}")))
    version = subprocess.run([options.ndtune, "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    print(f"{processor()}, cores {', '.join(map(str, cores))}; PyTorch {importlib.metadata.version('torch')} with gloo; {version}"
          f"{', both in bf16' if BF16 else ''}"
          f"{f', OpenBLAS kernels for {core}' if core else ''}; {options.rounds} "
          f"rounds of {options.steps} steps in turn, load {os.getloadavg()[0]:.1f}\n")
    print("| case | CPU s per step: PyTorch, ndtune | ndtune / PyTorch (rounds) | wall s per step: PyTorch, ndtune | "
          "ndtune / PyTorch | MiB of a rank: PyTorch, ndtune | ndtune / PyTorch |")
    print("|---|---|---|---|---|---|---|")
    for name, pairs in rows.items():
        cells = []
        for key, digits in (("cpu_s", 3), ("wall_s", 3), ("mib", 0)):
            ratios = sorted(ours[key] / theirs[key] for theirs, ours in pairs)
            both = ", ".join(f"{statistics.median(pair[i][key] for pair in pairs):.{digits}f}" for i in (0, 1))
            spread = f" ({ratios[0]:.2f}..{ratios[-1]:.2f})" if key == "cpu_s" else ""
            cells += [both, f"{statistics.median(ratios):.2f}{spread}"]
        print(f"| {name}{', ' + str(len(pairs)) + ' rounds' if name in reasons else ''} | {' | '.join(cells)} |")
    for name, reason in reasons.items():
        print(f"\n{name}: {'a round failed' if name in rows else 'not compared'}. {reason}")


if __name__ == "__main__":
    main()
