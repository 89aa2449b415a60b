// One poll over the listening socket and a connection per rank. Connections authenticate with the token first; a frame
// is buffered until it is complete.

#define _GNU_SOURCE  // accept4, getrandom

#include "exec/launch/rendezvous.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exec/launch/rendezvous_address.h"
#include "sim/base/clock.h"

enum { STRANGERS = 64, SEND_TIMEOUT_S = 5, BACKLOG = 1024 };
static const double HELLO_S = 0.5;  // a rank says hello as soon as it is connected: its line is reserved that long

// A connection: a rank's once it said hello, until then a stranger's.
typedef struct Line {
    int fd;          // -1 = free
    int rank;        // -1 = stranger
    double since_s;  // clock when it was accepted
    size_t have, room;
    char *bytes;  // received frames, the last perhaps incomplete
} Line;

// ---------------------------------------------------------------------------------------------- open and close

static Status token_make(char token[RENDEZVOUS_TOKEN_BYTES], Error *error) {
    unsigned char random[(RENDEZVOUS_TOKEN_BYTES - 1) / 2];
    FAIL_IF(getrandom(random, sizeof random, 0) != (ssize_t)sizeof random, error, STATUS_ENVIRONMENT,
            "no random numbers: %s", strerror(errno));
    for (size_t i = 0; i < sizeof random; i++) {
        snprintf(token + 2 * i, 3, "%02x", random[i]);
    }
    return STATUS_OK;
}

static Status rendezvous_listen(Rendezvous *rendezvous, uint32_t on, Error *error) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(on)};
    socklen_t bytes = sizeof address;
    rendezvous->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    FAIL_IF(rendezvous->listen_fd < 0 ||
                bind(rendezvous->listen_fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
                listen(rendezvous->listen_fd, BACKLOG) != 0 ||
                getsockname(rendezvous->listen_fd, (struct sockaddr *)&address, &bytes) != 0,
            error, STATUS_ENVIRONMENT, "cannot listen for ranks: %s", strerror(errno));
    TRY(token_make(rendezvous->token, error));
    snprintf(rendezvous->setting, sizeof rendezvous->setting, "%d %s", ntohs(address.sin_port), rendezvous->token);
    rendezvous_address_words(on, rendezvous->setting, sizeof rendezvous->setting);
    return STATUS_OK;
}

Status rendezvous_open(int world, uint32_t address, const char *request, Arena *arena, Rendezvous **opened,
                       Error *error) {
    Rendezvous *rendezvous = ARENA_NEW(arena, Rendezvous);
    *opened = rendezvous;
    rendezvous->world = world;
    rendezvous->listen_fd = -1;
    rendezvous->request = request;
    rendezvous->first_lost = -1;
    rendezvous->line_count = world + STRANGERS;
    rendezvous->lines = ARENA_ARRAY(arena, Line, rendezvous->line_count);
    rendezvous->ranks = ARENA_ARRAY(arena, RankWatch, world);
    for (int i = 0; i < rendezvous->line_count; i++) {
        rendezvous->lines[i] = (Line){.fd = -1, .rank = -1};
    }
    rendezvous->table = aligned_alloc(PROGRESS_LINE_BYTES, (size_t)world * sizeof(ProgressRow));
    FAIL_IF(!rendezvous->table, error, STATUS_INTERNAL, "no memory for the table");
    for (int rank = 0; rank < world; rank++) {
        progress_row_begin(&rendezvous->table[rank]);
    }
    return rendezvous_listen(rendezvous, address, error);
}

static void line_end(Rendezvous *rendezvous, Line *line) {
    if (line->rank >= 0 && !rendezvous->ranks[line->rank].done && rendezvous->first_lost < 0) {
        rendezvous->first_lost = line->rank;
    }
    close(line->fd);
    free(line->bytes);
    *line = (Line){.fd = -1, .rank = -1};
}

void rendezvous_lines_close(Rendezvous *rendezvous) {
    for (int i = 0; rendezvous && i < rendezvous->line_count; i++) {
        if (rendezvous->lines[i].fd >= 0) {
            line_end(rendezvous, &rendezvous->lines[i]);
        }
    }
    if (rendezvous && rendezvous->listen_fd >= 0) {
        close(rendezvous->listen_fd);
        rendezvous->listen_fd = -1;
    }
}

void rendezvous_close(Rendezvous *rendezvous) {
    if (!rendezvous) {
        return;
    }
    rendezvous_lines_close(rendezvous);
    free(rendezvous->table);
    free(rendezvous->failure);
    free(rendezvous->result);
    free(rendezvous->shared);
}

// ---------------------------------------------------------------------------------------------- frames

// A rank that cannot be reached is later detected as lost through its line.
static void share(Rendezvous *rendezvous, const char *body, size_t bytes) {
    if (rendezvous->shared || !(rendezvous->shared = malloc(bytes + 1))) {
        return;
    }
    memcpy(rendezvous->shared, body, bytes);
    rendezvous->shared_bytes = bytes;
    for (int i = 0; i < rendezvous->line_count; i++) {
        if (rendezvous->lines[i].rank > 0) {
            rendezvous_frame_send(rendezvous->lines[i].fd, RENDEZVOUS_SHARE, rendezvous->shared, bytes);
        }
    }
}

static bool hello(Rendezvous *rendezvous, Line *line, const RendezvousFrame *frame, const char *body) {
    RendezvousHello said;
    if (frame->kind != RENDEZVOUS_HELLO || frame->bytes != sizeof said) {
        return false;
    }
    memcpy(&said, body, sizeof said);
    said.token[RENDEZVOUS_TOKEN_BYTES - 1] = '\0';
    const bool known = strcmp(said.token, rendezvous->token) == 0 && said.row_bytes == sizeof(ProgressRow) &&
                       said.rank >= 0 && said.rank < rendezvous->world && !rendezvous->ranks[said.rank].came;
    if (!known ||
        !rendezvous_frame_send(line->fd, RENDEZVOUS_REQUEST, rendezvous->request, strlen(rendezvous->request)) ||
        (rendezvous->shared &&
         !rendezvous_frame_send(line->fd, RENDEZVOUS_SHARE, rendezvous->shared, rendezvous->shared_bytes))) {
        return false;
    }
    line->rank = said.rank;
    ProgressRow *row =
        &rendezvous->table[said.rank];  // its first row is on its way: a rank stopped before that has a name and a host
    memcpy(row->host, said.host, sizeof row->host);
    row->host[sizeof row->host - 1] = '\0';
    atomic_store(&row->process, said.process);
    rendezvous->ranks[said.rank].came = true;
    return true;
}

static void keep_first(char **kept, const char *body, size_t bytes) {
    if (!*kept) {
        *kept = strndup(body, bytes);
    }
}

// False closes the line: a stranger, or a frame that no rank sends.
static bool frame_take(Rendezvous *rendezvous, Line *line, const RendezvousFrame *frame, const char *body) {
    if (line->rank < 0) {
        return hello(rendezvous, line, frame, body);
    }
    RankWatch *rank = &rendezvous->ranks[line->rank];
    rank->heard = true;
    switch ((RendezvousKind)frame->kind) {
    case RENDEZVOUS_ROW:
        if (frame->bytes == sizeof(ProgressRow)) {
            memcpy(&rendezvous->table[line->rank], body, sizeof(ProgressRow));
        }
        return frame->bytes == sizeof(ProgressRow);
    case RENDEZVOUS_FAILURE:
        rank->done = true;  // a later disconnect has its reason already
        keep_first(&rendezvous->failure, body, frame->bytes);
        return true;
    case RENDEZVOUS_RESULT:
        keep_first(&rendezvous->result, body, frame->bytes);
        return true;
    case RENDEZVOUS_SHARE:
        share(rendezvous, body, frame->bytes);
        return line->rank == 0;
    case RENDEZVOUS_GOODBYE:
        rank->done = true;
        return true;
    case RENDEZVOUS_HELLO:
    case RENDEZVOUS_REQUEST:
        break;
    }
    return false;
}

static bool frames_take(Rendezvous *rendezvous, Line *line) {
    size_t at = 0;
    bool well = true;
    while (well && line->have - at >= sizeof(RendezvousFrame)) {
        RendezvousFrame frame;
        memcpy(&frame, line->bytes + at, sizeof frame);
        if (frame.bytes > (line->rank < 0 ? sizeof(RendezvousHello) : RENDEZVOUS_MOST_BYTES)) {
            return false;
        }
        if (line->have - at - sizeof frame < frame.bytes) {
            break;
        }
        well = frame_take(rendezvous, line, &frame, line->bytes + at + sizeof frame);
        at += sizeof frame + frame.bytes;
    }
    memmove(line->bytes, line->bytes + at, line->have - at);
    line->have -= at;
    return well;
}

static bool line_read(Rendezvous *rendezvous, Line *line) {
    for (;;) {
        if (line->room - line->have < 4096) {
            const size_t room = line->room ? 2 * line->room : 16384;
            char *more = realloc(line->bytes, room);
            if (!more) {
                return false;
            }
            line->bytes = more;
            line->room = room;
        }
        const ssize_t got = recv(line->fd, line->bytes + line->have, line->room - line->have, MSG_DONTWAIT);
        if (got <= 0) {
            return got < 0 && (errno == EAGAIN || errno == EINTR);
        }
        line->have += (size_t)got;
        if (!frames_take(rendezvous, line)) {
            return false;
        }
    }
}

// ---------------------------------------------------------------------------------------------- serving

// A free line; else that of the stranger who has been silent longest, so that strangers cannot keep ranks out; NULL
// while all of them may still say hello.
static Line *line_free(Rendezvous *rendezvous) {
    Line *oldest = NULL;
    for (int i = 0; i < rendezvous->line_count; i++) {
        Line *line = &rendezvous->lines[i];
        if (line->fd < 0) {
            return line;
        }
        oldest = line->rank < 0 && (!oldest || line->since_s < oldest->since_s) ? line : oldest;
    }
    return oldest && clock_s() - oldest->since_s > HELLO_S ? oldest : NULL;
}

static void lines_accept(Rendezvous *rendezvous) {
    const int one = 1;
    const struct timeval limit = {.tv_sec = SEND_TIMEOUT_S};
    for (Line *line = line_free(rendezvous); line; line = line_free(rendezvous)) {
        const int fd = accept4(rendezvous->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
            return;
        }
        if (line->fd >= 0) {
            line_end(rendezvous, line);
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);  // ranks get little data and they wait for it
        *line = (Line){.fd = fd, .rank = -1, .since_s = clock_s()};
    }
}

void rendezvous_serve(Rendezvous *rendezvous, double wait_s) {
    struct pollfd sets[TRANSPORT_MAX_WORLD + STRANGERS + 1] = {
        {.fd = line_free(rendezvous) ? rendezvous->listen_fd : -1, .events = POLLIN}};
    for (int i = 0; i < rendezvous->line_count; i++) {
        sets[i + 1] = (struct pollfd){.fd = rendezvous->lines[i].fd, .events = POLLIN};
    }
    if (poll(sets, (nfds_t)rendezvous->line_count + 1, (int)(wait_s * 1000)) <= 0) {
        return;
    }
    for (int i = 0; i < rendezvous->line_count; i++) {
        if (sets[i + 1].fd >= 0 && sets[i + 1].revents != 0 && !line_read(rendezvous, &rendezvous->lines[i])) {
            line_end(rendezvous, &rendezvous->lines[i]);
        }
    }
    if (sets[0].revents & POLLIN) {
        lines_accept(rendezvous);
    }
}
