#!/usr/bin/env python3
"""Prints the figures under "What stands today" in RESULTS.md anew: today.py path/to/ndtune

Rows of both tables stay; what is scored, first scores and one MFU, which a model does not move, are left as they are."""
import csv
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).parent


def scored(ndtune, name):
    with tempfile.NamedTemporaryFile() as rows:
        subprocess.run([ndtune, "accuracy", "--effort", "estimate", "--runs", f"{name}.csv", "--csv", rows.name],
                       cwd=FOLDER, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(rows.name, encoding="utf-8") as table:
            return [row for row in csv.DictReader(table) if row["step_error"]]


def percentile(values, share):
    values = sorted(values)
    at = (len(values) - 1) * share
    low = int(at)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (at - low)


def figures(rows):
    ratios = [1 + float(row["step_error"]) for row in rows]
    errors = [100 * (ratio - 1) for ratio in ratios]
    sizes = [abs(error) for error in errors]
    inside = [float(row["step_low_s"]) <= float(row["measured_step_s"]) <= float(row["step_high_s"]) for row in rows]
    level = statistics.median(ratios)
    return {"both": f"{statistics.median(sizes):.1f} / {percentile(sizes, .9):.1f}",
            "bias": f"{statistics.median(errors):+.1f}", "inside": f"{100 * sum(inside) / len(rows):.1f}",
            "scaled": f"{statistics.median(abs(100 * (ratio / level - 1)) for ratio in ratios):.1f}"}


def of_file(cells, rows):
    now = figures(rows)
    return cells[:3] + [now["both"], now["bias"], now["inside"], cells[6], now["scaled"]]


def of_source(cells, rows):
    own = [row for row in rows if row["source"].startswith(cells[1])]
    if len(own) != int(cells[2]):
        sys.exit(f"{cells[0]}, {cells[1]}: {len(own)} rows are scored, the table has {cells[2]}")
    now = figures(own)
    return cells[:3] + [f"{now['both']}, {now['bias']}", cells[4], now["scaled"]]


def main():
    ndtune = str(pathlib.Path(sys.argv[1]).resolve())
    results = FOLDER / "RESULTS.md"
    lines = results.read_text(encoding="utf-8").split("\n")
    rows, inside = {}, False
    for place, line in enumerate(lines):
        inside = line.startswith("## What stands today") or (inside and not line.startswith("## "))
        cells = [cell.strip() for cell in line.split("|")][1:-1]
        one_file = inside and len(cells) == 8 and re.fullmatch(r"`\w+`", cells[0])
        one_source = inside and len(cells) == 6 and re.match(r"\d+\.\d / \d+\.\d, [-+]", cells[3])
        if one_file or one_source:
            name = cells[0].strip("`")
            rows[name] = rows.get(name) or scored(ndtune, name)
            lines[place] = "| " + " | ".join((of_file if one_file else of_source)(cells, rows[name])) + " |"
    results.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
