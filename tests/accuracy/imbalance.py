#!/usr/bin/env python3
"""How much of a step the busiest rank's tokens explain: runs of one mesh whose seeds route differently, measured
imbalance beside what --imbalance predicts with none and with the measured one.

    python imbalance.py [--build DIR] [--mesh MESH] [--seeds N] [--steps N] [--cluster PROFILE]

Wants idle cores, one for each rank: then a rank that has fewer tokens waits for the busiest, in the collectives. Without
--cluster the machine is probed with as many ranks first. The last lines are the slopes over all seeds, of measured and
predicted seconds by per cent of imbalance (least squares through the seeds' mean), and what is left of the spread of
measured steps when the predicted difference is taken off.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

arguments = argparse.ArgumentParser()
arguments.add_argument("--build", default="build/release")
arguments.add_argument("--mesh", default="dp_shard=4,ep=4")
arguments.add_argument("--model", default="tiny-moe")
arguments.add_argument("--seeds", type=int, default=8)
arguments.add_argument("--steps", type=int, default=16)
arguments.add_argument("--cluster")
given = arguments.parse_args()

sizes = dict(pair.split("=") for pair in given.mesh.split(","))
world = 1
for axis, size in sizes.items():
    world *= 1 if axis == "ep" else int(size)  # which lends ranks and adds none
shape = ["--model", given.model, "--mesh", given.mesh, "--capacity", str(100 * int(sizes["ep"])), "--seq", "128"]


def ndtune(*words):
    done = subprocess.run([os.path.join(given.build, "bin", "ndtune"), *words], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return done.stdout


with tempfile.TemporaryDirectory() as folder:
    os.environ["XDG_DATA_HOME"] = folder  # a store of its own
    cluster = given.cluster or os.path.join(folder, "probed.json")
    if not given.cluster:
        ndtune("probe", "--world", str(world), "--out", cluster)

    def predicted_s(imbalance):
        text = ndtune("predict", *shape, "--target", "ndtune", "--precision", "fp32", "--cluster", cluster,
                      "--imbalance", str(imbalance), "--format", "json")
        return json.loads(text)["step_time_s"]

    even, rows = predicted_s(0), []
    print("seed  busiest over mean  most in a layer  measured   predicted with 0  with the measured")
    for seed in range(1, given.seeds + 1):
        run = json.loads(ndtune("run", *shape, "--seed", str(seed), "--steps", str(given.steps), "--cluster", cluster,
                                "--format", "json"))
        load, step = run["expert_load"], statistics.median(run["step_time_s"][1:])
        rows.append((load["over"], step, predicted_s(round(load["over"]))))
        print("%4d  %15.0f %%  %13.0f %%  %6.2f ms  %13.2f ms  %14.2f ms"
              % (seed, load["over"], load["most"], step * 1e3, even * 1e3, rows[-1][2] * 1e3), flush=True)

over, measured, predicted = zip(*rows)


def slope(values):
    mean_x, mean_y = statistics.mean(over), statistics.mean(values)
    square = sum((x - mean_x) ** 2 for x in over)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(over, values)) / square if square else 0.0


print("slope: measured %.3f, predicted %.3f ms for one per cent" % (slope(measured) * 1e3, slope(predicted) * 1e3))
left = [m - (p - even) for m, p in zip(measured, predicted)]
print("spread of measured steps: %.2f ms, without the predicted difference %.2f ms"
      % (statistics.pstdev(measured) * 1e3, statistics.pstdev(left) * 1e3))
