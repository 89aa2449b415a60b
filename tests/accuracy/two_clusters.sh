# Sourced by the scripts that measure on two clusters that any Linux machine has: itself, and two network namespaces
# joined by 1 Gbit/s (tests/cluster/two_nodes). Sets root, build, repeats and steps from the command line ("--repeats 3
# --steps 10 --build DIR", defaults set before), a scratch folder, and what both say of machine and commit; what was
# made is removed at exit. Exits with 77 and a reason where the namespaces cannot be made.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$root/build/release
while [ $# -gt 0 ]; do
    case $1 in
    --repeats | --steps | --build | --minutes | --out) printf -v "${1#--}" %s "$2" ;;
    *) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 1 ;;
    esac
    shift 2
done
build=$(cd "$build" && pwd)

work=$(mktemp -d)
commit=$(git -C "$root" rev-parse --short HEAD)
machine=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)
export XDG_DATA_HOME=$work OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
unset OPENBLAS_CORETYPE  # a choice of kernels that somebody made for other work
end() {
    [ -z "${NDTUNE_CLUSTER_ID:-}" ] || "$root/tests/cluster/two_nodes" down "$NDTUNE_CLUSTER_ID"
    rm -rf "$work"
}
trap end EXIT
ndtune() { "$build/bin/ndtune" "$@" 2>>"$work/notes"; }
say() { printf '%s: %s\n' "$(date -u +%H:%M:%S)" "$*" >&2; }
load() { cut -d' ' -f1 /proc/loadavg; }

# The links of the two nodes; NDTUNE_CLUSTER_HOSTFILE names them.
two_nodes_up() {
    local settings
    settings=$("$root/tests/cluster/two_nodes" up --rate 1gbit "$@") || exit $?
    eval "$settings"
}
