// Stores and loads of the progress table, and its words.

#define _GNU_SOURCE  // gethostname

#include "exec/transport/progress_table.h"

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

static void put_place(ProgressPlace *at, const TransportPlace *place) {
    put(&at->step, place->step);
    put(&at->layer, place->layer);
    put(&at->micro_step, place->micro_step);
    put(&at->ordinal, place->ordinal);
    put(&at->task, place->task);
}

void progress_row_begin(ProgressRow *rank) {
    memset(rank, 0, sizeof *rank);
    put(&rank->place.step, -1);
    put(&rank->place.task, -1);
    for (int i = 0; i < TRANSPORT_MAX_COMMUNICATORS; i++) {
        put(&rank->cells[i].kind, -1);
        put(&rank->cells[i].place.task, -1);
    }
}

void progress_row_join(ProgressRow *rank) {
    if (gethostname(rank->host, sizeof rank->host - 1) != 0) {
        rank->host[0] = '\0';
    }
    put(&rank->process, (int)getpid());
    atomic_fetch_add(&rank->progress, 1);
}

void progress_row_meet(ProgressRow *rank, bool meeting) {
    put(&rank->meeting, meeting);
    atomic_fetch_add(&rank->progress, 1);
}

void progress_row_note(ProgressRow *rank, const TransportPlace *place) {
    put_place(&rank->place, place);
    atomic_fetch_add_explicit(&rank->progress, 1, memory_order_release);
}

static void show_call(ProgressCell *cell, TransportKind kind, const TransportCall *call) {
    put(&cell->kind, (int)kind);
    put_place(&cell->place, &call->place);
    atomic_store_explicit(&cell->bytes, kind == COLLECTIVE_BARRIER ? 0 : call->bytes, memory_order_relaxed);
}

void progress_cell_enter(ProgressCell *cell, const Communicator *communicator, TransportKind kind,
                         const TransportCall *call) {
    const unsigned begins = atomic_load_explicit(&cell->rounds, memory_order_relaxed);
    show_call(cell, kind, call);
    atomic_store_explicit(&cell->signature[begins & 1], collective_signature(communicator, kind, call),
                          memory_order_relaxed);
    atomic_fetch_add_explicit(&cell->collectives, 1, memory_order_release);
    atomic_store_explicit(&cell->inside, 1, memory_order_release);
}

void progress_cell_leave(ProgressRow *rank, ProgressCell *cell) {
    atomic_store_explicit(&cell->inside, 0, memory_order_release);
    atomic_fetch_add_explicit(&rank->progress, 1, memory_order_release);
}

void progress_cell_enter_message(ProgressCell *cell, TransportKind kind, const TransportCall *call, int peer_rank) {
    show_call(cell, kind, call);
    put(&cell->peer, peer_rank);
    atomic_store_explicit(&cell->inside, 1, memory_order_release);
}

void progress_cell_count_message(ProgressCell *cell) {
    atomic_fetch_add_explicit(&cell->messages, 1, memory_order_release);
}

TransportPlace progress_place(ProgressPlace *place) {
    return (TransportPlace){.step = get(&place->step),
                            .task = get(&place->task),
                            .layer = get(&place->layer),
                            .micro_step = get(&place->micro_step),
                            .ordinal = get(&place->ordinal)};
}

uint64_t collective_signature(const Communicator *communicator, TransportKind kind, const TransportCall *call) {
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

static const char *place_words(const ProgressTable *table, int rank, const TransportPlace *place, char *out,
                               size_t out_bytes) {
    out[0] = '\0';
    return table->words.describe ? table->words.describe(table->words.context, rank, place, out, out_bytes) : out;
}

const char *progress_cell_words(const ProgressTable *table, int rank, ProgressCell *cell, char *out, size_t out_bytes) {
    const int kind = get(&cell->kind);
    char place[160], size[TEXT_UNIT_BYTES], peer[32] = "";
    if (kind < 0 || kind >= COLLECTIVE_COUNT) {
        snprintf(out, out_bytes, "no collective yet");
        return out;
    }
    const TransportPlace at = progress_place(&cell->place);
    place_words(table, rank, &at, place, sizeof place);
    if (is_message((TransportKind)kind)) {
        snprintf(peer, sizeof peer, " %s rank %d", kind == COLLECTIVE_SEND ? "to" : "from", get(&cell->peer));
    }
    const double bytes = (double)atomic_load_explicit(&cell->bytes, memory_order_relaxed);
    snprintf(out, out_bytes, "%s%s%s%s%s%s%s", collective_names[kind], kind == COLLECTIVE_BARRIER ? "" : " of ",
             kind == COLLECTIVE_BARRIER ? "" : text_bytes(size, bytes), peer, *place ? " (" : "", place,
             *place ? ")" : "");
    return out;
}

const char *progress_row_words(const ProgressTable *table, int rank, bool place, char *out, size_t out_bytes) {
    ProgressRow *shown = &table->ranks[rank];
    char words[160] = "", stage[32] = "";
    const TransportPlace at = progress_place(&shown->place);
    if (place) {
        place_words(table, rank, &at, words, sizeof words);
    }
    if (mesh_stages(&table->mesh) > 1) {
        snprintf(stage, sizeof stage, ", stage %d", mesh_stage_of(&table->mesh, rank));
    }
    snprintf(out, out_bytes, "rank %d%s%s%s%s%s%s", rank, *shown->host ? " on " : "", shown->host, stage,
             *words ? " (last seen in " : "", words, *words ? ")" : "");
    return out;
}
