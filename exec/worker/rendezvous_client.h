// A rank's side of the rendezvous (exec/protocol/rendezvous_wire.h): fetches the request, then sends the rank's row
// several times a second from its own thread, so that a rank that prepares for minutes counts as alive, one that hangs
// in compute is noticed, and one that is stopped falls silent. The process exits at once when the launcher is gone.

#pragma once

#include <jansson.h>
#include <pthread.h>

#include "exec/protocol/rendezvous_wire.h"

typedef struct RendezvousClient {
    int fd, rank;
    pthread_t thread;
    pthread_mutex_t sending;
    ProgressRow row;  // the row it sends; host and process are set from the start
    atomic_int closing;
    bool watching;
} RendezvousClient;

// setting: the value of RENDEZVOUS_VARIABLE. *request: its text, freed by the caller.
Status rendezvous_join(RendezvousClient *client, const char *setting, int rank, char **request, Error *error);
Status rendezvous_watch(RendezvousClient *client, Error *error);  // starts the thread
// Broadcasts rank 0's bytes, once; other ranks wait for them.
Status rendezvous_share(void *client, void *data, size_t bytes, Error *error);
Status rendezvous_send_json(RendezvousClient *client, RendezvousKind kind, const json_t *root, Error *error);
void rendezvous_leave(RendezvousClient *client);  // says goodbye
