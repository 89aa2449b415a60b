#!/usr/bin/env bash
# Where the instructions of a search that nobody made before go: six searches, each in an empty store under callgrind.
# Instructions of the whole process, all threads; they repeat to about a part in a thousand, a clock does not.
#
#   tests/bench/autotune/search_parts.sh NDTUNE     (cmake --build build/release --target bench-search)
set -euo pipefail
ndtune=${1:?path of ndtune}
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

searches=(
    "--world 32 --model 7b"
    "--world 64 --model llama-3-70b --seq 8192 --target torchtitan"
    "--world 8 --model 7b --target ndtune"
    "--world 16 --model llama-3-8b --seq 8192 --target axolotl"
    "--world 32 --model 7b --set rank.3.slowdown=1.2"
    "--world 256 --model 70b"
)

echo "| search | part | calls | G |"
echo "|---|---|---|---|"
for search in "${searches[@]}"; do
    # shellcheck disable=SC2086 # words of a command line
    XDG_DATA_HOME=$(mktemp -d -p "$folder") valgrind --quiet --tool=callgrind \
        --callgrind-out-file="$folder/profile" "$ndtune" $search >"$folder/answer" 2>&1 ||
        { cat "$folder/answer"; exit 1; }
    awk -v search="$search" -f "$here/search_parts.awk" "$folder/profile"
done
