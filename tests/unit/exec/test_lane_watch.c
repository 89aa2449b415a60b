// Stream counters are shown in the progress table, so that a stall is diagnosed on GPUs as on CPUs. Streams are
// counters that the test advances.

#include <criterion/criterion.h>
#include <string.h>

#include "exec/transport/diagnose.h"
#include "exec/transport/lane_watch.h"
#include "tests/support/sizes.h"

enum { RANKS = 3 };

static Arena arena;
static ProgressRow rows[RANKS];
static LaneCounts counts[RANKS];
static LaneWatch watches[RANKS];
static const Communicator lane = {.name = "rs", .axes = AXIS_BIT(AXIS_DP_SHARD)};
static const Mesh mesh = {.size = SIZES(1, RANKS, 1, 1)};

static void begin(void) {
    for (int rank = 0; rank < RANKS; rank++) {
        progress_row_begin(&rows[rank]);
        const LanePlace of = {
            .communicator = &lane, .peer = 1 - rank % 2, .row = &rows[rank], .cell = &rows[rank].cells[0]};
        lane_watch_begin(&watches[rank], &of, &counts[rank], &arena);
    }
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(lane_watch, .init = begin, .fini = end);

static void note(int rank, int task, int64_t bytes) {
    const TransportCall call = {.bytes = bytes, .place = {.step = 0, .task = task, .ordinal = task}};
    lane_watch_note(&watches[rank], TRANSPORT_REDUCE_SCATTER, &call);
}

static void stream_is_at(int rank, unsigned begun, unsigned ended) {
    atomic_store(&counts[rank].begun, begun);
    atomic_store(&counts[rank].ended, ended);
    lane_watch_show(&watches[rank]);
}

static ProgressTable progress_table_of(void) {
    return (ProgressTable){.mesh = mesh, .communicators = &lane, .communicator_count = 1, .ranks = rows};
}

Test(lane_watch, what_is_only_put_into_a_stream_is_not_shown) {
    note(0, 1, 64);
    cr_expect(!lane_watch_show(&watches[0]) && !lane_watch_idle(&watches[0]));
    cr_expect_eq(atomic_load(&rows[0].cells[0].inside), 0);
    cr_expect_eq(atomic_load(&rows[0].progress), 0);
}

Test(lane_watch, the_seat_shows_the_collective_that_the_stream_is_in) {
    for (int task = 1; task <= 5; task++) {
        note(0, task, 100 * task);
    }
    stream_is_at(0, 3, 2);
    ProgressCell *cell = &rows[0].cells[0];
    cr_expect(atomic_load(&cell->inside) == 1 && atomic_load(&cell->rounds) == 3 &&
              atomic_load(&cell->place.task) == 3);
    cr_expect_eq(atomic_load(&cell->bytes), 300);
    cr_expect_eq(atomic_load(&rows[0].progress), 1);
    stream_is_at(0, 5, 5);
    cr_expect(atomic_load(&cell->inside) == 0 && atomic_load(&cell->rounds) == 5 && lane_watch_idle(&watches[0]));
    cr_expect_eq(atomic_load(&rows[0].progress), 2);
}

// Hosts run ahead by different counts; only the streams tell which rank is missing.
Test(lane_watch, diagnosis_finds_the_rank_whose_stream_has_not_begun) {
    for (int task = 1; task <= 9; task++) {
        note(0, task, 64);
        note(2, task, 64);
    }
    note(1, 1, 64);
    note(1, 2, 64);
    stream_is_at(0, 2, 1);
    stream_is_at(2, 2, 1);
    stream_is_at(1, 1, 1);
    const ProgressTable table = progress_table_of();
    WaitDiagnosis wait;
    diagnose_wait(&table, 0, &wait);
    cr_expect(wait.culprit[1] && !wait.culprit[0] && !wait.culprit[2]);
    Error error = {0};
    diagnose_late(&table, 2, 0, 5.0, &error);
    cr_expect(strstr(error.message, "lane rs, reduce-scatter of 64 B") && strstr(error.message, "for rank 1"), "%s",
              error.message);
}

Test(lane_watch, diagnosis_finds_streams_in_different_collectives) {
    note(0, 1, 64);
    note(1, 1, 64);
    note(2, 2, 32);
    for (int rank = 0; rank < RANKS; rank++) {
        stream_is_at(rank, 1, 0);
    }
    const ProgressTable table = progress_table_of();
    Error error = {0};
    diagnose_late(&table, 0, 0, 5.0, &error);
    cr_expect(strstr(error.message, "rank 2 is in reduce-scatter of 32 B"), "%s", error.message);
}

static void message_note(int rank, TransportKind kind, int micro_step) {
    const TransportCall call = {.bytes = 64, .place = {.micro_step = micro_step}};
    lane_watch_note(&watches[rank], kind, &call);
}

// Rank 0 sends to rank 1.
static void notes_of_messages(int first_received) {
    for (int micro_step = 0; micro_step < 3; micro_step++) {
        message_note(0, TRANSPORT_SEND, micro_step);
        message_note(1, TRANSPORT_RECEIVE, first_received + micro_step);
    }
}

Test(lane_watch, diagnosis_finds_the_stream_that_sends_nothing) {
    notes_of_messages(0);
    stream_is_at(0, 1, 1);
    stream_is_at(1, 2, 1);
    const ProgressTable table = progress_table_of();
    Error error = {0};
    diagnose_late(&table, 1, 0, 5.0, &error);
    cr_expect(strstr(error.message, "lane rs, receive of 64 B from rank 0") && strstr(error.message, "for rank 0"),
              "%s", error.message);
}

Test(lane_watch, the_nearest_to_the_culprit_is_who_waits_for_its_message) {
    message_note(1, TRANSPORT_RECEIVE, 0);
    note(2, 1, 64);
    stream_is_at(1, 1, 0);
    stream_is_at(2, 1, 0);
    const ProgressTable table = progress_table_of();
    for (int rank = 1; rank <= 2; rank++) {
        const WaitPlace nearest = diagnose_nearest(&table, rank);
        cr_expect(nearest.rank == 1 && nearest.communicator == 0, "rank %d: %d", rank, nearest.rank);
    }
}

Test(lane_watch, of_collectives_none_is_nearest_to_the_culprit) {
    note(1, 1, 64);
    note(2, 1, 64);
    stream_is_at(1, 1, 0);
    stream_is_at(2, 1, 0);
    const ProgressTable table = progress_table_of();
    cr_expect_eq(diagnose_nearest(&table, 2).rank, -1);
}

Test(lane_watch, diagnosis_finds_a_message_that_its_receiver_does_not_take) {
    notes_of_messages(1);
    stream_is_at(0, 1, 0);
    stream_is_at(1, 1, 0);
    const ProgressTable table = progress_table_of();
    Error error = {0};
    diagnose_late(&table, 1, 0, 5.0, &error);
    cr_expect(strstr(error.message, "send of 64 B to rank 1") &&
                  strstr(error.message, "one of them skipped or repeated a message"),
              "%s", error.message);
}

Test(lane_watch, diagnosis_finds_a_message_that_came_and_was_not_the_one) {
    notes_of_messages(1);
    stream_is_at(0, 1, 1);
    stream_is_at(1, 1, 0);
    const ProgressTable table = progress_table_of();
    Error error = {0};
    diagnose_late(&table, 1, 0, 5.0, &error);
    cr_expect(strstr(error.message, "the message that came is another one"), "%s", error.message);
}

Test(lane_watch, numbers_that_wrap_still_count) {
    LaneWatch *watch = &watches[0];
    atomic_store(&watch->noted, UINT32_MAX);
    stream_is_at(0, UINT32_MAX, UINT32_MAX);
    cr_expect(lane_watch_idle(watch));
    note(0, 7, 64);
    cr_expect(!lane_watch_idle(watch));
    stream_is_at(0, 0, UINT32_MAX);
    cr_expect_eq(atomic_load(&rows[0].cells[0].place.task), 7);
    stream_is_at(0, 0, 0);
    cr_expect(lane_watch_idle(watch));
}
