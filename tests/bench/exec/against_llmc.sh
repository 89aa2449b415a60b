#!/usr/bin/env bash
# One training step of GPT-2 124M (4 sequences of 64 tokens, fp32, random weights) by llm.c's CPU trainer and by ours, in
# turn on this machine, on one and on two threads. llm.c is compared with, no part of it is in this project.
#
#   tests/bench/exec/against_llmc.sh FOLDER_OF_LLM_C [ROUNDS 3] > tests/bench/exec/AGAINST_LLMC.md
#
# Of every program the fastest step counts, in wall and in CPU seconds: other programs on the machine only slow steps
# down, and CPU seconds hardly see them. Each round starts both, so that a change of the machine meets both.
set -euo pipefail
llmc=${1:?folder of llm.c}
rounds=${2:-3}
root=$(cd "$(dirname "$0")/../../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset OPENBLAS_CORETYPE

cat >"$work/driver.c" <<'C'
#define TESTING  // leaves llm.c's own main out
#include "train_gpt2.c"

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(void) {
    enum { SEQUENCES = 4, TOKENS = 64, STEPS = 3 };
    GPT2 model;
    memset(&model, 0, sizeof model);
    model.config = (GPT2Config){.max_seq_len = 1024, .vocab_size = 50257, .padded_vocab_size = 50304,
                                .num_layers = 12, .num_heads = 12, .channels = 768};
    fill_in_parameter_sizes(model.param_sizes, model.config);
    for (int i = 0; i < NUM_PARAMETER_TENSORS; i++) {
        model.num_parameters += model.param_sizes[i];
    }
    model.params_memory = malloc_and_point_parameters(&model.params, model.param_sizes);
    unsigned long long state = 42;
    for (size_t i = 0; i < model.num_parameters; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        model.params_memory[i] = 0.07f * ((float)(state >> 40) / 16777216.0f - 0.5f);
    }
    int inputs[SEQUENCES * TOKENS], targets[SEQUENCES * TOKENS];
    for (int i = 0; i < SEQUENCES * TOKENS; i++) {
        inputs[i] = i * 7919 % 50257;
        targets[i] = i * 104729 % 50257;
    }
    double wall = 1e9, cpu = 1e9;
    for (int step = 0; step < STEPS; step++) {  // the first makes its buffers
        const double wall_begin = seconds(CLOCK_MONOTONIC), cpu_begin = seconds(CLOCK_PROCESS_CPUTIME_ID);
        gpt2_forward(&model, inputs, targets, SEQUENCES, TOKENS);
        gpt2_zero_grad(&model);
        gpt2_backward(&model);
        gpt2_update(&model, 1e-4f, 0.9f, 0.999f, 1e-8f, 0.0f, step + 1);
        const double wall_s = seconds(CLOCK_MONOTONIC) - wall_begin, cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin;
        wall = step > 0 && wall_s < wall ? wall_s : wall;
        cpu = step > 0 && cpu_s < cpu ? cpu_s : cpu;
    }
    printf("step %.1f %.1f\n", 1e3 * wall, 1e3 * cpu);
    return 0;
}
C
# llm.c's own flags (its Makefile) and the compiler of our build
gcc -Ofast -fno-finite-math-only -Wno-unused-result -march=native -fopenmp -DOMP -I "$llmc" "$work/driver.c" -lm \
    -o "$work/driver"
ninja -C "$root/build/release" bench_step >/dev/null

least() {  # NAME COLUMN: the least number of that column in the lines "step ms ms" of a log
    awk -v column="$2" '$1 == "step" && (least == "" || $column < least) { least = $column } END { print least }' "$1"
}

for round in $(seq "$rounds"); do
    for threads in 1 2; do
        echo "round $round of $rounds, $threads thread(s)" >&2
        OMP_NUM_THREADS=$threads "$work/driver" | grep '^step ' >>"$work/llmc.$threads"
        "$root/build/release/bench/bench_step" "$threads" gpt2 64 4 6 >"$work/last"
        cat "$work/last" >>"$work/ours.$threads"
    done
done

echo "# One step of GPT-2 124M against llm.c's CPU trainer"
echo
echo "Made by \`tests/bench/exec/against_llmc.sh\`, $(date -u +%Y-%m-%d), commit $(git -C "$root" rev-parse --short HEAD), llm.c $(git -C "$llmc" rev-parse --short HEAD 2>/dev/null || cat "$llmc/COMMIT" 2>/dev/null || echo unknown);"
echo "$(nproc) cores of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), load average $(cut -d' ' -f1-3 /proc/loadavg) at the end; $(gcc --version | head -1)."
echo "4 sequences of 64 tokens, fp32, random weights, $rounds rounds in turn, fastest step of each; milliseconds. Where the"
echo "load is above the number of cores the CPU column is the one to read."
echo
echo "| threads | llm.c wall | llm.c CPU | ndtune wall | ndtune CPU | ratio of wall | ratio of CPU |"
echo "|---|---|---|---|---|---|---|"
for threads in 1 2; do
    awk -v t="$threads" -v a="$(least "$work/llmc.$threads" 2)" -v b="$(least "$work/llmc.$threads" 3)" \
        -v c="$(least "$work/ours.$threads" 2)" -v d="$(least "$work/ours.$threads" 3)" \
        'BEGIN { printf "| %d | %.0f | %.0f | %.0f | %.0f | %.2f | %.2f |\n", t, a, b, c, d, a / c, b / d }'
done
echo
echo "The last of our runs, on two threads:"
echo
sed 's/^/    /' "$work/last"
