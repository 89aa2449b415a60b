"""What ndtune reads of a config file, as values that can stand beside those of a framework."""

import json
import subprocess

AXES = ("dp_replicate", "dp_shard", "cp", "sp", "tp", "pp", "ep")


class Answer:
    """One of: values, a refusal in words (of the framework, or ours as it is not modelled), an error."""

    def __init__(self):
        self.values = None
        self.refusal = None
        self.ours = False  # the framework would train it
        self.findings = []

    def refused_words(self):
        return [f["sentence"] for f in self.findings if f["kind"] == "refused"]

    def names(self, *keys):
        """Is one of the keys named in a finding that is no mere assumption?"""
        return any(
            f["kind"] in ("not modelled", "refused", "trap") and f["key"] and any(k in f["key"] for k in keys)
            for f in self.findings
        )


def read(ndtune, path, form, world, folder, store):
    """`--model tiny` stands in for the model of the file, which no value here depends on."""
    line = [ndtune, "explain", "--from", path, "--from-format", form, "--world", str(world), "--model", "tiny"]
    line += ["--effort", "estimate", "--format", "json", "--db", store, "--no-cache"]
    run = subprocess.run(line, capture_output=True, text=True, cwd=folder, timeout=600, check=False)
    answer = Answer()
    try:
        report = json.loads(run.stdout)
    except ValueError:
        errors = [l for l in run.stderr.splitlines() if l.startswith("ndtune: error: ") and "~~" not in l]
        answer.refusal = errors[-1].removeprefix("ndtune: error: ") if errors else run.stderr[-300:]
        return answer
    answer.findings = report["findings"]
    answer.refusal = report["refusal"]
    answer.ours = report["refusal_is_ours"]
    if not report["own"]:
        return answer
    own, plan = report["own"], report["own"]["plan"]
    answer.values = {axis: own["mesh"].get(axis) or 1 for axis in AXES}
    same_names = "seq micro_batch grad_accum zero precision recompute attention fused reshard offload loss_form finetune optimizer"
    for key in same_names.split():
        answer.values[key] = plan[key]
    if plan["finetune"] != "full":
        answer.values |= {key: plan[key] for key in ("lora_rank", "lora_targets")}
    for key in ("pp_schedule", "virtual_stages", "pp_group", "fp8_recipe"):
        answer.values[key] = plan.get(key)
    answer.values["recompute_every"] = plan.get("recompute_every", 0)
    answer.values["fsdp"] = 1 if "version 1" in report["flavour"] else 2 if "version 2" in report["flavour"] else 0
    return answer
