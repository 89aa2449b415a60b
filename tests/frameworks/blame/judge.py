#!/usr/bin/env python3
"""Plants faults into real PyTorch jobs and holds what ndtune blame says of their dumps against what was planted.

    judge.py NDTUNE FOLDER SEED...          a case for each seed, as the seed draws it; a line each and a summary
    judge.py NDTUNE FOLDER --sound SEED...  sound jobs, slow in ways that are nobody's fault
    judge.py NDTUNE FOLDER --again          what it says now of every case that lies in the folder

A case is right where the kind, the rank, and the collective (operation, group, number; of a message both ends) are named.
The number may be an earlier or later one of the same run where the skipped collective has neighbours that look exactly
like it. Of a rank of a pipeline that left no dump, what others wait for it in has to hold the message.
FOLDER keeps every case's dumps and what was planted."""

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import job

KINDS = ("missing", "skipped", "mismatch", "order", "size", "slow")
SOUND = ("all", "jitter", "turns", "once", "even")
WORDS = {"allgather": "all-gather", "all_gather": "all-gather", "reduce_scatter": "all-reduce",  # as gloo makes it
         "allreduce": "all-reduce", "all_reduce": "all-reduce", "send": "send", "recv": "receive"}
SHAPES = {"fsdp": [(1, 4, 1), (1, 5, 1)], "tp": [(1, 1, 4)], "both": [(1, 2, 2), (1, 4, 2), (1, 3, 2)],  # pp, dp, tp
          "pipeline": [(4, 1, 1), (5, 1, 1), (2, 2, 1), (4, 2, 1), (2, 3, 1)]}


def shape(rng):
    pp, dp, tp = rng.choice(SHAPES[rng.choice(list(SHAPES))])
    return {"pp": pp, "dp": dp, "tp": tp, "world": pp * dp * tp, "width": rng.choice([32, 64]),
            "layers": rng.randint(1, 2) if pp > 1 else rng.randint(2, 4), "schedule": rng.choice(["gpipe", "1f1b"]),
            "micro_batches": pp * rng.randint(1, 2), "steps": 6, "clip": rng.random() < 0.5, "log": rng.random() < 0.7}


def shape_words(case):
    words = [f"{axis} {case[axis]}" for axis in ("pp", "dp", "tp") if case[axis] > 1]
    return " ".join(words + ([case["schedule"]] if case["pp"] > 1 else []))


def faulty(seed):
    rng = random.Random(f"fault {seed}")
    case = {"name": f"fault-{seed}", "seed": seed, **shape(rng), "kind": KINDS[seed % len(KINDS)]}
    case.update(victim=rng.randrange(case["world"]), how=rng.choice(["sleep", "kill", "stop"]), at=-1)
    if case["kind"] == "slow":
        case.update(slow="one", steps=24, pause=rng.uniform(0.5, 1.5))
    elif case["kind"] != "order" and rng.random() < 0.25:
        case["at"] = rng.randrange(8)  # of the first step, which nothing was before
    return case


def sound(seed):
    rng = random.Random(f"sound {seed}")
    case = {"name": f"sound-{seed}", "seed": seed, **shape(rng), "kind": "sound", "at": -1, "steps": 20,
            "slow": SOUND[seed % len(SOUND)], "pause": rng.uniform(0.3, 1.0)}
    case["victim"] = rng.randrange(case["world"])
    if rng.random() < 0.5:
        case.update(snapshot=rng.randint(5, 15), later_s=rng.random())  # the dumps of a job that goes on
    return case


def verdict_of(ndtune, case, dumps):
    run = subprocess.run([ndtune, "blame", str(dumps), "--world", str(case["world"]), "--format", "json"],
                         capture_output=True, text=True)  # the recorder of gloo does not say how many ranks there are
    if run.returncode not in (0, 2):
        return {"verdict": "error", "sentence": run.stderr.strip(), "ranks": [], "due": None}
    return json.loads(run.stdout)


def is_right(case, planted, verdict):
    if verdict["verdict"] != case["kind"] or verdict["ranks"] != [case["victim"]]:
        return False
    if case["kind"] == "slow":
        return True
    dues = [verdict["due"]]
    if "from" in planted and not verdict["stands"][case["victim"]]["dump"]:
        dues = verdict["awaited_in"]  # of what others wait for it in: what it would have come to first it took with it
    return any(is_place(case, planted, due) for due in dues)


def is_place(case, planted, due):
    words = next(WORDS[w] for w in WORDS if planted["op"].lstrip("_").startswith(w))
    if due["collective"] != words or due["group"] != planted["group"]:
        return False
    if "from" in planted and (due["from"], due["to"]) != (planted["from"], planted["to"]):
        return False
    return due["number"] == planted["number"] or (case["kind"] == "skipped" and alike(due, planted))


def alike(due, planted):
    if "from" in planted:  # all messages between two stages are
        return True
    low, high = sorted((due["number"], planted["number"]))
    return all(planted["alike"].get(str(n)) == planted["alike"].get(str(low)) for n in range(low, high + 1))


def add_neighbours(case, planted, folder):
    """What the group did at each number, as a member that was not tampered with recorded it."""
    planted["alike"] = {}
    for dump in sorted((folder / "dumps").iterdir()):
        if dump.name != f"rank_{case['victim']}":
            import pickle
            for entry in pickle.loads(dump.read_bytes())["entries"]:
                if entry["process_group"][0] == planted["group"] and not entry["is_p2p"]:
                    planted["alike"][str(entry["collective_seq_id"])] = [
                        entry["profiling_name"], entry["input_sizes"], entry["output_sizes"]]


def run_fault(ndtune, root, seed):
    case = faulty(seed)
    folder = root / case["name"]
    shutil.rmtree(folder, ignore_errors=True)
    job.run(case, folder / "run")
    planted_file = folder / "run" / "planted.json"
    planted = json.loads(planted_file.read_text()) if planted_file.exists() else {}
    if case["kind"] != "slow" and not planted:
        return case, {"verdict": "not planted", "sentence": "the job never came there", "ranks": []}, False
    if planted:
        add_neighbours(case, planted, folder / "run")
    (folder / "case.json").write_text(json.dumps({"case": case, "planted": planted}))
    verdict = verdict_of(ndtune, case, folder / "run" / "dumps")
    return case, verdict, is_right(case, planted, verdict)


def run_sound(ndtune, root, seed):
    case = sound(seed)
    folder = root / case["name"]
    shutil.rmtree(folder, ignore_errors=True)
    job.run(case, folder / "run")
    (folder / "case.json").write_text(json.dumps({"case": case, "planted": {}}))
    verdict = verdict_of(ndtune, case, folder / "run" / "dumps")
    return case, verdict, verdict["verdict"] == "healthy"


def run_again(ndtune, root, name):
    stored = json.loads((root / name / "case.json").read_text())
    case = stored["case"]
    verdict = verdict_of(ndtune, case, root / name / "run" / "dumps")
    ok = verdict["verdict"] == "healthy" if case["kind"] == "sound" else is_right(case, stored["planted"], verdict)
    return case, verdict, ok


def main():
    ndtune, root, seeds = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    if seeds == ["--again"]:
        return report(run_again, ndtune, root, sorted(f.parent.name for f in root.glob("*/case.json")))
    runner = run_sound if seeds[0] == "--sound" else run_fault
    return report(runner, ndtune, root, [int(s) for s in seeds if s != "--sound"])


def report(runner, ndtune, root, seeds):
    right = 0
    for seed in seeds:
        case, verdict, ok = runner(ndtune, root, seed)
        right += ok
        print("|", case["name"], "|", shape_words(case), "|", case["kind"], case.get("slow", ""), "|",
              f"rank {case['victim']}", "|", "right" if ok else "WRONG", "|", verdict["verdict"], verdict["ranks"], "|",
              verdict["sentence"].replace("|", "/"), "|", flush=True)
    print(f"{right} of {len(seeds)} right")
    return 0 if right == len(seeds) else 2


if __name__ == "__main__":
    sys.exit(main())
