#!/usr/bin/env python3
"""Searches of models with experts beside published runs of the same model: `experts.py path/to/ndtune`.

Prints the table of RESULTS.md, "Searches beside published runs": first each run of moe.csv, with what is predicted of
exactly its shape, then the best shape that a search finds. Tokens per second are of one accelerator.
"""
import csv
import json
import os
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
MODELS = {"DeepSeek-V3": "deepseek-v3", "Qwen3-30B-A3B": "qwen3-30b-a3b"}
SEARCHES = [
    ("qwen3-30b-a3b", "dgx-h100", 64, "torchtitan", "1024", []),
    ("deepseek-v3", "dgx-h100", 1024, "megatron", "1024", []),
    ("deepseek-v3", "dgx-h100", 512, "torchtitan", "1024", ["--dispatcher", "deepep"]),
    ("qwen3-30b-a3b", "dgx-b200", 8, "megatron", "512", ["--precision", "fp8", "--fp8-recipe", "mxfp8"]),
]


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def runs(ndtune):
    with tempfile.TemporaryDirectory() as folder:
        lines = os.path.join(folder, "rows.csv")
        moe = os.path.join(FOLDER, "moe.csv")
        run(ndtune, "accuracy", "--runs", moe, "--csv", lines)
        with open(moe, newline="") as file:
            told = {row["id"]: row for row in csv.DictReader(file)}
        with open(lines, newline="") as file:
            predicted = list(csv.DictReader(file))
    print("| run | chip, ranks | software | precision | published | predicted of that shape |")
    print("|---|---|---|---|---|---|")
    for row in predicted:
        of = told[row["id"]]
        if row["skipped"] or of["model"] not in MODELS:
            continue
        speed = float(of["tokens_per_s_per_gpu"])
        print("| {} | {}, {} | {} | {} | {:.0f} | {:.0f} ({:+.1f} %) |".format(
            row["id"], row["cluster"], row["world"], of["software"], of["precision"].lower(), speed,
            float(row["measured_step_s"]) / float(row["predicted_step_s"]) * speed, 100 * float(row["step_error"])))


def searches(ndtune):
    print("\n| search | best shape | tokens/s and accelerator | step, 80 % interval |")
    print("|---|---|---|---|")
    for model, cluster, world, target, batch, more in SEARCHES:
        found = json.loads(run(ndtune, "plan", "--model", model, "--cluster", cluster, "--world", str(world), "--target",
                               target, "--seq", "4096", "--global-batch", batch, "--format", "json", *more))
        best = found["entries"][0]
        mesh = ",".join(f"{axis}={size}" for axis, size in best["mesh"].items() if size > 1 and axis != "world")
        plan = best["plan"]
        print(f"| {model}, {world} {cluster}, {target} {' '.join(more)} | {mesh}, micro-batch {plan['micro_batch']}, "
              f"recompute {plan['recompute']} | {best['tokens_per_s'] / world:.0f} | {best['step_time_s']:.2f} s, "
              f"{best['step_time_low_s']:.2f} to {best['step_time_high_s']:.2f} |", flush=True)


if __name__ == "__main__":
    runs(sys.argv[1])
    searches(sys.argv[1])
