#!/usr/bin/env bash
# `pip install` as people do it: wheel.sh [FOLDER]. Builds the wheel and the source distribution of this tree, installs
# each into a fresh environment without the tree in sight, runs there the module's tests, the session of its README, the
# program and its manual page, and uninstalls. Needs the Python index, for build and scikit-build-core alone. FOLDER keeps
# both files, and those that lie there are tried as they are. PYTHON names the Python, of 3.9 or later. Exit 77 is a skip.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
skip() { echo "skipped: $*"; exit 77; }
die() { echo "[FAIL] $*"; exit 1; }
passed() { echo "[PASS] $*"; }

python=${PYTHON:-python3}
command -v "$python" >/dev/null || skip "no $python (package python3)"
work=$(mktemp -d /tmp/ndtune-wheel-XXXXXX)
trap 'rm -rf "$work"' EXIT
"$python" -m venv "$work/build" 2>"$work/log" || skip "no venv (package python3-venv)"
"$work/build/bin/pip" -q install build >"$work/log" 2>&1 || skip "the Python index cannot be reached"

dist=${1:-$work/dist}
for kind in sdist wheel; do
    [ $kind = sdist ] && suffix=tar.gz || suffix=whl
    ! compgen -G "$dist/*.$suffix" >/dev/null || continue
    "$work/build/bin/python" -m build --$kind --outdir "$dist" autotune/python >"$work/log" 2>&1 ||
        { tail -n 30 "$work/log"; die "the $kind cannot be built"; }
done
[ ! -e autotune/python/tree ] || die "the build leaves autotune/python/tree behind"
wheel=$(echo "$dist"/*.whl) sdist=$(echo "$dist"/*.tar.gz)
ls -l "$dist"
passed "a source distribution and a wheel"
! "$python" -m zipfile -l "$wheel" | grep -E '\.so|\.libs/|/tree/' || die "the wheel holds a library or a source"
passed "the wheel holds no library"

unset NDTUNE PYTHONPATH
export XDG_DATA_HOME=$work/data PYTHONDONTWRITEBYTECODE=1
try() { # what is installed, its name
    "$python" -m venv "$work/$2"
    "$work/$2/bin/pip" -q install "$1" >"$work/log" 2>&1 || { tail -n 30 "$work/log"; die "pip install of the $2 fails"; }
    mkdir -p "$work/elsewhere/tests/packages" "$work/elsewhere/tests/golden"
    cp "$root/tests/packages/test_module.py" "$work/elsewhere/tests/packages"
    cp -r "$root/tests/golden/import" "$work/elsewhere/tests/golden"
    cp "$root/autotune/python/README.md" "$work/elsewhere"
    cd "$work/elsewhere"
    PATH=$work/$2/bin:/usr/bin:/bin
    python -m unittest tests/packages/test_module.py 2>&1 | tee "$work/log" | tail -n 4
    grep -q '^OK' "$work/log" || die "the module's tests, of the $2"
    passed "the module's tests, of the $2"
    python -m doctest -o ELLIPSIS -o IGNORE_EXCEPTION_DETAIL README.md || die "the session of the README, of the $2"
    passed "the session of the README, of the $2"
    ndtune --world 32 --model 7b 2>/dev/null | sed -n 1,6p
    ndtune run --mesh dp_shard=2 --model tiny --steps 2 >"$work/log" 2>&1 || { cat "$work/log"; die "no worker beside the $2's program"; }
    share=$(python -c 'import ndtune, os; print(os.path.dirname(ndtune.__file__))')/share
    test -s "$share/man/man1/ndtune.1" || die "the $2 has no manual page"
    grep -q GPL-3 "$share/doc/ndtune/copyright" || die "the $2 has no notice"
    passed "ndtune answers and trains, of the $2, with its manual page and notice"
    pip -q uninstall -y ndtune
    test -z "$(cd "$work/$2" && find . -path '*ndtune*' -type f)" || die "uninstalled, files are left"
    passed "uninstalled, nothing of the $2 is left"
    cd "$root"
}
saved=$PATH
try "$wheel" wheel
PATH=$saved
try "$sdist" sdist
