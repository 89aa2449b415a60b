// A rank inside a collective of which it has entered more rounds than another member waits for that member; one inside
// a message waits for the other end of it, unless that has done its part. Following these arrows from a rank that
// waits too long ends at the ranks that wait for nobody: they hang, died, are slow, or sit in another collective than
// the rest of their group. Where the arrows close a circle, somebody skipped a collective and waits further on, or
// lanes in threads prefetch: then it is the one whose place is beyond the collective that others wait for it in, else
// the one furthest behind in all.

#include "exec/transport/diagnose.h"

#include <inttypes.h>
#include <string.h>

#include "sim/base/text.h"

enum { NOBODY = -1, WORDS_BYTES = 224 };

static ProgressCell *cell_of(const ProgressTable *table, int rank, int communicator) {
    return &table->ranks[rank].cells[communicator];
}

static uint32_t rounds_of(const ProgressTable *table, int rank, int communicator) {
    return atomic_load(&cell_of(table, rank, communicator)->rounds);
}

static bool one_group(const ProgressTable *table, int communicator, int rank, int other) {
    const AxisMask axes = table->communicators[communicator].axes;  // which may be parts of axes
    const MeshCoordinates at = mesh_coordinates(&table->mesh, rank), there = mesh_coordinates(&table->mesh, other);
    return mesh_group_member(&table->mesh, axes, &at, 0) == mesh_group_member(&table->mesh, axes, &there, 0);
}

static bool inside(const ProgressTable *table, int rank, int communicator) {
    return atomic_load(&cell_of(table, rank, communicator)->inside) != 0;
}

static TransportKind kind_of(const ProgressTable *table, int rank, int communicator) {
    return (TransportKind)atomic_load(&cell_of(table, rank, communicator)->kind);
}

static bool in_message(const ProgressTable *table, int rank, int other, int communicator) {
    return inside(table, rank, communicator) && is_message(kind_of(table, rank, communicator)) &&
           atomic_load(&cell_of(table, rank, communicator)->peer) == other;
}

static uint32_t messages_of(const ProgressTable *table, int rank, int communicator) {
    return atomic_load(&cell_of(table, rank, communicator)->messages);
}

// A send waits until what is before it was taken, a receive until something was sent.
static bool waits_for_message(const ProgressTable *table, int rank, int other, int communicator) {
    return in_message(table, rank, other, communicator) &&
           (kind_of(table, rank, communicator) == COLLECTIVE_SEND ||
            messages_of(table, rank, communicator) == messages_of(table, other, communicator));
}

static bool waits_for_round(const ProgressTable *table, int rank, int other, int communicator) {
    return inside(table, rank, communicator) && !is_message(kind_of(table, rank, communicator)) &&
           one_group(table, communicator, rank, other) &&
           (int32_t)(rounds_of(table, other, communicator) - rounds_of(table, rank, communicator)) < 0;
}

// The communicator in which rank waits for other; NOBODY = it does not.
static int waits_in(const ProgressTable *table, int rank, int other) {
    for (int c = 0; c < table->communicator_count; c++) {
        if (waits_for_round(table, rank, other, c) || waits_for_message(table, rank, other, c)) {
            return c;
        }
    }
    return NOBODY;
}

// Places in issue order can be compared only where both run the same program.
static bool one_stage(const ProgressTable *table, int rank, int other) {
    return mesh_stage_of(&table->mesh, rank) == mesh_stage_of(&table->mesh, other);
}

static int compare_places(const TransportPlace *a, const TransportPlace *b) {
    return a->step != b->step ? (a->step > b->step) - (a->step < b->step)
                              : (a->ordinal > b->ordinal) - (a->ordinal < b->ordinal);
}

// Of a circle: somebody who is beyond a collective in which another waits for it.
static void skipper_find(const ProgressTable *table, WaitDiagnosis *wait) {
    const int world = mesh_world(&table->mesh);
    for (int rank = 0; rank < world && table->ordered; rank++) {
        for (int other = 0; wait->held_up[rank] && other < world; other++) {
            const int c = one_stage(table, rank, other) ? waits_in(table, other, rank) : NOBODY;
            const TransportPlace here = progress_place(&table->ranks[rank].place);
            const TransportPlace awaited = c == NOBODY ? here : progress_place(&cell_of(table, other, c)->place);
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
            rounds += rounds_of(table, rank, c) + messages_of(table, rank, c);
        }
        if (wait->held_up[rank] && (behind == NOBODY || rounds < least)) {
            behind = rank;
            least = rounds;
        }
    }
    return behind;
}

// Marks everybody that rank waits for, directly or through others.
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

// ---------------------------------------------------------------------------------------------- disagreement

static uint64_t signature_of(const ProgressTable *table, int rank, int communicator) {
    ProgressCell *cell = cell_of(table, rank, communicator);
    const TransportPlace place = progress_place(&cell->place);
    const TransportCall call = {.bytes = (int64_t)atomic_load(&cell->bytes), .place = place};
    return collective_signature(&table->communicators[communicator], (TransportKind)atomic_load(&cell->kind), &call);
}

// Of each other: one sends what the other receives.
static bool one_message(const ProgressTable *table, int rank, int other, int communicator) {
    return in_message(table, rank, other, communicator) && in_message(table, other, rank, communicator) &&
           kind_of(table, rank, communicator) != kind_of(table, other, communicator);
}

static bool one_round(const ProgressTable *table, int rank, int other, int communicator) {
    return one_group(table, communicator, rank, other) && inside(table, rank, communicator) &&
           inside(table, other, communicator) && !is_message(kind_of(table, rank, communicator)) &&
           !is_message(kind_of(table, other, communicator)) &&
           rounds_of(table, rank, communicator) == rounds_of(table, other, communicator);
}

// In the same round of the same group inside different collectives, or at the two ends of different messages.
static bool disagree(const ProgressTable *table, int rank, int other, int communicator) {
    return (one_round(table, rank, other, communicator) || one_message(table, rank, other, communicator)) &&
           signature_of(table, rank, communicator) != signature_of(table, other, communicator);
}

// How wrong a member looks beside the rest: fewer that agree with it; a size that the program does not say; a place
// further on, since it skipped something.
typedef struct Suspicion {
    int agreeing;
    bool odd_size;
    TransportPlace place;
} Suspicion;

static Suspicion suspicion_of(const ProgressTable *table, int rank, int communicator) {
    ProgressCell *cell = cell_of(table, rank, communicator);
    Suspicion suspicion = {.place = progress_place(&cell->place)};
    for (int other = 0; other < mesh_world(&table->mesh); other++) {
        suspicion.agreeing +=
            one_group(table, communicator, rank, other) && !disagree(table, rank, other, communicator);
    }
    const int64_t expected =
        table->words.expected_bytes ? table->words.expected_bytes(table->words.context, rank, &suspicion.place) : -1;
    suspicion.odd_size = expected >= 0 && expected != (int64_t)atomic_load(&cell->bytes);
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
    char who[WORDS_BYTES], what[WORDS_BYTES], whose[WORDS_BYTES], where[WORDS_BYTES];
    progress_row_words(table, guilty, false, who, sizeof who);
    progress_cell_words(table, guilty, cell_of(table, guilty, communicator), what, sizeof what);
    FAIL_IF(witness == NOBODY, error, STATUS_ENVIRONMENT,
            "lane %s: %s is in %s, which the others of its group are not in", table->communicators[communicator].name,
            who, what);
    progress_row_words(table, witness, false, whose, sizeof whose);
    progress_cell_words(table, witness, cell_of(table, witness, communicator), where, sizeof where);
    const bool message = is_message(kind_of(table, guilty, communicator));
    return error_set(error, STATUS_ENVIRONMENT, "lane %s: %s is in %s while %s waits in %s: %s",
                     table->communicators[communicator].name, who, what, whose, where,
                     worst.odd_size ? "its size is wrong"
                     : message      ? "one of them skipped or repeated a message"
                                    : "it skipped or repeated a collective");
}

Status diagnose_message(const ProgressTable *table, int rank, int communicator, Error *error) {
    char who[WORDS_BYTES], whose[WORDS_BYTES], where[WORDS_BYTES];
    ProgressCell *cell = cell_of(table, rank, communicator);
    progress_row_words(table, rank, false, who, sizeof who);
    progress_row_words(table, atomic_load(&cell->peer), true, whose, sizeof whose);
    progress_cell_words(table, rank, cell, where, sizeof where);
    return error_set(error, STATUS_ENVIRONMENT,
                     "lane %s: %s waits in %s, but the message that came is another one: it or %s skipped or repeated "
                     "one, or its size is wrong",
                     table->communicators[communicator].name, who, where, whose);
}

// ---------------------------------------------------------------------------------------------- lateness

typedef struct Words {
    char text[ERROR_MESSAGE_BYTES / 2];
    size_t used;
} Words;

static void words_add(Words *words, const char *text) {
    const int more =
        snprintf(words->text + words->used, sizeof words->text - words->used, "%s%s", words->used ? ", " : "", text);
    words->used += more > 0 && words->used + (size_t)more < sizeof words->text ? (size_t)more : 0;
}

// A culprit that sits in a collective sits in another one than its group.
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

// Waits for a message and does not take the one that came.
static bool stray_of(const ProgressTable *table, int rank, Error *error) {
    for (int c = 0; c < table->communicator_count; c++) {
        const bool receives = inside(table, rank, c) && kind_of(table, rank, c) == COLLECTIVE_RECEIVE;
        if (receives && waits_in(table, rank, atomic_load(&cell_of(table, rank, c)->peer)) == NOBODY) {
            diagnose_message(table, rank, c, error);
            return true;
        }
    }
    return false;
}

static Status skipped_words(const ProgressTable *table, const WaitDiagnosis *wait, Error *error) {
    char who[WORDS_BYTES], whose[WORDS_BYTES], where[WORDS_BYTES];
    progress_row_words(table, wait->skipper, true, who, sizeof who);
    progress_row_words(table, wait->witness, false, whose, sizeof whose);
    progress_cell_words(table, wait->witness, cell_of(table, wait->witness, wait->skipped), where, sizeof where);
    return error_set(error, STATUS_ENVIRONMENT, "lane %s: %s skipped a collective: %s waits for it in %s",
                     table->communicators[wait->skipped].name, who, whose, where);
}

Status diagnose_late(const ProgressTable *table, int waiting_rank, int communicator, double waited_s, Error *error) {
    char text[WORDS_BYTES], waiting[WORDS_BYTES];
    Words culprits = {.text = ""}, others = {.text = ""};
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
            words_add(&culprits, progress_row_words(table, rank, true, text, sizeof text));
        } else if (wait.held_up[rank]) {
            words_add(&others, progress_row_words(table, rank, false, text, sizeof text));
        }
    }
    progress_row_words(table, waiting_rank, false, waiting, sizeof waiting);
    progress_cell_words(table, waiting_rank, cell_of(table, waiting_rank, communicator), text, sizeof text);
    return error_set(error, STATUS_ENVIRONMENT, "lane %s, %s: %s waited %.1f s for %s%s%s",
                     table->communicators[communicator].name, text, waiting, waited_s,
                     culprits.used ? culprits.text : "nobody that is missing", others.used ? "; held up as well: " : "",
                     others.text);
}
