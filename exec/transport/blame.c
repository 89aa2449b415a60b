// A rank inside a collective of which it has entered more rounds than another member waits for that member; one inside
// a message waits for the other end of it, unless that has done its part. Following these arrows from a rank that
// waits too long ends at the ranks that wait for nobody: they hang, died, are slow, or sit in another collective than
// the rest of their group. Where the arrows close a circle, somebody skipped a collective and waits further on, or
// lanes in threads prefetch: then it is the one whose place is beyond the collective that others wait for it in, else
// the one furthest behind in all.

#include "exec/transport/blame.h"

#include <inttypes.h>
#include <string.h>

#include "sim/base/text.h"

enum { NOBODY = -1, WORDS_BYTES = 224 };

static BoardSeat *seat_of(const Board *board, int rank, int communicator) {
    return &board->ranks[rank].seats[communicator];
}

static uint32_t rounds_of(const Board *board, int rank, int communicator) {
    return atomic_load(&seat_of(board, rank, communicator)->rounds);
}

static bool one_group(const Board *board, int communicator, int rank, int other) {
    const AxisMask axes = board->communicators[communicator].axes;  // which may be parts of axes
    const MeshCoordinates at = mesh_coordinates(&board->mesh, rank), there = mesh_coordinates(&board->mesh, other);
    return mesh_group_member(&board->mesh, axes, &at, 0) == mesh_group_member(&board->mesh, axes, &there, 0);
}

static bool inside(const Board *board, int rank, int communicator) {
    return atomic_load(&seat_of(board, rank, communicator)->inside) != 0;
}

static CollectiveKind kind_of(const Board *board, int rank, int communicator) {
    return (CollectiveKind)atomic_load(&seat_of(board, rank, communicator)->kind);
}

static bool in_message(const Board *board, int rank, int other, int communicator) {
    return inside(board, rank, communicator) && is_message(kind_of(board, rank, communicator)) &&
           atomic_load(&seat_of(board, rank, communicator)->peer) == other;
}

static uint32_t messages_of(const Board *board, int rank, int communicator) {
    return atomic_load(&seat_of(board, rank, communicator)->messages);
}

// A send waits until what is before it was taken, a receive until something was sent.
static bool waits_for_message(const Board *board, int rank, int other, int communicator) {
    return in_message(board, rank, other, communicator) &&
           (kind_of(board, rank, communicator) == COLLECTIVE_SEND ||
            messages_of(board, rank, communicator) == messages_of(board, other, communicator));
}

static bool waits_for_round(const Board *board, int rank, int other, int communicator) {
    return inside(board, rank, communicator) && !is_message(kind_of(board, rank, communicator)) &&
           one_group(board, communicator, rank, other) &&
           (int32_t)(rounds_of(board, other, communicator) - rounds_of(board, rank, communicator)) < 0;
}

// The communicator in which rank waits for other; NOBODY = it does not.
static int waits_in(const Board *board, int rank, int other) {
    for (int c = 0; c < board->communicator_count; c++) {
        if (waits_for_round(board, rank, other, c) || waits_for_message(board, rank, other, c)) {
            return c;
        }
    }
    return NOBODY;
}

// Places in issue order can be compared only where both run the same program.
static bool one_stage(const Board *board, int rank, int other) {
    return mesh_stage_of(&board->mesh, rank) == mesh_stage_of(&board->mesh, other);
}

static int compare_places(const TransportPlace *a, const TransportPlace *b) {
    return a->step != b->step ? (a->step > b->step) - (a->step < b->step)
                              : (a->ordinal > b->ordinal) - (a->ordinal < b->ordinal);
}

// Of a circle: somebody who is beyond a collective in which another waits for it.
static void skipper_find(const Board *board, Blame *blame) {
    const int world = mesh_world(&board->mesh);
    for (int rank = 0; rank < world && board->ordered; rank++) {
        for (int other = 0; blame->held_up[rank] && other < world; other++) {
            const int c = one_stage(board, rank, other) ? waits_in(board, other, rank) : NOBODY;
            const TransportPlace here = board_place(&board->ranks[rank]);
            const TransportPlace awaited = c == NOBODY ? here : board_seat_place(seat_of(board, other, c));
            if (compare_places(&here, &awaited) > 0) {
                blame->skipper = rank;
                blame->witness = other;
                blame->skipped = c;
                return;
            }
        }
    }
}

static int furthest_behind(const Board *board, const Blame *blame, int world) {
    int behind = NOBODY;
    uint64_t least = 0;
    for (int rank = 0; rank < world; rank++) {
        uint64_t rounds = 0;
        for (int c = 0; c < board->communicator_count; c++) {
            rounds += rounds_of(board, rank, c) + messages_of(board, rank, c);
        }
        if (blame->held_up[rank] && (behind == NOBODY || rounds < least)) {
            behind = rank;
            least = rounds;
        }
    }
    return behind;
}

// Marks everybody that rank waits for, directly or through others.
static void follow(const Board *board, int from, Blame *blame) {
    const int world = mesh_world(&board->mesh);
    int queue[TRANSPORT_MAX_WORLD], head = 0, tail = 0;
    bool seen[TRANSPORT_MAX_WORLD] = {false};
    queue[tail++] = from;
    seen[from] = true;
    while (head < tail) {
        const int rank = queue[head++];
        bool waits = false;
        for (int other = 0; other < world; other++) {
            if (other == rank || waits_in(board, rank, other) == NOBODY) {
                continue;
            }
            waits = true;
            if (!seen[other]) {
                seen[other] = true;
                queue[tail++] = other;
            }
        }
        blame->held_up[rank] = waits;
        blame->culprit[rank] = !waits;
    }
}

void blame_find(const Board *board, int waiting_rank, Blame *blame) {
    const int world = mesh_world(&board->mesh);
    *blame = (Blame){.skipper = NOBODY};
    follow(board, waiting_rank, blame);
    for (int rank = 0; rank < world; rank++) {
        if (blame->culprit[rank]) {
            blame->held_up[waiting_rank] = false;
            return;
        }
    }
    skipper_find(board, blame);
    const int guilty = blame->skipper == NOBODY ? furthest_behind(board, blame, world) : blame->skipper;
    if (guilty != NOBODY) {
        blame->held_up[guilty] = false;
        blame->culprit[guilty] = true;
    }
    blame->held_up[waiting_rank] = false;
}

// ---------------------------------------------------------------------------------------------- disagreement

static uint64_t signature_of(const Board *board, int rank, int communicator) {
    BoardSeat *seat = seat_of(board, rank, communicator);
    const TransportPlace place = board_seat_place(seat);
    const TransportCall call = {.bytes = (int64_t)atomic_load(&seat->bytes), .place = place};
    return board_signature(&board->communicators[communicator], (CollectiveKind)atomic_load(&seat->kind), &call);
}

// Of each other: one sends what the other receives.
static bool one_message(const Board *board, int rank, int other, int communicator) {
    return in_message(board, rank, other, communicator) && in_message(board, other, rank, communicator) &&
           kind_of(board, rank, communicator) != kind_of(board, other, communicator);
}

static bool one_round(const Board *board, int rank, int other, int communicator) {
    return one_group(board, communicator, rank, other) && inside(board, rank, communicator) &&
           inside(board, other, communicator) && !is_message(kind_of(board, rank, communicator)) &&
           !is_message(kind_of(board, other, communicator)) &&
           rounds_of(board, rank, communicator) == rounds_of(board, other, communicator);
}

// In the same round of the same group inside different collectives, or at the two ends of different messages.
static bool disagree(const Board *board, int rank, int other, int communicator) {
    return (one_round(board, rank, other, communicator) || one_message(board, rank, other, communicator)) &&
           signature_of(board, rank, communicator) != signature_of(board, other, communicator);
}

// How wrong a member looks beside the rest: fewer that agree with it; a size that the program does not say; a place
// further on, since it skipped something.
typedef struct Suspicion {
    int agreeing;
    bool odd_size;
    TransportPlace place;
} Suspicion;

static Suspicion suspicion_of(const Board *board, int rank, int communicator) {
    BoardSeat *seat = seat_of(board, rank, communicator);
    Suspicion suspicion = {.place = board_seat_place(seat)};
    for (int other = 0; other < mesh_world(&board->mesh); other++) {
        suspicion.agreeing +=
            one_group(board, communicator, rank, other) && !disagree(board, rank, other, communicator);
    }
    const int64_t expected =
        board->words.expected_bytes ? board->words.expected_bytes(board->words.context, rank, &suspicion.place) : -1;
    suspicion.odd_size = expected >= 0 && expected != (int64_t)atomic_load(&seat->bytes);
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

Status blame_mismatch(const Board *board, int rank, int communicator, Error *error) {
    int guilty = rank, witness = NOBODY;
    Suspicion worst = suspicion_of(board, rank, communicator);
    for (int other = 0; other < mesh_world(&board->mesh); other++) {
        const Suspicion theirs = suspicion_of(board, other, communicator);
        if (disagree(board, rank, other, communicator) && worse(&theirs, &worst)) {
            guilty = other;
            worst = theirs;
        }
    }
    for (int other = 0; other < mesh_world(&board->mesh) && witness == NOBODY; other++) {
        witness = disagree(board, guilty, other, communicator) ? other : NOBODY;
    }
    char who[WORDS_BYTES], what[WORDS_BYTES], whose[WORDS_BYTES], where[WORDS_BYTES];
    board_rank_words(board, guilty, false, who, sizeof who);
    board_collective_words(board, guilty, seat_of(board, guilty, communicator), what, sizeof what);
    if (witness == NOBODY) {
        return error_set(error, STATUS_ENVIRONMENT, "lane %s: %s is in %s, which the others of its group are not in",
                         board->communicators[communicator].name, who, what);
    }
    board_rank_words(board, witness, false, whose, sizeof whose);
    board_collective_words(board, witness, seat_of(board, witness, communicator), where, sizeof where);
    const bool message = is_message(kind_of(board, guilty, communicator));
    return error_set(error, STATUS_ENVIRONMENT, "lane %s: %s is in %s while %s waits in %s: %s",
                     board->communicators[communicator].name, who, what, whose, where,
                     worst.odd_size ? "its size is wrong"
                     : message      ? "one of them skipped or repeated a message"
                                    : "it skipped or repeated a collective");
}

Status blame_message(const Board *board, int rank, int communicator, Error *error) {
    char who[WORDS_BYTES], whose[WORDS_BYTES], where[WORDS_BYTES];
    BoardSeat *seat = seat_of(board, rank, communicator);
    board_rank_words(board, rank, false, who, sizeof who);
    board_rank_words(board, atomic_load(&seat->peer), true, whose, sizeof whose);
    board_collective_words(board, rank, seat, where, sizeof where);
    return error_set(error, STATUS_ENVIRONMENT,
                     "lane %s: %s waits in %s, but the message that came is another one: it or %s skipped or repeated "
                     "one, or its size is wrong",
                     board->communicators[communicator].name, who, where, whose);
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
static bool mismatch_of(const Board *board, int rank, Error *error) {
    for (int c = 0; c < board->communicator_count; c++) {
        for (int other = 0; other < mesh_world(&board->mesh); other++) {
            if (other != rank && disagree(board, rank, other, c)) {
                blame_mismatch(board, rank, c, error);
                return true;
            }
        }
    }
    return false;
}

// Waits for a message and does not take the one that came.
static bool stray_of(const Board *board, int rank, Error *error) {
    for (int c = 0; c < board->communicator_count; c++) {
        const bool receives = inside(board, rank, c) && kind_of(board, rank, c) == COLLECTIVE_RECEIVE;
        if (receives && waits_in(board, rank, atomic_load(&seat_of(board, rank, c)->peer)) == NOBODY) {
            blame_message(board, rank, c, error);
            return true;
        }
    }
    return false;
}

static Status skipped_words(const Board *board, const Blame *blame, Error *error) {
    char who[WORDS_BYTES], whose[WORDS_BYTES], where[WORDS_BYTES];
    board_rank_words(board, blame->skipper, true, who, sizeof who);
    board_rank_words(board, blame->witness, false, whose, sizeof whose);
    board_collective_words(board, blame->witness, seat_of(board, blame->witness, blame->skipped), where, sizeof where);
    return error_set(error, STATUS_ENVIRONMENT, "lane %s: %s skipped a collective: %s waits for it in %s",
                     board->communicators[blame->skipped].name, who, whose, where);
}

Status blame_late(const Board *board, int waiting_rank, int communicator, double waited_s, Error *error) {
    char text[WORDS_BYTES], waiting[WORDS_BYTES];
    Words culprits = {.text = ""}, others = {.text = ""};
    Blame blame;
    blame_find(board, waiting_rank, &blame);
    if (blame.skipper != NOBODY) {
        return skipped_words(board, &blame, error);
    }
    for (int rank = 0; rank < mesh_world(&board->mesh); rank++) {
        if (blame.culprit[rank] && (mismatch_of(board, rank, error) || stray_of(board, rank, error))) {
            return error->status;
        }
        if (blame.culprit[rank] && rank != waiting_rank) {
            words_add(&culprits, board_rank_words(board, rank, true, text, sizeof text));
        } else if (blame.held_up[rank]) {
            words_add(&others, board_rank_words(board, rank, false, text, sizeof text));
        }
    }
    board_rank_words(board, waiting_rank, false, waiting, sizeof waiting);
    board_collective_words(board, waiting_rank, seat_of(board, waiting_rank, communicator), text, sizeof text);
    return error_set(error, STATUS_ENVIRONMENT, "lane %s, %s: %s waited %.1f s for %s%s%s",
                     board->communicators[communicator].name, text, waiting, waited_s,
                     culprits.used ? culprits.text : "nobody that is missing", others.used ? "; held up as well: " : "",
                     others.text);
}
