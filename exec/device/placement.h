// Where the memory plan puts a rank's operands, and the other parts of a task's call: the device-independent part of a
// device.

#pragma once

#include <stdatomic.h>

#include "exec/device/initial.h"
#include "exec/device/task_call.h"

typedef struct Placement {
    const StepProgram *program;
    const MemoryPlan *memory;
    MeshCoordinates at;
    char *arena;              // the device's memory, of memory->arena_bytes
    atomic_llong peak_bytes;  // lanes may run in threads
    // As in every TaskCall:
    Device *device;
    const DeviceNumbers *numbers;
    int64_t step;
    DataSource data;
    int32_t *sequence;
    const int32_t *positions;
} Placement;

// setup: the device's own; must outlive this. The device supplies arena and positions.
Status placement_open(Device *device, const DeviceSetup *setup, Arena *arena, Placement *placement, Error *error);
void placement_close(Placement *placement);

char *placement_at(Placement *placement, const BufferRef *ref, const StepInstance *instance);
char *placement_slot(const Placement *placement, int32_t buffer, int slot);
// Highest arena byte addressed so far, rounded up to STEP_ALIGN_BYTES.
int64_t placement_peak_bytes(const Placement *placement);
TaskCall placement_call(Placement *placement, const StepInstance *instance);  // on floats; instance must outlive it

// Where a task that moves bytes writes them.
const BufferRef *transfer_to(const StepProgram *program, const Task *task);
// Operands and expert rows of such a task at their arena addresses.
void placement_transfer(Placement *placement, const StepInstance *instance, DeviceTransfer *transfer);

// Global positions of this rank's token rows in one micro-batch.
void placement_positions(const Placement *placement, int32_t *positions);

// Visits every slot of a parameter buffer that has initial values: its stretch of a unit.
typedef void PlacementTake(void *context, int32_t buffer, const InitialStretch *stretch);
void placement_parameters(const Placement *placement, PlacementTake *take, void *context);
