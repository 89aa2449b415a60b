// Blocking sends under a mutex; the thread sleeps in poll and so notices the launcher's end at once.

#define _GNU_SOURCE  // MSG_NOSIGNAL in strict C

#include "exec/worker/rendezvous_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sim/base/clock.h"

enum { ROW_EVERY_MS = 50, CONNECT_MS = 3000, REQUEST_MS = 20000, SHARE_MS = 120000, LAUNCHER_GONE_CODE = 3 };

// ---------------------------------------------------------------------------------------------- joining

static int connect_to(const char *address, int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, address, &to.sin_addr) != 1) {
        return -1;
    }
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
    int failed = 0;
    socklen_t bytes = sizeof failed;
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) != 0) {
        struct pollfd set = {.fd = fd, .events = POLLOUT};
        failed = errno != EINPROGRESS || poll(&set, 1, CONNECT_MS) != 1 ||
                 getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &bytes) != 0 || failed != 0;
    }
    if (fd >= 0 && failed) {
        close(fd);
        return -1;
    }
    if (fd >= 0) {
        fcntl(fd, F_SETFL, 0);  // blocking from now on
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    return fd;
}

static bool receive_all(int fd, void *data, size_t bytes) {
    char *at = data;
    while (bytes > 0) {
        struct pollfd set = {.fd = fd, .events = POLLIN};
        const ssize_t got = poll(&set, 1, REQUEST_MS) == 1 ? recv(fd, at, bytes, 0) : 0;
        if (got <= 0) {
            return false;
        }
        at += got;
        bytes -= (size_t)got;
    }
    return true;
}

static char *request_receive(int fd) {
    RendezvousFrame frame;
    if (!receive_all(fd, &frame, sizeof frame) || frame.kind != RENDEZVOUS_REQUEST ||
        frame.bytes > RENDEZVOUS_MOST_BYTES) {
        return NULL;
    }
    char *text = malloc((size_t)frame.bytes + 1);
    if (text && !receive_all(fd, text, frame.bytes)) {
        free(text);
        return NULL;
    }
    if (text) {
        text[frame.bytes] = '\0';
    }
    return text;
}

// "PORT TOKEN ADDRESS ...": the token must not be printed.
static Status unreachable(const char *setting, Error *error) {
    const char *token = strchr(setting, ' '), *addresses = token ? strchr(token + 1, ' ') : NULL;
    return error_set(error, STATUS_ENVIRONMENT,
                     "cannot reach the launcher on port %.*s of any of its addresses%s: a firewall between the hosts "
                     "must let TCP through",
                     (int)strcspn(setting, " "), setting, addresses ? addresses : "");
}

Status rendezvous_join(RendezvousClient *client, const char *setting, int rank, char **request, Error *error) {
    char words[1024], *rest = words;
    *client = (RendezvousClient){.fd = -1, .rank = rank};
    *request = NULL;
    snprintf(words, sizeof words, "%s", setting);
    const char *port = strtok_r(rest, " ", &rest), *token = strtok_r(rest, " ", &rest);
    progress_row_begin(&client->row);
    progress_row_join(&client->row);
    RendezvousHello hello = {.rank = rank, .process = (int32_t)getpid(), .row_bytes = sizeof(ProgressRow)};
    memcpy(hello.host, client->row.host, sizeof hello.host);
    snprintf(hello.token, sizeof hello.token, "%s", token ? token : "");
    for (const char *address = strtok_r(rest, " ", &rest); port && address && !*request;
         address = strtok_r(rest, " ", &rest)) {
        client->fd = connect_to(address, (int)strtol(port, NULL, 10));
        if (client->fd >= 0 && rendezvous_frame_send(client->fd, RENDEZVOUS_HELLO, &hello, sizeof hello)) {
            *request = request_receive(client->fd);
        }
        if (client->fd >= 0 && !*request) {
            close(client->fd);
            client->fd = -1;
        }
    }
    pthread_mutex_init(&client->sending, NULL);
    return *request ? STATUS_OK : unreachable(setting, error);
}

// ---------------------------------------------------------------------------------------------- the thread

static bool row_send(RendezvousClient *client) {
    pthread_mutex_lock(&client->sending);
    const bool sent = rendezvous_frame_send(client->fd, RENDEZVOUS_ROW, &client->row, sizeof client->row);
    pthread_mutex_unlock(&client->sending);
    return sent;
}

// True when the launcher is gone; any other data from it is for rendezvous_share, which is about to read it.
static bool line_ended(int fd) {
    struct pollfd set = {.fd = fd, .events = POLLIN};
    if (poll(&set, 1, ROW_EVERY_MS) != 1) {
        return false;
    }
    char first;
    const bool more = (set.revents & POLLIN) && recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
    if (more) {
        clock_nap(1e-3 * ROW_EVERY_MS);
    }
    return !more;
}

static void *watch_main(void *argument) {
    RendezvousClient *client = argument;
    while (!atomic_load(&client->closing)) {
        const bool ended = line_ended(client->fd);
        if (!atomic_load(&client->closing) && (ended || !row_send(client))) {
            _exit(LAUNCHER_GONE_CODE);
        }
    }
    return NULL;
}

Status rendezvous_watch(RendezvousClient *client, Error *error) {
    FAIL_IF(pthread_create(&client->thread, NULL, watch_main, client) != 0, error, STATUS_ENVIRONMENT,
            "cannot start the thread that reports to the launcher");
    client->watching = true;
    return STATUS_OK;
}

Status rendezvous_share(void *context, void *data, size_t bytes, Error *error) {
    RendezvousClient *client = context;
    if (client->rank == 0) {
        pthread_mutex_lock(&client->sending);
        const bool sent = rendezvous_frame_send(client->fd, RENDEZVOUS_SHARE, data, bytes);
        pthread_mutex_unlock(&client->sending);
        return sent ? STATUS_OK : error_set(error, STATUS_ENVIRONMENT, "the launcher is gone");
    }
    RendezvousFrame frame;
    struct pollfd set = {.fd = client->fd, .events = POLLIN};
    const bool came = poll(&set, 1, SHARE_MS) == 1 && receive_all(client->fd, &frame, sizeof frame) &&
                      frame.kind == RENDEZVOUS_SHARE && frame.bytes == bytes && receive_all(client->fd, data, bytes);
    return came ? STATUS_OK
                : error_set(error, STATUS_ENVIRONMENT, "rank %d got no word from rank 0 within %d s", client->rank,
                            SHARE_MS / 1000);
}

static bool text_send(RendezvousClient *client, RendezvousKind kind, const char *text) {
    pthread_mutex_lock(&client->sending);
    const bool sent = rendezvous_frame_send(client->fd, kind, text, strlen(text));
    pthread_mutex_unlock(&client->sending);
    return sent;
}

Status rendezvous_send_json(RendezvousClient *client, RendezvousKind kind, const json_t *root, Error *error) {
    char *text = root ? json_dumps(root, JSON_REAL_PRECISION(17)) : NULL;
    FAIL_IF(!text, error, STATUS_INTERNAL, "cannot be written as JSON");
    const bool sent = text_send(client, kind, text);
    free(text);
    return sent ? STATUS_OK : error_set(error, STATUS_ENVIRONMENT, "the launcher is gone");
}

void rendezvous_leave(RendezvousClient *client) {
    atomic_store(&client->closing, 1);
    if (client->watching) {
        pthread_join(client->thread, NULL);
    }
    text_send(client, RENDEZVOUS_GOODBYE, "");
    close(client->fd);
    pthread_mutex_destroy(&client->sending);
}
