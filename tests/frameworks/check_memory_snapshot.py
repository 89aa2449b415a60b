"""Memory snapshots of `ndtune predict --memory-snapshot`, read by PyTorch's own tools (torch.cuda._memory_viz).

    /tmp/traces/bin/python check_memory_snapshot.py [--ndtune PATH]

Writes memory_snapshots.json: per plan what each tool answered, and the peak of its live bytes beside the predicted one.
The viewer's page reads the pickle in JavaScript; its opcodes (MemoryViz.js of PyTorch) are all that may occur.
"""

import argparse
import json
import pathlib
import pickle
import pickletools
import subprocess
import sys
import tempfile

import torch
import torch.cuda._memory_viz as viz

HERE = pathlib.Path(__file__).resolve().parent
VIEWER = {"PROTO", "STOP", "MARK", "EMPTY_DICT", "EMPTY_LIST", "SETITEMS", "APPENDS", "BININT", "BININT1", "BININT2",
          "LONG1", "BINUNICODE", "BINPUT", "BINGET"}
PLANS = [
    ["--mesh", "dp_shard=8", "--model", "llama-3-8b", "--micro-batch", "2", "--grad-accum", "4"],
    ["--mesh", "dp_shard=4,cp=2,tp=2", "--model", "llama-3-8b", "--target", "torchtitan", "--recompute", "full"],
    ["--mesh", "dp_shard=16,tp=4", "--model", "70b", "--recompute", "full", "--grad-accum", "16"],
    ["--mesh", "dp_replicate=2,tp=4", "--model", "7b", "--target", "megatron"],
]


def peak_of(trace):
    live = peak = 0
    for event in trace:
        live += event["size"] if event["action"] == "alloc" else 0
        live -= event["size"] if event["action"] == "free_completed" else 0
        peak = max(peak, live)
    return peak


def check(ndtune, words, folder):
    file = pathlib.Path(folder) / "snapshot.pickle"
    answer = subprocess.run([ndtune, "predict", *words, "--memory-snapshot", file, "--format", "json", "--db",
                             pathlib.Path(folder) / "db"], capture_output=True, text=True)
    if answer.returncode not in (0, 2):  # 2: it does not fit, and is described all the same
        sys.exit(answer.stderr)
    raw = file.read_bytes()
    opcodes = {opcode.name for opcode, _, _ in pickletools.genops(raw)}
    assert opcodes <= VIEWER, opcodes - VIEWER
    data = pickle.loads(raw)
    trace = data["device_traces"][0]
    page = pathlib.Path(folder) / "page.html"
    plot = subprocess.run([sys.executable, "-m", "torch.cuda._memory_viz", "trace_plot", file, "-o", page],
                          capture_output=True, text=True)
    predicted = json.loads(answer.stdout)["memory"]["peak_bytes"]
    assert plot.returncode == 0, plot.stderr
    assert peak_of(trace) == predicted, (peak_of(trace), predicted)
    return {"plan": " ".join(words), "bytes": len(raw), "events": len(trace), "peak_bytes": predicted,
            "peak_of_snapshot_bytes": peak_of(trace),
            "trace_plot": f"a page of {page.stat().st_size} bytes",
            "trace": viz.trace(data).splitlines()[1], "segsum": viz.segsum(data).splitlines()[0]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ndtune", default=HERE.parents[1] / "build/release/bin/ndtune")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [check(arguments.ndtune, words, folder) for words in PLANS]
    text = json.dumps({"torch": torch.__version__, "opcodes": sorted(VIEWER), "snapshots": rows}, indent=1)
    (HERE / "memory_snapshots.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
