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
    bool bitwise;  // keeps an exact sum behind every float (kernels/exact.h): equal bits on every mesh
    bool poison;   // fills the arena with NaN first: a read before a write shows in the loss
    DeviceNumbers numbers;
    DataSetup data;
} DeviceSetup;

typedef struct Device Device;

enum { DEVICE_SUM_BYTES = 4 };  // two 8-byte integers for 4 bytes of fp32

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
    // Bitwise: the exact sums behind an access, DEVICE_SUM_BYTES for each byte of it; and its floats from them.
    void *(*sums)(Device *device, const BufferRef *ref, int layer);
    void (*round)(Device *device, const BufferRef *ref, int layer);
    int64_t (*peak_bytes)(const Device *device);  // highest arena byte addressed so far, rounded up to STEP_ALIGN_BYTES
} DeviceTable;

// NULL with an Error when this build has no such device; the message says what it has.
const DeviceTable *device_find(const char *name, Error *error);
