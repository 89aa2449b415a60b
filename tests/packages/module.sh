#!/usr/bin/env bash
# The tests of the Python module over a built program, where there is a Python: module.sh NDTUNE. Exit 77 is a skip.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: no python3 (package python3)"; exit 77; }
cd "$(dirname "$0")"
export NDTUNE=$1 PYTHONPATH=$PWD/../../autotune/python PYTHONDONTWRITEBYTECODE=1
python3 -m unittest -v test_module 2>&1 | sed -E 's/^(test_\w+) .*\.\.\. ok$/[PASS] \1/; s/^(test_\w+) .*\.\.\. skipped/[SKIP] \1/; s/^(FAIL|ERROR): /[FAIL] /'
