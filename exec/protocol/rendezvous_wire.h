// What travels between the launcher and ranks it did not start itself (mpirun, srun, torchrun did): frames over TCP. A
// rank says hello with the run's token and gets the request; from then on, including while it prepares, it sends its
// row of the progress table several times a second, and anything it has to report. A disconnect without goodbye means
// that the rank died. Both programs are of one build: sizes are checked, layouts are not translated.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exec/transport/progress_table.h"

enum { RENDEZVOUS_TOKEN_BYTES = 33, RENDEZVOUS_MOST_BYTES = 1 << 30 };

typedef enum {
    RENDEZVOUS_HELLO,    // rank: RendezvousHello
    RENDEZVOUS_REQUEST,  // launcher: the request, JSON
    RENDEZVOUS_ROW,      // rank: ProgressRow
    RENDEZVOUS_FAILURE,  // rank: JSON
    RENDEZVOUS_RESULT,   // rank 0: JSON
    RENDEZVOUS_SHARE,    // rank 0: bytes sent on to every other rank, once
    RENDEZVOUS_GOODBYE,  // rank: finished successfully
} RendezvousKind;

typedef struct RendezvousFrame {
    uint32_t kind;
    uint32_t bytes;  // that follow
} RendezvousFrame;

typedef struct RendezvousHello {
    char token[RENDEZVOUS_TOKEN_BYTES];
    int32_t rank, process;
    uint32_t row_bytes;
    char host[PROGRESS_HOST_BYTES];
} RendezvousHello;

// Sent before its body, whole; false: the peer is gone, or accepts nothing for as long as the socket's limit.
bool rendezvous_frame_send(int fd, RendezvousKind kind, const void *body, size_t bytes);

static const char RENDEZVOUS_VARIABLE[] =
    "NDTUNE_RENDEZVOUS";  // "PORT TOKEN ADDRESS ADDRESS ...", in the environment of the ranks
static const char WORKER_PROCESS_NAME[] = "ndtune-worker";  // of a rank in /proc/PID/comm, by which its host kills it
