// Device: where buffers live and compute tasks run. One table of functions; a device is a file and a row in
// device_table. The arena is mapped once from the memory plan; a compute task finds its operands there and nothing is
// allocated afterwards.

#pragma once

#include "exec/data/data.h"
#include "exec/device/issue_runs.h"
#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/memory/memory.h"
#include "sim/step/chip_price.h"
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
    bool bitwise;        // keeps an exact sum behind every float (kernels/exact.h): equal bits on every mesh
    bool deterministic;  // equal programs, data and device give equal bits
    bool poison;         // fills the arena with NaN first: a read before a write shows in the loss
    int local_rank;      // among the ranks of this machine: chooses the GPU, several ranks may share one
    bool staged;         // collectives read host memory: a device with its own keeps room to stage them
    int collective_sms;  // multiprocessors that a collective in flight keeps busy; 0 where it needs none
    void *arena;         // of the device, memory->arena_bytes, where the transport wants its own kind; NULL = any
    double mark_work;    // FLOPs behind which a device that runs alone shows the host a sign of life; 0 = none
    void (*alive)(void *context);  // called in its waits when there was one; may be NULL
    void *alive_context;
    const ChipPrice *prices;  // known from before, of any chip
    int price_count;
    DeviceNumbers numbers;
    DataSetup data;
} DeviceSetup;

typedef struct Device Device;

enum { DEVICE_SUM_BYTES = 4 };  // two 8-byte integers for 4 bytes of fp32

// A collective's operands in host memory; one of an all-reduce is both.
typedef struct DeviceStage {
    void *in, *out;
} DeviceStage;

// A kernel at a size, for the probe: m, n, k of a product (bf16, second operand transposed); queries (as many keys),
// distance of the first query from the first key, heads and head_dim of attention; or elements of one operand.
typedef enum {
    DEVICE_WORK_GEMM,
    DEVICE_WORK_ADD,
    DEVICE_WORK_NORM,
    DEVICE_WORK_SWIGLU,
    DEVICE_WORK_ADAMW,
    DEVICE_WORK_ATTENTION,
    DEVICE_WORK_ATTENTION_BACKWARD,
    DEVICE_WORK_COUNT
} DeviceWorkKind;

typedef struct DeviceWork {
    DeviceWorkKind kind;
    double size[4];
    bool library;      // attention: the vendor's kernel, else our own
    double sustain_s;  // above 0: over and over for so long, of which the later half counts; else a few calls
} DeviceWork;

typedef struct DeviceTiming {
    double seconds, low, high;  // of one call: median and quartiles
    int repeats;                // 0: this machine has no such kernel
    const char *way;            // attention: "scalar", "own", "cudnn"; else NULL
} DeviceTiming;

// What a device with a chip of its own can tell.
typedef struct DeviceAccount {
    const char *chip;
    int64_t bytes;         // that this rank took of its memory
    int64_t memory_bytes;  // that this process can have, what it has included
    int64_t cache_bytes;   // of the last level
    int processors;        // multiprocessors
    const ChipPrice *prices;
    int price_count;
} DeviceAccount;

// Work is ordered by lanes, as the program says (step.h). A device that runs a task to its end when asked leaves wait,
// record, stage, unstage, stream, runs, launch, trace and span NULL: then the order of the calls is all the order there
// is, the host's clock says when a task ran, and what address returns is host memory.
typedef struct DeviceTable {
    const char *name;
    Status (*open)(const DeviceSetup *setup, Arena *arena, Device **device, Error *error);
    void (*close)(Device *device);
    void (*begin_step)(Device *device, int64_t step);  // 0, 1, ...: selects data and the optimizer's step
    // Runs one compute task; may return before it is done. Tasks that the program leaves unordered may run from several
    // threads. What fails is kept and said by the next stage or synchronize.
    void (*run)(Device *device, const StepInstance *instance);
    // Around every task, compute or collective: what follows on its lane waits for the task's events; what its lane was
    // given so far is what its records stand for. Once all records that a task waits for were made.
    void (*wait)(Device *device, const StepInstance *instance);
    void (*record)(Device *device, const StepInstance *instance);
    // A collective whose transport reads host memory: waits for its lane and brings what it reads; then takes what it
    // wrote. The memory is the lane's own: one collective of a lane at a time.
    Status (*stage)(Device *device, const StepInstance *instance, DeviceStage *stage, Error *error);
    Status (*unstage)(Device *device, const StepInstance *instance, Error *error);
    void *(*stream)(Device *device, int lane);  // what a transport that reads device memory orders its work on
    // Runs of the step, and one of them given to the device at once in place of wait, run and record of each of its
    // tasks; false: not this one, not now.
    const IssueRuns *(*runs)(const Device *device);
    bool (*launch)(Device *device, int32_t run);
    // From the next step on, tasks are timed; false: they cannot be. After synchronize, the seconds from the step's
    // begin at which the instance at this place in issue order began and ended.
    bool (*trace)(Device *device, bool on);
    Status (*span)(Device *device, int64_t ordinal, double *start_s, double *end_s, Error *error);
    // Whether there was a sign of life since the last look; NULL: a task is done when run returns.
    bool (*moved)(Device *device);
    Status (*synchronize)(Device *device, Error *error);
    void *(*address)(Device *device, const BufferRef *ref, const StepInstance *instance);
    // Rows of experts that a task of the instance's lane counted, on the host. NULL: as address.
    Status (*counts)(Device *device, const BufferRef *ref, const StepInstance *instance, const int32_t **counts,
                     Error *error);
    // Bytes of an access, to host memory, behind everything that was given to the device before.
    Status (*read)(Device *device, const BufferRef *ref, const StepInstance *instance, void *out, Error *error);
    // Bitwise: the exact sums behind an access, DEVICE_SUM_BYTES for each byte of it; and its floats from them.
    void *(*sums)(Device *device, const BufferRef *ref, const StepInstance *instance);
    void (*round)(Device *device, const BufferRef *ref, const StepInstance *instance);
    // Outside of steps; takes memory for it. NULL: this device's kernels are kernels.h on the host.
    Status (*measure)(Device *device, const DeviceWork *work, DeviceTiming *timing, Error *error);
    void (*account)(const Device *device, DeviceAccount *account);  // NULL: nothing to tell
    int64_t (*peak_bytes)(const Device *device);  // highest arena byte addressed so far, rounded up to STEP_ALIGN_BYTES
} DeviceTable;

// NULL with an Error when this build has no such device; the message says what it has.
const DeviceTable *device_find(const char *name, Error *error);
