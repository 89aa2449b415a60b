// Stores and loads of the board, and its words.

#define _GNU_SOURCE  // gethostname

#include "exec/transport/board.h"

#include <string.h>
#include <unistd.h>

#include "sim/base/hash.h"
#include "sim/base/text.h"

const char *const collective_names[COLLECTIVE_COUNT] = {"all-gather", "reduce-scatter", "all-reduce", "send-receive",
                                                        "barrier",    "send",           "receive",    "all-to-all"};

static void put(atomic_int *at, int value) {
    atomic_store_explicit(at, value, memory_order_relaxed);
}

static int get(atomic_int *at) {
    return atomic_load_explicit(at, memory_order_relaxed);
}

void board_rank_begin(BoardRank *rank) {
    memset(rank, 0, sizeof *rank);
    put(&rank->step, -1);
    put(&rank->task, -1);
    for (int i = 0; i < TRANSPORT_MAX_COMMUNICATORS; i++) {
        put(&rank->seats[i].kind, -1);
        put(&rank->seats[i].task, -1);
    }
}

void board_rank_join(BoardRank *rank) {
    if (gethostname(rank->host, sizeof rank->host - 1) != 0) {
        rank->host[0] = '\0';
    }
    put(&rank->process, (int)getpid());
    atomic_fetch_add(&rank->progress, 1);
}

void board_meet(BoardRank *rank, bool meeting) {
    put(&rank->meeting, meeting);
    atomic_fetch_add(&rank->progress, 1);
}

void board_note(BoardRank *rank, const TransportPlace *place) {
    put(&rank->step, place->step);
    put(&rank->layer, place->layer);
    put(&rank->micro_step, place->micro_step);
    put(&rank->ordinal, place->ordinal);
    put(&rank->task, place->task);
    atomic_fetch_add_explicit(&rank->progress, 1, memory_order_release);
}

static void show_call(BoardSeat *seat, CollectiveKind kind, const TransportCall *call) {
    put(&seat->kind, (int)kind);
    put(&seat->step, call->place.step);
    put(&seat->task, call->place.task);
    put(&seat->layer, call->place.layer);
    put(&seat->micro_step, call->place.micro_step);
    put(&seat->ordinal, call->place.ordinal);
    atomic_store_explicit(&seat->bytes, kind == COLLECTIVE_BARRIER ? 0 : call->bytes, memory_order_relaxed);
}

void board_enter(BoardSeat *seat, const Communicator *communicator, CollectiveKind kind, const TransportCall *call) {
    const unsigned begins = atomic_load_explicit(&seat->rounds, memory_order_relaxed);
    show_call(seat, kind, call);
    atomic_store_explicit(&seat->signature[begins & 1], board_signature(communicator, kind, call),
                          memory_order_relaxed);
    atomic_fetch_add_explicit(&seat->collectives, 1, memory_order_release);
    atomic_store_explicit(&seat->inside, 1, memory_order_release);
}

void board_leave(BoardRank *rank, BoardSeat *seat) {
    atomic_store_explicit(&seat->inside, 0, memory_order_release);
    atomic_fetch_add_explicit(&rank->progress, 1, memory_order_release);
}

void board_message_enter(BoardSeat *seat, CollectiveKind kind, const TransportCall *call, int peer_rank) {
    show_call(seat, kind, call);
    put(&seat->peer, peer_rank);
    atomic_store_explicit(&seat->inside, 1, memory_order_release);
}

void board_message_count(BoardSeat *seat) {
    atomic_fetch_add_explicit(&seat->messages, 1, memory_order_release);
}

TransportPlace board_place(BoardRank *rank) {
    return (TransportPlace){.step = get(&rank->step),
                            .task = get(&rank->task),
                            .layer = get(&rank->layer),
                            .micro_step = get(&rank->micro_step),
                            .ordinal = get(&rank->ordinal)};
}

TransportPlace board_seat_place(BoardSeat *seat) {
    return (TransportPlace){.step = get(&seat->step),
                            .task = get(&seat->task),
                            .layer = get(&seat->layer),
                            .micro_step = get(&seat->micro_step),
                            .ordinal = get(&seat->ordinal)};
}

uint64_t board_signature(const Communicator *communicator, CollectiveKind kind, const TransportCall *call) {
    const bool same_task = !is_message(kind) && !communicator->across_stages;
    const int64_t parts[] = {is_message(kind) ? (int64_t)COLLECTIVE_SEND : (int64_t)kind,
                             kind == COLLECTIVE_BARRIER ? 0 : call->bytes,
                             (int64_t)call->op,
                             call->place.step,
                             same_task ? call->place.task : 0,
                             same_task ? call->place.layer : 0,
                             call->place.micro_step};
    Hash hash = hash_begin();
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        hash_int(&hash, parts[i]);
    }
    return hash_end(&hash);
}

// ---------------------------------------------------------------------------------------------- words

static const char *place_words(const Board *board, int rank, const TransportPlace *place, char *out, size_t out_bytes) {
    out[0] = '\0';
    return board->words.describe ? board->words.describe(board->words.context, rank, place, out, out_bytes) : out;
}

const char *board_collective_words(const Board *board, int rank, BoardSeat *seat, char *out, size_t out_bytes) {
    const int kind = get(&seat->kind);
    char place[160], size[TEXT_UNIT_BYTES], peer[32] = "";
    if (kind < 0 || kind >= COLLECTIVE_COUNT) {
        snprintf(out, out_bytes, "no collective yet");
        return out;
    }
    const TransportPlace at = board_seat_place(seat);
    place_words(board, rank, &at, place, sizeof place);
    if (is_message((CollectiveKind)kind)) {
        snprintf(peer, sizeof peer, " %s rank %d", kind == COLLECTIVE_SEND ? "to" : "from", get(&seat->peer));
    }
    const double bytes = (double)atomic_load_explicit(&seat->bytes, memory_order_relaxed);
    snprintf(out, out_bytes, "%s%s%s%s%s%s%s", collective_names[kind], kind == COLLECTIVE_BARRIER ? "" : " of ",
             kind == COLLECTIVE_BARRIER ? "" : text_bytes(size, bytes), peer, *place ? " (" : "", place,
             *place ? ")" : "");
    return out;
}

const char *board_rank_words(const Board *board, int rank, bool place, char *out, size_t out_bytes) {
    BoardRank *shown = &board->ranks[rank];
    char words[160] = "", stage[32] = "";
    const TransportPlace at = board_place(shown);
    if (place) {
        place_words(board, rank, &at, words, sizeof words);
    }
    if (mesh_stages(&board->mesh) > 1) {
        snprintf(stage, sizeof stage, ", stage %d", mesh_stage_of(&board->mesh, rank));
    }
    snprintf(out, out_bytes, "rank %d%s%s%s%s%s%s", rank, *shown->host ? " on " : "", shown->host, stage,
             *words ? " (last seen in " : "", words, *words ? ")" : "");
    return out;
}
