// How fast tasks are priced: GEMM and collective costs per second on one core. Prints, never asserts.
// Target: under 1 us per GEMM, so that a candidate's few dozen distinct tasks stay below the cost of lowering it.

#include <stdio.h>

#include "sim/base/clock.h"
#include "sim/cost/cost.h"
#include "tests/support/kernel_seconds.h"
#include "tests/unit/sim/cost/machines.h"

enum { ROUNDS = 2000000 };

int main(void) {
    const ClusterProfile h100 = machine_h100();
    double sum_s = 0, begin_s = clock_s();
    for (int i = 0; i < ROUNDS; i++) {
        sum_s += gemm_s(&h100.accelerator, DTYPE_BF16, 64 * (1 + i % 128), 4096, 64 * (1 + i % 61), 2);
    }
    printf("gemm        %8.1f ns each\n", 1e9 * (clock_s() - begin_s) / ROUNDS);
    begin_s = clock_s();
    for (int i = 0; i < ROUNDS; i++) {
        const GroupPlacement group = {.size = 8 << (i % 5), .nodes = 1 << (i % 5), .per_node = 8, .siblings = 1};
        sum_s += cost_collective_s(&h100, (CollectiveKind)(i % 4), &group, 1024.0 * (1 + i % 65536), NULL);
    }
    printf("collective  %8.1f ns each\n", 1e9 * (clock_s() - begin_s) / ROUNDS);
    begin_s = clock_s();
    for (int i = 0; i < ROUNDS; i++) {
        sum_s += attention_s(&h100.accelerator, DTYPE_BF16, 1, 32, 128, 128 * (1 + i % 64), 4096, 0.5, i % 2 == 0);
    }
    printf("attention   %8.1f ns each\n", 1e9 * (clock_s() - begin_s) / ROUNDS);
    fprintf(stderr, "(sum of modelled seconds %g)\n", sum_s);
    return 0;
}
