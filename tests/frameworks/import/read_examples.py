#!/usr/bin/env python3
"""Reads every example config that a framework ships, by the framework's own code and by ndtune, and compares what both
read value by value.

    read_examples.py --ndtune build/release/bin/ndtune FRAMEWORK FOLDER [FRAMEWORK FOLDER ...]

FOLDER is a checkout of the framework (axolotl: with examples/; torchtitan: v0.2.2; megatron: with tests/). The framework's package has to be
importable (requirements.txt). Exit code 1 where less than --goal of the files are read the same or refused by both.

  same       ndtune holds the values that the framework's code holds, and names what it does not hold
  refused    the framework does not start with it, and ndtune says so
  not ours   the framework trains it, no plan holds it (adapters, experts, ...), and ndtune says so in words
  differs    anything else, printed with the reason
"""

import argparse
import importlib
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ours  # noqa: E402

# Of these a plan holds some values only; where it holds another one the key has to be named.
LOOSE = {"lora_targets": ("target_modules", "target_linear"), "optimizer": ("optimizer",)}
KINDS = ("same", "refused", "not ours", "differs")


def judge(framework, path, options, store):
    world = framework.world_of(path, options.world) if hasattr(framework, "world_of") else options.world
    answer = ours.read(options.ndtune, path, framework.FORMAT, world, options.root, store)
    try:
        values, named, other = framework.read(path, world, options.root)
    except framework.Refused as why:
        if answer.refused_words() or (answer.refusal and not answer.ours):
            return "refused", str(why)
        return ("not ours", answer.refusal) if answer.ours else ("differs", f"the framework refuses it: {why}")
    except RuntimeError as why:
        return "differs", f"not compared: {why}"
    if other and answer.values is None and answer.refusal:
        return "not ours", answer.refusal
    if values is None:
        return "differs", f"read, and it has {', '.join(map(str, other))}"
    if answer.values is None:
        return "differs", f"not read: {answer.refusal}"
    ours_of = answer.values.get
    wrong = [
        f"{key} is {want}, read as {ours_of(key)}"
        for key, want in values.items()
        if ours_of(key) != want and not (key in LOOSE and answer.names(*LOOSE[key]))
    ]
    wrong += [f"{' or '.join(keys)} is not named" for keys in named if not answer.names(*keys)]
    wrong += [f"refused: {words}" for words in answer.refused_words()]
    return ("differs", "; ".join(wrong)) if wrong else ("same", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ndtune", required=True)
    parser.add_argument("--world", type=int, default=8)
    parser.add_argument("--goal", type=float, default=0.95)
    parser.add_argument("--verbose", action="store_true", help="every file, not only those that differ")
    parser.add_argument("what", nargs="+", metavar="FRAMEWORK FOLDER")
    options = parser.parse_args()
    options.ndtune = os.path.abspath(options.ndtune)
    rows, good = [], True
    for name, folder in zip(options.what[::2], [os.path.abspath(folder) for folder in options.what[1::2]]):
        framework = importlib.import_module(f"of_{name}")
        options.root = folder
        counts = dict.fromkeys(KINDS, 0)
        with tempfile.TemporaryDirectory() as folder_of_store:
            for path in framework.files(folder):
                kind, why = judge(framework, path, options, f"{folder_of_store}/db")
                counts[kind] += 1
                if options.verbose or kind == "differs":
                    print(f"{name} {os.path.relpath(path, folder)}: {kind}: {why}", flush=True)
        files = sum(counts.values())
        good &= counts["differs"] <= (1 - options.goal) * files
        rows.append(f"| {framework.version()} | {files} | " + " | ".join(str(counts[kind]) for kind in KINDS) + " |")
    print("\n| package | files | " + " | ".join(KINDS) + " |\n|---|---|" + "---|" * len(KINDS))
    print("\n".join(rows))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
