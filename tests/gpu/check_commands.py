"""Gives today's ndtune every kind of command that `measure` has for it, on a machine without a GPU: each must be
understood and end at the GPU that is not there, not at an option, a value or a plan.

    check_commands.py NDTUNE FOLDER
"""

import json
import os
import subprocess
import sys
import time

import steps

PROGRAM = os.path.join(steps.BIN, "ndtune")
CHECKED = ("parity", "families", "meshes", "nccl", "sanitizer", "layer8b", "layers8b", "probe", "spans", "calibrate")
TOLD_APART = ("--model", "--precision", "--attention", "--recompute", "--transport", "--device")

taken = []


def take(context, words, settings=None, most_s=None):
    """In place of running a command: keeps it, and answers as a machine would on which all is well."""
    del settings, most_s
    context.notes = ""
    taken.append(words)
    if "--out" in words:
        with open(words[words.index("--out") + 1], "w") as file:
            json.dump({"accelerator": {"memory_bytes_per_s": {"value": 1, "source": "nobody"}}}, file)
    if words[0] == "compute-sanitizer":
        return "========= ERROR SUMMARY: 0 errors\n"
    ten = [1.0] * 10
    tasks = [{"measured_s": 1.0, "predicted_s": 1.0}]
    answer = {"loss": ten, "step_time_s": ten, "peak_bytes": 1, "predicted_step_time_s": 1.0, "tasks": tasks}
    return json.dumps(answer | {"allocated_bytes": 1, "reserved_bytes": 1})


def commands(folder):
    """A command of each kind: the step, the options, and the values that lead elsewhere."""
    steps.command = take
    kinds = {}
    for step in steps.STEPS:
        if step.name not in CHECKED:
            continue
        context = steps.Context(folder, {})
        context.deadline = time.monotonic() + 1e6
        taken.clear()
        step.run(context)
        for words in taken:
            own = words[words.index(PROGRAM) + 1 :] if PROGRAM in words else []
            values = {name: own[own.index(name) + 1] for name in TOLD_APART if name in own}
            names = [word for word in own if word.startswith("--")]
            if own and values.get("--device", "cuda") == "cuda":
                kinds.setdefault((step.name, tuple(names), tuple(values.items())), own)
    return list(kinds.values())


def built_in(word):
    """In place of a profile that only a GPU can give."""
    return "dgx-h200" if word.endswith((os.sep + "probed.json", os.sep + "calibrated.json")) else word


def is_right(words, done):
    if words[0] == "calibrate":  # there is no GPU in it, only a store without a run of one
        return done.returncode == 1 and "no run" in done.stderr
    return done.returncode == 3


def main():
    program, folder = sys.argv[1:]
    environment = dict(os.environ, XDG_DATA_HOME=folder)
    wrong = 0
    found = commands(folder)
    for words in found:
        asked = [program, *(built_in(word) for word in words)]
        done = subprocess.run(asked, capture_output=True, text=True, cwd=folder, env=environment)
        if not is_right(words, done):
            wrong += 1
            print(f"exit {done.returncode}: {' '.join(asked)}\n{done.stderr}")
    print(f"{len(found)} commands, {wrong} wrong")
    return 1 if wrong or len(found) < 15 else 0


if __name__ == "__main__":
    sys.exit(main())
