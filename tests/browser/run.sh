#!/usr/bin/env bash
# The checks of the page, where there is a Python to run them: run.sh NDTUNE [long]. Exit 77 is a skip, with its reason.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: no python3 to drive a browser with (package python3)"; exit 77; }
cd "$(dirname "$0")"
PYTHONDONTWRITEBYTECODE=1 exec python3 check_page.py "$@"
