#!/usr/bin/env python3
"""Changes rows of a real store by SQL and asks ndtune what it makes of them: store_rows.py NDTUNE COUNT [SEED].

Every answer has to come within a minute, with an exit code of ours and at most one error; no signal, no internal error.
Not run by CI. What takes longer is printed with the statement that made it so."""

import collections
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PATIENCE_S = 60
MAKE = (("--world", "8", "--model", "tiny"),
        ("run", "--mesh", "dp_shard=2", "--model", "tiny", "--layers", "1", "--steps", "3"),
        ("preflight", "--mesh", "dp_shard=2"),
        ("tune", "--world", "2", "--model", "tiny", "--layers", "1", "--max-runs", "2", "--steps", "2", "--warm-up", "0"))
ASK = (("runs", "--top", "0", "--format", "json"), ("runs", "1"), ("report", "--html", "/dev/null"),
       ("report", "--run", "1", "--html", "/dev/null"), ("export", "--target", "accelerate"),
       ("tune", "--top", "3", "--max-runs", "2", "--steps", "2", "--warm-up", "0", "--max-time", "20"))
VALUES = (None, 0, -1, 1, 2**63 - 1, -2**63, 1e308, float("inf"), "", "x", "0", "[1,", "[]", "\x1b[31m", "a" * 5000, b"\x00\xff",
          "ndtune --world 999999999 --model 7b", "dp_shard=4096", "2026-13-45T99:99:99Z")


def change(path, rng):
    store = sqlite3.connect(path)
    tables = [name for name, in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    told = []
    for _ in range(rng.randint(1, 3)):
        table = rng.choice(tables)
        column = rng.choice([row[1] for row in store.execute(f"PRAGMA table_info({table})")])
        value = rng.choice(VALUES)
        told.append(f"UPDATE {table} SET {column} = {value!r}"[:200])
        try:
            store.execute(f"UPDATE {table} SET {column} = ?", (value,))
        except sqlite3.Error:
            told[-1] += " (refused)"
    store.commit()
    store.close()
    return "; ".join(told)


def main():
    ndtune, count = sys.argv[1], int(sys.argv[2])
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    codes, bad = collections.Counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        first, changed = Path(folder) / "first.db", Path(folder) / "changed.db"
        for words in MAKE:
            subprocess.run([ndtune, *words, "--db", str(first)], capture_output=True, timeout=300)
        for _ in range(count):
            for old in Path(folder).glob("changed.db*"):
                old.unlink()
            shutil.copy(first, changed)
            told, words = change(changed, rng), rng.choice(ASK)
            begun = time.monotonic()
            try:
                done = subprocess.run([ndtune, *words, "--db", str(changed)], capture_output=True, timeout=PATIENCE_S)
                code = done.returncode
            except subprocess.TimeoutExpired:
                code = "time-out"
            codes[words[0], code] += 1
            if code not in (0, 1, 2, 3):
                bad += 1
                print(f"{words[0]}: {code} after {time.monotonic() - begun:.1f} s: {told}", flush=True)
    print(", ".join(f"{command} {code}: {n}" for (command, code), n in sorted(codes.items(), key=str)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
