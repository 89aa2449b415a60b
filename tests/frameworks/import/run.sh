#!/usr/bin/env bash
# run.sh NDTUNE: read_examples.py over the folders of $NDTUNE_EXAMPLES ("axolotl FOLDER accelerate FOLDER ..."), by the
# interpreter $NDTUNE_EXAMPLES_PYTHON, which has the packages.
set -eu
here=$(dirname "$0")
if [ -z "${NDTUNE_EXAMPLES:-}" ]; then
    echo "skipped: NDTUNE_EXAMPLES names no checkout of a framework"
    exit 77
fi
read -ra folders <<< "$NDTUNE_EXAMPLES"
exec "${NDTUNE_EXAMPLES_PYTHON:-python3}" "$here/read_examples.py" --ndtune "$1" "${folders[@]}"
