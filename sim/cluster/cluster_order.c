// The keys of a JSON object have no order, so neither numbers nor hashes may depend on it. Kernels keep the
// order in which the first built-in profiles had them, as stores hold hashes of it; others follow by name.

#include <stdlib.h>
#include <string.h>

#include "sim/cluster/cluster_fields.h"

static int place_of(const AttentionRate *rate) {
    static const struct {
        const char *kernel;
        int head_dim;
    } first[] = {{"flash", 128}, {"flash", 64}, {"flash3", 128}, {"cudnn", 128}, {"flash3", 64}};
    enum { COUNT = sizeof first / sizeof first[0] };
    for (int i = 0; i < COUNT; i++) {
        if (strcmp(rate->kernel, first[i].kernel) == 0 && rate->head_dim == first[i].head_dim) {
            return i;
        }
    }
    return COUNT;
}

static int by_kernel(const void *a, const void *b) {
    const AttentionRate *left = a, *right = b;
    const int places = place_of(left) - place_of(right), names = strcmp(left->kernel, right->kernel);
    return places != 0 ? places : names != 0 ? names : right->head_dim - left->head_dim;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const ClusterTarget *)a)->name, ((const ClusterTarget *)b)->name);
}

void cluster_order(ClusterProfile *profile) {
    Accelerator *accelerator = &profile->accelerator;
    qsort(accelerator->attention, (size_t)accelerator->attention_count, sizeof accelerator->attention[0], by_kernel);
    qsort(profile->targets, (size_t)profile->target_count, sizeof profile->targets[0], by_name);
}
