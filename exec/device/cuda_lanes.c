// A stream for each communicator and for each lane without one (compute, messages), and an event for each slot of the
// program's events. When both are ready collectives go first: their streams have higher priority (sim/SOURCES.md X2).

#include "exec/device/cuda.h"

#include "sim/step/slots.h"

static int stream_of(const StepProgram *program, const CudaLanes *lanes, int lane) {
    for (int other = 0; other < lane; other++) {
        if (program->lanes[lane].communicator >= 0 &&
            program->lanes[other].communicator == program->lanes[lane].communicator) {
            return lanes->of_lane[other];
        }
    }
    return -1;
}

static Status streams_open(const StepProgram *program, CudaLanes *lanes, Error *error) {
    int least, greatest;
    CUDA_TRY(cudaDeviceGetStreamPriorityRange(&least, &greatest), "priorities of streams");
    for (int lane = 0; lane < program->lane_count; lane++) {
        const int known = stream_of(program, lanes, lane);
        FAIL_IF(known < 0 && lanes->stream_count == CUDA_MAX_STREAMS, error, STATUS_INTERNAL,
                "the program has more than %d lanes", CUDA_MAX_STREAMS);
        if (known < 0) {
            const int priority = lane == LANE_COMPUTE ? least : greatest;
            CUDA_TRY(
                cudaStreamCreateWithPriority(&lanes->streams[lanes->stream_count], cudaStreamNonBlocking, priority),
                "a stream");
            lanes->stream_count++;
        }
        lanes->of_lane[lane] = known < 0 ? lanes->stream_count - 1 : known;
    }
    return STATUS_OK;
}

Status cuda_lanes_open(const StepProgram *program, Arena *arena, CudaLanes *lanes, Error *error) {
    *lanes = (CudaLanes){.of_lane = ARENA_ARRAY(arena, int, program->lane_count),
                         .first_slot = step_event_slots(program, arena)};
    TRY(streams_open(program, lanes, error));
    const int32_t slots = lanes->first_slot[program->event_count];
    lanes->events = ARENA_ARRAY(arena, cudaEvent_t, slots + 1);
    for (; lanes->slot_count < slots; lanes->slot_count++) {
        CUDA_TRY(cudaEventCreateWithFlags(&lanes->events[lanes->slot_count], cudaEventDisableTiming), "an event");
    }
    return STATUS_OK;
}

void cuda_lanes_close(CudaLanes *lanes) {
    for (int32_t i = 0; i < lanes->slot_count; i++) {
        cudaEventDestroy(lanes->events[i]);
    }
    for (int i = 0; i < lanes->stream_count; i++) {
        cudaStreamDestroy(lanes->streams[i]);
    }
}

int32_t cuda_event_slot(const CudaLanes *lanes, const StepProgram *program, const EventRef *ref,
                        const StepInstance *instance) {
    return step_event_slot(program, lanes->first_slot, ref, instance);
}
