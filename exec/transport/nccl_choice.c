// Sources: sim/SOURCES.md X2 (launch order, requirements of zero-CTA all-gather), NCCL 2.28 release notes and user
// guide (CTAPolicy, symmetric windows), sim/SOURCES.md C11 (several ranks on one GPU). Not tuned: no multi-GPU machine
// was available to measure on.

#include "exec/transport/nccl_choice.h"

#include <stdio.h>
#include <string.h>

enum {
    WINDOWS_SINCE = 22700,       // ncclCommWindowRegister, CTAPolicy
    ZERO_SINCE = 22800,          // copy engines move an all-gather inside one NVLink domain
    ZERO_NETWORK_SINCE = 23006,  // and across a network
    ZERO_DRIVER = 12050,         // CUDA 12.5
};

static bool is(const NcclFacts *facts, const char *lane) {
    return strcmp(facts->lane, lane) == 0;
}

NcclChoice nccl_choose(const NcclFacts *facts) {
    NcclChoice choice = {0};
    if (facts->size < 2 || facts->share_gpu || facts->version < WINDOWS_SINCE) {
        return choice;
    }
    const bool gathers = is(facts, "ag"), scatters = is(facts, "rs");
    const int zero_since = facts->one_host ? ZERO_SINCE : ZERO_NETWORK_SINCE;
    choice.windows = gathers || scatters;
    choice.most_ctas = scatters ? NCCL_SCATTER_CTAS : 0;
    if (gathers && facts->version >= zero_since && facts->driver >= ZERO_DRIVER) {
        choice.policy = NCCL_POLICY_ZERO;
    } else if (is(facts, "tp")) {
        choice.policy = NCCL_POLICY_EFFICIENCY;
    }
    return choice;
}

// "2.28.9".
static const char *nccl_version_words(int version, char *out, size_t out_bytes) {
    snprintf(out, out_bytes, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    return out;
}

Status nccl_check_version(int version, Error *error) {
    char have[24], need[24];
    return version >= NCCL_LEAST_VERSION
               ? STATUS_OK
               : error_set(error, STATUS_ENVIRONMENT, "transport nccl needs NCCL %s or newer, the library found is %s",
                           nccl_version_words(NCCL_LEAST_VERSION, need, sizeof need),
                           nccl_version_words(version, have, sizeof have));
}

Status nccl_place(const NcclPlace *place, int *gpu, Error *error) {
    FAIL_IF(place->gpus < 1, error, STATUS_ENVIRONMENT, "transport nccl: this machine shows no NVIDIA GPU");
    // A launcher that binds GPUs shows each rank one, as number 0; it does not say how many ranks there are.
    const bool bound = place->local_ranks == 0 && place->gpus == 1;
    *gpu = bound ? 0 : place->local_rank % place->gpus;
    if (place->share_gpu || bound || place->local_rank < place->gpus) {
        return STATUS_OK;
    }
    char ranks[32] = "more ranks";
    if (place->local_ranks > 0) {
        snprintf(ranks, sizeof ranks, "%d ranks", place->local_ranks);
    }
    error_set(error, STATUS_ENVIRONMENT,
              "transport nccl takes one rank per GPU: there are %s on this machine and %d GPU%s", ranks, place->gpus,
              place->gpus == 1 ? "" : "s");
    return error_hint(error, "use --transport shm, over which ranks may share a GPU (NDTUNE_NCCL_SHARE_GPU=1 lets NCCL "
                             "try it, for correctness only)");
}

// Each rank appears as its own host; LL and direct copies do not work between them (sim/SOURCES.md C11).
int nccl_settings(bool share_gpu, NcclSetting settings[NCCL_SETTINGS_MOST]) {
    static const NcclSetting shared[] = {
        {"NCCL_HOSTID", NULL},     {"NCCL_NET", "Socket"},   {"NCCL_P2P_DISABLE", "1"},
        {"NCCL_SHM_DISABLE", "1"}, {"NCCL_PROTO", "Simple"},
    };
    int count = 0;
    settings[count++] = (NcclSetting){"NCCL_LAUNCH_ORDER_IMPLICIT", "1"};  // several communicators on one device, 2.26
    for (size_t i = 0; share_gpu && i < sizeof shared / sizeof shared[0]; i++) {
        settings[count++] = shared[i];
    }
    return count;
}
