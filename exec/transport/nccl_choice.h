// What transport nccl decides before it calls NCCL: facts in, choices out, independent of NCCL and CUDA.

#pragma once

#include <stdbool.h>

#include "sim/base/error.h"

enum {
    NCCL_LEAST_VERSION = 21800,  // ncclCommSplit with splitShare
    NCCL_SETTINGS_MOST = 8,
    NCCL_SCATTER_CTAS = 16,  // of 132 SMs: a reduce-scatter adds up, so it takes SMs from concurrent GEMMs
};

// For one communicator.
typedef struct NcclFacts {
    int version;       // of the library, ncclGetVersion: 22809 is 2.28.9
    int driver;        // of CUDA, cuDriverGetVersion: 13000 is 13.0
    const char *lane;  // its name
    int size;
    bool one_host;   // all members on one machine: the only NVLink domain that is recognized
    bool share_gpu;  // several ranks on one GPU
} NcclFacts;

typedef enum { NCCL_POLICY_DEFAULT, NCCL_POLICY_EFFICIENCY, NCCL_POLICY_ZERO } NcclPolicy;

typedef struct NcclChoice {
    NcclPolicy policy;
    int most_ctas;  // 0 = NCCL's own choice
    bool windows;   // the arena is registered as a symmetric window
} NcclChoice;

NcclChoice nccl_choose(const NcclFacts *facts);

// Rejects a library that is too old, with a message.
Status nccl_check_version(int version, Error *error);

// A rank's position among those of its machine.
typedef struct NcclPlace {
    int local_rank;
    int local_ranks;  // 0 = not known
    int gpus;         // visible to this process
    bool share_gpu;
} NcclPlace;

// The GPU of a rank; an error where it would share one and sharing was not requested.
Status nccl_place(const NcclPlace *place, int *gpu, Error *error);

typedef struct NcclSetting {
    const char *name, *value;  // environment variable; value NULL: the rank's own name
} NcclSetting;

// What must be in NCCL's environment before it is loaded; returns how many. User settings are left alone.
int nccl_settings(bool share_gpu, NcclSetting settings[NCCL_SETTINGS_MOST]);
