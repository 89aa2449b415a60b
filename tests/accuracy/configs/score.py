#!/usr/bin/env python3
"""Asks ndtune check about every published config of configs.csv and prints what it says and what happened.

    score.py --ndtune build/release/bin/ndtune [--out answers.csv] [ID ...]
"""
import argparse
import concurrent.futures
import csv
import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS = {"fits": "fits", "oom": "runs out of memory", "none": "no answer"}


def ask(ndtune, row):
    """What check says: does it fit, how much it needs, how fast it is; a refusal is no answer."""
    command = [ndtune, "check", row["file"], *row["options"].split(), "--format", "json"]
    run = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    answer = {"id": row["id"], "says": "none", "needs_gib": "", "of_gib": "", "tokens_per_s": "", "why": ""}
    if not run.stdout:
        answer["why"] = " ".join(run.stderr.split())
        return answer
    told = json.loads(run.stdout)
    own = told.get("own") or {}
    memory = own.get("memory") or {}
    answer["why"] = told["verdict"]
    if told["runs"]:
        answer["says"] = "fits" if told["fits"] else "oom"
        answer["needs_gib"] = f"{memory['reserved_bytes'] / 2**30:.1f}" if memory else ""
        answer["of_gib"] = f"{told['request']['memory_limit_bytes'] / 2**30:.1f}"
        answer["tokens_per_s"] = f"{own['tokens_per_s']:.0f}" if own.get("tokens_per_s") else ""
    return answer


def print_row(row, answer):
    right = row["outcome"] == answer["says"]
    needs = f"{answer['needs_gib']} of {answer['of_gib']}" if answer["needs_gib"] else ""
    print(f"{'ok ' if right else 'NOT'}  {row['id']:44s} {WORDS[row['outcome']]:18s} {WORDS[answer['says']]:18s} "
          f"{needs:16s} {row['memory_gib']:>6s}  {answer['tokens_per_s']:>8s} {row['tokens_per_s']:>8s}"
          + ("" if answer["says"] != "none" else "  " + answer["why"][:160]))
    return right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ndtune", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", help="the answers, as CSV")
    parser.add_argument("ids", nargs="*")
    options = parser.parse_args()
    with open(os.path.join(HERE, "configs.csv"), encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if not options.ids or row["id"] in options.ids]
    ndtune = os.path.abspath(options.ndtune)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        answers = list(pool.map(lambda row: ask(ndtune, row), rows))
    print("     id                                           known              says               needs GiB        "
          "of it    tokens/s    known")
    right = sum(print_row(row, answer) for row, answer in zip(rows, answers))
    for outcome in ("fits", "oom"):
        of = [(row, answer) for row, answer in zip(rows, answers) if row["outcome"] == outcome]
        print(f"{WORDS[outcome]}: {sum(answer['says'] == outcome for _, answer in of)} of {len(of)} right")
    print(f"{right} of {len(rows)} right: {100 * right / max(1, len(rows)):.1f} %")
    if options.out:
        with open(options.out, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(answers[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(answers)


if __name__ == "__main__":
    main()
