// A rank's side of the post (exec/launch/post_wire.h): fetches the request, then shows the rank's row several times a
// second from a thread of its own, so that a rank that prepares for minutes is alive, one that hangs in compute is
// seen, and one that is stopped falls silent. The process ends at once when the launcher is gone.

#pragma once

#include <jansson.h>
#include <pthread.h>

#include "exec/launch/post_wire.h"

typedef struct PostClient {
    int fd, rank;
    pthread_t thread;
    pthread_mutex_t sending;
    BoardRank row;  // that it shows; host and process stand in it from the start
    atomic_int closing;
    bool watching;
} PostClient;

// setting: the value of POST_VARIABLE. *request: its text, to be freed.
Status post_join(PostClient *client, const char *setting, int rank, char **request, Error *error);
Status post_watch(PostClient *client, Error *error);  // starts the thread
// Rank 0's bytes become everybody's, once; other ranks wait for them.
Status post_share(void *client, void *data, size_t bytes, Error *error);
Status post_send_json(PostClient *client, PostKind kind, const json_t *root, Error *error);
void post_leave(PostClient *client);  // says goodbye
