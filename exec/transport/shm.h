// Shared-memory transport: ranks are processes (or threads) of one machine that map one segment. The launcher creates
// the segment, unlinks its name at once, and passes its descriptor to the workers: nothing can be left behind.

#pragma once

#include "exec/transport/progress_table.h"

extern const TransportTable transport_shm;

const ProgressTable *shm_table_of(const Transport *shm);  // has no rows where there is no segment

// The launcher's side of a segment.
typedef struct ShmSegment {
    int fd;
    void *memory;
    int64_t bytes;
} ShmSegment;

Status shm_segment_create(const Mesh *mesh, const Communicator *communicators, int count, ShmSegment *segment,
                          Error *error);
void shm_segment_destroy(ShmSegment *segment);
void shm_segment_stop(ShmSegment *segment);
ProgressRow *shm_segment_progress_table(const ShmSegment *segment);  // a row per rank
