// Stores and loads of the progress table, and its text.

#define _GNU_SOURCE  // gethostname

#include "exec/transport/progress_table.h"

#include <string.h>
#include <unistd.h>

#include "sim/base/hash.h"
#include "sim/base/text.h"

const char *const collective_names[TRANSPORT_COUNT] = {"all-gather", "reduce-scatter", "all-reduce", "send-receive",
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

ProgressTable progress_table_from(const TransportSetup *setup, ProgressRow *ranks) {
    return (ProgressTable){.mesh = setup->mesh,
                           .communicators = setup->communicators,
                           .communicator_count = setup->communicator_count,
                           .ranks = ranks,
                           .own = setup->row,
                           .ordered = !setup->concurrent,
                           .words = setup->words};
}

// ---------------------------------------------------------------------------------------------- writing

void progress_row_begin(ProgressRow *row) {
    memset(row, 0, sizeof *row);
    put(&row->place.step, -1);
    put(&row->place.task, -1);
    for (int i = 0; i < TRANSPORT_MAX_COMMUNICATORS; i++) {
        put(&row->cells[i].kind, -1);
        put(&row->cells[i].place.task, -1);
    }
}

void progress_row_join(ProgressRow *row) {
    if (gethostname(row->host, sizeof row->host - 1) != 0) {
        row->host[0] = '\0';
    }
    put(&row->process, (int)getpid());
    atomic_fetch_add(&row->progress, 1);
}

void progress_row_meet(ProgressRow *row, bool meeting) {
    put(&row->meeting, meeting);
    atomic_fetch_add(&row->progress, 1);
}

void progress_row_note(ProgressRow *row, const TransportPlace *place) {
    put_place(&row->place, place);
    atomic_fetch_add_explicit(&row->progress, 1, memory_order_release);
}

void progress_cell_enter(ProgressCell *cell, const Communicator *communicator, TransportKind kind,
                         const TransportCall *call, int peer) {
    put(&cell->kind, (int)kind);
    put(&cell->peer, peer);
    put_place(&cell->place, &call->place);
    atomic_store_explicit(&cell->bytes, kind == TRANSPORT_BARRIER ? 0 : call->bytes, memory_order_relaxed);
    if (!is_message(kind)) {
        const unsigned begins = atomic_load_explicit(&cell->rounds, memory_order_relaxed);
        atomic_store_explicit(&cell->signature[begins & 1], collective_signature(communicator, kind, call),
                              memory_order_relaxed);
    }
    atomic_store_explicit(&cell->inside, 1, memory_order_release);
}

unsigned progress_cell_round(ProgressCell *cell) {
    return atomic_fetch_add_explicit(&cell->rounds, 1, memory_order_release) + 1;
}

void progress_cell_count_message(ProgressCell *cell) {
    atomic_fetch_add_explicit(&cell->messages, 1, memory_order_release);
}

void progress_cell_leave(ProgressRow *row, ProgressCell *cell) {
    atomic_store_explicit(&cell->inside, 0, memory_order_release);
    atomic_fetch_add_explicit(&row->progress, 1, memory_order_release);
}

uint64_t collective_signature(const Communicator *communicator, TransportKind kind, const TransportCall *call) {
    const bool same_task = !is_message(kind) && !communicator->across_stages;
    const int64_t parts[] = {is_message(kind) ? (int64_t)TRANSPORT_SEND : (int64_t)kind,
                             kind == TRANSPORT_BARRIER ? 0 : call->bytes,
                             (int64_t)call->op,
                             call->place.step,
                             same_task ? call->place.task : 0,
                             same_task ? call->place.layer : 0,
                             call->place.micro_step};
    Hash hash = hash_begin();
    hash_ints(&hash, parts, sizeof parts / sizeof *parts);
    return hash_end(&hash);
}

// ---------------------------------------------------------------------------------------------- reading

static TransportPlace get_place(ProgressPlace *place) {
    return (TransportPlace){.step = get(&place->step),
                            .task = get(&place->task),
                            .layer = get(&place->layer),
                            .micro_step = get(&place->micro_step),
                            .ordinal = get(&place->ordinal)};
}

ProgressView progress_view(ProgressCell *cell) {
    return (ProgressView){.inside = atomic_load(&cell->inside) != 0,
                          .kind = get(&cell->kind),
                          .peer = get(&cell->peer),
                          .rounds = atomic_load(&cell->rounds),
                          .messages = atomic_load(&cell->messages),
                          .bytes = (int64_t)atomic_load_explicit(&cell->bytes, memory_order_relaxed),
                          .place = get_place(&cell->place)};
}

ProgressRow *progress_row(const ProgressTable *table, int rank) {
    return table->ranks ? &table->ranks[rank] : table->own;
}

ProgressView progress_look(const ProgressTable *table, int rank, int communicator) {
    return progress_view(&progress_row(table, rank)->cells[communicator]);
}

TransportPlace progress_place(const ProgressTable *table, int rank) {
    return get_place(&progress_row(table, rank)->place);
}

int progress_inside(const ProgressTable *table, int rank) {
    for (int c = 0; c < table->communicator_count; c++) {
        if (atomic_load(&progress_row(table, rank)->cells[c].inside)) {
            return c;
        }
    }
    return -1;
}

// " (step 1, task 'mlp down', layer 0)".
static const char *place_words(const ProgressTable *table, int rank, const char *before, const TransportPlace *place,
                               char out[200]) {
    char words[160];
    out[0] = '\0';
    if (table->words.describe) {
        snprintf(out, 200, " (%s%s)", before,
                 table->words.describe(table->words.context, rank, place, words, sizeof words));
    }
    return out;
}

ProgressWords progress_call_words(const ProgressTable *table, int rank, ProgressView call) {
    ProgressWords words = {.text = "no collective yet"};
    char place[200], size[TEXT_UNIT_BYTES], peer[32] = "";
    const bool sized = call.kind != TRANSPORT_BARRIER;
    if (call.kind < 0 || call.kind >= TRANSPORT_COUNT) {
        return words;
    }
    if (is_message((TransportKind)call.kind)) {
        snprintf(peer, sizeof peer, " %s rank %d", call.kind == TRANSPORT_SEND ? "to" : "from", call.peer);
    }
    snprintf(words.text, sizeof words.text, "%s%s%s%s%s", collective_names[call.kind], sized ? " of " : "",
             sized ? text_bytes(size, (double)call.bytes) : "", peer, place_words(table, rank, "", &call.place, place));
    return words;
}

ProgressWords progress_row_words(const ProgressTable *table, int rank, bool place) {
    const TransportPlace at = progress_place(table, rank);
    const char *host = progress_row(table, rank)->host;
    ProgressWords words;
    char seen[200], stage[32] = "";
    if (mesh_has_stages(&table->mesh)) {
        snprintf(stage, sizeof stage, ", stage %d", mesh_stage_of(&table->mesh, rank));
    }
    snprintf(words.text, sizeof words.text, "rank %d%s%s%s%s", rank, *host ? " on " : "", host, stage,
             place ? place_words(table, rank, "last seen in ", &at, seen) : "");
    return words;
}

void progress_list_add(char *list, size_t bytes, const char *words) {
    const size_t used = strlen(list);
    snprintf(list + used, bytes - used, "%s%s", used ? ", " : "", words);
}
