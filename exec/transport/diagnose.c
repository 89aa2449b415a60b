// A rank inside a collective of which it has entered more rounds than another member waits for that member; one inside
// a message waits for its peer, unless the peer has done its part. Following these edges from a rank that has waited
// too long leads to the ranks that wait for no one: they hang, died, are slow, or are in a different collective than
// the rest of their group. Where the edges form a cycle, a rank skipped a collective and waits further on, or lanes in
// threads prefetch: the culprit is then the one whose place is past the collective in which others wait for it, else
// the one furthest behind overall.

#include "exec/transport/diagnose.h"

enum { NOBODY = -1 };

static bool one_group(const ProgressTable *table, int communicator, int rank, int other) {
    const AxisMask axes = table->communicators[communicator].axes;  // which may be parts of axes
    const MeshCoordinates at = mesh_coordinates(&table->mesh, rank), there = mesh_coordinates(&table->mesh, other);
    return mesh_group_member(&table->mesh, axes, &at, 0) == mesh_group_member(&table->mesh, axes, &there, 0);
}

static bool in_message(const ProgressView *call, int with) {
    return call->inside && is_message((TransportKind)call->kind) && call->peer == with;
}

static bool in_collective(const ProgressView *call) {
    return call->inside && !is_message((TransportKind)call->kind);
}

// A send waits until the previous message was received, a receive until something was sent.
static bool waits_in_message(const ProgressTable *table, int communicator, int rank, int other) {
    const ProgressView own = progress_look(table, rank, communicator),
                       theirs = progress_look(table, other, communicator);
    return in_message(&own, other) && (own.kind == TRANSPORT_SEND || own.messages == theirs.messages);
}

static bool waits_in_collective(const ProgressTable *table, int communicator, int rank, int other) {
    const ProgressView own = progress_look(table, rank, communicator),
                       theirs = progress_look(table, other, communicator);
    return in_collective(&own) && (int32_t)(theirs.rounds - own.rounds) < 0 &&
           one_group(table, communicator, rank, other);
}

// The communicator in which rank waits for other; NOBODY = it does not.
static int waits_in(const ProgressTable *table, int rank, int other) {
    for (int c = 0; c < table->communicator_count; c++) {
        if (waits_in_message(table, c, rank, other) || waits_in_collective(table, c, rank, other)) {
            return c;
        }
    }
    return NOBODY;
}

// Places in issue order are comparable only if both ranks run the same program.
static bool one_stage(const ProgressTable *table, int rank, int other) {
    return mesh_stage_of(&table->mesh, rank) == mesh_stage_of(&table->mesh, other);
}

static int compare_places(const TransportPlace *a, const TransportPlace *b) {
    return a->step != b->step ? (a->step > b->step) - (a->step < b->step)
                              : (a->ordinal > b->ordinal) - (a->ordinal < b->ordinal);
}

// In a cycle: a rank that is past a collective in which another waits for it.
static void skipper_find(const ProgressTable *table, WaitDiagnosis *wait) {
    const int world = mesh_world(&table->mesh);
    for (int rank = 0; rank < world && table->ordered; rank++) {
        for (int other = 0; wait->held_up[rank] && other < world; other++) {
            const int c = one_stage(table, rank, other) ? waits_in(table, other, rank) : NOBODY;
            const TransportPlace here = progress_place(table, rank);
            const TransportPlace awaited = c == NOBODY ? here : progress_look(table, other, c).place;
            if (compare_places(&here, &awaited) > 0) {
                wait->skipper = rank;
                wait->witness = other;
                wait->skipped = c;
                return;
            }
        }
    }
}

static int furthest_behind(const ProgressTable *table, const WaitDiagnosis *wait, int world) {
    int behind = NOBODY;
    uint64_t least = 0;
    for (int rank = 0; rank < world; rank++) {
        uint64_t rounds = 0;
        for (int c = 0; c < table->communicator_count; c++) {
            const ProgressView call = progress_look(table, rank, c);
            rounds += (uint64_t)call.rounds + call.messages;
        }
        if (wait->held_up[rank] && (behind == NOBODY || rounds < least)) {
            behind = rank;
            least = rounds;
        }
    }
    return behind;
}

// Marks every rank that this rank waits for, directly or indirectly.
static void follow(const ProgressTable *table, int from, WaitDiagnosis *wait) {
    const int world = mesh_world(&table->mesh);
    int queue[TRANSPORT_MAX_WORLD], head = 0, tail = 0;
    bool seen[TRANSPORT_MAX_WORLD] = {false};
    queue[tail++] = from;
    seen[from] = true;
    while (head < tail) {
        const int rank = queue[head++];
        bool waits = false;
        for (int other = 0; other < world; other++) {
            if (other == rank || waits_in(table, rank, other) == NOBODY) {
                continue;
            }
            waits = true;
            if (!seen[other]) {
                seen[other] = true;
                queue[tail++] = other;
            }
        }
        wait->held_up[rank] = waits;
        wait->culprit[rank] = !waits;
    }
}

void diagnose_wait(const ProgressTable *table, int waiting_rank, WaitDiagnosis *wait) {
    const int world = mesh_world(&table->mesh);
    *wait = (WaitDiagnosis){.skipper = NOBODY};
    follow(table, waiting_rank, wait);
    for (int rank = 0; rank < world; rank++) {
        if (wait->culprit[rank]) {
            wait->held_up[waiting_rank] = false;
            return;
        }
    }
    skipper_find(table, wait);
    const int guilty = wait->skipper == NOBODY ? furthest_behind(table, wait, world) : wait->skipper;
    if (guilty != NOBODY) {
        wait->held_up[guilty] = false;
        wait->culprit[guilty] = true;
    }
    wait->held_up[waiting_rank] = false;
}

// The communicator in which rank waits for a culprit's message.
static int message_from_culprit(const ProgressTable *table, const WaitDiagnosis *wait, int rank) {
    for (int c = 0; c < table->communicator_count; c++) {
        const ProgressView call = progress_look(table, rank, c);
        if (in_message(&call, call.peer) && wait->culprit[call.peer] && waits_in_message(table, c, rank, call.peer)) {
            return c;
        }
    }
    return NOBODY;
}

WaitPlace diagnose_nearest(const ProgressTable *table, int waiting_rank) {
    WaitDiagnosis wait;
    diagnose_wait(table, waiting_rank, &wait);
    WaitPlace nearest = {waiting_rank, message_from_culprit(table, &wait, waiting_rank)};
    for (int rank = 0; nearest.communicator == NOBODY && rank < mesh_world(&table->mesh); rank++) {
        nearest = (WaitPlace){rank, message_from_culprit(table, &wait, rank)};
    }
    return nearest.communicator == NOBODY ? (WaitPlace){NOBODY, NOBODY} : nearest;
}

// ---------------------------------------------------------------------------------------------- disagreement

static ProgressWords call_words(const ProgressTable *table, int rank, int communicator) {
    return progress_call_words(table, rank, progress_look(table, rank, communicator));
}

static uint64_t signature_of(const ProgressTable *table, int communicator, const ProgressView *shown) {
    const TransportCall call = {.bytes = shown->bytes, .place = shown->place};
    return collective_signature(&table->communicators[communicator], (TransportKind)shown->kind, &call);
}

// In the same round of the same group but in different collectives, or at the two ends of different messages.
static bool disagree(const ProgressTable *table, int rank, int other, int communicator) {
    const ProgressView own = progress_look(table, rank, communicator),
                       theirs = progress_look(table, other, communicator);
    const bool message = in_message(&own, other) && in_message(&theirs, rank) && own.kind != theirs.kind;
    const bool round = in_collective(&own) && in_collective(&theirs) && own.rounds == theirs.rounds &&
                       one_group(table, communicator, rank, other);
    return (message || round) && signature_of(table, communicator, &own) != signature_of(table, communicator, &theirs);
}

// How wrong a member looks compared with the rest: fewer that agree with it; a size not in the program; a place further
// on, since it skipped something.
typedef struct Suspicion {
    int agreeing;
    bool odd_size;
    TransportPlace place;
} Suspicion;

static Suspicion suspicion_of(const ProgressTable *table, int rank, int communicator) {
    const ProgressView call = progress_look(table, rank, communicator);
    Suspicion suspicion = {.place = call.place};
    for (int other = 0; other < mesh_world(&table->mesh); other++) {
        suspicion.agreeing +=
            one_group(table, communicator, rank, other) && !disagree(table, rank, other, communicator);
    }
    const int64_t expected =
        table->words.expected_bytes ? table->words.expected_bytes(table->words.context, rank, &suspicion.place) : -1;
    suspicion.odd_size = expected >= 0 && expected != call.bytes;
    return suspicion;
}

static bool worse(const Suspicion *a, const Suspicion *b) {
    if (a->odd_size != b->odd_size) {
        return a->odd_size;
    }
    if (a->agreeing != b->agreeing) {
        return a->agreeing < b->agreeing;
    }
    return compare_places(&a->place, &b->place) > 0;
}

Status diagnose_mismatch(const ProgressTable *table, int rank, int communicator, Error *error) {
    int guilty = rank, witness = NOBODY;
    Suspicion worst = suspicion_of(table, rank, communicator);
    for (int other = 0; other < mesh_world(&table->mesh); other++) {
        const Suspicion theirs = suspicion_of(table, other, communicator);
        if (disagree(table, rank, other, communicator) && worse(&theirs, &worst)) {
            guilty = other;
            worst = theirs;
        }
    }
    for (int other = 0; other < mesh_world(&table->mesh) && witness == NOBODY; other++) {
        witness = disagree(table, guilty, other, communicator) ? other : NOBODY;
    }
    const ProgressWords who = progress_row_words(table, guilty, false), what = call_words(table, guilty, communicator);
    FAIL_IF(witness == NOBODY, error, STATUS_ENVIRONMENT,
            "lane %s: %s is in %s, which the others of its group are not in", table->communicators[communicator].name,
            who.text, what.text);
    const bool message = is_message((TransportKind)progress_look(table, guilty, communicator).kind);
    return error_set(error, STATUS_ENVIRONMENT, "lane %s: %s is in %s while %s waits in %s: %s",
                     table->communicators[communicator].name, who.text, what.text,
                     progress_row_words(table, witness, false).text, call_words(table, witness, communicator).text,
                     worst.odd_size ? "its size is wrong"
                     : message      ? "one of them skipped or repeated a message"
                                    : "it skipped or repeated a collective");
}

Status diagnose_message(const ProgressTable *table, int rank, int communicator, Error *error) {
    return error_set(error, STATUS_ENVIRONMENT,
                     "lane %s: %s waits in %s, but the message that came is another one: it or %s skipped or repeated "
                     "one, or its size is wrong",
                     table->communicators[communicator].name, progress_row_words(table, rank, false).text,
                     call_words(table, rank, communicator).text,
                     progress_row_words(table, progress_look(table, rank, communicator).peer, true).text);
}

// ---------------------------------------------------------------------------------------------- lateness

// A culprit inside a collective is in a different one than its group.
static bool mismatch_of(const ProgressTable *table, int rank, Error *error) {
    for (int c = 0; c < table->communicator_count; c++) {
        for (int other = 0; other < mesh_world(&table->mesh); other++) {
            if (other != rank && disagree(table, rank, other, c)) {
                diagnose_mismatch(table, rank, c, error);
                return true;
            }
        }
    }
    return false;
}

// Waits for a message and does not accept the one that arrived.
static bool stray_of(const ProgressTable *table, int rank, Error *error) {
    for (int c = 0; c < table->communicator_count; c++) {
        const ProgressView call = progress_look(table, rank, c);
        if (call.inside && call.kind == TRANSPORT_RECEIVE && waits_in(table, rank, call.peer) == NOBODY) {
            diagnose_message(table, rank, c, error);
            return true;
        }
    }
    return false;
}

static Status skipped_words(const ProgressTable *table, const WaitDiagnosis *wait, Error *error) {
    return error_set(error, STATUS_ENVIRONMENT, "lane %s: %s skipped a collective: %s waits for it in %s",
                     table->communicators[wait->skipped].name, progress_row_words(table, wait->skipper, true).text,
                     progress_row_words(table, wait->witness, false).text,
                     call_words(table, wait->witness, wait->skipped).text);
}

Status diagnose_late(const ProgressTable *table, int waiting_rank, int communicator, double waited_s, Error *error) {
    char culprits[ERROR_MESSAGE_BYTES / 2] = "", others[ERROR_MESSAGE_BYTES / 2] = "";
    WaitDiagnosis wait;
    diagnose_wait(table, waiting_rank, &wait);
    if (wait.skipper != NOBODY) {
        return skipped_words(table, &wait, error);
    }
    for (int rank = 0; rank < mesh_world(&table->mesh); rank++) {
        if (wait.culprit[rank] && (mismatch_of(table, rank, error) || stray_of(table, rank, error))) {
            return error->status;
        }
        if (wait.culprit[rank] && rank != waiting_rank) {
            progress_list_add(culprits, sizeof culprits, progress_row_words(table, rank, true).text);
        } else if (wait.held_up[rank]) {
            progress_list_add(others, sizeof others, progress_row_words(table, rank, false).text);
        }
    }
    return error_set(error, STATUS_ENVIRONMENT, "lane %s, %s: %s waited %.1f s for %s%s%s",
                     table->communicators[communicator].name, call_words(table, waiting_rank, communicator).text,
                     progress_row_words(table, waiting_rank, false).text, waited_s,
                     *culprits ? culprits : "nobody that is missing", *others ? "; held up as well: " : "", others);
}
