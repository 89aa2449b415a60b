#!/usr/bin/env python3
"""How far predictions tell plans of one group apart, and what the ties of autotune/search/best.c cost: ties.py FILE...

Each FILE is either the rows that `ndtune accuracy --csv FILE` writes or groups of their ids (groups.csv). Of each pair
of plans of a group, counted once: by how much the simpler one is predicted slower, and how often it was measured
faster. Then the regret of what would be named. vTrain's groups of one node are left out: a simulator computed them."""

import csv, itertools, math, re, sys

CUTS, BATCH, PIPELINE = ["pp", "cp", "sp", "tp", "ep", "etp"], ["dp_replicate", "dp_shard"], ["pp", "cp", "sp"]
BINS = [0, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2]


def read(paths):
    rows, groups = {}, []
    for path in paths:
        for row in csv.DictReader(open(path)):
            if row.get("ids"):
                groups.append((row["group"], row["ids"].split()))
            elif row["predicted_step_s"] and row["measured_step_s"]:
                rows[row["id"]] = row
    return rows, groups


class Plan:
    """Of one text and one prediction; repeats count once, with their mean."""

    def __init__(self, row):
        words = dict(word.split("=", 1) for word in re.split("[ ,]", row["plan"]) if "=" in word)
        self.size = {axis: int(words.get(axis, 1)) for axis in CUTS + BATCH}
        self.tokens = math.prod(int(words[key]) for key in ("mb", "ga", "seq"))
        self.tokens *= math.prod(self.size[axis] for axis in BATCH)
        self.predicted = float(row["predicted_step_s"]) / self.tokens
        self.bytes = float(row["reserved_bytes"])
        self.times, self.ids = [], []

    @property
    def measured(self):
        return sum(self.times) / len(self.times)


def plans_of(rows, ids):
    plans = {}
    for row in (rows[key] for key in ids if key in rows):
        plan = plans.setdefault((row["plan"], row["predicted_step_s"][:8]), Plan(row))
        plan.times.append(float(row["measured_step_s"]) / plan.tokens)
        plan.ids.append(row["id"])
    return list(plans.values())


def gone(plan, than):
    """What a simpler plan does without, as best.c has it; None where it is not simpler."""
    if any(plan.size[axis] > than.size[axis] for axis in CUTS):
        return None
    cuts = [axis for axis in CUTS[:4] if plan.size[axis] == 1 < than.size[axis]]
    alike = all(plan.size[axis] == than.size[axis] for axis in CUTS)
    batch = [axis for axis in BATCH if plan.size[axis] == 1 < than.size[axis]]
    more = any(plan.size[axis] > 1 == than.size[axis] for axis in BATCH)
    return cuts or (batch if alike and batch and not more else None)


def width_of(axes):
    return "pp" if set(axes) & set(PIPELINE) else "tp" if "tp" in axes else "same"


def kind_of(plan, than):
    axes = gone(plan, than)
    if axes:
        return "without " + {"pp": "stages or rings", "tp": "tp", "same": "replicas or shards"}[width_of(axes)]
    if all(plan.size[axis] == than.size[axis] for axis in CUTS + BATCH):
        return "the same shape" if plan.bytes < than.bytes else None
    fewer = sum(size > 1 for size in plan.size.values()) < sum(size > 1 for size in than.size.values())
    if fewer and plan.size["tp"] > than.size["tp"]:
        return "fewer axes, but more tp"
    return "a shorter pipeline" if axes is None and 1 < plan.size["pp"] < than.size["pp"] else None


def name(plans, level, simpler):
    top = found = min(plans, key=lambda plan: plan.predicted)
    near = lambda plan, other, share: plan.predicted <= (1 + share) * other.predicted
    if simpler == "fewest axes":
        axes = lambda plan: sum(plan.size[axis] > 1 for axis in CUTS[:4] + BATCH)
        return min((p for p in plans if near(p, top, level["same"])), key=lambda p: (axes(p), p.bytes, p.predicted))
    share = lambda axes: level[width_of(axes)]
    while found:
        last = found
        found = min((p for p in plans if gone(p, last) and near(p, last, share(gone(p, last)))
                     and near(p, top, share(gone(p, top) or []))), key=lambda p: p.predicted, default=None)
    shape = [p for p in plans if all(p.size[axis] == last.size[axis] for axis in CUTS) and not gone(last, p)]
    return min((p for p in shape if near(p, last, level["same"])), key=lambda p: (p.bytes, p.predicted))


def main():
    rows, groups = read(sys.argv[1:])
    pairs, scored, seen = {}, [], set()
    for group, ids in groups:
        plans = [] if group.startswith("vtrain-single") else plans_of(rows, ids)
        scored += [plans] if len(plans) > 1 else []
        for plan, than in itertools.permutations(plans, 2):
            key = (plan.ids[0], than.ids[0])
            kind = kind_of(plan, than)
            if kind and key not in seen:
                seen.add(key)
                source = "nanotron" if group.startswith("nanotron") else "others"
                pairs.setdefault((kind, source), []).append((plan.predicted / than.predicted - 1,
                                                             plan.measured / than.measured - 1))
    for (kind, source), found in sorted(pairs.items()):
        off = sorted(abs(math.log((1 + m) / (1 + p))) for p, m in found if abs(p) < 0.1)
        line = f"{kind}, {source}: ratios within 10 % err by {100 * off[len(off) // 2]:.1f} %;" if off else f"{kind}:"
        for low, high in zip(BINS, BINS[1:]):
            inside = [m for p, m in found if low <= p < high]
            line += f" {100 * low:.0f}-{100 * high:.0f} % {sum(m < 0 for m in inside)} of {len(inside)}"
        print(line)
    widths = lambda pp, tp, same=0.01: {"pp": pp, "tp": tp, "same": same}
    rules = [("the fastest", widths(0, 0, 0), "")]
    rules += [(f"fewest axes within {100 * w:.0f} %", widths(w, w, w), "fewest axes") for w in (0.01, 0.02, 0.03, 0.05)]
    rules += [(f"less of an axis within {100 * w:.0f} %", widths(w, w, w), "") for w in (0.01, 0.02, 0.03, 0.05)]
    rules += [("best.c: 5 % of stages and rings, 2 % of tp, 1 % else", widths(0.05, 0.02), "")]
    for words, level, simpler in rules:
        named = [name(plans, level, simpler) for plans in scored]
        fastest = [min(plans, key=lambda plan: plan.predicted) for plans in scored]
        regret = sorted(n.measured / min(p.measured for p in plans) for n, plans in zip(named, scored))
        better = sum(n.measured < 0.999 * f.measured for n, f in zip(named, fastest))
        worse = sum(n.measured > 1.001 * f.measured for n, f in zip(named, fastest))
        print(f"{words}: {len(scored)} groups, regret mean {sum(regret) / len(regret):.4f}, 90th "
              f"{regret[int(0.9 * len(regret))]:.3f}; better than the fastest {better}, worse {worse}")


main()
