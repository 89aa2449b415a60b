#!/usr/bin/env bash
# Checks each of $FILES with the options $ARGUMENTS; fails where one of them fails, after all were checked. NDTUNE: the
# program; without it the one of this checkout, built.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
if [ -n "${NDTUNE:-}" ]; then
    ndtune=("$NDTUNE")
else
    ndtune=(bash "$root/.ci/ndtune")
fi

failed=0
for file in $FILES; do  # unquoted: its words and wildcards are meant
    "${ndtune[@]}" check "$file" --format github $ARGUMENTS || failed=1
done
exit $failed
