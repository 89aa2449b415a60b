// One poll over the listening socket and a connection per rank. Connections prove themselves with the token first; a
// frame is kept until it is whole.

#define _GNU_SOURCE  // accept4, getrandom

#include "exec/launch/post.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exec/launch/post_address.h"
#include "exec/transport/clock.h"

enum { STRANGERS = 64, SETTING_BYTES = 1024, SEND_TIMEOUT_S = 5, BACKLOG = 1024 };
static const double HELLO_S = 0.5;  // a rank says hello as soon as it is connected: its line is its own for so long

// A connection: of a rank once it said hello, else of a stranger.
typedef struct Line {
    int fd;          // -1 = free
    int rank;        // -1 = stranger
    double since_s;  // clock when it was accepted
    size_t have, room;
    char *bytes;  // frames that have come, the last perhaps in part
} Line;

struct Post {
    int world, listen_fd, line_count;
    Line *lines;  // world + STRANGERS
    PostRank *ranks;
    BoardRank *board;
    const char *request;
    char *failure, *result;
    char *shared;  // what rank 0 has for all others; NULL before it came
    size_t shared_bytes;
    int first_lost;
    double served_s;  // clock of the last look
    char token[POST_TOKEN_BYTES], setting[SETTING_BYTES];
};

// ---------------------------------------------------------------------------------------------- open and close

static Status token_make(char token[POST_TOKEN_BYTES], Error *error) {
    unsigned char random[(POST_TOKEN_BYTES - 1) / 2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return error_set(error, STATUS_ENVIRONMENT, "no random numbers: %s", strerror(errno));
    }
    for (size_t i = 0; i < sizeof random; i++) {
        snprintf(token + 2 * i, 3, "%02x", random[i]);
    }
    return STATUS_OK;
}

static Status post_listen(Post *post, uint32_t on, Error *error) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(on)};
    socklen_t bytes = sizeof address;
    post->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (post->listen_fd < 0 || bind(post->listen_fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(post->listen_fd, BACKLOG) != 0 ||
        getsockname(post->listen_fd, (struct sockaddr *)&address, &bytes) != 0) {
        return error_set(error, STATUS_ENVIRONMENT, "cannot listen for ranks: %s", strerror(errno));
    }
    TRY(token_make(post->token, error));
    snprintf(post->setting, sizeof post->setting, "%d %s", ntohs(address.sin_port), post->token);
    post_address_words(on, post->setting, sizeof post->setting);
    return STATUS_OK;
}

Status post_open(int world, uint32_t address, const char *request, Arena *arena, Post **opened, Error *error) {
    Post *post = ARENA_NEW(arena, Post);
    *opened = post;
    post->world = world;
    post->listen_fd = -1;
    post->request = request;
    post->first_lost = -1;
    post->line_count = world + STRANGERS;
    post->lines = ARENA_ARRAY(arena, Line, post->line_count);
    post->ranks = ARENA_ARRAY(arena, PostRank, world);
    for (int i = 0; i < post->line_count; i++) {
        post->lines[i] = (Line){.fd = -1, .rank = -1};
    }
    post->board = aligned_alloc(BOARD_LINE_BYTES, (size_t)world * sizeof(BoardRank));
    if (!post->board) {
        return error_set(error, STATUS_INTERNAL, "no memory for the board");
    }
    for (int rank = 0; rank < world; rank++) {
        post->ranks[rank].fd = -1;
        board_rank_begin(&post->board[rank]);
    }
    post->served_s = clock_s();
    return post_listen(post, address, error);
}

static void line_end(Post *post, Line *line) {
    PostRank *rank = line->rank >= 0 ? &post->ranks[line->rank] : NULL;
    if (rank) {
        rank->fd = -1;
        rank->lost = !rank->done;
        if (rank->lost && post->first_lost < 0) {
            post->first_lost = line->rank;
        }
    }
    close(line->fd);
    free(line->bytes);
    *line = (Line){.fd = -1, .rank = -1};
}

void post_lines_close(Post *post) {
    for (int i = 0; post && i < post->line_count; i++) {
        if (post->lines[i].fd >= 0) {
            line_end(post, &post->lines[i]);
        }
    }
    if (post && post->listen_fd >= 0) {
        close(post->listen_fd);
        post->listen_fd = -1;
    }
}

void post_close(Post *post) {
    if (!post) {
        return;
    }
    post_lines_close(post);
    free(post->board);
    free(post->failure);
    free(post->result);
    free(post->shared);
}

// ---------------------------------------------------------------------------------------------- frames

// What ranks get is small and they wait for it: a blocking send with a time limit.
static bool frame_send(int fd, PostKind kind, const void *body, size_t bytes) {
    const PostFrame frame = {.kind = (uint32_t)kind, .bytes = (uint32_t)bytes};
    const struct timeval limit = {.tv_sec = SEND_TIMEOUT_S};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return send(fd, &frame, sizeof frame, MSG_NOSIGNAL | MSG_MORE) == (ssize_t)sizeof frame &&
           send(fd, body, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

// A rank that cannot be reached is found lost by its line.
static void share(Post *post, const char *body, size_t bytes) {
    if (post->shared || !(post->shared = malloc(bytes + 1))) {
        return;
    }
    memcpy(post->shared, body, bytes);
    post->shared_bytes = bytes;
    for (int rank = 1; rank < post->world; rank++) {
        if (post->ranks[rank].fd >= 0) {
            frame_send(post->ranks[rank].fd, POST_SHARE, post->shared, bytes);
        }
    }
}

static bool hello(Post *post, Line *line, const PostFrame *frame, const char *body) {
    PostHello said;
    if (frame->kind != POST_HELLO || frame->bytes != sizeof said) {
        return false;
    }
    memcpy(&said, body, sizeof said);
    said.token[POST_TOKEN_BYTES - 1] = '\0';
    const bool known = strcmp(said.token, post->token) == 0 && said.row_bytes == sizeof(BoardRank) && said.rank >= 0 &&
                       said.rank < post->world && !post->ranks[said.rank].came;
    if (!known || !frame_send(line->fd, POST_REQUEST, post->request, strlen(post->request)) ||
        (post->shared && !frame_send(line->fd, POST_SHARE, post->shared, post->shared_bytes))) {
        return false;
    }
    line->rank = said.rank;
    BoardRank *row =
        &post->board[said.rank];  // its first row is under way: who is stopped before has a name and a host
    memcpy(row->host, said.host, sizeof row->host);
    row->host[sizeof row->host - 1] = '\0';
    atomic_store(&row->process, said.process);
    post->ranks[said.rank].came = true;
    post->ranks[said.rank].fd = line->fd;
    return true;
}

static void keep_first(char **kept, const char *body, size_t bytes) {
    if (!*kept) {
        *kept = strndup(body, bytes);
    }
}

// False ends the line: a stranger, or a frame that no rank sends.
static bool frame_take(Post *post, Line *line, const PostFrame *frame, const char *body) {
    if (line->rank < 0) {
        return hello(post, line, frame, body);
    }
    PostRank *rank = &post->ranks[line->rank];
    rank->silent_s = 0;
    switch ((PostKind)frame->kind) {
    case POST_ROW:
        if (frame->bytes == sizeof(BoardRank)) {
            memcpy(&post->board[line->rank], body, sizeof(BoardRank));
        }
        return frame->bytes == sizeof(BoardRank);
    case POST_FAILURE:
        rank->done = true;  // what follows is an end that has its reason
        keep_first(&post->failure, body, frame->bytes);
        return true;
    case POST_RESULT:
        keep_first(&post->result, body, frame->bytes);
        return true;
    case POST_SHARE:
        share(post, body, frame->bytes);
        return line->rank == 0;
    case POST_GOODBYE:
        rank->done = true;
        return true;
    case POST_HELLO:
    case POST_REQUEST:
        break;
    }
    return false;
}

static bool frames_take(Post *post, Line *line) {
    size_t at = 0;
    bool well = true;
    while (well && line->have - at >= sizeof(PostFrame)) {
        PostFrame frame;
        memcpy(&frame, line->bytes + at, sizeof frame);
        if (frame.bytes > (line->rank < 0 ? sizeof(PostHello) : POST_MOST_BYTES)) {
            return false;
        }
        if (line->have - at - sizeof frame < frame.bytes) {
            break;
        }
        well = frame_take(post, line, &frame, line->bytes + at + sizeof frame);
        at += sizeof frame + frame.bytes;
    }
    memmove(line->bytes, line->bytes + at, line->have - at);
    line->have -= at;
    return well;
}

static bool line_read(Post *post, Line *line) {
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
        if (!frames_take(post, line)) {
            return false;
        }
    }
}

// ---------------------------------------------------------------------------------------------- serving

// A free line; else that of the stranger who has been silent longest, so that strangers keep no rank out; NULL while
// all of them may yet say hello.
static Line *line_free(Post *post) {
    Line *oldest = NULL;
    for (int i = 0; i < post->line_count; i++) {
        Line *line = &post->lines[i];
        if (line->fd < 0) {
            return line;
        }
        oldest = line->rank < 0 && (!oldest || line->since_s < oldest->since_s) ? line : oldest;
    }
    return oldest && clock_s() - oldest->since_s > HELLO_S ? oldest : NULL;
}

static void lines_accept(Post *post) {
    const int one = 1;
    for (Line *line = line_free(post); line; line = line_free(post)) {
        const int fd = accept4(post->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
            return;
        }
        if (line->fd >= 0) {
            line_end(post, line);
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        *line = (Line){.fd = fd, .rank = -1, .since_s = clock_s()};
    }
}

// Silence counts only while this process looks: a pause of its own is nobody's silence.
static void silence_count(Post *post) {
    const double now_s = clock_s(), past_s = now_s - post->served_s;
    post->served_s = now_s;
    for (int rank = 0; rank < post->world && past_s < 1; rank++) {
        post->ranks[rank].silent_s += post->ranks[rank].came && !post->ranks[rank].done ? past_s : 0;
    }
}

void post_serve(Post *post, double wait_s) {
    struct pollfd sets[TRANSPORT_MAX_WORLD + STRANGERS + 1] = {
        {.fd = line_free(post) ? post->listen_fd : -1, .events = POLLIN}};
    for (int i = 0; i < post->line_count; i++) {
        sets[i + 1] = (struct pollfd){.fd = post->lines[i].fd, .events = POLLIN};
    }
    silence_count(post);
    if (poll(sets, (nfds_t)post->line_count + 1, (int)(wait_s * 1000)) <= 0) {
        return;
    }
    for (int i = 0; i < post->line_count; i++) {
        if (sets[i + 1].fd >= 0 && sets[i + 1].revents != 0 && !line_read(post, &post->lines[i])) {
            line_end(post, &post->lines[i]);
        }
    }
    if (sets[0].revents & POLLIN) {
        lines_accept(post);
    }
}

const char *post_setting(const Post *post) {
    return post->setting;
}

BoardRank *post_board(const Post *post) {
    return post->board;
}

const PostRank *post_rank(const Post *post, int rank) {
    return &post->ranks[rank];
}

const char *post_failure(const Post *post) {
    return post->failure;
}

const char *post_result(const Post *post) {
    return post->result;
}

int post_first_lost(const Post *post) {
    return post->first_lost;
}
