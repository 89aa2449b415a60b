// Device: where buffers live and compute tasks run. One table of functions; a device is a file and a row in
// device_table. The arena is mapped once from the memory plan; a compute task finds its operands there and nothing is
// allocated afterwards.

#pragma once

#include "exec/data/data.h"
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
    bool singly;         // run takes one task at a time
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

// The operands of a collective or message where its transport finds them; one of an all-reduce is both.
typedef struct DeviceTransfer {
    void *in, *out;
    void *stream;              // orders the work on operands that the device has in its memory; NULL = host memory
    void *in_sums, *out_sums;  // bitwise: exact sums behind them, DEVICE_SUM_BYTES for each byte; NULL = floats alone
    bool sums_alone;           // the floats follow from the sums
    const int32_t *came, *leave;  // host: rows of experts by rank and expert, of an exchange that they size; else NULL
} DeviceTransfer;

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

// What a device can tell of itself; a chip, its memory and prices only one that has a chip of its own.
typedef struct DeviceAccount {
    void *arena;         // in the device's memory
    int64_t peak_bytes;  // of it, the highest addressed so far, rounded up to STEP_ALIGN_BYTES
    bool spans;          // it can time the tasks of this program
    const char *chip;
    int64_t bytes;         // that this rank took of its memory
    int64_t memory_bytes;  // that this process can have, what it has included
    int64_t cache_bytes;   // of the last level
    int processors;        // multiprocessors
    const ChipPrice *prices;
    int price_count;
} DeviceAccount;

// Work is ordered by lanes, as the program says (step.h). Without memory of its own a device runs a task to its end
// when asked: then the order of the calls is all the order there is, and span, moved and measure are NULL.
typedef struct DeviceTable {
    const char *name;
    bool own_memory;  // and with it streams, kernels and a clock; else everything is the host's
    Status (*open)(const DeviceSetup *setup, Arena *arena, Device **device, Error *error);
    void (*close)(Device *device);
    // step: 0, 1, ...: selects data and the optimizer's step. timed: span will tell of its tasks.
    void (*begin_step)(Device *device, int64_t step, bool timed);
    // Runs the compute task at this place in issue order, once its lane has waited for the task's events, and records
    // its own. Returns how many tasks it took, of those that follow as many as it can take at once; may return before
    // they are done. Tasks that the program leaves unordered may run from several threads. What fails is kept and said
    // by the next begin_transfer of staged memory or synchronize.
    int64_t (*run)(Device *device, const StepInstance *instance, int64_t ordinal);
    // Around a collective or message, with the task's events as in run. Memory to stage it is the lane's own: one of a
    // lane at a time.
    Status (*begin_transfer)(Device *device, const StepInstance *instance, DeviceTransfer *transfer, Error *error);
    Status (*end_transfer)(Device *device, const StepInstance *instance, const DeviceTransfer *transfer, Error *error);
    Status (*synchronize)(Device *device, Error *error);
    // After synchronize of a timed step, the seconds from its begin at which the instance at this place in issue order
    // began and ended. NULL: the host's clock says it.
    Status (*span)(Device *device, int64_t ordinal, double *start_s, double *end_s, Error *error);
    bool (*moved)(Device *device);  // whether there was a sign of life since the last look
    // Bytes of an access, to host memory, behind everything that was given to the device before.
    Status (*read)(Device *device, const BufferRef *ref, const StepInstance *instance, void *out, Error *error);
    // Outside of steps; takes memory for it. NULL: this device's kernels are kernels.h on the host.
    Status (*measure)(Device *device, const DeviceWork *work, DeviceTiming *timing, Error *error);
    void (*account)(const Device *device, DeviceAccount *account);
} DeviceTable;

// NULL with an Error when this build has no such device; the message says what it has.
const DeviceTable *device_find(const char *name, Error *error);
