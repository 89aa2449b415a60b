// Device: where buffers live and compute tasks run. One table of functions; a device is a file and a row in
// device_table. The arena is mapped once from the memory plan; compute tasks find their operands there, and nothing is
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
    double clip;                                 // for the global gradient norm
} DeviceNumbers;

typedef struct DeviceSetup {
    const StepProgram *program;
    const MemoryPlan *memory;
    MeshCoordinates at;
    int threads;
    bool bitwise;        // keeps an exact sum with every float (kernels/exact.h): equal bits on every mesh
    bool deterministic;  // equal programs, data and device give equal bits
    bool poison;         // fills the arena with NaN first: a read before a write shows up in the loss
    int local_rank;      // among the ranks of this machine: selects the GPU, several ranks may share one
    bool staged;         // collectives read host memory: a device with its own memory reserves room for staging
    bool singly;         // run takes one task at a time
    int collective_sms;  // multiprocessors that a collective in flight occupies; 0 where it needs none
    void *arena;         // the device's, memory->arena_bytes, where the transport wants its own kind; NULL = any
    double mark_work;    // FLOPs after which an asynchronous device shows the host a sign of life; 0 = none
    void (*alive)(void *context);  // called in its waits when there was a sign of life; may be NULL
    void *alive_context;
    const ChipPrice *prices;  // already known, of any chip
    int price_count;
    DeviceNumbers numbers;
    DataSetup data;
} DeviceSetup;

typedef struct Device Device;

enum { DEVICE_SUM_BYTES = 4 };  // two 8-byte integers for 4 bytes of fp32

// The operands of a collective or message where its transport finds them; an all-reduce has one that is both.
typedef struct DeviceTransfer {
    void *in, *out;
    void *stream;                 // orders work on operands in device memory; NULL = host memory
    void *in_sums, *out_sums;     // bitwise: their exact sums, DEVICE_SUM_BYTES for each byte; NULL = floats alone
    bool sums_alone;              // the floats follow from the sums
    const int32_t *came, *leave;  // host: expert rows by rank and expert, for an exchange sized by them; else NULL
} DeviceTransfer;

// A kernel of a given size, for the probe: m, n, k of a product (bf16, second operand transposed); for attention,
// queries (as many keys), distance of first query from first key, heads and head_dim; or elements of one operand.
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
    double sustain_s;  // above 0: repeated for this long, and the later half counts; else a few calls
} DeviceWork;

typedef struct DeviceTiming {
    double seconds, low, high;  // per call: median and quartiles
    int repeats;                // 0: this machine has no such kernel
    const char *way;            // attention: "scalar", "own", "cudnn"; else NULL
} DeviceTiming;

// What a device reports about itself; chip, memory and prices only if it has a chip of its own.
typedef struct DeviceAccount {
    void *arena;         // in device memory
    int64_t peak_bytes;  // highest arena byte addressed so far, rounded up to STEP_ALIGN_BYTES
    bool spans;          // it can time the tasks of this program
    const char *chip;
    int64_t bytes;         // of its memory allocated by this rank
    int64_t memory_bytes;  // available to this process, including what it holds
    int64_t cache_bytes;   // of the last-level cache
    int processors;        // multiprocessors
    const ChipPrice *prices;
    int price_count;
} DeviceAccount;

// Work is ordered by lanes, as the program says (step.h). A device without memory of its own runs each task to
// completion when called: the order of the calls is then the only order, and span, moved and measure are NULL.
typedef struct DeviceTable {
    const char *name;
    bool own_memory;  // and with it streams, kernels and a clock; else everything is the host's
    Status (*open)(const DeviceSetup *setup, Arena *arena, Device **device, Error *error);
    void (*close)(Device *device);
    // step: 0, 1, ...: selects data and the optimizer's step. timed: span will report its tasks.
    void (*begin_step)(Device *device, int64_t step, bool timed);
    // Runs the compute task at this place in issue order once its lane has waited for the task's events, and records
    // its own. Returns the number of tasks taken, including following ones it can batch; may return before they are
    // done. Tasks the program leaves unordered may run from several threads. A failure is kept and reported by the next
    // begin_transfer of staged memory or synchronize.
    int64_t (*run)(Device *device, const StepInstance *instance, int64_t ordinal);
    // Brackets a collective or message, with the task's events as in run. Staging memory belongs to the lane: one
    // transfer per lane at a time.
    Status (*begin_transfer)(Device *device, const StepInstance *instance, DeviceTransfer *transfer, Error *error);
    Status (*end_transfer)(Device *device, const StepInstance *instance, const DeviceTransfer *transfer, Error *error);
    Status (*synchronize)(Device *device, Error *error);
    // After synchronize of a timed step: begin and end of the instance at this place in issue order, in seconds from
    // the step's begin. NULL: the host's clock measures it.
    Status (*span)(Device *device, int64_t ordinal, double *start_s, double *end_s, Error *error);
    bool (*moved)(Device *device);  // whether there was a sign of life since the last call
    // Bytes of an access, copied to host memory, after all work given to the device before.
    Status (*read)(Device *device, const BufferRef *ref, const StepInstance *instance, void *out, Error *error);
    // Outside of steps; allocates memory for it. NULL: this device's kernels are kernels.h on the host.
    Status (*measure)(Device *device, const DeviceWork *work, DeviceTiming *timing, Error *error);
    void (*account)(const Device *device, DeviceAccount *account);
} DeviceTable;

// NULL with an Error when this build has no such device; the message lists those it has.
const DeviceTable *device_find(const char *name, Error *error);
