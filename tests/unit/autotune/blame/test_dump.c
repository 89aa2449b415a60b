// Dumps of each form and version as entries and groups.

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "autotune/blame/job.h"

static Arena arena;
static Error error;
static char folder[] = "/tmp/ndtune-dumps-XXXXXX";

static void begin(void) {
    cr_assert_not_null(mkdtemp(folder));
}

static void end(void) {
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    cr_expect_eq(system(command), 0);
    arena_free(&arena);
}

TestSuite(dump, .init = begin, .fini = end);

static void write_file(const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

static Status read_job(Job *job) {
    error = (Error){0};
    return job_read(folder, 0, &arena, job, &error);
}

#define ENTRY(name, in, out)                                                                                           \
    "{\"entries\":[{\"collective_seq_id\":3,\"process_group\":[\"1\",\"mesh_dp\"],\"profiling_name\":\"" name          \
    "\",\"input_sizes\":" in ",\"output_sizes\":" out ",\"input_dtypes\":[\"BFloat16\"],\"state\":\"completed\","      \
    "\"retired\":true,\"record_id\":0,\"time_created_ns\":5,\"timeout_ms\":600000}],\"pg_config\":{\"1\":{\"name\":"   \
    "\"1\",\"desc\":\"mesh_dp\",\"ranks\":\"[0, 2]\"}},\"version\":\"2.10\"}"

Test(dump, an_entry_has_its_operation_size_and_group) {
    Job job;
    write_file("rank_0", ENTRY("nccl:_all_gather_base", "[[2,3]]", "[[4,3]]"));
    cr_assert_eq(read_job(&job), STATUS_OK, "%s", error.message);
    const DumpEntry *entry = &job.ranks[0].dump->entries[0];
    cr_expect_eq(entry->op, DUMP_ALL_GATHER);
    cr_expect_eq(entry->in, 6);
    cr_expect_eq(entry->out, 12);
    cr_expect_eq(entry->bytes, 24);
    cr_expect_eq(entry->seq, 3);
    cr_expect(entry->completed);
    cr_expect_eq(job.world, 3);
    cr_expect_eq(job.groups[0].count, 2);
    cr_expect_eq(job.groups[0].members[1].rank, 2);
}

Test(dump, names_of_every_backend_are_the_same_operations) {
    static const struct {
        const char *name;
        DumpOp op;
    } cases[] = {{"nccl:all_reduce", DUMP_ALL_REDUCE},
                 {"gloo:all_reduce", DUMP_ALL_REDUCE},
                 {"nccl:allreduce_coalesced", DUMP_ALL_REDUCE},
                 {"xccl:_reduce_scatter_base", DUMP_REDUCE_SCATTER},
                 {"nccl:reduce", DUMP_REDUCE},
                 {"nccl:ALLGATHER_coalesced", DUMP_ALL_GATHER},
                 {"nccl:all_reduce_barrier", DUMP_BARRIER},
                 {"nccl:send 0->1", DUMP_SEND},
                 {"nccl:recv 1<-0", DUMP_RECEIVE},
                 {"nccl:all_to_all", DUMP_ALL_TO_ALL},
                 {"nccl:nothing_known", DUMP_OTHER}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena own = {0};
        char text[1024];
        const DumpValue *root = NULL;
        Dump dump = {0};
        snprintf(text, sizeof text, ENTRY("%s", "[[1]]", "[[1]]"), cases[i].name);
        write_file("one", text);
        char path[128];
        snprintf(path, sizeof path, "%s/one", folder);
        cr_assert_eq(dump_read_file(path, &own, &root, &error), STATUS_OK);
        cr_assert_eq(dump_of_value(root, &own, &dump, &error), STATUS_OK);
        cr_expect_eq(dump.entries[0].op, cases[i].op, "%s", cases[i].name);
        arena_free(&own);
    }
}

Test(dump, sizes_beyond_64_bits_overflow_nothing) {
    Job job;
    write_file("rank_0", ENTRY("nccl:all_reduce", "[[4611686018427387904,8],[9]]", "[[-3]]"));
    cr_assert_eq(read_job(&job), STATUS_OK);
    cr_expect_eq(job.ranks[0].dump->entries[0].bytes, -1);
}

Test(dump, a_folder_in_the_folder_is_a_host) {
    Job job;
    char path[128];
    snprintf(path, sizeof path, "%s/node7", folder);
    cr_assert_eq(mkdir(path, 0700), 0);
    write_file("node7/trace_2.json", ENTRY("nccl:all_reduce", "[[1]]", "[[1]]"));
    write_file("trace_0.pickle", ENTRY("nccl:all_reduce", "[[1]]", "[[1]]"));
    cr_assert_eq(read_job(&job), STATUS_OK, "%s", error.message);
    cr_expect_str_eq(job.ranks[2].dump->host, "node7");
    cr_expect_null(job.ranks[0].dump->host);
    cr_expect_null(job.ranks[1].dump);
}

Test(dump, a_file_that_cannot_be_read_is_named_and_left_out) {
    Job job;
    write_file("rank_0", ENTRY("nccl:all_reduce", "[[1]]", "[[1]]"));
    write_file("rank_2", "cos\nsystem\n");
    write_file("notes.txt", "x");
    cr_assert_eq(read_job(&job), STATUS_OK);
    cr_assert_eq(job.note_count, 2);
    const bool first = strstr(job.notes[0], "GLOBAL") != NULL;
    cr_expect_not_null(strstr(job.notes[first ? 0 : 1], "opcode GLOBAL (0x63) is refused"));
    cr_expect_not_null(strstr(job.notes[first ? 1 : 0], "notes.txt is left out"));
}

Test(dump, folders_without_a_job_are_refused_in_words) {
    Job job;
    cr_expect_eq(read_job(&job), STATUS_USAGE);
    cr_expect_not_null(strstr(error.message, "no dumps in"));
    write_file("rank_0", "{\"a\":1}");
    cr_expect_eq(read_job(&job), STATUS_USAGE);
    cr_expect_not_null(strstr(error.message, "neither entries nor pg_config"), "%s", error.message);
    write_file("rank_0", ENTRY("nccl:all_reduce", "[[1]]", "[[1]]"));
    write_file("other_0", ENTRY("nccl:all_reduce", "[[1]]", "[[1]]"));
    cr_expect_eq(read_job(&job), STATUS_USAGE);
    cr_expect_not_null(strstr(error.message, "two dumps of rank 0"));
}

// The ranks of a mesh dimension that no dump lists, one of which never got to use it.
Test(dump, a_member_that_never_used_its_group_is_found_by_the_other_groups) {
#define USE(rank, group)                                                                                               \
    write_file("rank_" rank,                                                                                           \
               "{\"entries\":[{\"collective_seq_id\":1,\"process_group\":[\"0\",\"default_pg\"],\"profiling_name\":"   \
               "\"gloo:barrier\"}," group "],\"pg_config\":{}}")
#define GROUP(name)                                                                                                    \
    "{\"collective_seq_id\":1,\"process_group\":[\"" name "\",\"mesh_tp\"],\"profiling_name\":\"gloo:all_reduce\"}"
    Job job;
    USE("0", GROUP("3"));
    USE("1", GROUP("3"));
    USE("2", GROUP("4"));
    write_file("rank_3", "{\"entries\":[],\"pg_config\":{}}");
    cr_assert_eq(read_job(&job), STATUS_OK);
    for (int g = 0; g < job.group_count; g++) {
        if (strcmp(job.groups[g].name, "4") == 0) {
            cr_assert_eq(job.groups[g].count, 2);
            cr_expect_eq(job.groups[g].members[1].rank, 3);
        }
    }
}

// As batch_isend_irecv leaves them: messages without a state of their own, and an end that has one.
Test(dump, messages_of_a_batch_are_over_when_its_end_is) {
#define MESSAGE(name, seq, state)                                                                                      \
    "{\"p2p_seq_id\":" seq                                                                                             \
    ",\"collective_seq_id\":0,\"process_group\":[\"1\",\"mesh_pp\"],\"profiling_name\":\"nccl:" name                   \
    "\",\"input_sizes\":[[8]],\"output_sizes\":[[8]],\"input_dtypes\":[\"Float\"],\"state\":\"" state                  \
    "\",\"is_p2p\":true,\"time_created_ns\":5}"
    Job job;
    write_file(
        "rank_0",
        "{\"entries\":[" MESSAGE("send 0->1", "1", "scheduled") "," MESSAGE("recv 0<-1", "1", "scheduled") "," MESSAGE(
            "coalesced", "1",
            "completed") "," MESSAGE("send 0->1", "2",
                                     "scheduled") "," MESSAGE("coalesced", "2",
                                                              "started") "],\"pg_config\":{\"1\":{\"name\":\"1\","
                                                                         "\"desc\":"
                                                                         "\"mesh_pp\",\"ranks\":\"[0, 4]\"}}}");
    cr_assert_eq(read_job(&job), STATUS_OK, "%s", error.message);
    cr_assert_eq(job.process_groups, 1);
    cr_assert_eq(job.group_count, 3);
    const JobGroup *sends = &job.groups[1], *receives = &job.groups[2];
    cr_expect_eq(sends->from, 0);
    cr_expect_eq(sends->to, 4);
    cr_expect_eq(receives->from, 4);
    cr_assert_eq(sends->members[0].count, 2);
    cr_expect(sends->members[0].turns[0].done);
    cr_expect_not(sends->members[0].turns[1].done);
    cr_assert_eq(receives->members[0].count, 1);
    cr_expect(receives->members[0].turns[0].done);
    cr_expect(sends->stages);
}

// Keys and version of torch 2.5.1 (c10d/TraceUtils.h of its wheel): no host, the communicators next to the entries. No
// real dump of it was available: it records jobs over NCCL only.
Test(dump, what_torch_2_5_writes_is_read) {
    Job job;
    write_file(
        "rank_0",
        "{\"version\":\"2.4\",\"nccl_comm_state\":{\"0\":{\"status\":\"init\"}},\"pg_config\":{\"0\":{\"name\":\"0\","
        "\"desc\":\"default_pg\",\"ranks\":\"[0, 1]\"}},\"pg_status\":{\"0\":{\"last_completed_collective\":1}},"
        "\"entries\":[{\"record_id\":0,\"pg_id\":0,\"process_group\":[\"0\",\"default_pg\"],\"collective_seq_id\":2,"
        "\"p2p_seq_id\":0,\"op_id\":2,\"is_p2p\":false,\"profiling_name\":\"nccl:all_reduce\",\"input_sizes\":[[8]],"
        "\"input_dtypes\":[\"Float\"],\"output_sizes\":[[8]],\"output_dtypes\":[\"Float\"],\"state\":\"started\","
        "\"retired\":false,\"time_created_ns\":5,\"time_discovered_started_ns\":6,\"timeout_ms\":600000,"
        "\"frames\":[{\"name\":\"step\",\"filename\":\"train.py\",\"line\":7}]}]}");
    cr_assert_eq(read_job(&job), STATUS_OK, "%s", error.message);
    const Dump *dump = job.ranks[0].dump;
    cr_expect_str_eq(dump->version, "2.4");
    cr_assert_eq(dump->entry_count, 1);
    cr_expect_eq(dump->entries[0].op, DUMP_ALL_REDUCE);
    cr_expect_eq(dump->entries[0].seq, 2);
    cr_expect_eq(dump->entries[0].bytes, 32);
    cr_expect_not(dump->entries[0].completed);
    cr_expect_str_eq(dump->entries[0].caller, "step at train.py:7");
    cr_assert_eq(dump->groups[0].rank_count, 2);
}
