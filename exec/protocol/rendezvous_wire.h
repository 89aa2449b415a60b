// What travels between the launcher and ranks that it did not start by itself (mpirun, srun, torchrun did): frames over
// TCP. A rank says hello with the run's token and gets the request; from then on, while it prepares as well, it shows
// its row of the progress table several times a second, and brings what it has to say. An end without goodbye means
// that the rank died. The two programs are of one build: sizes are checked, layouts are not translated.

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
    RENDEZVOUS_SHARE,    // rank 0: bytes that every other rank gets in turn, once
    RENDEZVOUS_GOODBYE,  // rank: it is done and ends well
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

// In front of its body, all of it; false: the other side is gone, or takes nothing for as long as the socket's limit.
bool rendezvous_frame_send(int fd, RendezvousKind kind, const void *body, size_t bytes);

static const char RENDEZVOUS_VARIABLE[] =
    "NDTUNE_RENDEZVOUS";  // "PORT TOKEN ADDRESS ADDRESS ...", in the environment of the ranks
static const char WORKER_PROCESS_NAME[] = "ndtune-worker";  // of a rank in /proc/PID/comm, by which its host ends it
