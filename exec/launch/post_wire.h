// What travels between the launcher and ranks that it did not start by itself (mpirun, srun, torchrun did): frames over
// TCP. A rank says hello with the run's token and gets the request; from then on, while it prepares as well, it shows
// its row of the board several times a second, and brings what it has to say. An end without goodbye means that the
// rank died. The two programs are of one build: sizes are checked, layouts are not translated.

#pragma once

#include <stdint.h>

#include "exec/transport/board.h"

enum { POST_TOKEN_BYTES = 33, POST_MOST_BYTES = 1 << 30 };

typedef enum {
    POST_HELLO,    // rank: PostHello
    POST_REQUEST,  // launcher: the request, JSON
    POST_ROW,      // rank: BoardRank
    POST_FAILURE,  // rank: JSON
    POST_RESULT,   // rank 0: JSON
    POST_SHARE,    // rank 0: bytes that every other rank gets in turn, once
    POST_GOODBYE,  // rank: it is done and ends well
} PostKind;

typedef struct PostFrame {
    uint32_t kind;
    uint32_t bytes;  // that follow
} PostFrame;

typedef struct PostHello {
    char token[POST_TOKEN_BYTES];
    int32_t rank, process;
    uint32_t row_bytes;
    char host[BOARD_HOST_BYTES];
} PostHello;

static const char POST_VARIABLE[] = "NDTUNE_POST";  // "PORT TOKEN ADDRESS ADDRESS ...", in the environment of the ranks
static const char WORKER_PROCESS_NAME[] = "ndtune-worker";  // of a rank in /proc/PID/comm, by which its host ends it
