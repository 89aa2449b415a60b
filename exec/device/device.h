// Device: where buffers live and compute tasks run. One table of functions; a device is a file and a row in
// device_table. The arena is mapped once from the memory plan; a compute task finds its operands there and nothing is
// allocated afterwards.

#pragma once

#include "exec/data/data.h"
#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/memory/memory.h"
#include "sim/step/step.h"

typedef struct DeviceNumbers {
    uint64_t seed;
    double lr, beta1, beta2, eps, weight_decay;  // AdamW
    double clip;                                 // of the global gradient norm
} DeviceNumbers;

typedef struct DeviceSetup {
    const StepProgram *program;
    const MemoryPlan *memory;
    MeshCoordinates at;
    int threads;
    bool poison;  // fills the arena with NaN first: a read before a write shows in the loss
    DeviceNumbers numbers;
    DataSetup data;
} DeviceSetup;

typedef struct Device Device;

typedef struct DeviceTable {
    const char *name;
    Status (*open)(const DeviceSetup *setup, Arena *arena, Device **device, Error *error);
    void (*close)(Device *device);
    void (*begin_step)(Device *device, int64_t step);  // 0, 1, ...: selects data and the optimizer's step
    // Runs one compute task; may return before it is done. Tasks that the program leaves unordered may run from several
    // threads.
    void (*run)(Device *device, const StepInstance *instance);
    void (*synchronize)(Device *device);
    void *(*address)(Device *device, const BufferRef *ref, int layer);  // for collectives; host-readable on the cpu
    int64_t (*peak_bytes)(const Device *device);  // highest arena byte addressed so far, rounded up to STEP_ALIGN_BYTES
} DeviceTable;

// NULL with an Error when this build has no such device; the message says what it has.
const DeviceTable *device_find(const char *name, Error *error);
