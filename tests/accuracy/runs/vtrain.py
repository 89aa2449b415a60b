#!/usr/bin/env python3
"""What vTrain's steps on one node are: `vtrain.py path/to/clone of VIA-Research/vTrain` (read at f8dda84).

Its repository calls them collected with Megatron-DeepSpeed. Compared here with src/predictor.py and trace/a100, which
its simulator adds up: kernels and gaps of a traced step of one layer for each hidden size, tp and micro-batch, layers
times micro-batches, and all-reduces from a table. So they come apart: the last lines are what a layer takes. The file
on several nodes shows nothing of the kind.
"""
import collections
import csv
import itertools
import os
import sys

FOLDER = sys.argv[1]
MEGABYTE = 1 << 20
VOCABULARY, TOKENS = 50257, 1024  # of its model, which pads nothing


def table(ranks):
    with open(os.path.join(FOLDER, "trace/a100", f"AR_GPU{ranks}_1M_1024M_LUT"), newline="") as file:
        rows = list(csv.reader(file))[1:]
    return {int(row[0]) // MEGABYTE: (int(row[-2]), float(row[-1])) for row in rows}


def gradient_bytes(hidden, layers, tp):
    """ParamInfo of __init__, two bytes each."""
    part = hidden // tp
    layer = 4 * hidden + 3 * hidden * part + 3 * part + hidden * part + hidden + 8 * hidden * part + 4 * part + hidden
    return 2 * (2 * (VOCABULARY // tp) * hidden + TOKENS * hidden + layers * layer)


def reduced_ns(size, ranks, tables):
    """compute_comm_time."""
    if ranks == 1:
        return 0
    megabytes = round(size / MEGABYTE)
    if megabytes in tables[ranks]:
        return tables[ranks][megabytes][0]
    return megabytes / (tables[ranks][1024][1] * 1024) * 1e9


def layer_us(steps, tables):
    """A layer's kernels and gaps, both ways, by hidden size, tp and micro-batch: the step less its all-reduces and what
    comes once a step, of 24 layers less that of 12."""
    alone = {}
    for (hidden, tp, micro, pp, layers, dp, count), step_ns in steps.items():
        if pp == 1:
            each_ns = reduced_ns(2 * micro * TOKENS * hidden, tp, tables)
            once_ns = reduced_ns(gradient_bytes(hidden, layers, tp), dp, tables)
            alone[hidden, tp, micro, layers, count] = step_ns - once_ns - 4 * count * layers * each_ns

    def twice(hidden, tp, micro, layers):
        once_ns = 2 * alone[hidden, tp, 1, layers, 2] - alone[hidden, tp, 1, layers, 4]
        return alone[hidden, tp, micro, layers, 2] - once_ns

    return {key: (twice(*key, 24) - twice(*key, 12)) / 2 / 12 / 1e3 for key in sorted({key[:3] for key in alone})}


def main():
    tables = {ranks: table(ranks) for ranks in (2, 4, 8)}
    steps = {}
    with open(os.path.join(FOLDER, "data/ground_truth_single.csv"), newline="", encoding="utf-8-sig") as file:
        for row in list(csv.reader(file))[1:]:
            _, batch, micro, hidden, _, layers, _, tp, dp, pp = map(int, row[:10])
            steps[hidden, tp, micro, pp, layers, dp, batch // micro // dp] = float(row[10]) * 1e6

    sizes, accumulations = collections.defaultdict(dict), collections.defaultdict(dict)
    for (*plan, dp, count), step_ns in steps.items():
        sizes[(*plan, count)][dp] = step_ns
        accumulations[(*plan, dp)][count] = step_ns

    pairs = same = 0
    for (hidden, tp, _, pp, layers, _), of in sizes.items():
        for few, more in itertools.combinations(sorted(of), 2) if pp == 1 else []:
            size = gradient_bytes(hidden, layers, tp)
            pairs += 1
            same += abs(of[more] - of[few] - reduced_ns(size, more, tables) + reduced_ns(size, few, tables)) < 1.5
    print(f"pairs that differ in dp alone: {same} of {pairs} differ by the table of all-reduces, within 1.5 ns")

    triples = straight = 0
    for of in accumulations.values():
        counts = sorted(of)
        for a, b, c in zip(counts, counts[1:], counts[2:]):
            triples += 1
            straight += abs((of[b] - of[a]) / (b - a) - (of[c] - of[b]) / (c - b)) < 1
    print(f"triples that differ in micro-batches alone: {straight} of {triples} lie on a line, within 1 ns")

    layer = layer_us(steps, tables)
    print("a layer of 1, 2, 4 and 8 sequences, us; of one more, and the gaps that are left of each:")
    for hidden, tp in sorted({key[:2] for key in layer}):
        of = {micro: layer[hidden, tp, micro] for micro in (1, 2, 4, 8)}
        more = (of[8] - of[4]) / 4
        gaps = ", ".join(f"{us - micro * more:.0f}" for micro, us in of.items())
        print(f"hidden {hidden}, tp {tp}: {', '.join(f'{us:.0f}' for us in of.values())}; {more:.0f}; {gaps}")


main()
