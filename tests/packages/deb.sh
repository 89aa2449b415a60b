#!/usr/bin/env bash
# The .deb and `cmake --install` of a build of this tree: deb.sh [FOLDER]. A moved install answers; the package installs
# in a fresh Debian of this machine's release (mmdebstrap) with what its own Depends bring, answers, runs two ranks as an
# ordinary user, has its manual page and completions, and leaves nothing. It builds in FOLDER, which is kept, or in one of
# its own. Exit 77 is a skip.
set -euo pipefail
cd "$(dirname "$0")/../.."
skip() { echo "skipped: $*"; exit 77; }
die() { echo "[FAIL] $*"; exit 1; }
passed() { echo "[PASS] $*"; }

for tool in cpack dpkg-shlibdeps dpkg-deb mmdebstrap; do
    command -v "$tool" >/dev/null || skip "no $tool (packages cmake, dpkg-dev, mmdebstrap)"
done
[ "$(id -u)" -eq 0 ] || skip "a chroot needs root"
. /etc/os-release
[ "$ID" = debian ] || skip "the package is tried where it is built, and this is $ID, not debian"

work=$(mktemp -d /tmp/ndtune-deb-XXXXXX)
trap 'rm -rf "$work"' EXIT
build=${1:-$work/build}
cmake -S . -B "$build" -G Ninja -DNDTUNE_TESTS=OFF >"$work/log" 2>&1 || { cat "$work/log"; die "it does not configure"; }
cmake --build "$build" >"$work/log" 2>&1 || { tail "$work/log"; die "it does not build"; }

cmake --install "$build" --prefix "$work/first" >"$work/log"
mv "$work/first" "$work/moved"
export XDG_DATA_HOME=$work/data
"$work/moved/bin/ndtune" --world 32 --model 7b 2>/dev/null | grep "^ *1.*dp_shard" >/dev/null || die "a moved install does not answer"
"$work/moved/bin/ndtune" run --mesh dp_shard=2 --model tiny --steps 2 >"$work/log" 2>&1 || die "a moved install does not find its worker"
passed "cmake --install is relocatable"

(cd "$build" && cpack -G DEB -B "$work/deb") >"$work/log" 2>&1 || { cat "$work/log"; die "cpack fails"; }
deb=$(echo "$work"/deb/*.deb)
[ -f "$deb" ] || die "no package in $work/deb"
field() { dpkg-deb -f "$deb" "$1"; }
echo "$(basename "$deb"), $(stat -c %s "$deb") bytes; depends on $(field Depends)"
# Those of which the archive says since when they have what is called; it says so of no YAML.
for library in libc6 libgsl27 libjansson4 libsqlite3-0 libsmartcols1; do
    grep -qE "(^| )$library(t64)? \(>= [0-9]" <<<"$(field Depends)" || die "Depends has no versioned $library"
done
grep -qE "(^| )libyaml-0-2(,|\$| )" <<<"$(field Depends)" || die "Depends has no libyaml-0-2"
! grep -q libopenmpi <<<"$(field Depends)" || die "Depends has Open MPI, which is opened at run time"
passed "the package depends on its libraries, versioned where the archive says so"
[ "$(field Recommends)" = openmpi-bin ] || die "Recommends is $(field Recommends)"
passed "the package recommends openmpi-bin"

cat >"$work/inside" <<'INSIDE'
set -euo pipefail
say() { echo "[PASS] $*"; }
cd /root
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
dpkg -l | awk '/^ii/ { print $2 }' | sort >before
apt-get install -y -q --no-install-recommends ./ndtune.deb >log 2>&1 || { cat log; exit 1; }
dpkg -l | awk '/^ii/ { print $2 }' | sort >after
say "it installs with what it depends on ($(comm -13 before after | wc -l) packages)"
useradd -m somebody
as_somebody() { su somebody -c "cd && $1"; }
as_somebody 'ndtune --world 32 --model 7b 2>/dev/null' >answer
head -n 6 answer
grep -q '^ *1.*dp_shard' answer
say "ndtune --world 32 --model 7b answers"
as_somebody 'ndtune run --mesh dp_shard=2 --model tiny' >run 2>&1 || { cat run; exit 1; }
grep -i loss run | head -n 3
say "ndtune run --mesh dp_shard=2 --model tiny trains, without Recommends"
as_somebody 'man ndtune' >page
grep -q -- --world page
say "man ndtune shows $(wc -l <page) lines"
for file in bash-completion/completions/ndtune zsh/vendor-completions/_ndtune fish/vendor_completions.d/ndtune.fish \
            doc/ndtune/copyright; do
    test -s /usr/share/$file || { echo "no /usr/share/$file"; exit 1; }
done
! dpkg -L ndtune | grep site-functions || exit 1
grep -q GPL-3 /usr/share/doc/ndtune/copyright
say "completions lie where each shell looks, and the notice is there"
apt-get install -y -q --no-install-recommends openmpi-bin >log 2>&1 || { cat log; exit 1; }
as_somebody 'ndtune run --mesh dp_shard=2 --model tiny --steps 2 --transport mpi' >run 2>&1 || { cat run; exit 1; }
say "with openmpi-bin the same runs over MPI"
dpkg -L ndtune >files
apt-get purge -y -q ndtune >log 2>&1 || { cat log; exit 1; }
while read -r file; do
    test -d "$file" || test ! -e "$file" || { echo "$file is left"; exit 1; }
done <files
test ! -e /usr/share/doc/ndtune
say "removed, nothing of it is left"
INSIDE
cp "$deb" "$work/ndtune.deb"
mmdebstrap --quiet --mode=root --variant=apt --include=man-db --dpkgopt='path-include=/usr/share/man/*' \
    --customize-hook="copy-in $work/ndtune.deb $work/inside /root" \
    --customize-hook='chroot "$1" bash /root/inside' "$VERSION_CODENAME" /dev/null http://deb.debian.org/debian ||
    die "in a fresh $VERSION_CODENAME (above)"
