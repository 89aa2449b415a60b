#!/usr/bin/env bash
# What pipelines lose by waiting, run for real and simulated: each schedule with 2 and 4 stages and 4 and 8 micro-steps.
#
#   tests/bench/exec/bubbles.sh [BUILD build/release] [ROUNDS 3] > tests/bench/exec/BUBBLES.md
#
# One process and one thread per stage over shared memory. Every kernel really runs and then sleeps until it has taken
# its pace (NDTUNE_FAULT=pace:SECONDS), so that more stages than cores, and what else this machine does, change little:
# what is measured is the order and the waits for messages, not kernels. Simulated is the same request on a profile with
# a core for each stage and the pace as the floor of each kernel. The median of the rounds counts, of steps and of
# bubbles: others on the machine wake sleepers late, now and then.
# Bubble: what `ndtune run` says of each stage, measured and simulated (the share of the step in which its compute is
# idle and nothing of its own in flight: autotune/predict/stage_waits.h), mean over the stages.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
build=${1:-$root/build/release}
rounds=${2:-3}
steps=2
pace_s=0.01
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_DATA_HOME=$work

# Of a step, measured and simulated: seconds, then bubble. Takes stages, micro-steps, further options. The step whose
# spans are kept is the second of two.
one_run() {
    local stages=$1 micro_steps=$2
    shift 2
    NDTUNE_FAULT=pace:$pace_s "$build/bin/ndtune" run --model tiny --layers 8 --seq 32 --mesh "pp=$stages" \
        --grad-accum "$micro_steps" --lanes async --steps "$steps" --set node.cores=8 \
        --set accelerator.kernel_floor_s=$pace_s --set accelerator.gemm.fp32.launch_s=$pace_s --format json "$@" \
        2>>"$work/notes" | jq -r 'def bubble(key): [.stages[][key]] | add / length;
                "\(.step_time_s[1]) \(.predicted_step_time_s) " +
                "\(bubble("bubble_share")) \(bubble("predicted_bubble_share"))"'
}

echo "# Bubbles of pipelines, measured and simulated"
echo
echo "$(date -u +%F), commit $(git -C "$root" rev-parse --short HEAD), $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)" \
    "at the start; made by \`tests/bench/exec/bubbles.sh\`, whose head says how."
echo "8 layers of \`tiny\`, sequences of 32 tokens, each kernel $pace_s s, median of $rounds steps. A norm's backward is two"
echo "kernels in the price and one here, so simulated steps are longer; bubbles are shares and compare."
echo
echo "| schedule | stages | micro-steps | step measured | simulated | bubble measured | simulated |"
echo "|---|---|---|---|---|---|---|"
# Lines "schedule stages micro-steps" with what one_run says, of a round.
measure() {
    local stages schedule
    for stages in 2 4; do
        for schedule in gpipe 1f1b interleaved zero-bubble zbv; do
            echo "$schedule $stages $1 $(one_run "$stages" "$1" --pp-schedule "$schedule")"
        done
    done
}

for ((round = 0; round < rounds; round++)); do
    measure 4 >>"$work/few" &  # mostly asleep, so both at once
    measure 8 >>"$work/many"
    wait $!
done
awk 'function median(values, count,    i, j, swap) {
         for (i = 2; i <= count; i++)
             for (j = i; j > 1 && values[j - 1] > values[j]; j--) {
                 swap = values[j]; values[j] = values[j - 1]; values[j - 1] = swap
             }
         return count % 2 ? values[(count + 1) / 2] : (values[count / 2] + values[count / 2 + 1]) / 2
     }
     { key = $1 " " $2 " " $3
       if (!(key in runs)) order[++count] = key
       seconds[key, ++runs[key]] = $4; waits[key, runs[key]] = $6
       simulated[key] = $5; expected[key] = $7 }
     END { for (i = 1; i <= count; i++) {
               key = order[i]; split(key, of)
               for (k = 1; k <= runs[key]; k++) { steps[k] = seconds[key, k]; shares[k] = waits[key, k] }
               printf "| %s | %d | %d | %.3f s | %.3f s | %.1f %% | %.1f %% |\n", of[1], of[2], of[3],
                      median(steps, runs[key]), simulated[key], 100 * median(shares, runs[key]), 100 * expected[key] } }' \
    "$work/few" "$work/many"
