// Verdicts on hand-made pipelines: four stages that pass on three micro-batches and their gradients back, twice; then
// one stage does something else.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/blame/verdict.h"

enum { STAGES = 4, MICRO_BATCHES = 3, MOST = 400, ELEMENTS = 1000 };

static const int64_t SECOND = 1000000000, BEGIN = 1700000000LL * 1000000000;

static Arena arena;
static Dump dumps[STAGES];
static int64_t clock_ns[STAGES];
static Job job;
static Verdict verdict;

static const int all[STAGES] = {0, 1, 2, 3};

static void begin(void) {
    for (int rank = 0; rank < STAGES; rank++) {
        DumpGroup *groups = ARENA_NEW(&arena, DumpGroup);
        *groups = (DumpGroup){"0", "mesh_pp", all, STAGES};
        dumps[rank] = (Dump){.rank = rank,
                             .path = "x",
                             .groups = groups,
                             .group_count = 1,
                             .entries = ARENA_ARRAY(&arena, DumpEntry, MOST),
                             .says_complete = true};
        clock_ns[rank] = BEGIN + rank * SECOND / 1000;
    }
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(messages, .init = begin, .fini = end);

static DumpEntry *message(int rank, DumpOp op, int peer) {
    Dump *dump = &dumps[rank];
    DumpEntry *entry = &dump->entries[dump->entry_count++];
    clock_ns[rank] += SECOND / 100;
    *entry = (DumpEntry){.op = op,
                         .name = "nccl:x",
                         .own = rank,
                         .peer = peer,
                         .p2p = true,
                         .p2p_seq = dump->entry_count,
                         .in = ELEMENTS,
                         .out = ELEMENTS,
                         .bytes = 4 * ELEMENTS,
                         .dtype = "Float",
                         .completed = true,
                         .created_ns = clock_ns[rank],
                         .completed_ns = clock_ns[rank] + SECOND / 200,
                         .duration_ms = -1,
                         .timeout_ms = 600000};
    return entry;
}

// The messages of a stage's step, from the `from`-th to the one before `to`; the `skipped`-th is left out.
static void step(int rank, int from, int to, int skipped) {
    int at = 0;
    for (int way = 0; way < 2; way++) {
        const int before = way == 0 ? rank - 1 : rank + 1, behind = way == 0 ? rank + 1 : rank - 1;
        for (int m = 0; m < MICRO_BATCHES; m++) {
            if (before >= 0 && before < STAGES && at++ != skipped && at > from && at <= to) {
                message(rank, DUMP_RECEIVE, before);
            }
            if (behind >= 0 && behind < STAGES && at++ != skipped && at > from && at <= to) {
                message(rank, DUMP_SEND, behind);
            }
        }
    }
}

enum { ALL = 100, NONE = -1 };

static void steps(int count) {
    for (int i = 0; i < count * STAGES; i++) {
        step(i % STAGES, 0, ALL, NONE);
    }
}

static void pend(int rank) {  // in its last
    DumpEntry *last = &dumps[rank].entries[dumps[rank].entry_count - 1];
    last->completed = false;
    last->completed_ns = 0;
}

static void judge(double after_s) {
    Error error = {0};
    for (int rank = 0; rank < STAGES; rank++) {
        dumps[rank].written_ns = BEGIN + 5 * SECOND + (int64_t)(after_s * (double)SECOND);
    }
    cr_assert_eq(job_of_dumps(dumps, STAGES, 0, &arena, &job, &error), STATUS_OK);
    verdict_find(&job, 0, &arena, &verdict);
}

static void blames(VerdictKind kind, int rank, DumpOp op, int from, int to) {
    cr_assert_eq(verdict.kind, kind, "%s", verdict_kinds[verdict.kind].name);
    cr_assert_eq(verdict.rank_count, 1);
    cr_expect_eq(verdict.ranks[0], rank, "rank %d", verdict.ranks[0]);
    cr_assert_geq(verdict.due.group, job.process_groups);
    cr_expect_eq(verdict.due.op, op);
    cr_expect_eq(job.groups[verdict.due.group].from, from);
    cr_expect_eq(job.groups[verdict.due.group].to, to);
}

Test(messages, a_channel_is_what_one_stage_sends_another) {
    steps(2);
    judge(3600);
    cr_expect_eq(verdict.kind, VERDICT_HEALTHY, "%s", verdict_kinds[verdict.kind].name);
    cr_expect_eq(job.process_groups, 1);
    cr_expect_eq(job.group_count, 1 + 2 * (STAGES - 1));
    for (int g = job.process_groups; g < job.group_count; g++) {
        cr_expect(job.groups[g].stages);
        cr_expect_eq(job.groups[g].members[0].count, 2 * MICRO_BATCHES);
        cr_expect_eq(job.groups[g].members[1].count, 2 * MICRO_BATCHES);
    }
}

// Stage 2 stopped before it took its second micro-batch; 3 waits for it, 1 has sent in vain, 0 waits for 1.
Test(messages, the_stage_that_never_took_a_message_is_missing) {
    steps(2);
    step(0, 0, 4, NONE);
    step(1, 0, 4, NONE);
    step(2, 0, 2, NONE);
    step(3, 0, 2, NONE);
    for (int rank = 0; rank < STAGES; rank++) {
        if (rank != 2) {
            pend(rank);
        }
    }
    judge(700);
    blames(VERDICT_MISSING, 2, DUMP_RECEIVE, 1, 2);
    cr_expect_eq(verdict.due.seq, 2 * MICRO_BATCHES + 2);
    cr_assert_eq(verdict.waiting_count, 1);
    cr_expect_eq(verdict.waiting[0], 1);
    cr_expect_geq(verdict.awaited_count, 2);
}

// Stage 1 left its second send out and waits for gradients, stage 2 for a third message.
Test(messages, a_send_that_was_left_out_is_found_by_the_stages_own_past) {
    steps(2);
    step(0, 0, 4, NONE);
    step(1, 0, 7, 3);
    step(2, 0, 5, NONE);
    step(3, 0, 3, NONE);
    for (int rank = 0; rank < STAGES; rank++) {
        pend(rank);
    }
    judge(700);
    blames(VERDICT_SKIPPED, 1, DUMP_SEND, 1, 2);
    cr_expect_eq(verdict.due.seq, 2 * MICRO_BATCHES + 2);
}

Test(messages, a_message_of_another_size_is_its_senders_where_it_sent_others_before) {
    steps(2);
    step(0, 0, 3, NONE);
    step(1, 0, 2, NONE);
    step(2, 0, 1, NONE);
    dumps[1].entries[dumps[1].entry_count - 1].in = ELEMENTS + 24;
    dumps[1].entries[dumps[1].entry_count - 1].out = ELEMENTS + 24;
    pend(1);
    pend(2);
    judge(700);
    blames(VERDICT_SIZE, 1, DUMP_SEND, 1, 2);
    cr_expect_eq(verdict.did.in, ELEMENTS + 24);
}

// The ring of stage 1 has lost its first messages: its numbers begin later, and no rank is blamed for that.
Test(messages, numbers_are_those_of_the_last_message_that_is_over_where_a_ring_lost_the_first) {
    enum { LOST = 7 };
    steps(2);
    dumps[1].wrapped = true;
    dumps[1].entries += LOST;
    dumps[1].entry_count -= LOST;
    judge(3600);
    cr_expect_eq(verdict.kind, VERDICT_HEALTHY, "%s", verdict_kinds[verdict.kind].name);
    for (int g = job.process_groups; g < job.group_count; g++) {
        const JobGroup *channel = &job.groups[g];
        cr_expect_eq(channel->members[0].turns[channel->members[0].count - 1].seq, 2 * MICRO_BATCHES);
        cr_expect_eq(channel->members[1].turns[channel->members[1].count - 1].seq, 2 * MICRO_BATCHES);
    }
}

// Every stage computes for 10 ms, stage 2 for 30: all wait for it, and it waits for none.
Test(messages, the_slow_stage_is_the_one_that_waits_least) {
    int64_t free_ns[STAGES] = {BEGIN, BEGIN, BEGIN, BEGIN}, here_ns[STAGES][MICRO_BATCHES] = {{0}};
    for (int round = 0; round < 20; round++) {
        for (int way = 0; way < 2; way++) {
            for (int m = 0; m < MICRO_BATCHES; m++) {
                for (int at = 0; at < STAGES; at++) {
                    const int rank = way == 0 ? at : STAGES - 1 - at, before = way == 0 ? rank - 1 : rank + 1;
                    const int64_t work_ns = rank == 2 ? 30000000 : 10000000;
                    int64_t start_ns = free_ns[rank];
                    if (at > 0) {
                        message(rank, DUMP_RECEIVE, before)->created_ns = free_ns[rank];
                        start_ns = here_ns[before][m] > start_ns ? here_ns[before][m] : start_ns;
                    }
                    free_ns[rank] = start_ns + work_ns;
                    here_ns[rank][m] = free_ns[rank];
                    if (at + 1 < STAGES) {
                        message(rank, DUMP_SEND, way == 0 ? rank + 1 : rank - 1)->created_ns = free_ns[rank];
                    }
                }
            }
        }
    }
    for (int rank = 0; rank < STAGES; rank++) {
        clock_ns[rank] = free_ns[rank];
    }
    judge(0);
    cr_assert_eq(verdict.kind, VERDICT_SLOW, "%s", verdict_kinds[verdict.kind].name);
    cr_expect_eq(verdict.ranks[0], 2);
}

// A ring sends one way: its members are no stages.
Test(messages, a_ring_has_no_stages) {
    for (int i = 0; i < 6 * STAGES; i++) {
        const int64_t together_ns = message(i % STAGES, DUMP_SEND, (i + 1) % STAGES)->created_ns;
        message(i % STAGES, DUMP_RECEIVE, (i + STAGES - 1) % STAGES)->created_ns = together_ns;
    }
    judge(3600);
    cr_expect_eq(verdict.kind, VERDICT_HEALTHY, "%s", verdict_kinds[verdict.kind].name);
    cr_assert_eq(job.group_count, 1 + STAGES);
    for (int rank = 0; rank < STAGES; rank++) {
        cr_expect_eq(job.ranks[rank].stage, -1);
        cr_expect_not(job.groups[1 + rank].stages);
    }
}
